#pragma once
// Release the GIL during calls of the core, and end them early on Ctrl-C or at a time limit.
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "mfcore/base/run.hpp"

namespace mfcore::bindings {

namespace py = pybind11;

/// Call body(), which may have to wait for the interpreter. When a process ends, Python until 3.13 ends
/// threads that it finds waiting, by unwinding them, which destructors and parallel regions do not survive.
/// Such a thread sleeps here instead, as it does in Python from 3.14 on, until the process is gone.
template <class Body>
decltype(auto) outliving_python(Body&& body) {
#ifdef __GLIBCXX__
    try {
        return body();
    } catch (abi::__forced_unwind&) {
        while (true) pause();
    }
#else
    return body();
#endif
}

/// Call body() with the GIL, from code that runs without it.
template <class Body>
decltype(auto) with_gil(Body&& body) {
    std::optional<py::gil_scoped_acquire> gil;
    outliving_python([&] { gil.emplace(); });
    return outliving_python(body);
}

/// True if this is the thread in which Python handles signals: the others need not ask it.
bool on_main_thread();

/// True when the user pressed Ctrl-C. Whatever else a Python signal handler raises passes through the core as
/// the exception it is.
bool ctrl_c_pressed();

/// A time limit for whatever the core computes for a thread of Python, from open() to close().
class Deadline {
public:
    explicit Deadline(double seconds);
    ~Deadline() { close(); }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

    void open();
    void close();
    bool passed() const { return Clock::now() >= end_; }
    /// True if this deadline has ended a call.
    bool expired() const { return expired_; }
    void expire() { expired_ = true; }
    /// The one opened last by this thread, or null.
    static Deadline* current();

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point end_;
    Deadline* outer_ = nullptr;
    bool open_ = false, expired_ = false;
};

/// Lets the GIL go while it lives. What the core computes meanwhile stops on Ctrl-C and at the deadline of
/// this thread; the Interrupted that it throws then becomes KeyboardInterrupt or OutOfTime.
class Released {
public:
    Released();
    /// For calls that return what they have once so many seconds have passed.
    explicit Released(double seconds);
    ~Released();
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

    bool wants_stop();
    /// True if such a call should return now; asked between two steps.
    bool wants_end() { return wants_stop() || Clock::now() >= end_; }
    /// How a call ended that the core says this of: why it was stopped, if it was.
    End because(End end) const { return end == End::out_of_time && ctrl_c_ ? End::interrupted : end; }

private:
    using Clock = std::chrono::steady_clock;
    Deadline* deadline_;
    bool main_thread_, ctrl_c_ = false;
    Clock::time_point end_;
    PyThreadState* state_;
    std::optional<StopScope> scope_;
};

}  // namespace mfcore::bindings
