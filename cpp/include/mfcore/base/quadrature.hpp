#pragma once
// Quadrature rules of mass 1 for the laws that reductions average over (eq. (3.14)).
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// A quadrature rule: the integral of f is about the sum of weights[k] f(nodes[k]).
struct Rule {
    std::vector<double> nodes;    // increasing
    std::vector<double> weights;  // positive, sum 1
};

/// Rule for the first coordinate u of a uniform point of S^{d-1}, exact for polynomials in u of degree
/// 2n - 1. For d = 1 the law itself has two points: the answer then has at most two.
Rule gauss_gegenbauer(double d, Index n);
/// Rule for chi_d, the norm of a standard normal vector in R^d, exact for polynomials in s^2 of degree
/// 2n - 1.
Rule gauss_chi(double d, Index n);
/// Rule for N(0, 1), exact for polynomials of degree 2n - 1.
Rule gauss_hermite(Index n);
/// Rule for the uniform law on [-1, 1], exact for polynomials of degree 2n - 1.
Rule gauss_legendre(Index n);
/// Rule for chi_d by Gauss-Legendre panels of ten nodes on [max(0, sqrt(d) - 8), sqrt(d) + 8]: for small d,
/// where features of kinked activations are not smooth enough in s for gauss_chi.
Rule panels_chi(double d, Index panels);
/// Rule for chi_d and features of any activation: the cheaper of the two above that gives 1e-12 in V and U,
/// from d = 8 on; with kinks, in gradients too from d = 22 on. Below, fixed nodes are limited by kinks, to
/// 1e-9 (d = 5), 1e-8 (d = 3), 1e-5 (d = 2), 1e-3 (d = 1): see reduction/chi_panels.hpp.
Rule chi_rule(double d);
/// Rule for u of gauss_gegenbauer and analytic features: equally spaced angles, u = sin(angle), at a given
/// spacing in standard deviations 1/sqrt(d) (eq. (3.15)); for d = inf the trapezoidal rule for N(0, 1).
/// Covers `reach` of them.
Rule angle_rule(double d, double spacing, double reach = 9.5);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
