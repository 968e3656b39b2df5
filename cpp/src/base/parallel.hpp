#pragma once
// The only file with OpenMP. Work is cut into blocks whose bounds depend on the problem alone, never on the
// number of threads, so that results have the same bits for any number of threads.
#include <algorithm>
#include <atomic>
#include <exception>

#include "mfcore/run.hpp"
#include "mfcore/views.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace mfcore {

/// Run body() on the calling thread and keep its first exception for later: none may leave a parallel region.
class ErrorKeeper {
public:
    template <class Body>
    void guard(Body&& body) {
        if (failed_.load(std::memory_order_relaxed)) return;
        try {
            body();
        } catch (...) {
            if (!failed_.exchange(true)) error_ = std::current_exception();
        }
    }
    bool failed() const { return failed_.load(std::memory_order_relaxed); }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;
};

/// Call body(block, begin, end) for every block of `block_size` items of [0, n), the last one possibly
/// shorter. Blocks are handed out as threads become free: body must write only what belongs to its block.
template <class Body>
void for_blocks(Index n, Index block_size, int threads, Body&& body) {
    const Index blocks = (n + block_size - 1) / block_size;
    const int team = static_cast<int>(std::min<Index>(resolve_threads(threads), blocks));
    if (team <= 1) {
        for (Index b = 0; b < blocks; ++b) body(b, b * block_size, std::min(n, (b + 1) * block_size));
        return;
    }
    ErrorKeeper keeper;
#pragma omp parallel for schedule(static) num_threads(team)
    for (Index b = 0; b < blocks; ++b) {
        keeper.guard([&] { body(b, b * block_size, std::min(n, (b + 1) * block_size)); });
    }
    keeper.rethrow();
}

/// Call body(task) for tasks 0 .. n-1 of unequal cost, handed out in order as threads become free.
template <class Body>
void for_tasks(Index n, int threads, Body&& body) {
    const int team = static_cast<int>(std::min<Index>(resolve_threads(threads), n));
    if (team <= 1) {
        for (Index k = 0; k < n; ++k) body(k);
        return;
    }
    ErrorKeeper keeper;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
    for (Index k = 0; k < n; ++k) keeper.guard([&] { body(k); });
    keeper.rethrow();
}

/// Run body(rank, size) on a team of up to `wanted` threads in one parallel region, `size` being how many
/// there are: for loops that meet at barriers of their own (base/barrier.hpp). body must not throw: the
/// others would wait for ever.
template <class Body>
void run_team(int wanted, Body&& body) {
    if (wanted <= 1) {
        body(0, 1);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel num_threads(wanted)
    body(omp_get_thread_num(), omp_get_num_threads());
#else
    body(0, 1);
#endif
}

/// Nanoseconds of work that are worth waking a thread for: waking a sleeping one takes up to 50 microseconds.
inline constexpr Index kWorkPerThread = 50'000;

/// Threads for one parallel loop of about `nanoseconds` of work on one core.
inline int threads_for(Index nanoseconds, int requested) {
    return static_cast<int>(std::clamp<Index>(nanoseconds / kWorkPerThread, 1, resolve_threads(requested)));
}

}  // namespace mfcore
