#pragma once
// Why a run should stop: Ctrl-C, or its time is up.
#include <chrono>

#include "arrays.hpp"
#include "mfcore/run.hpp"

namespace mfcore::bindings {

/// Wants a stop on Ctrl-C or once `seconds` have passed (infinite: never), and remembers which it was.
class Deadline {
public:
    explicit Deadline(double seconds) : seconds_(seconds), begin_(Clock::now()) {}
    bool operator()() {
        if (!ctrl_c_) ctrl_c_ = python_wants_stop();
        return ctrl_c_ || std::chrono::duration<double>(Clock::now() - begin_).count() >= seconds_;
    }
    const char* reason() const { return ctrl_c_ ? "interrupted" : "out of time"; }

private:
    using Clock = std::chrono::steady_clock;
    double seconds_;
    Clock::time_point begin_;
    bool ctrl_c_ = false;
};

}  // namespace mfcore::bindings
