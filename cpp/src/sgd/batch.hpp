#pragma once
// Blocks of one step of a large batch (eqs. (6.3), (6.4)), done by a team of threads that each own tiles of
// neurons: samples pass through a tile in chunks that stay in the first-level cache, and the threads meet
// once a step.
#include <cmath>

#include "base/scratch.hpp"
#include "sgd/block.hpp"
#include "sgd/tile_steps.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template <class T, int R>
class BatchWorker {
public:
    using Tiles = NeuronTiles<T, R>;
    static constexpr Index kLeast = 16,  // samples that are a large batch
        kAhead = 1;                      // samples are drawn so many pieces ahead

    BatchWorker(const Network& network, const SgdParams& params, std::uint64_t seed, const Tiles& tiles,
                Shared<T>& shared, int rank, int size)
        : network_(network),
          params_(params),
          shared_(shared),
          rank_(rank),
          size_(size),
          group0_(rank * shared.groups / size),
          group1_((rank + 1) * shared.groups / size),
          tiles_(tiles.tiles()),
          count_(tiles.count()),
          chunks_((params.batch + Tiles::kNear - 1) / Tiles::kNear),
          chunk_((params.batch + chunks_ - 1) / chunks_),
          of_chunk_(2 * chunk_ * kWidth),
          keeps_((first_tile(group1_) - first_tile(group0_)) * chunks_ * of_chunk_ <= kKept),
          memory_(keeps_ ? (first_tile(group1_) - first_tile(group0_)) * chunks_ * of_chunk_ : of_chunk_),
          f_(params.batch * kLanes),
          error_(params.batch),
          noise_(network, params, seed, tiles, first_tile(group0_), first_tile(group1_), shared.rows) {}

    /// Advance this thread's tiles of `state` by the block's step. Returns its number if a prediction is not
    /// finite, or -1; then nothing is written. draw() is called before others are waited for.
    template <class Draw>
    Index advance(const StepBlock<T>& block, Tiles& state, const Draw& draw) {
        predict(block, state);
        draw();
        shared_.exchange.meet(rank_, size_);
        if (!find_errors(block)) return block.first;
        const double h = block.h[0];
        for (Index t = first_tile(group0_); t < first_tile(group1_) && !idle(t); ++t)
            move(h, t, block.x, state);
        if (noise_.active()) noise_.add_direct(block.first, h, state);
        if (network_.sphere)
            for (Index t = first_tile(group0_); t < first_tile(group1_); ++t)
                normalise_tile<T, R>(state.w(t), state.dimension(), state.filled(t));
        return -1;
    }

private:
    static constexpr Index kLanes = simd::kLanes<T>, kWidth = Tiles::kWidth, kTilesPerPoll = 16,
                           kKept = Index{1} << 19;  // activations that are not made again after the meeting

    Index first_tile(Index group) const { return group * tiles_ / shared_.groups; }
    bool idle(Index t) {
        if (t % kTilesPerPoll == 0) shared_.poll(rank_);
        return shared_.idle();
    }
    T* activations(Index t, Index q) {
        const Index at = (t - first_tile(group0_)) * chunks_ + q / chunk_;
        return memory_.data() + (keeps_ ? at * of_chunk_ : 0);
    }
    Index rows_from(Index q) const { return std::min(chunk_, params_.batch - q); }
    void activate(const Tiles& state, Index t, MatView<const T> x, Index q, T* value) const {
        shared_.keeper.guard([&] {  // the others wait where they meet
            state.activate(network_.activation, t, x.middle_rows(q, rows_from(q)), value,
                           value + chunk_ * kWidth);
        });
    }

