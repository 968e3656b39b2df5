// The law of a component of a random direction: tails, tail moments, tables (eqs. (3.3) to (3.11)).
#include "mfcore/reduction/sphere.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

constexpr double kSqrtPi = 1 / std::numbers::inv_sqrtpi;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Gamma(x + 1/2) / Gamma(x): lifted to x >= 64 by its recurrence, then the asymptotic series in 1/x. (A
// difference of lgammas would lose as many digits as x has.)
double half_step_ratio(double x) {
    double factor = 1;
    for (; x < 64; x += 1) factor *= x / (x + 0.5);
    const double h = 1 / x;
    const double series =
        1 + h * (-1.0 / 8 +
                 h * (1.0 / 128 +
                      h * (5.0 / 1024 + h * (-21.0 / 32768 + h * (-399.0 / 262144 + h * 869.0 / 4194304)))));
    return factor * std::sqrt(x) * series;
}

// c_d / (d - 1) = B(0), finite for d = 1 too (eq. (3.8)).
double moment_at_zero(double d) { return 1 / (2 * kSqrtPi * half_step_ratio(d / 2)); }

// P(u > tau) / (tau B(tau)): the contracted continued fraction of I_x((d-1)/2, 1/2) at x = 1 - tau^2,
// evaluated by Lentz's method. It depends on tau^2 itself, not only on x, which would lose tau^2 to rounding
// for large d: eqs. (3.10), (3.11).
double tail_fraction(double d, double x, double tau) {
    const double a = (d - 1) / 2, b = 0.5, y = tau * tau;
    const auto partial = [&](double m) {
        const double first = m > 0 ? m + m * (b - m) * x / (a + 2 * m - 1) : 0;  // 0/0 for d = 3, m = 0
        return first + (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (a + 2 * m + 1);
    };
    const auto nonzero = [](double v) { return std::abs(v) < 1e-300 ? 1e-300 : v; };
    double value = nonzero(partial(0)), c = value, e = 0;
    for (double m = 1; m < 10'000; m += 1) {
        const double w = x / (a + 2 * m - 1);
        const double over = (a + m - 1) * (a + b + m - 1) * m * (b - m) * w * w;
        e = 1 / nonzero(partial(m) + over * e);
        c = nonzero(partial(m) + over / c);
        value *= c * e;
        if (std::abs(c * e - 1) < kEpsilon) break;
    }
    return a / value;
}

// P(0 < u < tau) by a series of positive terms, for d tau^2 = O(1): eq. (3.9).
double centre_series(double d, double tau) {
    double term = 1, sum = 1;
    for (double j = 0; term > 0.1 * kEpsilon * sum; j += 1) {
        term *= (d / 2 + j) / (1.5 + j) * tau * tau;
        sum += term;
    }
    return sum;
}

// B(tau); x = 1 - tau^2 is given beside tau: recomputed, it would be inaccurate near tau = 1, and tau^2 near
// 0.
double moment(double d, double tau, double x) {
    if (x <= 0) return 0;
    const double power = (d - 1) / 2;
    return moment_at_zero(d) * (x < 0.5 ? std::pow(x, power) : std::exp(power * std::log1p(-tau * tau)));
}

// A(tau) for tau >= 0.
double tail(double d, double tau, double x) {
    if (x <= 0) return 0;
    const double b = moment(d, tau, x);
    // The continued fraction converges fast beyond the bulk of the law, the series inside.
    if (tau * tau > 1.5 / (d / 2 + 2)) return tau * b * tail_fraction(d, x, tau);
    return 0.5 - (d - 1) * b * tau * centre_series(d, tau);
}

}  // namespace

double direction_tail(double d, double tau) {
    require(d >= 1, "d", "must be >= 1", d);
    if (std::isinf(d)) return 0.5 * std::erfc(tau / std::numbers::sqrt2);
    if (d == 1) return tau < -1 ? 1 : tau < 1 ? 0.5 : 0;
    const double t = std::abs(tau);
    const double upper = tail(d, t, (1 - t) * (1 + t));
    return tau < 0 ? 1 - upper : upper;
}

double direction_moment(double d, double tau) {
    require(d >= 1, "d", "must be >= 1", d);
    if (std::isinf(d)) return std::exp(-tau * tau / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return moment(d, tau, (1 - tau) * (1 + tau));
}

double direction_density(double d, double tau) {
    require(d >= 1, "d", "must be >= 1", d);
    if (std::isinf(d)) return direction_moment(d, tau);
    const double x = (1 - tau) * (1 + tau);
    if (d == 1 || x < 0) return 0;
    return (d - 1) * moment_at_zero(d) * std::pow(x, (d - 3) / 2);
}

// A and B are analytic in |tau| away from 1, and, for whole d, analytic in sqrt(1 - |tau|) up to 1. The
// second variable serves small d, where the neighbourhood of 1 has mass; the first keeps tau ~ 1/sqrt(d)
// accurate for large d.
DirectionTable::DirectionTable(double d) : d_(d), root_(d < 40) {
    require(d >= 1, "d", "must be >= 1", d);
    constexpr double kNothing = 1e-19;
    if (d_ == 1) return;
    // Where B falls below rounding; A is smaller still.
    double reach = 9.2;
    if (!std::isinf(d)) reach = std::sqrt(-std::expm1(std::log(kNothing) * 2 / (d - 1)));
    low_ = root_ ? std::sqrt(1 - reach) : 0;
    high_ = root_ ? 1 : reach;
    inverse_width_ = kPanels / (high_ - low_);
    terms_.resize(static_cast<std::size_t>(kPanels) * 2 * kTerms);
    excess_.resize(static_cast<std::size_t>(kPanels) * kTerms);

    // Interpolation at Chebyshev points t in (-1/2, 1/2) of each panel: divided differences, then expanded.
    std::array<double, kTerms> t{};
    for (int k = 0; k < kTerms; ++k) t[k] = 0.5 * std::cos(std::numbers::pi * (k + 0.5) / kTerms);
    for (int panel = 0; panel < kPanels; ++panel) {
        std::array<std::array<double, kTerms>, 3> f{};
        for (int k = 0; k < kTerms; ++k) {
            const double v = low_ + (panel + 0.5 + t[k]) / inverse_width_;
            const double tau = root_ ? 1 - v * v : v;
            const double x = root_ ? v * v * (2 - v * v) : (1 - v) * (1 + v);
            f[0][k] = std::isinf(d) ? direction_tail(d, tau) : tail(d, tau, x);
            f[1][k] = std::isinf(d) ? direction_moment(d, tau) : moment(d, tau, x);
            f[2][k] = f[1][k] - tau * f[0][k];
        }
        for (int which = 0; which < 3; ++which) {
            auto& y = f[which];
            for (int order = 1; order < kTerms; ++order)
                for (int k = kTerms - 1; k >= order; --k) y[k] = (y[k] - y[k - 1]) / (t[k] - t[k - order]);
            std::array<double, kTerms> c{};
            for (int k = kTerms - 1; k >= 0; --k) {  // c <- c (t - t_k) + y_k
                for (int j = kTerms - 1; j > 0; --j) c[j] = c[j - 1] - t[k] * c[j];
                c[0] = y[k] - t[k] * c[0];
            }
            double* out = which < 2 ? terms_.data() + (static_cast<Index>(panel) * 2 + which) * kTerms
                                    : excess_.data() + static_cast<Index>(panel) * kTerms;
            std::copy(c.begin(), c.end(), out);
        }
    }
}

void DirectionTable::evaluate(Index n, const double* tau, double* A, double* B) const {
    if (d_ == 1) {
        for (Index i = 0; i < n; ++i) {
            A[i] = direction_tail(1, tau[i]);
            B[i] = std::abs(tau[i]) < 1 ? 0.5 : 0.0;
        }
        return;
    }
    const double* terms = terms_.data();
    const auto body = [&](Index i, double v, bool inside) {
        const double p = (v - low_) * inverse_width_;
        const int panel = std::min(static_cast<int>(p), kPanels - 1);
        const double t = p - panel - 0.5;
        const double* c = terms + panel * (2 * kTerms);
        double a = c[kTerms - 1], b = c[2 * kTerms - 1];
        for (int k = kTerms - 2; k >= 0; --k) {
            a = a * t + c[k];
            b = b * t + c[kTerms + k];
        }
        a = inside ? a : 0.0;
        A[i] = tau[i] < 0 ? 1 - a : a;
        B[i] = inside ? b : 0.0;
    };
    if (root_) {
        for (Index i = 0; i < n; ++i) {
            const double v = std::sqrt(std::max(1 - std::abs(tau[i]), 0.0));
            body(i, v > low_ ? v : low_, v > low_);  // NaN counts as outside: no wild index
        }
    } else {
        for (Index i = 0; i < n; ++i) {
            const double v = std::abs(tau[i]);
            body(i, v < high_ ? v : high_, v < high_);
        }
    }
}

void DirectionTable::excess(Index n, const double* tau, double* out) const {
    if (d_ == 1) {
        for (Index i = 0; i < n; ++i) out[i] = std::max(1 - std::abs(tau[i]), 0.0) / 2;
        return;
    }
    const double* terms = excess_.data();
    const auto body = [&](Index i, double v, bool inside) {
        const double p = (v - low_) * inverse_width_;
        const int panel = std::min(static_cast<int>(p), kPanels - 1);
        const double t = p - panel - 0.5;
        const double* c = terms + panel * kTerms;
        double sum = c[kTerms - 1];
        for (int k = kTerms - 2; k >= 0; --k) sum = sum * t + c[k];
        out[i] = inside ? sum : 0.0;
    };
    if (root_) {
        for (Index i = 0; i < n; ++i) {
            const double v = std::sqrt(std::max(1 - std::abs(tau[i]), 0.0));
            body(i, v > low_ ? v : low_, v > low_);
        }
    } else {
        for (Index i = 0; i < n; ++i) {
            const double v = std::abs(tau[i]);
            body(i, v < high_ ? v : high_, v < high_);
        }
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
