#pragma once
// Whether a team of threads is worth it just now. Members that meet every microsecond must run at the same
// time: on a machine busy with other work they wait for the scheduler instead, a thousand times longer than
// they work.
#include <limits>

namespace mfcore {

/// Chooses between a team and one thread for each piece of a long loop, by the time the pieces take. Only for
/// loops whose results do not depend on the number of threads.
class Crowding {
public:
    /// Whether it is not known yet what one thread takes: the next piece should be short.
    bool learning() const { return alone_ == std::numeric_limits<double>::infinity(); }

    /// Threads for the next piece, at most `most`.
    int team(int most) const { return learning() || alone_for_ > 0 ? 1 : most; }

    /// Whether a team that has done `units` of work in so many seconds should give up.
    bool hopeless(double seconds, double units) const { return seconds > kStart + 2 * alone_ * units; }

    /// A piece with so many threads took so many seconds per unit of work.
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

}  // namespace mfcore
