#pragma once
// Means over samples with standard errors. Samples are cut into blocks whose length depends on their number
// alone; the means of the blocks are averaged, and their spread gives the error (they are independent), at a
// cost per block instead of per sample (eq. (2.5)): for U that is one symmetric rank-k update and a few
// operations per entry.
#include <algorithm>
#include <cmath>
#include <vector>

#include "features/weighed.hpp"
#include "network/neurons.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {

/// Samples of one block: at least 20 blocks for a useful error, at most 512 samples each so that a block of a
/// tile stays in cache.
inline constexpr Index kMostSamples = 512;
inline Index block_length(Index samples) { return std::clamp<Index>((samples + 19) / 20, 1, kMostSamples); }

/// Weights with which one more block mean enters a running mean and its sum of squared deviations (Welford,
/// weighted by length).
struct BlockWeight {
    double share;   // n_b / (samples so far, this block included)
    double spread;  // n_b (samples before) / (samples so far)
    BlockWeight(Index before, Index length)
        : share(static_cast<double>(length) / static_cast<double>(before + length)),
          spread(share * static_cast<double>(before)) {}
};

/// A block of samples inside the current chunk.
struct SampleBlock {
    Index begin, length;
    double scale;  // 1 / length
    BlockWeight weight;
};

inline std::vector<SampleBlock> blocks_of(Index first, Index count, Index length) {
    std::vector<SampleBlock> blocks;
    for (Index b = 0; b < count; b += length) {
        const Index n = std::min(length, count - b);
        blocks.push_back({b, n, 1.0 / static_cast<double>(n), BlockWeight(first + b, n)});
    }
    return blocks;
}

/// Arrays of means and, if errors are wanted, of squared deviations, updated vector by vector. The first
/// block writes without reading, so that the memory is fresh until the threads that use it touch it.
class BlockMoments {
public:
    BlockMoments(Index size, bool errors) : size_(size), mean_(size), spread_(errors ? size : 0) {}

    /// Add the block means sums * scale of entries at .. at + count - 1.
    void update(Index at, const double* sums, Index count, double scale, const BlockWeight& w) {
        constexpr Index kLanes = simd::kLanes<double>;
        double* const mean = mean_.data() + at;
        double* const spread = spread_.empty() ? nullptr : spread_.data() + at;
        const bool first = w.spread == 0;
        for (Index k = 0; first && k < count; k += kLanes) {
            simd::store(mean + k, simd::load(sums + k) * scale);
            if (spread) simd::store(spread + k, simd::Vec<double>{});
        }
        for (Index k = 0; !first && k < count; k += kLanes) {
            const simd::Vec<double> before = simd::load(mean + k),
                                    delta = simd::load(sums + k) * scale - before;
            simd::store(mean + k, before + delta * w.share);
            if (spread) simd::store(spread + k, simd::load(spread + k) + delta * delta * w.spread);
        }
    }
    /// Ask for entries that are soon to be updated: they lie far away, and nothing else announces them.
    void prefetch(Index at, Index count) const {
        constexpr Index kLine = 64 / sizeof(double);
        for (Index k = 0; k < count; k += kLine) {
            __builtin_prefetch(&mean_[at + k], 1);
            if (!spread_.empty()) __builtin_prefetch(&spread_[at + k], 1);
        }
    }
    Index size() const { return size_; }
    /// Turn the deviations of entries [begin, end) into standard errors of the mean, once all `blocks` blocks
    /// with `samples` samples in all have been added.
    void finish(Index begin, Index end, Index blocks, Index samples) {
        const double scale = 1 / (static_cast<double>(blocks - 1) * static_cast<double>(samples));
        for (Index k = begin; k < end; ++k)
            spread_[k] = blocks < 2 ? INFINITY : std::sqrt(spread_[k] * scale);
    }
    double mean(Index at) const { return mean_[at]; }
    double error(Index at) const { return spread_[at]; }
    const double* means() const { return mean_.data(); }
    const double* errors() const { return spread_.data(); }

private:
    Index size_;
    Scratch<double> mean_, spread_;
};

