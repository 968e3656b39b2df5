#pragma once
// Threads and stopping: how many threads a computation may use, and how it asks whether to stop.
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <string>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// How a stretch of a run ended. Python sees these very values.
enum class End {
    reached,      ///< at the time or step asked for
    out_of_time,  ///< the stop predicate said so
    interrupted,  ///< by Ctrl-C, or by what the run calls
    stationary,   ///< root mean square of the gradient below the tolerance
    diverged,     ///< the next state is not finite
    stuck,        ///< adaptive steps fell below rounding
    unresolved,   ///< the next state no longer stands for the measure that is moved (System::resolved)
    open_end,     ///< mass has come to an open end of a grid
};

/// Threads for a request: `requested` if > 0, otherwise the default (OMP_NUM_THREADS at the first call, else
/// the cores that this process may use, by affinity and by the quota of its control group). In a process forked after a parallel region the OpenMP pool is gone: there the answer is 1.
int resolve_threads(int requested);

/// A question "stop?" asked between pieces of work, always on the calling thread.
using StopPredicate = std::function<bool()>;

/// Asks a StopPredicate at most every 50 ms, so that inner loops may ask as often as they like.
class StopPoll {
public:
    explicit StopPoll(StopPredicate wants_stop) : wants_stop_(std::move(wants_stop)), last_(Clock::now()) {}
    bool operator()() {
        if (!wants_stop_ || stopped_) return stopped_;
        const auto now = Clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return false;
        last_ = now;
        return stopped_ = wants_stop_();
    }

private:
    using Clock = std::chrono::steady_clock;
    StopPredicate wants_stop_;
    Clock::time_point last_;
    bool stopped_ = false;
};

/// Thrown by a computation that was stopped before its end. Its results are to be thrown away; runs in
/// progress keep their last complete state and say how they ended instead.
class Interrupted : public std::exception {
public:
    const char* what() const noexcept override { return "interrupted before the end"; }
};

/// Lets computations of this thread be stopped while it lives: they ask `wants_stop` between pieces of work,
/// at most every 50 ms, and end with Interrupted once that is true. Of several scopes the last one opened
/// counts; one without a predicate lets nothing be stopped. Without a scope nothing is ever asked.
class StopScope {
public:
    explicit StopScope(StopPredicate wants_stop);
    /// For a member of a team: stops when the flag says that the calling thread was told to stop.
    explicit StopScope(const std::atomic<bool>& stopped);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

    bool wants_stop() { return stopped_ ? stopped_->load(std::memory_order_relaxed) : poll_(); }

private:
    StopPoll poll_{{}};
    const std::atomic<bool>* stopped_ = nullptr;
    StopScope* outer_;
};

/// Throw Interrupted if the scope of this thread wants a stop.
void check_stop();

/// Call body(first, count) for pieces of n items one after the other, asking check_stop before each.
template <class Count, class Body>
void in_pieces(Count n, Count size, Body&& body) {
    for (Count first = 0; first < n; first += size) {
        check_stop();
        body(first, n - first < size ? n - first : size);
    }
}

/// How this library was built, for `mfcore info`.
struct BuildInfo {
    std::string version, isa, compiler, eigen, openmp;
    int vector_bits;
};
/// The build of the level that this file uses.
BuildInfo build_info();

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
