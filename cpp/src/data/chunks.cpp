// Draws samples in parallel where the sampler allows that.
#include "data/chunks.hpp"

#include "base/parallel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {

void draw_samples(const Sampler& sampler, std::uint64_t seed, Index first, Mat x, double* y, int threads) {
    constexpr Index kRows = 64;
    const int team = sampler.concurrent() ? threads_for(2 * x.rows * x.cols, threads) : 1;
    const Index block = sampler.concurrent() ? kRows : x.rows;
    for_blocks(x.rows, block, team, [&](Index, Index begin, Index end) {
        sampler.draw(seed, first + begin, x.middle_rows(begin, end - begin), y + begin);
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
