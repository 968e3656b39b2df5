#pragma once
// What every long computation shares: how many threads, and whether somebody wants it to stop.
#include <chrono>
#include <functional>
#include <string>

namespace mfcore {

/// Threads for a request: `requested` if > 0, otherwise the default (OMP_NUM_THREADS at the first call, else
/// the cores). In a process forked after a parallel region the OpenMP pool is gone: there the answer is 1.
int resolve_threads(int requested);

/// Asked between steps, on the calling thread and outside parallel regions; true means "stop and return what
/// you have".
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

/// How this library was built, for `mfcore info`.
struct BuildInfo {
    std::string version, isa, compiler, eigen, openmp;
    int vector_bits;
};
BuildInfo build_info();

}  // namespace mfcore
