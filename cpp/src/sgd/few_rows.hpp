#pragma once
// One step with few samples in the caller's rows (eq. (6.1)).
#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "base/scratch.hpp"
#include "base/tiles.hpp"
#include "mfcore/sgd/step.hpp"
#include "sgd/sizes.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

inline constexpr Index kNeurons = 64;  // neurons per block of a parallel loop and of a partial sum

/// Nothing is packed, W is read once forward and once backward, the activations of all neurons are kept.
class FewRows {
public:
    static constexpr Index kRows = 32, kActivations = Index{1} << 20;  // the most of each, for one step

    static bool suits(Index rows, Index neurons) { return rows <= kRows && rows * neurons <= kActivations; }

    FewRows(const Network& network, Mat theta, ConstMat x, const StepParams& params)
        : network_(network),
          theta_(theta),
          x_(x),
          params_(params),
          n_(theta.rows),
          d_(x.cols),
          blocks_((n_ + kNeurons - 1) / kNeurons),
          threads_(threads_for(x.rows * n_ * (d_ + 50) / 25, params.threads)),
          value_(x.rows * n_),
          slope_(x.rows * n_),
          partial_(blocks_ * x.rows),
          error_(x.rows),
          sizes_(3 * blocks_, 0.0) {}

    bool predict(const double* y) {
        sum();
        return to_errors(y, n_, x_.rows, error_.data());
    }

    /// Sums of predictions over the neurons, by samples; errors take their place before move().
    double* sum() {
        for_blocks(n_, kNeurons, threads_, [&](Index block, Index begin, Index end) {
            const Index width = end - begin;
            double *const sizes = sizes_.data() + 3 * block, *const of_a = sizes + 2;
            for (Index i = begin; i < end; ++i) *of_a += std::abs(a(i));
            const ConstMat w{theta_.row(begin) + network_.w_at(), width, d_, theta_.stride};
            row_products(x_, w, {value_.data() + begin, x_.rows, width, n_});
            for (Index q = 0; q < x_.rows; ++q) {
                double* z = value_.data() + q * n_ + begin;
                if (network_.has_b())
                    for (Index i = 0; i < width; ++i) z[i] += theta_(begin + i, network_.b_at());
                evaluate<double>(network_.activation, width, z, z, slope_.data() + q * n_ + begin);
                double sum = 0;
                for (Index i = 0; i < width; ++i) sum += a(begin + i) * z[i];
                partial_[block * x_.rows + q] = sum;
                sizes[0] += sum_of_sizes(z, width);
                sizes[1] += sum_of_sizes(slope_.data() + q * n_ + begin, width);
            }
        });
        for (Index q = 0; q < x_.rows; ++q) {
            double f = 0;
            for (Index block = 0; block < blocks_; ++block) f += partial_[block * x_.rows + q];
            error_[q] = f;
        }
        return error_.data();
    }

    bool bounded(double h) const {
        double values = 0, slopes = 0, a = 0;
        for (Index block = 0; block < blocks_; ++block) {
            values += sizes_[3 * block];
            slopes += sizes_[3 * block + 1];
            a += sizes_[3 * block + 2];
        }
        return is_bounded(h, params_.rates, values, slopes, a, error_.data(), x_);
    }

    /// theta += h [sum_q e_q grad sigma*(x_q; theta) - lambda theta].
    void move(double h) {
        const StopScope whole{StopPredicate{}};  // not half of the neurons
        const double keep = 1 - h * params_.rates.w * params_.ridge;
        for_blocks(n_, kNeurons, threads_, [&](Index, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
                double sum_a = 0, sum_b = 0;
                const double factor = a(i);
                for (Index q = 0; q < x_.rows; ++q) {
                    const double slope = error_[q] * factor * slope_[q * n_ + i];
                    sum_a += error_[q] * value_[q * n_ + i];
                    sum_b += slope;
                    slope_[q * n_ + i] = h * params_.rates.w * slope;
                }
                if (network_.output == Output::trained) pull(theta_(i, 0), h * params_.rates.a, sum_a);
                if (network_.trains_b()) pull(theta_(i, network_.b_at()), h * params_.rates.b, sum_b);
            }
            for (Index i = begin; i < end; i += 4) {
                if (i + 4 <= end)
                    add_samples<4>(i, keep);
                else
                    for (Index last = i; last < end; ++last) add_samples<1>(last, keep);
            }
        });
    }

private:
    double a(Index i) const { return network_.has_a() ? theta_(i, 0) : 1.0; }
    void pull(double& entry, double h, double slope) const {
        entry = (1 - h * params_.ridge) * entry + h * slope;
    }

    /// w_i <- keep w_i + sum_q slope_qi x_q for C neurons, vectors of coordinates at a time.
    template <int C>
    void add_samples(Index i, double keep) {
        constexpr int R = 3;
        constexpr Index lanes = simd::kLanes<double>;
        double* w[C];
        for (int c = 0; c < C; ++c) w[c] = theta_.row(i + c) + network_.w_at();
        const auto vectors = [&]<int V>(Index j, std::integral_constant<int, V>) {
            simd::Vec<double> acc[C][V] = {};
            tiles::accumulate<double, V, C, true>(x_.rows, x_.data + j, x_.stride, slope_.data() + i, n_, 1,
                                                  acc);
            for (int c = 0; c < C; ++c)
                for (int v = 0; v < V; ++v) {
                    double* at = w[c] + j + v * lanes;
                    simd::store(at, keep * simd::load(at) + acc[c][v]);
                }
        };
        Index j = 0;
        for (; j + R * lanes <= d_; j += R * lanes) vectors(j, std::integral_constant<int, R>{});
        for (; j + lanes <= d_; j += lanes) vectors(j, std::integral_constant<int, 1>{});
        for (; j < d_; ++j) {
            for (int c = 0; c < C; ++c) {
                double sum = 0;
                for (Index q = 0; q < x_.rows; ++q) sum += slope_[q * n_ + i + c] * x_(q, j);
                w[c][j] = keep * w[c][j] + sum;
            }
        }
    }

    const Network& network_;
    Mat theta_;
    ConstMat x_;
    const StepParams& params_;
    Index n_, d_, blocks_;
    int threads_;
    Scratch<double> value_, slope_;  // samples x neurons
    Scratch<double> partial_, error_;
    Scratch<double> sizes_;  // of values, slopes and a, by blocks
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
