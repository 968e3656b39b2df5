#pragma once
// Samples of a law, drawn a chunk at a time, in parallel where the sampler allows that.
#include <algorithm>

#include "base/scratch.hpp"
#include "mfcore/base/run.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {

/// Samples first .. first + x.rows - 1 of the sampler, drawn in parallel where it allows that.
void draw_samples(const Sampler& sampler, std::uint64_t seed, Index first, Mat x, double* y, int threads);

/// Call body(first, x, y) with samples 0 .. samples - 1, `chunk` at a time. Returns how many there were:
/// fewer than asked for when the stop predicate said so.
template <class Body>
Index for_chunks(const Sampler& sampler, std::uint64_t seed, Index samples, Index chunk, int threads,
                 const StopPredicate& wants_stop, Body&& body) {
    const Index d = sampler.dimension();
    Scratch<double> x(chunk * d), y(chunk);
    StopPoll stop(wants_stop);
    Index done = 0;
    while (done < samples && !stop()) {
        const Mat batch(x.data(), std::min(chunk, samples - done), d);
        draw_samples(sampler, seed, done, batch, y.data(), threads);
        body(done, ConstMat(batch), y.data());
        done += batch.rows;
    }
    return done;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
