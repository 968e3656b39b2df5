// Streaming Monte-Carlo estimates with standard errors. Samples are cut into blocks whose length depends on
// their number alone; the means of the blocks are averaged, and their spread gives the error (they are
// independent), at a cost per block instead of per sample: for U that is one symmetric rank-k update and a
// few operations per entry.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/neurons.hpp"
#include "base/parallel.hpp"
#include "mfcore/features.hpp"

namespace mfcore {
namespace {

using simd::Vec;

/// At least 32 blocks for a useful error, at most 512 samples each so that a block of a tile stays in cache.
Index block_length(Index samples) { return std::clamp<Index>((samples + 31) / 32, 1, 512); }

/// How one more block mean enters a running mean and its sum of squared deviations (Welford, weighted by
/// length).
struct BlockWeight {
    double share;   // n_b / (samples so far, this block included)
    double spread;  // n_b (samples before) / (samples so far)
    BlockWeight(Index before, Index length)
        : share(static_cast<double>(length) / static_cast<double>(before + length)),
          spread(share * static_cast<double>(before)) {}
};

/// Arrays of means and, if errors are wanted, of squared deviations, updated vector by vector.
class Moments {
public:
    Moments(Index size, bool errors) : mean_(size), spread_(errors ? size : 0) {}

    /// block_mean = sums * scale.
    void update(Index at, Vec<double> sums, double scale, const BlockWeight& w) {
        const Vec<double> mean = simd::load(&mean_[at]);
        const Vec<double> delta = sums * scale - mean;
        simd::store(&mean_[at], mean + delta * w.share);
        if (!spread_.empty()) simd::store(&spread_[at], simd::load(&spread_[at]) + delta * delta * w.spread);
    }
    double mean(Index at) const { return mean_[at]; }
    /// Standard error of the mean from `blocks` block means over `samples` samples.
    double error(Index at, Index blocks, Index samples) const {
        if (blocks < 2) return INFINITY;
        return std::sqrt(spread_[at] / (static_cast<double>(blocks - 1) * static_cast<double>(samples)));
    }

private:
    std::vector<double> mean_, spread_;
};

/// Means of s_i s'_j for all pairs of tiles of two sets of neurons, or for j <= i of one set (symmetric).
template <int R>
class PairMoments {
public:
    static constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    static constexpr Index kGroup = 4;  // tiles whose activations are reused from cache together

    PairMoments(Index rows, Index cols, bool symmetric, bool errors)
        : rows_(rows), cols_(cols), symmetric_(symmetric), moments_(size(rows, cols, symmetric), errors) {
        for (Index i = 0; i < rows; i += kGroup)
            for (Index j = 0; j < (symmetric ? i + 1 : cols); j += kGroup) groups_.push_back({i, j});
    }

    Index groups() const { return static_cast<Index>(groups_.size()); }

    /// Add blocks [first, last) of a chunk, activations of a tile lying at s + t * stride, sample after
    /// sample.
    template <class Blocks>
    void add(Index group, const double* s, const double* other, Index stride, const Blocks& blocks) {
        const auto [i0, j0] = groups_[group];
        for (const auto& block : blocks)
            for (Index i = i0; i < std::min(i0 + kGroup, rows_); ++i)
                for (Index j = j0; j < std::min(j0 + kGroup, symmetric_ ? i + 1 : cols_); ++j)
                    add_block(offset(i, j), s + i * stride + block.begin * kWidth,
                              other + j * stride + block.begin * kWidth, block);
    }

    /// Position of entry (row neuron i, column neuron j) in the tile-ordered storage.
    Index at(Index i, Index j) const {
        return offset(i / kWidth, j / kWidth) + (j % kWidth) * kWidth + i % kWidth;
    }
    const Moments& moments() const { return moments_; }

private:
    struct Group {
        Index i, j;
    };
    static Index size(Index rows, Index cols, bool symmetric) {
        return (symmetric ? rows * (rows + 1) / 2 : rows * cols) * kWidth * kWidth;
    }
    Index offset(Index i, Index j) const {
        return (symmetric_ ? i * (i + 1) / 2 + j : i * cols_ + j) * kWidth * kWidth;
    }
    template <class Block>
    void add_block(Index at, const double* s, const double* other, const Block& block) {
        tiles::for_columns(kWidth, [&](Index n, auto count) {
            constexpr int C = count();
            Vec<double> acc[C][R] = {};
            tiles::accumulate<double, R, C, true>(block.length, s, kWidth, other + n, kWidth, 1, acc);
            for (int c = 0; c < C; ++c)
                for (int r = 0; r < R; ++r)
                    moments_.update(at + (n + c) * kWidth + r * simd::kLanes<double>, acc[c][r], block.scale,
                                    block.weight);
        });
    }