/// Means of s_i s'_j for all pairs of tiles of `neurons` and `others`, or for j <= i of one set (symmetric).
template <int R>
class PairMoments {
public:
    static constexpr Index kWidth = NeuronTiles<double, R>::kWidth;
    static constexpr Index kLanes = simd::kLanes<double>;
    static constexpr Index kGroup = 4;  // tiles whose activations stay near for as many others

    PairMoments(Index neurons, Index others, bool symmetric, bool errors)
        : neurons_(neurons),
          rows_((neurons + kWidth - 1) / kWidth),
          cols_((others + kWidth - 1) / kWidth),
          symmetric_(symmetric),
          moments_((symmetric ? rows_ * (rows_ + 1) / 2 : rows_ * cols_) * kWidth * kWidth, errors) {
        for (Index i0 = 0; i0 < rows_; i0 += kGroup)
            for (Index j = 0; j < (symmetric ? i0 + 1 : cols_); j += kGroup)
                for (Index i = i0; i < std::min(i0 + kGroup, rows_); ++i) groups_.push_back({i, j});
    }

    /// A group is one tile with up to kGroup others. Groups that follow each other share the others.
    Index groups() const { return static_cast<Index>(groups_.size()); }

    /// Add blocks of a chunk, activations of a tile lying at s + t * stride, sample after sample.
    void add(Index group, const double* s, const double* other, Index stride,
             const std::vector<SampleBlock>& blocks) {
        const auto [i, j0] = groups_[group];
        for (const SampleBlock& block : blocks)
            for (Index j = j0; j < std::min(j0 + kGroup, symmetric_ ? i + 1 : cols_); ++j)
                add_block(i, j, s + i * stride + block.begin * kWidth,
                          other + j * stride + block.begin * kWidth, block);
    }

    /// Position of entry (row neuron i, column neuron j) in the tile-ordered storage; of one set of neurons, j <= i.
    Index at(Index i, Index j) const {
        return offset(i / kWidth, j / kWidth) + (j % kWidth) * kWidth + i % kWidth;
    }
    const BlockMoments& moments() const { return moments_; }
    BlockMoments& moments() { return moments_; }

    /// out(i, j) = a_i b_j of(pair), of the means or the errors; by the factor's size where `absolute`.
    void put(const double* of, const double* a, const double* b, bool absolute, Mat out, int threads) const {
        for_blocks(out.rows, kWidth, threads, [&](Index, Index begin, Index end) {
            for (Index left = 0; left < out.cols; left += kWidth) {
                const Index cols = std::min(kWidth, out.cols - left);
                const Mat block(&out(begin, left), end - begin, cols, out.stride);
                fill(of, begin, left, block);
                for (Index i = 0; i < block.rows; ++i)
                    for (Index j = 0; j < cols; ++j) {
                        const double factor = a[begin + i] * b[left + j];
                        block(i, j) *= absolute ? std::abs(factor) : factor;
                    }
            }
        });
    }

private:
    /// block(i, j) = of[at(begin + i, left + j)]; of one set of neurons those above the diagonal are those below it.
    void fill(const double* of, Index begin, Index left, Mat block) const {
        if (!symmetric_ || begin > left) return tiles::unpack_columns<double, R>(of + at(begin, left), block);
        for (Index i = 0; i < block.rows; ++i) {
            if (begin < left) std::copy_n(of + at(left, begin + i), block.cols, block.row(i));
            for (Index j = 0; begin == left && j < block.cols; ++j)
                block(i, j) = of[at(begin + std::max(i, j), begin + std::min(i, j))];
        }
    }
    struct Group {
        Index i, j;
    };
    Index offset(Index i, Index j) const {
        return (symmetric_ ? i * (i + 1) / 2 + j : i * cols_ + j) * kWidth * kWidth;
    }
    void add_block(Index i, Index j, const double* s, const double* other, const SampleBlock& block) {
        double sums[kWidth * kWidth];
        const Index at = offset(i, j),
                    vectors = (std::min(kWidth, neurons_ - i * kWidth) + kLanes - 1) / kLanes;
        tiles::for_columns(kWidth, [&](Index n, auto count) {
            moments_.prefetch(at + n * kWidth, count() * kWidth);
            const Index above = symmetric_ && i == j ? n / kLanes : 0;
            add_columns<0, R, count()>(above, vectors, n, s, other, block.length, sums);
        });
        moments_.update(at, sums, kWidth * kWidth, block.scale, block.weight);
    }
    /// Sums of C columns from n, of their vectors from `first` to `end`. Those before are above the diagonal, and below
    /// it too; those behind are padding: they stay zero.
    template <int First, int End, int C>
    void add_columns(Index first, Index end, Index n, const double* s, const double* other, Index length,
                     double* sums) {
        if constexpr (First + 1 < End) {
            if (First < first) return add_columns<First + 1, End, C>(first, end, n, s, other, length, sums);
            if (end < End) return add_columns<First, End - 1, C>(first, end, n, s, other, length, sums);
        }
        constexpr int kVectors = End - First;
        simd::Vec<double> acc[C][kVectors];
        tiles::each_vector<C, kVectors>([&](int c, int r) { acc[c][r] = simd::Vec<double>{}; });
        tiles::accumulate<double, kVectors, C, true>(length, s + First * kLanes, kWidth, other + n, kWidth, 1,
                                                     acc);
        double* const to = sums + n * kWidth;
        tiles::each_vector<C, R>([&](int c, int r) {
            const bool kept = First <= r && r < End;
            simd::store(to + c * kWidth + r * kLanes, kept ? acc[c][r - First] : simd::Vec<double>{});
        });
    }

