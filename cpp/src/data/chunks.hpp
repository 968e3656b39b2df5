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

/// Call body(first, x, y) with samples 0 .. samples - 1, `chunk` at a time. Returns how many there were:
/// fewer than asked for when the stop predicate said so.
template <class Body>
Index for_chunks(const Sampler& sampler, std::uint64_t seed, Index samples, Index chunk, int threads,
                 const StopPredicate& wants_stop, Body&& body) {
    const Index d = sampler.dimension();
    // Several chunks are drawn at a time, or threads would not be worth it.
    const Index most = sampler.concurrent() ? std::max<Index>(1, kDrawn / (chunk * (d + 1))) : 1;
    const Index drawn = std::min(most, (samples + chunk - 1) / chunk) * chunk;
    Scratch<double> x(drawn * d), y(drawn);
    StopPoll stop(wants_stop);
    Index done = 0;
    while (done < samples && !stop()) {
        const Index at = done % drawn;
        if (at == 0) {
            const Mat ahead(x.data(), std::min(drawn, samples - done), d);
            draw_samples(sampler, seed, done, ahead, y.data(), threads);
        }
        const ConstMat batch(x.data() + at * d, std::min(chunk, samples - done), d);
        body(done, batch, y.data() + at);
        done += batch.rows;
    }
    return done;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