    Index rows_, cols_;
    bool symmetric_;
    Moments moments_;
    std::vector<Group> groups_;
};

/// A block of samples inside the current chunk.
struct Block {
    Index begin, length;
    double scale;  // 1 / length
    BlockWeight weight;
};

std::vector<Block> blocks_of(Index first, Index count, Index length) {
    std::vector<Block> blocks;
    for (Index b = 0; b < count; b += length) {
        const Index n = std::min(length, count - b);
        blocks.push_back({b, n, 1.0 / static_cast<double>(n), BlockWeight(first + b, n)});
    }
    return blocks;
}

/// Means over blocks of sum_q e_q s_qi (V) and of its gradient, for the neurons of one set of tiles.
template <int R>
class LinearMoments {
public:
    static constexpr Index kWidth = NeuronTiles<double, R>::kWidth;

    LinearMoments(const NeuronTiles<double, R>& tiles, bool gradient)
        : d_(tiles.dimension()),
          value_(tiles.tiles() * kWidth, true),
          slope_(gradient ? tiles.tiles() * kWidth : 0, true),
          x_(gradient ? tiles.tiles() * kWidth * d_ : 0, true),
          gradient_(gradient) {}

    /// Slopes are overwritten by -y_q s'_qi. `scratch` holds d * kWidth numbers.
    void add(Index t, const Block& block, ConstMat x, const double* y, const double* s, double* slope,
             double* scratch) {
        constexpr Index lanes = simd::kLanes<double>;
        for (int r = 0; r < R; ++r) {
            Vec<double> sum{}, sum_slope{};
            for (Index q = 0; q < block.length; ++q) {
                const Index at = (block.begin + q) * kWidth + r * lanes;
                sum -= y[block.begin + q] * simd::load(s + at);
                if (!gradient_) continue;
                const Vec<double> c = -y[block.begin + q] * simd::load(slope + at);
                simd::store(slope + at, c);
                sum_slope += c;
            }
            const Index at = t * kWidth + r * lanes;
            value_.update(at, sum, block.scale, block.weight);
            if (gradient_) slope_.update(at, sum_slope, block.scale, block.weight);
        }
        if (!gradient_) return;
        tiles::backward<double, R>(x.middle_rows(block.begin, block.length), slope + block.begin * kWidth,
                                   kWidth, 0.0, scratch);
        for (Index at = 0; at < d_ * kWidth; at += lanes)
            x_.update(t * kWidth * d_ + at, simd::load(scratch + at), block.scale, block.weight);
    }

