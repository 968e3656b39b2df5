#pragma once
// One step of few neurons with very many samples.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/sgd/step.hpp"
#include "sgd/few_rows.hpp"
#include "sgd/sizes.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// A step of few neurons with very many samples, shared out by samples: the kernel of population gradients,
/// then one move.
class LongStep {
public:
    LongStep(const Network& network, Mat theta, ConstMat x, const StepParams& params)
        : network_(network), theta_(theta), x_(x), params_(params), gradient_(theta.rows * theta.cols) {}

    bool predict(const double* y) {
        const Measure rho{theta_};
        double risk = 0;
        PotentialOut out;
        out.gradient = gradient_.data();
        out.risk = &risk;
        potential(network_, theta_, &rho, *finite_law(x_, y), 0, x_.rows, out, {params_.threads, {}});
        return std::isfinite(risk);
    }

    bool bounded(double h) const {
        const double sum = sum_of_sizes(gradient_.data(), static_cast<Index>(gradient_.size()));
        return std::max(1.0, h) * std::max(1.0, fastest(params_.rates)) * sum <= kHarmless &&
               params_.ridge <= 1;  // ridge theta is formed before it is multiplied by h
    }

    void move(double h) {
        const Rates& rates = params_.rates;
        for_blocks(theta_.rows, kNeurons, threads_for(theta_.rows * theta_.cols, params_.threads),
                   [&](Index, Index begin, Index end) {
                       for (Index i = begin; i < end; ++i) {
                           const double* g = gradient_.data() + i * theta_.cols;
                           const auto pull = [&](Index j, double speed) {
                               theta_(i, j) -= h * speed * (g[j] + params_.ridge * theta_(i, j));
                           };
                           if (network_.output == Output::trained) pull(0, rates.a);
                           if (network_.trains_b()) pull(network_.b_at(), rates.b);
                           for (Index j = network_.w_at(); j < theta_.cols; ++j) pull(j, rates.w);
                       }
                   });
    }

private:
    const Network& network_;
    Mat theta_;
    ConstMat x_;
    const StepParams& params_;
    std::vector<double> gradient_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
