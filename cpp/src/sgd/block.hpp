#pragma once
// One block of SGD steps (eqs. (6.2) to (6.4)), done by a team of threads that each own tiles of neurons.
//
// With Z = W X^T and G = X X^T of the block's samples, everything sequential happens on N-vectors:
//   z_l = P_l Z[:, l] + sum_{k<l} (P_l / P_{k+1}) c_k G[k, l] + b,    P_l = product of the first l factors 1
//   - h lambda, f_l = N^-1 sum_i a_i sigma(z_li),    c_l = h (y_l - f_l) a sigma'(z_l),
// and at the end W <- P_K W + sum_k (P_K / P_{k+1}) c_k x_k^T: two matrix products with little work between
// them. The samples of a mini-batch are columns that do not see each other.
#include "base/scratch.hpp"
#include "sgd/noise.hpp"
#include "sgd/shared.hpp"
#include "sgd/sizes.hpp"
#include "sgd/tile_steps.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template <class T, int R>
class Worker {
public:
    using Tiles = NeuronTiles<T, R>;
    static constexpr Index kWidth = Tiles::kWidth,
                           kAhead = 2;  // samples are drawn so many pieces ahead

    Worker(const Network& network, const SgdParams& params, std::uint64_t seed, const Tiles& tiles,
           Shared<T>& shared, int rank, int size)
        : network_(network),
          params_(params),
          shared_(shared),
          rank_(rank),
          size_(size),
          group0_(rank * shared.groups / size),
          group1_((rank + 1) * shared.groups / size),
          tiles_(tiles.tiles()),
          tile0_(first_tile(group0_)),
          tile1_(first_tile(group1_)),
          stride_((tile1_ - tile0_) * kWidth),
          count_(tiles.count()),
          d_(tiles.dimension()),
          z_(shared.rows * stride_),
          c_(shared.rows * stride_),
          a_(stride_),
          b_(stride_),
          error_(params.batch),
          room_(tiles.room()),
          inverse_count_(T(1) / static_cast<T>(tiles.count())),
          inverse_batch_(T(1) / static_cast<T>(params.batch)),
          decay_(shared.rows / params.batch),
          noise_(network, params, seed, tiles, tile0_, tile1_, shared.rows) {
        for (int r = 0; r < size; ++r)
            for (Index g = r * shared.groups / size; g < (r + 1) * shared.groups / size; ++g)
                sources_.push_back({r, (g - r * shared.groups / size) * params.batch});
        for (Index g = group0_; g <= group1_; ++g) bounds_.push_back((first_tile(g) - tile0_) * kWidth);
    }