    Index neurons_, rows_, cols_;
    bool symmetric_;
    BlockMoments moments_;
    std::vector<Group> groups_;
};

/// Means over blocks of sum_q e_q s_qi (V) and of its gradient, for the neurons of one set of tiles.
template <int R>
class LinearMoments {
public:
    static constexpr Index kWidth = NeuronTiles<double, R>::kWidth;

    LinearMoments(const NeuronTiles<double, R>& tiles, bool gradient)
        : tiles_(tiles),
          value_(tiles.tiles() * kWidth, true),
          slope_(gradient && tiles.b(0) ? tiles.tiles() * kWidth : 0, true),
          x_(gradient ? tiles.tiles() * kWidth * tiles.dimension() : 0, true) {}

    /// Slopes are overwritten by -y_q s'_qi.
    void add(Index t, const SampleBlock& block, ConstMat x, const double* y, const double* s, double* slope) {
        double e[kMostSamples];
        for (Index q = 0; q < block.length; ++q) e[q] = -y[block.begin + q];
        const Index first = block.begin * kWidth;
        double values[kWidth] = {}, slopes[kWidth] = {};
        Scratch<double> products(x_.size() > 0 ? tiles_.dimension() * kWidth : 0, 0.0);
        add_weighed<R>(tiles_.filled(t), x.middle_rows(block.begin, block.length), e, s + first,
                       slope ? slope + first : nullptr,
                       {.value = values,
                        .slope = slope_.size() > 0 ? slopes : nullptr,
                        .x = x_.size() > 0 ? products.data() : nullptr});
        value_.update(t * kWidth, values, kWidth, block.scale, block.weight);
        if (slope_.size() > 0) slope_.update(t * kWidth, slopes, kWidth, block.scale, block.weight);
        x_.update(t * products.size(), products.data(), products.size(), block.scale, block.weight);
    }

    const BlockMoments& value() const { return value_; }
    const BlockMoments& slope() const { return slope_; }
    const BlockMoments& x() const { return x_; }
    void finish(Index blocks, Index samples) {
        for (BlockMoments* m : {&value_, &slope_, &x_}) m->finish(0, m->size(), blocks, samples);
    }
    Index x_at(Index i, Index j) const {
        return ((i / kWidth) * tiles_.dimension() + j) * kWidth + i % kWidth;
    }

private:
    const NeuronTiles<double, R>& tiles_;
    BlockMoments value_, slope_, x_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
