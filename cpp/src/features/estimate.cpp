// Streaming Monte-Carlo estimates of V, U and grad V.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/parallel.hpp"
#include "base/shares.hpp"
#include "data/chunks.hpp"
#include "features/moments.hpp"
#include "mfcore/features/features.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {
namespace {

constexpr Index kLongChunk = 200'000'000;  // nanoseconds

/// Samples in memory at a time: whole blocks, at most about 2.5 MB of activations and of inputs unless one
/// block is more. (More would leave the caches, and fresh memory costs as much as a product.)
Index chunk_length(Index requested, Index block, Index neurons, Index d, Index samples) {
    const Index affordable = requested > 0 ? requested : std::max<Index>(1, 300'000 / std::max(neurons, d));
    return std::min((affordable + block - 1) / block * block, (samples + block - 1) / block * block);
}

template <int R>
Index estimate_of(const Network& network, ConstMat theta, const Sampler& sampler, std::uint64_t seed,
                  Index samples, Index requested_chunk, const EstimateOut& out, const RunOptions& options) {
    constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    const Index d = sampler.dimension(), n = theta.rows;
    const NeuronTiles<double, R> tiles(network, theta, options.threads);
    const bool gradient = out.grad_V != nullptr;
    const Index length = block_length(samples);
    const Index chunk = chunk_length(requested_chunk, length, tiles.tiles() * kWidth, d, samples);
    const Index stride = chunk * kWidth;
    const int threads = threads_for(activation_cost(chunk, n, d + (out.U ? n / 2 : 0)), options.threads);

    Scratch<double> s(tiles.tiles() * stride), slope(gradient ? s.size() : 0);
    LinearMoments<R> linear(tiles, gradient);
    PairMoments<R> pairs(out.U ? n : 0, out.U ? n : 0, true, true);

    Index used_blocks = 0;
    // An interrupted estimate is that from the chunks before; only where a chunk takes long it is none at
    // all.
    std::optional<StopScope> whole_chunks;
    if (activation_cost(chunk, n, d + (out.U ? n / 2 : 0)) < kLongChunk)
        whole_chunks.emplace(StopPredicate{});
    const auto add = [&](Index first, ConstMat batch, const double* y) {
        const std::vector<SampleBlock> blocks = blocks_of(first, batch.rows, length);
        used_blocks += static_cast<Index>(blocks.size());
        for_shares(tiles.tiles(), threads, [&](Index t) {
            double* const value = s.data() + t * stride;
            double* const slopes = gradient ? slope.data() + t * stride : nullptr;
            tiles.activate(network.activation, t, batch, value, slopes);
            for (const SampleBlock& block : blocks) linear.add(t, block, batch, y, value, slopes);
        });
        for_shares(pairs.groups(), threads,
                   [&](Index g) { pairs.add(g, s.data(), s.data(), stride, blocks); });
    };
    const Index done = for_chunks(sampler, seed, samples, chunk, threads, options.wants_stop, add);
    if (done == 0) return 0;
    linear.finish(used_blocks, done);
    for_blocks(pairs.moments().size(), 1 << 14, threads,
               [&](Index, Index begin, Index end) { pairs.moments().finish(begin, end, used_blocks, done); });

    const double* a = tiles.a(0);
    const auto put = [&](double* mean, double* error, Index at, const BlockMoments& m, Index from,
                         double factor) {
        mean[at] = factor * m.mean(from);
        if (error) error[at] = std::abs(factor) * m.error(from);
    };
    for (Index i = 0; i < n; ++i) {
        if (out.V) put(out.V, out.V_error, i, linear.value(), i, a[i]);
        if (!gradient) continue;
        const Index row = i * network.row(d);
        if (network.has_a()) put(out.grad_V, out.grad_V_error, row, linear.value(), i, 1.0);
        if (network.has_b()) put(out.grad_V, out.grad_V_error, row + network.b_at(), linear.slope(), i, a[i]);
        for (Index j = 0; j < d; ++j)
            put(out.grad_V, out.grad_V_error, row + network.w_at() + j, linear.x(), linear.x_at(i, j), a[i]);
    }
    if (out.U) pairs.put(pairs.moments().means(), a, a, false, {out.U, n, n, n}, threads);
    if (out.U && out.U_error)
        pairs.put(pairs.moments().errors(), a, a, true, {out.U_error, n, n, n}, threads);
    return done;
}

template <int R>
Index interaction_of(const Network& network, ConstMat theta, ConstMat other, const Sampler& sampler,
                     std::uint64_t seed, Index samples, Mat out, const RunOptions& options) {
    constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    const Index d = sampler.dimension();
    const bool same = theta.data == other.data && theta.rows == other.rows && theta.stride == other.stride;
    const NeuronTiles<double, R> tiles(network, theta, options.threads),
        others(network, same ? other.middle_rows(0, 0) : other, options.threads);
    const Index length = block_length(samples);
    const Index chunk = chunk_length(0, length, (tiles.tiles() + others.tiles()) * kWidth, d, samples);
    const Index stride = chunk * kWidth;
    const int threads =
        threads_for(activation_cost(chunk, theta.rows + other.rows, d + other.rows / 2), options.threads);

    Scratch<double> s(tiles.tiles() * stride), s_other(others.tiles() * stride);
    PairMoments<R> pairs(theta.rows, other.rows, same, false);
    const auto add = [&](Index first, ConstMat batch, const double*) {
        const std::vector<SampleBlock> blocks = blocks_of(first, batch.rows, length);
        for_shares(tiles.tiles() + others.tiles(), threads, [&](Index t) {
            const Index u = t - tiles.tiles();
            if (u < 0)
                tiles.activate(network.activation, t, batch, s.data() + t * stride, nullptr);
            else
                others.activate(network.activation, u, batch, s_other.data() + u * stride, nullptr);
        });
        for_shares(pairs.groups(), threads, [&](Index g) {
            pairs.add(g, s.data(), same ? s.data() : s_other.data(), stride, blocks);
        });
    };
    const Index done = for_chunks(sampler, seed, samples, chunk, threads, options.wants_stop, add);
    if (done == 0) return 0;
    pairs.put(pairs.moments().means(), tiles.a(0), (same ? tiles : others).a(0), false, out, threads);
    return done;
}

}  // namespace

Index estimate(const Network& network, ConstMat theta, const Sampler& sampler, std::uint64_t seed,
               Index samples, Index chunk, const EstimateOut& out, const RunOptions& options) {
    require(samples > 0, "samples", "must be > 0", samples);
    require(chunk >= 0, "chunk", "must be >= 0", chunk);
    require_rows(network, theta, sampler.dimension(), "theta");
    return with_tile_width<double>(theta.rows, [&](auto width) {
        return estimate_of<width()>(network, theta, sampler, seed, samples, chunk, out, options);
    });
}

Index interaction(const Network& network, ConstMat theta, ConstMat other, const Sampler& sampler,
                  std::uint64_t seed, Index samples, Mat out, const RunOptions& options) {
    require(samples > 0, "samples", "must be > 0", samples);
    require_rows(network, theta, sampler.dimension(), "theta");
    require_rows(network, other, sampler.dimension(), "other");
    require(out.rows == theta.rows, "out", "must have a row for each of theta", out.rows);
    require(out.cols == other.rows, "out", "must have a column for each row of other", out.cols);
    return with_tile_width<double>(theta.rows, [&](auto width) {
        return interaction_of<width()>(network, theta, other, sampler, seed, samples, out, options);
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
