#pragma once
// Trapezoid rule for E f(G), G ~ N(0, 1), eq. (3.13): exponentially accurate when f is analytic near the real
// line.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mfcore/network/activation.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// How far out rules go, in standard deviations, one after the other, for functions of which it is not known that they
/// do not grow: beyond `usual`, averages of e^{R g} have their mass at R.
inline constexpr double kFurther[] = {15, 24, 38};

/// Nodes k step, k = -half .. half, weights step * density: the error of spacing 2 pi/Omega is about
/// e^{-Omega y + y^2/2} sup |f(x + i y)| for any height y inside the strip; `digits` is the exponent wanted.
struct Trapezoid {
    double step;
    Index half;  ///< negative: the rate is not finite, or too steep to be worth the nodes

    Index nodes() const { return 2 * half + 1; }
    bool usable() const { return half >= 0; }

    /// For f(u) = sigma_1(. + r_1 u) sigma_2(. + r_2 u) ...: strips and growths of the factors joined by
    /// add().
    class Builder {
    public:
        Builder& add(const Facts& a, double rate) {
            rate = std::abs(rate);
            if (rate > 0) strip_ = std::min(strip_, a.strip / rate);
            growth_ += a.growth * rate * rate;
            return *this;
        }
        /// `degree`: f also has the factor h_degree(u), which oscillates like cos(sqrt(degree) u).
        Trapezoid build(double digits, double reach, Index degree = 0) const {
            const double curvature = 2 * growth_ + 1;
            const double y = std::min(strip_, std::sqrt(2 * digits / curvature));
            const double root = std::sqrt(static_cast<double>(degree));
            const double omega = digits / y + curvature * y / 2 + 1.5 * root;
            const double spacing = 2 * 3.14159265358979323846 / omega;
            const double side = std::ceil((reach + root) / spacing);
            if (!(side <= kMostNodes)) return {0, -1};  // not only large: NaN too
            return {spacing, static_cast<Index>(side)};
        }

    private:
        static constexpr double kMostNodes = 1 << 21;
        double strip_ = std::numeric_limits<double>::infinity(), growth_ = 0;
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