    /// Advance this thread's tiles of `state` by block.steps steps. Returns the first step with a prediction
    /// that is not finite, or -1; then nothing is written. Rows in the caller's memory are written as a whole
    /// or not at all: not if somebody wants to stop, or if numbers could leave the finite ones. draw() is called
    /// before others are waited for.
    template <class Draw>
    Index advance(const StepBlock<T>& block, Tiles& state, const Draw& draw) {
        const Index rows = block.steps * params_.batch;
        const bool projected = noise_.active() && shared_.rows > params_.batch;
        decay_.set(block.h, block.block_steps, params_.ridge * params_.rates.w);
        prepare_gram(block, projected ? block.x.rows : rows);
        if (!ahead_)
            for_tiles(
                [&](Index t) { forward(block.x.middle_rows(0, rows), state.borrow(t, room_.data()), t); });
        std::copy_n(state.a(tile0_), stride_, a_.data());
        if (network_.has_b()) std::copy_n(state.b(tile0_), stride_, b_.data());
        if (shared_.rows > params_.batch)
            shared_.exchange.meet(rank_, size_);  // everybody's share of the Gram matrix is there
        if (projected)
            noise_.begin(block.x, shared_.gram.data(), shared_.rows, shared_.q.data(), rank_, size_);

        for (Index s = 0; s < block.steps; ++s)
            if (!step(block, s, projected)) return block.first + s;

        if (!decay_.none())
            for (Index k = 0; k < rows; ++k) {
                const T factor = static_cast<T>(decay_(k / params_.batch + 1, block.steps));
                for (Index i = 0; i < stride_; ++i) c_[k * stride_ + i] *= factor;
            }
        if (state.in_rows() && (!all_bounded(block.x.middle_rows(0, rows)) || shared_.idle()))
            return block.first;
        if (projected) noise_.plan(block.h, block.block_steps, block.steps, decay_);
        const T shrink = static_cast<T>(decay_(0, block.steps));
        // The next block's pre-activations at once, while a tile is in the cache: W passes through it once a
        // block. Not if what comes after this loop moves W again.
        ahead_ = block.next.rows > 0 && !network_.sphere && (projected || !noise_.active());
        const auto move = [&](Index t) {
            T* const w = state.borrow(t, room_.data());
            tiles::backward<T, R>(block.x.middle_rows(0, rows), c_.data() + (t - tile0_) * kWidth, stride_,
                                  shrink, w);
            if (projected) noise_.finish(block.first, shared_.q.data(), t, w);
            if (ahead_) forward(block.next, w, t);
            state.give_back(t, w);
        };
        for_tiles(move, !state.in_rows());
        if (network_.output == Output::trained) std::copy_n(a_.data(), stride_, state.a(tile0_));
        if (network_.has_b()) std::copy_n(b_.data(), stride_, state.b(tile0_));
        if (noise_.active() && !projected) noise_.add_direct(block.first, block.h[0], state);
        if (network_.sphere)
            for (Index t = tile0_; t < tile1_; ++t) normalise_tile<T, R>(state.w(t), d_, state.filled(t));
        draw();
        // Nobody starts on the next block's Gram matrix before.
        if (shared_.rows > params_.batch) shared_.exchange.meet(rank_, size_);
        return -1;
    }

private:
    template <class Body>
    void for_tiles(Body&& body, bool stops = true) {
        for (Index t = tile0_; t < tile1_; ++t) {
            if (stops && (t - tile0_) % kTilesPerPoll == 0) shared_.poll(rank_);
            if (stops && shared_.idle()) return;
            body(t);
        }
    }
    /// z = W x for tile t of this thread, whose weights are w, and all rows of x.
    void forward(MatView<const T> x, const T* w, Index t) {
        tiles::forward<T, R>(x, w, nullptr, z_.data() + (t - tile0_) * kWidth, stride_);
    }

    /// True if the coefficients of the samples x, a and b leave finite numbers for all members, judged by
    /// sums of sizes. They meet here.
    bool all_bounded(MatView<const T> x) {
        double sum = 0;
        if constexpr (std::is_same_v<T, double>) {  // only they are in rows
            for (Index k = 0; k < x.rows; ++k)
                sum += sum_of_sizes(c_.data() + k * stride_, stride_) * sum_of_sizes(x.row(k), d_);
            sum += sum_of_sizes(a_.data(), stride_);
            if (network_.has_b()) sum += sum_of_sizes(b_.data(), stride_);
        }
        if (!(sum <= kHarmless)) shared_.doubtful.store(true, std::memory_order_relaxed);
        shared_.exchange.meet(rank_, size_);
        return !shared_.doubtful.load(std::memory_order_relaxed);
    }
    Index first_tile(Index group) const { return group * tiles_ / shared_.groups; }
    Index step_of(Index sample) const { return sample / params_.batch; }