    /// Hand over the shares of this thread's groups of tiles in the predictions.
    void predict(const StepBlock<T>& block, const Tiles& state) {
        T* const mine = shared_.exchange.mine(rank_);
        for (Index g = group0_; g < group1_; ++g) {
            std::fill(f_.begin(), f_.end(), T(0));
            for (Index t = first_tile(g); t < first_tile(g + 1) && !idle(t); ++t)
                for (Index q = 0; q < params_.batch; q += chunk_) {
                    T* const value = activations(t, q);
                    activate(state, t, block.x, q, value);
                    add_shares<T, R>(state.a(t), rows_from(q), value, f_.data() + q * kLanes);
                }
            sum_lanes(mine + (g - group0_) * params_.batch);
        }
    }

    /// The shares of one group, f_ summed over lanes.
    void sum_lanes(T* to) const {
        Index q = 0;
        for (; q + kLanes <= params_.batch; q += kLanes) {
            simd::Vec<T> f[kLanes];
            for (Index k = 0; k < kLanes; ++k) f[k] = simd::load(f_.data() + (q + k) * kLanes);
            simd::store(to + q, simd::sums<T>(f));
        }
        for (; q < params_.batch; ++q) to[q] = simd::sum<T>(simd::load(f_.data() + q * kLanes));
    }

    /// Errors over the batch size; false if one is not finite.
    bool find_errors(const StepBlock<T>& block) {
        std::fill(error_.begin(), error_.end(), T(0));
        for (int owner = 0; owner < size_; ++owner) {
            const T* next = shared_.exchange.of(rank_, owner);
            for (Index g = owner * shared_.groups / size_; g < (owner + 1) * shared_.groups / size_; ++g)
                for (Index q = 0; q < params_.batch; ++q) error_[q] += *next++;
        }
        const T count = T(1) / static_cast<T>(count_), batch = T(1) / static_cast<T>(params_.batch);
        T zero = 0;  // unless an error is not finite
        for (Index q = 0; q < params_.batch; ++q) {
            error_[q] = (block.y[q] - error_[q] * count) * batch;
            zero += T(0) * error_[q];
        }
        return zero == 0;
    }

    void move(double h, Index t, MatView<const T> x, Tiles& state) {
        const T speed = static_cast<T>(h * params_.rates.w);
        T shrink = static_cast<T>(1 - h * params_.rates.w * params_.ridge);
        TileSums<T, R> sums;
        // Activations that are made again need the neurons as they were.
        if (!keeps_) moved_.assign(state.w(t), state.w(t) + x.cols * kWidth);
        T* const w = keeps_ ? state.w(t) : moved_.data();
        for (Index q = 0; q < params_.batch; q += chunk_) {
            T *const value = activations(t, q), *const slope = value + chunk_ * kWidth;
            if (!keeps_) activate(state, t, x, q, value);
            make_coefficients<T, R>(state.a(t), &error_[q], rows_from(q), value, speed, slope, sums);
            tiles::with_filled<T, R>(state.filled(t), [&](auto vectors) {
                tiles::backward<T, vectors()>(x.middle_rows(q, rows_from(q)), slope, kWidth, shrink, w,
                                              kWidth);
            });
            shrink = 1;
        }
        if (!keeps_) std::copy(moved_.begin(), moved_.end(), state.w(t));
        const auto pull = [&](T* at, double rate, const simd::Vec<T>* sum) {
            pull_tile<T, R>(at, static_cast<T>(1 - h * rate * params_.ridge), static_cast<T>(h * rate), sum);
        };
        if (network_.output == Output::trained) {
            pull(state.a(t), params_.rates.a, sums.a);
            // sigma(0) != 0 would make output weights of the neurons that only fill the last tile.
            std::fill(state.a(t) + state.filled(t), state.a(t) + kWidth, T(0));
        }
        if (network_.trains_b()) pull(state.b(t), params_.rates.b, sums.b);
    }

    const Network& network_;
    const SgdParams& params_;
    Shared<T>& shared_;
    int rank_, size_;
    Index group0_, group1_, tiles_, count_, chunks_, chunk_;
    Index of_chunk_;  // numbers of a tile on a chunk: values, then slopes
    bool keeps_;
    Scratch<T> memory_, f_, error_, moved_;
    Noise<T, R> noise_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
