#pragma once
// The direction law: u is the first coordinate of a uniform point of S^{d-1}, or, for d = inf, u ~ N(0, 1).
// With its tail A and tail moment B (eqs. (3.3), (3.4)) every average of a piecewise-linear function over u
// is closed (eq. (3.5)).
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

double direction_tail(double d, double tau);     ///< A(tau) = P(u > tau), relative accuracy about 1e-14
double direction_moment(double d, double tau);   ///< B(tau) = E[u; u > tau]
double direction_density(double d, double tau);  ///< p_d(tau); 0 for d = 1, where u = +-1

/// A and B of one d, for vectors of arguments: piecewise polynomials with absolute error below 1e-15.
class DirectionTable {
public:
    explicit DirectionTable(double d);
    void evaluate(Index n, const double* tau, double* A, double* B) const;
    /// E (u - |tau|)_+ = B - |tau| A: all that values of piecewise-linear functions need.
    void excess(Index n, const double* tau, double* out) const;

private:
    static constexpr int kPanels = 256;
    static constexpr int kTerms = 7;  // coefficients of a panel's polynomial

    double d_;
    bool root_;        // variable sqrt(1 - |tau|) instead of |tau|, see the constructor
    double low_ = 0;   // range of the variable ...
    double high_ = 0;  // ... outside of which A and B are below rounding
    double inverse_width_ = 0;
    std::vector<double> terms_;   // [panel][A: kTerms, B: kTerms]
    std::vector<double> excess_;  // [panel][kTerms]
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