    /// Compute this thread's share of the inner products of samples (Gram matrix), and of their decayed copy.
    void prepare_gram(const StepBlock<T>& block, Index rows) {
        if (shared_.rows <= params_.batch) return;  // one step per block: no sample sees another
        const Index share = ((rows + size_ - 1) / size_ + 3) / 4 * 4;
        const Index l0 = std::min(rows, rank_ * share), l1 = std::min(rows, l0 + share);
        gram<T>(block.x.middle_rows(0, rows), l0, l1, shared_.gram.data(), shared_.rows);
        for (Index k = 0; k < l1; ++k)
            for (Index l = std::max(l0, (step_of(k) + 1) * params_.batch); l < l1; ++l)
                shared_.mix[k * shared_.rows + l] =
                    shared_.gram[k * shared_.rows + l] * static_cast<T>(decay_(step_of(k) + 1, step_of(l)));
    }

    /// Add to the pre-activations of a group of samples what all earlier groups contribute (eq. (6.2)).
    void mix_earlier(Index first, Index last) {
        if (shared_.rows <= params_.batch || (first == 0 && decay_.none())) return;  // none, and no decay
        for_tiles([&](Index tile) {
            const Index t = tile - tile0_;
            tiles::for_columns(last - first, [&](Index column, auto width) {
                constexpr int C = width();
                const Index l = first + column;
                T* const z = z_.data() + l * stride_ + t * kWidth;
                simd::Vec<T> acc[C][R];
                T shrink[C];
                for (int c = 0; c < C; ++c) shrink[c] = static_cast<T>(decay_(0, step_of(l + c)));
                const Index stride = stride_;
                tiles::each_vector<C, R>([&](int c, int r) {
                    acc[c][r] = shrink[c] * simd::load(z + c * stride + r * simd::kLanes<T>);
                });
                tiles::accumulate<T, R, C, true>(first, c_.data() + t * kWidth, stride_,
                                                 shared_.mix.data() + l, shared_.rows, 1, acc);
                tiles::each_vector<C, R>(
                    [&](int c, int r) { simd::store(z + c * stride + r * simd::kLanes<T>, acc[c][r]); });
            });
        });
    }

    /// Add to z_l what the earlier steps of its own group, the noise and the bias contribute, in one pass.
    void finish_z(Index l, Index group_first, Index step_first, bool projected) {
        constexpr Index lanes = simd::kLanes<T>;
        T* const z = z_.data() + l * stride_;
        Index terms = 0;
        T factor[2 * kMostRows];
        const T* row[2 * kMostRows];
        for (Index k = group_first; k < step_first; ++k, ++terms) {
            factor[terms] = shared_.mix[k * shared_.rows + l];
            row[terms] = c_.data() + k * stride_;
        }
        for (Index q = 0; projected && step_first > 0 && q <= l; ++q, ++terms) {
            factor[terms] = noise_.factor(l, q);
            row[terms] = noise_.projected(q);
        }
        for (Index i = 0; i < stride_; i += lanes) {
            simd::Vec<T> sum = simd::load(z + i);
            for (Index k = 0; k < terms; ++k) sum += factor[k] * simd::load(row[k] + i);
            if (network_.has_b()) sum += simd::load(b_.data() + i);
            simd::store(z + i, sum);
        }
    }

