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
    /// Whether the next piece is one to learn from: it should be short.
    bool learning() const { return learning_; }

    /// Threads for the next piece, at most `most`.
    int team(int most) const { return alone_for_ > 0 ? 1 : most; }

    /// A piece with so many threads took so long, per unit of work.
    void took(int team, double time) {
        learning_ = false;
        if (team == 1) {
            alone_ = time;
            if (alone_for_ > 0) learning_ = --alone_for_ == 0;
        } else if (time > alone_) {  // one thread is faster; try again later, and ever later
            alone_for_ = pause_;
            pause_ = pause_ < kLongest ? 2 * pause_ : kLongest;
        } else {
            pause_ = kShortest;
        }
    }

private:
    static constexpr int kShortest = 4, kLongest = 256;

    bool learning_ = true;
    int alone_for_ = 1;  // pieces
    int pause_ = kShortest;
    double alone_ = std::numeric_limits<double>::infinity();
};

}  // namespace mfcore
