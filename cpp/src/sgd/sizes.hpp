#pragma once
// Bounds on what a step adds, by sums of sizes, which cost little beside the activations.
#include <algorithm>
#include <cmath>

#include "base/simd.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// A size that cannot make a finite number infinite when added: it is less than half of the last place of the
/// largest.
inline constexpr double kHarmless = 1e290;

inline simd::Vec<double> size_of(simd::Vec<double> x) { return simd::select<double>(x < 0, -x, x); }

/// Sum of |x_i|; it is not finite if some x_i is not.
inline double sum_of_sizes(const double* x, Index n) {
    constexpr Index lanes = simd::kLanes<double>;
    simd::Vec<double> sum{};
    Index i = 0;
    for (; i + lanes <= n; i += lanes) sum += size_of(simd::load(x + i));
    double total = simd::sum<double>(sum);
    for (; i < n; ++i) total += std::abs(x[i]);
    return total;
}

/// Sums of predictions over N neurons become errors (y - f)/B of B samples; false if one is not finite.
inline bool to_errors(const double* y, Index neurons, Index samples, double* sums) {
    bool finite = true;
    for (Index q = 0; q < samples; ++q) {
        sums[q] = (y[q] - sums[q] / static_cast<double>(neurons)) / static_cast<double>(samples);
        finite = finite && std::isfinite(sums[q]);
    }
    return finite;
}

inline double fastest(const Rates& rates) { return std::max({rates.a, rates.b, rates.w}); }

/// True if no step of size h can leave the finite numbers, given sums of the sizes of values, of slopes, of
/// output weights and of errors (each stands for the largest of its terms), and the samples.
inline bool is_bounded(double h, const Rates& rates, double values, double slopes, double a,
                       const double* errors, ConstMat x) {
    double inputs = 1;
    for (Index q = 0; q < x.rows; ++q) inputs += sum_of_sizes(x.row(q), x.cols);
    const double speed = std::max(1.0, h) * std::max(1.0, fastest(rates));
    return speed * sum_of_sizes(errors, x.rows) * (values + a * (1 + slopes) * inputs) <= kHarmless;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