    /// Do step s of the block (eqs. (6.3), (6.4)); false if a prediction is not finite.
    bool step(const StepBlock<T>& block, Index s, bool projected) {
        constexpr Index lanes = simd::kLanes<T>,
                        kGroup = 8;  // a group of samples is one pass of the micro-kernel
        const Index batch = params_.batch, group_steps = std::max<Index>(1, kGroup / batch);
        const Index group = s / group_steps * group_steps;
        const Index l0 = s * batch;
        if (s == group) mix_earlier(l0, std::min(group + group_steps, block.steps) * batch);
        T* const mine = shared_.exchange.mine(rank_);
        for (Index i = 0; i < batch && !shared_.idle(); ++i) {
            const Index l = l0 + i;
            finish_z(l, group * batch, l0, projected);
            T* const value = z_.data() + l * stride_;  // the value takes the place of z, the slope that of c
            shared_.keeper.guard([&] {                 // the others wait where they meet
                evaluate<T>(network_.activation, stride_, value, value, c_.data() + l * stride_, nullptr);
            });
            for (Index g = group0_; g < group1_; ++g) mine[(g - group0_) * batch + i] = weigh(g, value);
        }
        shared_.exchange.meet(rank_, size_);
        bool finite = true;
        for (Index i = 0; i < batch; ++i) {
            T f = 0;
            for (const auto [owner, at] : sources_) f += shared_.exchange.of(rank_, owner)[at + i];
            error_[i] = (block.y[l0 + i] - f * inverse_count_) * inverse_batch_;
            finite = finite && std::isfinite(error_[i]);
        }
        if (!finite) return false;

        const double h = block.h[s];
        const T h_w = static_cast<T>(h * params_.rates.w), h_a = static_cast<T>(h * params_.rates.a),
                h_b = static_cast<T>(h * params_.rates.b);
        const T keep_a = T(1) - h_a * static_cast<T>(params_.ridge),
                keep_b = T(1) - h_b * static_cast<T>(params_.ridge);
        const bool trains_a = network_.output == Output::trained, trains_b = network_.trains_b();
        for (Index v = 0; v < stride_; v += lanes) {
            const simd::Vec<T> a = simd::load(a_.data() + v);
            simd::Vec<T> sum_a{}, sum_b{};
            for (Index l = l0; l < l0 + batch; ++l) {
                const simd::Vec<T> e = simd::fill<T>(error_[l - l0]);
                const simd::Vec<T> slope = e * a * simd::load(c_.data() + l * stride_ + v);
                simd::store(c_.data() + l * stride_ + v, h_w * slope);
                sum_b += slope;
                if (trains_a) sum_a += e * simd::load(z_.data() + l * stride_ + v);
            }
            if (trains_a) simd::store(a_.data() + v, keep_a * a + h_a * sum_a);
            if (trains_b) simd::store(b_.data() + v, keep_b * simd::load(b_.data() + v) + h_b * sum_b);
        }
        // Keep the neurons that only fill the last tile at a = 0: sigma(0) != 0 would make output weights of
        // them.
        const Index owned = std::max<Index>(0, std::min(stride_, count_ - tile0_ * kWidth));
        if (trains_a) std::fill(a_.begin() + owned, a_.end(), T(0));
        if (projected) {
            noise_.advance(block.first + s, static_cast<T>(decay_(s, s + 1)), h);
            if (trains_a)
                noise_.add_scalars(block.first + s, 0, noise_.amplitude(h, params_.rates.a), a_.data());
            if (trains_b)
                noise_.add_scalars(block.first + s, 1, noise_.amplitude(h, params_.rates.b), b_.data());
        }
        return true;
    }

    /// sum of a_i value_i over the neurons of group g.
    T weigh(Index g, const T* value) const {
        constexpr Index lanes = simd::kLanes<T>;
        simd::Vec<T> sum{};
        for (Index i = bounds_[g - group0_]; i < bounds_[g - group0_ + 1]; i += lanes)
            sum += simd::load(a_.data() + i) * simd::load(value + i);
        return simd::sum<T>(sum);
    }

    static constexpr Index kMostRows = 64, kTilesPerPoll = 64;
    const Network& network_;
    const SgdParams& params_;
    Shared<T>& shared_;
    int rank_, size_;
    Index group0_, group1_, tiles_, tile0_, tile1_, stride_, count_, d_;
    Scratch<T> z_, c_, a_, b_, error_, room_;
    struct Source {
        int owner;
        Index at;
    };
    bool ahead_ = false;  // z_ are the pre-activations of the block to come
    T inverse_count_, inverse_batch_;
    std::vector<Index> bounds_;    // of this thread's groups, in numbers of its slab
    std::vector<Source> sources_;  // of the groups' shares of a prediction: whose, and where it puts them
    Shrinkage decay_;
    Noise<T, R> noise_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
