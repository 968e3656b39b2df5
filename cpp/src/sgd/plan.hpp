#pragma once
// How a run is cut into blocks of steps.
#include <algorithm>
#include <cmath>

#include "base/runnable.hpp"
#include "mfcore/sgd/sgd.hpp"
#include "sgd/direct.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// True if steps are done one after the other on neurons that never leave the first-level cache: a few long rows,
/// or those of one tile or of two.
inline bool is_direct(const Network& network, const SgdParams& params, Index d, Index count, Index tiles) {
    if (params.batch > 1 || params.block > 0 || params.temperature > 0) return false;
    return is_of_long_rows(count, d) || (tiles <= 2 && d <= kDirectDimension / tiles && !network.sphere &&
                                         kinds::is_of_vectors(network.activation));
}

/// Choose the number of steps per block. More samples amortise the loads and stores of W, but each costs O(N)
/// for every earlier one; in few dimensions there is little to amortise.
inline Index choose_steps(const Network& network, const SgdParams& params, Index d) {
    if (network.sphere) return 1;  // the projection needs every |w|
    Index samples = params.block > 0 ? params.block : d > 32 ? 32 : d > 4 ? 8 : 4;
    if (params.temperature > 0) {
        // Draws per neuron and step: samples + d / samples, least at sqrt(d); directly: d. And the basis of
        // the samples needs at most d of them.
        if (d < 12) return 1;
        if (params.block == 0) samples = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(d))));
        samples = std::min({samples, d, Index{24}});
    }
    return std::max<Index>(1, std::min<Index>(samples, 64) / params.batch);
}

/// The number of groups of tiles by which predictions are summed, whatever the team. Few of them: what a
/// thread hands over at every step should fit in a cache line. Wide networks have time for more, and use
/// for more threads.
inline Index groups_of(Index tiles) { return std::min<Index>(tiles, tiles > 128 ? 32 : 8); }

/// Nanoseconds of a step on one fast core, roughly.
inline Index step_cost(Index batch, Index neurons, Index d) { return batch * neurons * (d + 40) / 25; }

/// The number of threads for steps of so many nanoseconds. A step is about 4 d operations and an activation
/// per neuron and sample; a share below a microsecond is not worth the meetings at every step.
inline int team_of(Index nanoseconds, Index groups, int threads) {
    const Index most = std::min<Index>(resolve_threads(threads), groups);
    const int team = static_cast<int>(std::clamp<Index>(nanoseconds / 800, 1, most));
    return team > 1 && cores_are_wanted() ? 1 : team;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