    const Moments& value() const { return value_; }
    const Moments& slope() const { return slope_; }
    const Moments& x() const { return x_; }
    Index x_at(Index i, Index j) const { return ((i / kWidth) * d_ + j) * kWidth + i % kWidth; }

private:
    Index d_;
    Moments value_, slope_, x_;
    bool gradient_;
};

/// Samples in memory at a time: whole blocks, at most about 16 MB of activations unless one block is more.
Index chunk_length(Index requested, Index block, Index neurons, Index samples) {
    const Index affordable =
        requested > 0 ? requested : std::max<Index>(1, 2'000'000 / std::max<Index>(neurons, 1));
    return std::min((affordable + block - 1) / block * block, (samples + block - 1) / block * block);
}

template <int R>
Index estimate_of(const Network& network, ConstMat theta, const Sampler& sampler, std::uint64_t seed,
                  Index samples, Index requested_chunk, const EstimateOut& out, const RunOptions& options) {
    constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    const Index d = sampler.dimension(), n = theta.rows;
    const NeuronTiles<double, R> tiles(network, theta);
    const bool gradient = out.grad_V != nullptr;
    const Index length = block_length(samples);
    const Index chunk = chunk_length(requested_chunk, length, tiles.tiles() * kWidth, samples);
    const Index stride = chunk * kWidth;
    const int threads = threads_for(activation_cost(chunk, n, d + (out.U ? n / 2 : 0)), options.threads);

    std::vector<double> s(tiles.tiles() * stride), slope(gradient ? s.size() : 0);
    std::vector<double> scratch(gradient ? tiles.tiles() * kWidth * d : 0), x(chunk * d), y(chunk);
    LinearMoments<R> linear(tiles, gradient);
    PairMoments<R> pairs(out.U ? tiles.tiles() : 0, out.U ? tiles.tiles() : 0, true, true);

    StopPoll wants_stop(options.wants_stop);
    Index done = 0, used_blocks = 0;
    for (; done < samples && !wants_stop(); done += chunk) {
        const Index rows = std::min(chunk, samples - done);
        const Mat batch(x.data(), rows, d);
        draw_samples(sampler, seed, done, batch, y.data(), threads);
        const std::vector<Block> blocks = blocks_of(done, rows, length);
        used_blocks += static_cast<Index>(blocks.size());
        for_blocks(tiles.tiles(), 1, threads, [&](Index t, Index, Index) {
            double* const value = s.data() + t * stride;
            double* const slopes = gradient ? slope.data() + t * stride : nullptr;
            tiles.activate(network.activation, t, batch, value, slopes);
            for (const Block& block : blocks)
                linear.add(t, block, batch, y.data(), value, slopes,
                           scratch.data() + (gradient ? t * kWidth * d : 0));
        });
        for_blocks(pairs.groups(), 1, threads,
                   [&](Index g, Index, Index) { pairs.add(g, s.data(), s.data(), stride, blocks); });
    }
    done = std::min(done, samples);

    const double* a = tiles.a(0);
    const auto put = [&](double* mean, double* error, Index at, const Moments& m, Index from, double factor) {
        mean[at] = factor * m.mean(from);
        if (error) error[at] = std::abs(factor) * m.error(from, used_blocks, done);
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
    if (out.U) {
        // Tile by tile and both triangles at once; each block of rows is written by one thread.
        for_blocks(n, kWidth, threads, [&](Index, Index begin, Index end) {
            for (Index j = 0; j < n; ++j) {
                for (Index i = begin; i < end; ++i) {
                    const Index from = i / kWidth >= j / kWidth ? pairs.at(i, j) : pairs.at(j, i);
                    put(out.U, out.U_error, i * n + j, pairs.moments(), from, a[i] * a[j]);
                }
            }
        });
    }
    return done;
}

template <int R>
Index interaction_of(const Network& network, ConstMat theta, ConstMat other, const Sampler& sampler,
                     std::uint64_t seed, Index samples, Mat out, const RunOptions& options) {
    constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    const Index d = sampler.dimension();
    const bool same = theta.data == other.data && theta.rows == other.rows && theta.stride == other.stride;
    const NeuronTiles<double, R> tiles(network, theta),
        others(network, same ? other.middle_rows(0, 0) : other);
    const Index length = block_length(samples);
    const Index chunk = chunk_length(0, length, (tiles.tiles() + others.tiles()) * kWidth, samples);
    const Index stride = chunk * kWidth;
    const int threads =
        threads_for(activation_cost(chunk, theta.rows + other.rows, d + other.rows / 2), options.threads);

    std::vector<double> s(tiles.tiles() * stride), s_other(others.tiles() * stride), x(chunk * d), y(chunk);
    PairMoments<R> pairs(tiles.tiles(), same ? tiles.tiles() : others.tiles(), same, false);
    StopPoll wants_stop(options.wants_stop);
    Index done = 0;
    for (; done < samples && !wants_stop(); done += chunk) {
        const Mat batch(x.data(), std::min(chunk, samples - done), d);
        draw_samples(sampler, seed, done, batch, y.data(), threads);
        const std::vector<Block> blocks = blocks_of(done, batch.rows, length);
        for_blocks(tiles.tiles() + others.tiles(), 1, threads, [&](Index t, Index, Index) {
            const Index u = t - tiles.tiles();
            if (u < 0)
                tiles.activate(network.activation, t, batch, s.data() + t * stride, nullptr);
            else
                others.activate(network.activation, u, batch, s_other.data() + u * stride, nullptr);
        });
        for_blocks(pairs.groups(), 1, threads, [&](Index g, Index, Index) {
            pairs.add(g, s.data(), same ? s.data() : s_other.data(), stride, blocks);
        });
    }
    const NeuronTiles<double, R>& columns = same ? tiles : others;
    for (Index i = 0; i < out.rows; ++i)
        for (Index j = 0; j < out.cols; ++j) {
            const Index at = same && i / kWidth < j / kWidth ? pairs.at(j, i) : pairs.at(i, j);
            out(i, j) = tiles.a(0)[i] * columns.a(0)[j] * pairs.moments().mean(at);
        }
    return std::min(done, samples);
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
    return with_tile_width<double>(theta.rows, [&](auto width) {
        return interaction_of<width()>(network, theta, other, sampler, seed, samples, out, options);
    });
}

}  // namespace mfcore
