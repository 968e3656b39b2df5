#pragma once
// One step with many samples on the caller's rows (eq. (6.1)), in memory that depends neither on the number
// of samples nor on that of neurons: a first sweep of the neurons, packed tile by tile, makes predictions, a
// second one makes the activations again and moves.
#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "mfcore/sgd/step.hpp"
#include "network/neurons.hpp"
#include "sgd/sizes.hpp"
#include "sgd/tile_steps.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template <int R>
class ManyRows {
    using Tiles = NeuronTiles<double, R>;
    static constexpr Index kWidth = Tiles::kWidth, kLanes = simd::kLanes<double>;
    static constexpr Index kChunk = 64,  // samples whose activations of a tile are held at once
        kSection = 1024,                 // samples whose shares of predictions are
        kTogether = 4,                   // tiles that are packed at once
        kGroups = 64,                    // of tiles, by which predictions are summed
        kKept = Index{1} << 17;          // activations that are not made again

public:
    ManyRows(const Network& network, Mat theta, ConstMat x, const StepParams& params)
        : network_(network),
          theta_(theta),
          x_(x),
          params_(params),
          tiles_((theta.rows + kWidth - 1) / kWidth),
          groups_(std::min(tiles_, kGroups)),
          sections_((x.rows + kSection - 1) / kSection),
          chunks_((x.rows + kChunk - 1) / kChunk),
          threads_(threads_for(x.rows * theta.rows * (x.cols + 25) / 12, params.threads)),
          keeps_(tiles_ * kWidth * x.rows <= kKept),
          kept_(keeps_ ? tiles_ * chunks_ * 2 * kChunk * kWidth : 0),
          partial_(groups_ * x.rows),
          error_(x.rows),
          sizes_(3 * groups_ * sections_, 0.0) {}

    bool predict(const double* y) {
        sum();
        return to_errors(y, theta_.rows, x_.rows, error_.data());
    }

    /// Sums of predictions over the neurons, by samples; errors take their place before move().
    double* sum() {
        for_tasks(groups_ * sections_, threads_, [&](Index task) {
            const Index g = task / sections_, first = task % sections_ * kSection;
            const Index last = std::min(x_.rows, first + kSection);
            Scratch<double> f((last - first) * kLanes, 0.0), memory(2 * kChunk * kWidth);
            double* const sizes = &sizes_[3 * task];
            const auto add = [&](Index tile, const Tiles& packed) {
                sizes[2] += sum_of_sizes(packed.a(0), packed.tiles() * kWidth);
                for (Index q = first; q < last; q += kChunk)
                    for (Index t = 0; t < packed.tiles(); ++t) {
                        double* const value = activations(tile + t, q, memory.data());
                        const Index rows = std::min(kChunk, last - q);
                        activate(packed, t, q, rows, value);
                        add_shares<double, R>(packed.a(t), rows, value, f.data() + (q - first) * kLanes);
                        sizes[0] += sum_of_sizes(value, rows * kWidth);
                        sizes[1] += sum_of_sizes(value + kChunk * kWidth, rows * kWidth);
                    }
            };
            for_packed(g * tiles_ / groups_, (g + 1) * tiles_ / groups_, add);
            for (Index q = first; q < last; ++q)
                partial_[g * x_.rows + q] = simd::sum<double>(simd::load(f.data() + (q - first) * kLanes));
        });
        for (Index q = 0; q < x_.rows; ++q) {
            double f = 0;
            for (Index g = 0; g < groups_; ++g) f += partial_[g * x_.rows + q];
            error_[q] = f;
        }
        return error_.data();
    }

    bool bounded(double h) const {
        double sums[3] = {};
        for (std::size_t k = 0; k < sizes_.size(); ++k) sums[k % 3] += sizes_[k];
        return is_bounded(h, params_.rates, sums[0], sums[1], sums[2], error_.data(), x_);
    }

    /// theta += h [sum_q e_q grad sigma*(x_q; theta) - lambda theta].
    void move(double h) {
        const StopScope whole{StopPredicate{}};  // not half of the neurons
        for_blocks(tiles_, kTogether, threads_, [&](Index, Index begin, Index end) {
            Scratch<double> memory(2 * kChunk * kWidth);
            for_packed(begin, end, [&](Index tile, Tiles& packed) {
                Tiles moved = packed;  // samples to come still need the neurons as they are
                for (Index t = 0; t < packed.tiles(); ++t)
                    move_tile(h, tile + t, t, packed, moved, memory.data());
                moved.unpack(network_, rows_of(tile, tile + packed.tiles()));
            });
        });
    }

private:
    Mat rows_of(Index tile, Index end) const {
        return theta_.middle_rows(tile * kWidth, std::min(end * kWidth, theta_.rows) - tile * kWidth);
    }

    /// Call body(tile, packed) for the tiles from `begin` to `end`, some of them at a time, packed.
    template <class Body>
    void for_packed(Index begin, Index end, Body&& body) const {
        for (Index tile = begin; tile < end; tile += kTogether) {
            Tiles packed(network_, rows_of(tile, std::min(end, tile + kTogether)));
            body(tile, packed);
        }
    }

    /// Values and then slopes of a tile on the chunk of samples from q.
    double* activations(Index tile, Index q, double* otherwise) {
        return keeps_ ? kept_.data() + (tile * chunks_ + q / kChunk) * 2 * kChunk * kWidth : otherwise;
    }

    void activate(const Tiles& packed, Index t, Index q, Index rows, double* value) const {
        packed.activate(network_.activation, t, x_.middle_rows(q, rows), value, value + kChunk * kWidth);
    }

    /// Move tile t of those packed, number `tile` of all.
    void move_tile(double h, Index tile, Index t, const Tiles& packed, Tiles& moved, double* memory) {
        const double speed = h * params_.rates.w;
        double keep = 1 - speed * params_.ridge;
        TileSums<double, R> sums;
        for (Index q = 0; q < x_.rows; q += kChunk) {
            const Index rows = std::min(kChunk, x_.rows - q);
            double *const value = activations(tile, q, memory), *const slope = value + kChunk * kWidth;
            if (!keeps_) activate(packed, t, q, rows, value);
            make_coefficients<double, R>(packed.a(t), &error_[q], rows, value, speed, slope, sums);
            tiles::backward<double, R>(x_.middle_rows(q, rows), slope, kWidth, keep, moved.w(t));
            keep = 1;
        }
        const auto pull = [&](double* at, double rate, const simd::Vec<double>* sum) {
            pull_tile<double, R>(at, 1 - h * rate * params_.ridge, h * rate, sum);
        };
        if (network_.output == Output::trained) pull(moved.a(t), params_.rates.a, sums.a);
        if (network_.trains_b()) pull(moved.b(t), params_.rates.b, sums.b);
    }

    const Network& network_;
    Mat theta_;
    ConstMat x_;
    const StepParams& params_;
    Index tiles_, groups_, sections_, chunks_;
    int threads_;
    bool keeps_;
    Scratch<double> kept_, partial_, error_;
    Scratch<double> sizes_;  // of values, slopes and a, by tasks
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
