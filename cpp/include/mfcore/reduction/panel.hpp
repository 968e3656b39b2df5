#pragma once
// One interval ("panel") of a law on the line, with polynomials orthonormal in the law on it: features with
// kinks are projected onto them, with integrals on both sides of each kink (chi_panels.hpp,
// normal_panels.hpp).
#include <array>
#include <functional>

#include "mfcore/base/quadrature.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

/// A panel: its Gauss nodes, and the polynomials that are orthonormal on it.
class Panel {
public:
    static constexpr Index kOrder = 20;   // nodes, and polynomials of degree below
    static constexpr Index kPoints = 32;  // of a piece between a kink and the end of a panel
    static constexpr std::size_t kMost = 4;
    using Coefficients = std::array<double, kOrder>;
    struct Points {
        std::array<double, kPoints> x, weights;  // weights: probabilities within the panel
    };

    /// Appends the Gauss nodes of the panel to `rule`, with their weights exp(log_density) dx.
    Panel(double low, double high, const std::function<double(double)>& log_density, Rule& rule);

    /// moments[f][k] += sum_i weights_i values[f][i] p_k(x_i) of at most kMost functions.
    void add(const Points& at, std::size_t functions, const std::array<double, kPoints>* values,
             Coefficients* moments) const;
    /// From the moments of a function to its projection at the nodes, sum_k moments_k p_k(x_q).
    void at_nodes(const Coefficients& moments, Coefficients& out) const;

    double low, high;
    double log_mass;  // log of int exp(log_density) dx / (high - low)

private:
    std::array<double, kOrder> diagonal_, off_, inverse_off_;     // recurrence of p_k in x = (s - mid)/half
    std::array<std::array<double, kOrder>, kOrder> polynomials_;  // p_k(x_q), [k][q]
};

/// Cut [low, high] into `panels` intervals with equal integrals of `density`; returns their ends.
std::vector<double> panel_ends(double low, double high, Index panels,
                               const std::function<double(double)>& density);

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
