// Quadrature rules: Gauss rules from recurrences, panels of chi_d, equally spaced angles.
#include "mfcore/base/quadrature.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/jacobi.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/run.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

// The Gauss rule of a recurrence: Golub-Welsch for the nodes (eigenvalues only: O(n^2)), Christoffel's
// formula 1 / sum_k p_k(x)^2 for the weights. One Newton step on p_n first: eigenvalues are accurate relative
// to the largest one, nodes then to themselves.
Rule gauss(const Jacobi& jacobi) {
    const auto n = static_cast<Index>(jacobi.diagonal.size());
    std::vector<double> off(jacobi.squares.begin() + 1, jacobi.squares.end());
    for (double& b : off) b = std::sqrt(b);
    const std::vector<double> values = eigenvalues(jacobi.diagonal, off);

    Rule rule{std::vector<double>(static_cast<std::size_t>(n)),
              std::vector<double>(static_cast<std::size_t>(n))};
    const auto polynomials = [&](double x, double& newton) {
        // Orthonormal p_k by their recurrence; at the end p is p_n up to a factor that Newton cancels.
        // In far tails they grow beyond all bounds: then all is scaled down (the sum of
        // squares twice), and that is counted.
        constexpr double kLarge = 0x1p500, kSmall = 0x1p-500;
        double before = 0, p = 1, slope_before = 0, slope = 0, sum = 0;
        int scalings = 0;
        for (Index k = 0; k < n; ++k) {
            if (std::abs(p) > kLarge || std::abs(slope) > kLarge) {
                for (double* value : {&before, &p, &slope_before, &slope, &sum, &sum}) *value *= kSmall;
                ++scalings;
            }
            sum += p * p;
            const double b_here = k > 0 ? off[k - 1] : 0.0;
            const double b_next = k + 1 < n ? off[k] : 1.0;
            const double next = ((x - jacobi.diagonal[k]) * p - b_here * before) / b_next;
            const double slope_next = (p + (x - jacobi.diagonal[k]) * slope - b_here * slope_before) / b_next;
            before = p, p = next, slope_before = slope, slope = slope_next;
        }
        newton = p / slope;
        return std::ldexp(1 / sum, -1000 * scalings);
    };
    double mass = 0;
    for (Index k = 0; k < n; ++k) {
        check_stop();
        double x = values[k];
        double step = 0;
        polynomials(x, step);
        x -= step;
        rule.nodes[static_cast<std::size_t>(k)] = x;
        mass += rule.weights[static_cast<std::size_t>(k)] = polynomials(x, step);
    }
    for (double& w : rule.weights) w /= mass;
    return rule;
}

namespace {

void check(double d, Index n) {
    require(d >= 1, "d", "must be >= 1", d);
    require(n >= 1, "n", "must be >= 1", n);
}

}  // namespace

Rule gauss_gegenbauer(double d, Index n) {
    check(d, n);
    if (d == 1) n = std::min<Index>(n, 2);
    Jacobi jacobi(n);
    for (Index i = 1; i < n; ++i) {
        const double k = static_cast<double>(i);
        // The general formula is 0/0 at k = 1 for d = 2.
        jacobi.squares[i] = i == 1 ? 1 / d : k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4));
    }
    return gauss(jacobi);
}

Rule gauss_chi(double d, Index n) {
    check(d, n);
    Jacobi jacobi(n);
    for (Index i = 0; i < n; ++i) {
        const double k = static_cast<double>(i);
        jacobi.diagonal[i] = 2 * k + d / 2;
        if (i > 0) jacobi.squares[i] = k * (k + d / 2 - 1);
    }
    Rule rule = gauss(jacobi);  // for g = s^2 / 2 ~ Gamma(d / 2)
    for (double& s : rule.nodes) s = std::sqrt(2 * std::max(s, 0.0));
    return rule;
}

Rule gauss_hermite(Index n) {
    check(1, n);
    Jacobi jacobi(n);
    for (Index i = 1; i < n; ++i) jacobi.squares[i] = static_cast<double>(i);
    return gauss(jacobi);
}

Rule gauss_legendre(Index n) { return gauss_gegenbauer(3, n); }

Rule panels_chi(double d, Index panels) {
    check(d, panels);
    const Rule legendre = gauss_legendre(10);
    const double low = std::max(0.0, std::sqrt(d) - 8);
    const double width = (std::sqrt(d) + 8 - low) / static_cast<double>(panels);
    const double peak = std::sqrt(std::max(d - 1, 0.0));  // densities relative to their largest: no overflow
    const auto log_density = [d](double s) {
        return d == 1 ? -s * s / 2 : (d - 1) * std::log(s) - s * s / 2;
    };
    Rule rule;
    double mass = 0;
    for (Index p = 0; p < panels; ++p) {
        for (std::size_t k = 0; k < legendre.nodes.size(); ++k) {
            const double s = low + width * (static_cast<double>(p) + (1 + legendre.nodes[k]) / 2);
            rule.nodes.push_back(s);
            rule.weights.push_back(legendre.weights[k] * std::exp(log_density(s) - log_density(peak)));
            mass += rule.weights.back();
        }
    }
    for (double& w : rule.weights) w /= mass;
    return rule;
}

Rule chi_rule(double d) {
    // Measured for kinked activations, 1e-12 in U and V: 64 nodes at d = 20, 20 at 40, 12 at 100, 8 at 320.
    if (d >= 20) return gauss_chi(d, static_cast<Index>(std::ceil(6 + 3300 * std::pow(d, -1.35))));
    return panels_chi(d, d >= 10 ? 20 : 60);
}

Rule angle_rule(double d, double spacing, double most) {
    check(d, 1);
    require(spacing > 0, "spacing", "must be > 0", spacing);
    const bool gaussian = std::isinf(d);
    const double unit = gaussian ? 1 : 1 / std::sqrt(d);  // one standard deviation of u, about
    const double reach = gaussian ? most : std::min(std::numbers::pi / 2, most * unit);
    Rule angles;
    if (gaussian || d >= 13 || std::fmod(d, 2) == 0) {
        // |cos|^{d-2} is periodic and smooth, to the order d - 2 at least: equal steps converge
        // geometrically.
        const auto n = static_cast<Index>(std::ceil(2 * reach / (spacing * unit)));
        for (Index k = 0; k < n; ++k)
            angles.nodes.push_back(reach * ((2 * static_cast<double>(k) + 1) / static_cast<double>(n) - 1));
        angles.weights.assign(angles.nodes.size(), 1.0);
    } else {
        const Rule legendre = gauss_legendre(10);  // half as far from converged at equal n
        const auto panels = static_cast<Index>(std::ceil(2 * reach / (4 * spacing * unit)));
        const double width = 2 * reach / static_cast<double>(panels);
        for (Index p = 0; p < panels; ++p) {
            for (std::size_t k = 0; k < legendre.nodes.size(); ++k) {
                angles.nodes.push_back(width * (static_cast<double>(p) + (1 + legendre.nodes[k]) / 2) -
                                       reach);
                angles.weights.push_back(legendre.weights[k]);
            }
        }
    }
    double mass = 0;
    for (std::size_t k = 0; k < angles.nodes.size(); ++k) {
        const double angle = angles.nodes[k];
        angles.weights[k] *= gaussian ? std::exp(-angle * angle / 2) : std::pow(std::cos(angle), d - 2);
        angles.nodes[k] = gaussian ? angle : std::sin(angle);
        mass += angles.weights[k];
    }
    for (double& w : angles.weights) w /= mass;
    return angles;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
