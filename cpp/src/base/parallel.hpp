#pragma once
// Parallel loops; the only file with OpenMP. Work is cut into blocks whose bounds depend on the problem
// alone, never on the number of threads, so that results have the same bits for any number of threads.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>

#include "base/crowding.hpp"
#include "base/runnable.hpp"
#include "mfcore/base/run.hpp"
#include "mfcore/base/views.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Keeps the first exception of a body run in a parallel region, which none may leave, to be thrown later.
class ErrorKeeper {
public:
    template <class Body>
    void guard(Body&& body) {
        if (failed_.load(std::memory_order_relaxed)) return;
        try {
            body();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!error_) error_ = std::current_exception();
            failed_.store(true, std::memory_order_release);
        }
    }
    const std::atomic<bool>& failed() const { return failed_; }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::exception_ptr error_;
};

/// Run body(rank, size) on a team of up to `wanted` threads in one parallel region, `size` being how many
/// there are, 0 the rank of the calling one: for loops that meet at barriers of their own (base/barrier.hpp).
/// body must not throw: the others would wait for ever.
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

/// Run a team like run_team whose members take work until none is left and meet nobody before the end. On a
/// machine busy with other work the calling thread would spend its time waiting there for those that are not
/// given a core: it works alone then, and for a while after it had to wait (base/crowding.hpp).
template <class Body>
void run_helpers(int wanted, Body&& body) {
    if (wanted <= 1 || Lateness::mine().alone() || cores_are_wanted()) {
        body(0, 1);
        return;
    }
    Lateness::Region region;
    run_team(wanted, [&](int rank, int size) {
        if (rank == 0) {
            body(rank, size);
            region.own_work_done();
        } else {
            const Lateness::Helper busy(region);
            body(rank, size);
        }
    });
    region.end();
}

/// Call body(rank, task) for tasks 0 .. n-1, handed out in order as the members of a team become free; two
/// tasks of one rank are never done at the same time. Between tasks the calling thread asks whether to stop.
template <class Body>
void hand_out(Index n, int threads, Body&& body) {
    const int team = static_cast<int>(std::min<Index>(resolve_threads(threads), n));
    if (team <= 1) {
        for (Index k = 0; k < n; ++k) {
            check_stop();
            body(0, k);
        }
        return;
    }
    ErrorKeeper keeper;
    std::atomic<Index> next{0};
    run_helpers(team, [&](int rank, int) {
        std::optional<StopScope> told;  // the others see that the first one was
        if (rank > 0) told.emplace(keeper.failed());
        for (Index k = next++; k < n && !keeper.failed(); k = next++)
            keeper.guard([&] {
                check_stop();
                body(rank, k);
            });
    });
    keeper.rethrow();
}

/// Call body(task) for tasks 0 .. n-1 of unequal cost, handed out in order as threads become free.
template <class Body>
void for_tasks(Index n, int threads, Body&& body) {
    hand_out(n, threads, [&](int, Index k) { body(k); });
}

/// Call body(block, begin, end) for every block of `block_size` items of [0, n), the last one possibly
/// shorter. Blocks are handed out as threads become free: body must write only what belongs to its block.
template <class Body>
void for_blocks(Index n, Index block_size, int threads, Body&& body) {
    for_tasks((n + block_size - 1) / block_size, threads,
              [&](Index b) { body(b, b * block_size, std::min(n, (b + 1) * block_size)); });
}

/// Least nanoseconds of work per thread: waking a sleeping thread takes up to 50 microseconds.
inline constexpr Index kWorkPerThread = 50'000;

/// Number of threads for one parallel loop of about `nanoseconds` of work on one core.
inline int threads_for(Index nanoseconds, int requested) {
    return static_cast<int>(std::clamp<Index>(nanoseconds / kWorkPerThread, 1, resolve_threads(requested)));
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
