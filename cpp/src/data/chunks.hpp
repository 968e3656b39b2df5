#pragma once
// Samples of a law, drawn a chunk at a time, in parallel where the sampler allows that.
#include <algorithm>

#include "base/scratch.hpp"
#include "mfcore/base/run.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {

/// Samples first .. first + x.rows - 1 of the sampler, drawn in parallel where it allows that.
void draw_samples(const Sampler& sampler, std::uint64_t seed, Index first, Mat x, double* y, int threads);

inline constexpr Index kDrawn = 1 << 17;  ///< numbers of samples in memory at a time, if a chunk is not more

/// Samples 0 .. samples - 1 of a sampler, `chunk` at a time. Where `keeps`, the inputs of a chunk stay where they
/// are while the next one is looked at.
class Chunks {
public:
    Chunks(const Sampler& sampler, std::uint64_t seed, Index samples, Index chunk, bool keeps, int threads,
           const StopPredicate& wants_stop)
        : sampler_(sampler),
          seed_(seed),
          samples_(samples),
          chunk_(chunk),
          threads_(threads),
          drawn_(std::min(most(sampler, chunk), (samples + chunk - 1) / chunk) * chunk),
          parts_(keeps && samples > drawn_ ? 2 : 1),
          x_(parts_ * drawn_ * sampler.dimension()),
          y_(drawn_),
          stop_(wants_stop) {}

    /// Go to the next chunk; false if there is none, or when the stop predicate says so.
    bool next() {
        if (done_ >= samples_ || stop_()) return false;
        const Index d = sampler_.dimension();
        if (done_ % drawn_ == 0) {
            const Index first = done_ / drawn_ % parts_ * drawn_;
            now_ = {x_.data() + first * d, std::min(drawn_, samples_ - done_), d};
            draw_samples(sampler_, seed_, done_, now_, y_.data(), threads_);
        }
        at_ = done_ % drawn_;
        done_ += std::min(chunk_, samples_ - done_);
        return true;
    }

    Index done() const { return done_; }  ///< samples up to the end of this chunk
    ConstMat x() const { return now_.middle_rows(at_, std::min(chunk_, now_.rows - at_)); }
    const double* y() const { return y_.data() + at_; }

private:
    /// Several chunks are drawn at a time, or threads would not be worth it.
    static Index most(const Sampler& sampler, Index chunk) {
        return sampler.concurrent() ? std::max<Index>(1, kDrawn / (chunk * (sampler.dimension() + 1))) : 1;
    }

    const Sampler& sampler_;
    std::uint64_t seed_;
    Index samples_, chunk_;
    int threads_;
    Index drawn_, parts_, done_ = 0, at_ = 0;
    Scratch<double> x_, y_;
    Mat now_;
    StopPoll stop_;
};

/// Call body(first, x, y) for every chunk. Returns how many samples there were: fewer than asked for when the stop
/// predicate said so.
template <class Body>
Index for_chunks(const Sampler& sampler, std::uint64_t seed, Index samples, Index chunk, int threads,
                 const StopPredicate& wants_stop, Body&& body) {
    Chunks chunks(sampler, seed, samples, chunk, false, threads, wants_stop);
    while (chunks.next()) body(chunks.done() - chunks.x().rows, chunks.x(), chunks.y());
    return chunks.done();
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
