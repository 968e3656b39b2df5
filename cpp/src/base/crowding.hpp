#pragma once
// Decide whether a team of threads is worth it at the moment. Members that meet every microsecond must run at
// the same time: on a machine busy with other work they wait for the scheduler instead, a thousand times
// longer than they work.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Chooses between a team and one thread for each piece of a long loop, by the time the pieces take. Only for
/// loops whose results do not depend on the number of threads.
class Crowding {
public:
    /// True if the time of one thread is not known yet: then the next piece should be short.
    bool learning() const { return alone_ == std::numeric_limits<double>::infinity(); }

    /// Threads for the next piece, at most `most`.
    int team(int most) const { return learning() || alone_for_ > 0 ? 1 : most; }

    /// True if a team that has done `units` of work in so many seconds should give up.
    bool hopeless(double seconds, double units) const { return seconds > kStart + 2 * alone_ * units; }

    /// Begin with a guess of the seconds of one thread per unit, where measuring them would take long.
    void expect(double seconds) { alone_ = seconds; }

    /// Record that a piece took `team` threads so many seconds per unit of work.
    void took(int team, double seconds) {
        if (team == 1) {
            alone_ = seconds;
            if (alone_for_ > 0) --alone_for_;
        } else if (seconds > 1.25 * alone_) {  // try again later, and ever later
            alone_for_ = pause_;
            pause_ = pause_ < kLongest ? 2 * pause_ : kLongest;
        } else {
            pause_ = kShortest;
        }
    }

private:
    static constexpr double kStart = 1e-3;               // seconds that waking the team may take
    static constexpr int kShortest = 4, kLongest = 256;  // pieces

    int alone_for_ = 0, pause_ = kShortest;
    double alone_ = std::numeric_limits<double>::infinity();  // seconds of one thread
};

/// Decides whether the parallel loops of a calling thread are worth it, by how long it waits at their ends
/// for members that have nothing left to do but to be given a core. For ten times as long as it has lost in
/// such a loop, and longer if it soon happens again, it does the next ones alone: waiting takes a tenth of
/// its time at most. For loops whose results do not depend on the number of threads.
class Lateness {
public:
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;

    /// The object of the calling thread.
    static Lateness& mine() {
        static constinit thread_local Lateness own;
        return own;
    }

    bool alone() const { return until_ > Clock::time_point{} && alone_at(Clock::now()); }
    bool alone_at(Clock::time_point now) const { return now < until_; }

    /// Record a loop that ended now, in which the calling thread worked for `own` and then waited for so many
    /// seconds, and the busiest of the others needed a core for `others`.
    void waited(double own, double waiting, double others, Clock::time_point now = Clock::now()) {
        const double lost = waiting - std::max(0.0, others - own);
        if (!(lost > kStart)) return;
        // Again so soon that the team has not paid for it: ever longer.
        factor_ = now - until_ < rest_ ? std::min(2 * factor_, kLongest) : kShortest;
        rest_ = std::chrono::duration_cast<Clock::duration>(Seconds(factor_ * lost));
        until_ = now + rest_;
    }

    class Helper;

    /// One parallel loop, watched by its calling thread.
    class Region {
    public:
        void own_work_done() { done_ = Clock::now(); }
        void end() {
            const Clock::time_point now = Clock::now();
            mine().waited(Seconds(done_ - begin_).count(), Seconds(now - done_).count(), others_.load(), now);
        }

    private:
        friend class Helper;
        Clock::time_point begin_ = Clock::now(), done_ = begin_;
        std::atomic<double> others_{0};
    };

    /// Tells a region for how long the thread that it lives on had a core.
    class Helper {
    public:
        explicit Helper(Region& region) : region_(region), begin_(processor_seconds()) {}
        ~Helper() {
            const double took = processor_seconds() - begin_;
            double most = region_.others_.load();
            while (took > most && !region_.others_.compare_exchange_weak(most, took)) {
            }
        }
        Helper(const Helper&) = delete;
        Helper& operator=(const Helper&) = delete;

    private:
        static double processor_seconds() {
            timespec t{};
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
        }
        Region& region_;
        double begin_;
    };

private:
    static constexpr double kStart = 2e-4;                   // seconds that waking the others may take
    static constexpr double kShortest = 10, kLongest = 160;  // times what was lost

    double factor_ = kShortest;
    Clock::duration rest_{};
    Clock::time_point until_{};  // alone
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
