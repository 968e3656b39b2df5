#pragma once
// Gauss rules from the recurrence of orthogonal polynomials.
#include <vector>

#include "mfcore/base/quadrature.hpp"
#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

struct Jacobi {
    explicit Jacobi(Index n) : diagonal(n, 0.0), squares(n, 1.0) {}
    std::vector<double> diagonal;  // alpha_0 .. alpha_{n-1}
    std::vector<double> squares;   // b_0 = 1 (unused), b_1 .. b_{n-1}: squared off-diagonal entries
};

/// Eigenvalues, increasing, of the symmetric tridiagonal matrix with these entries; off_diagonal has one less.
std::vector<double> eigenvalues(const std::vector<double>& diagonal, const std::vector<double>& off_diagonal);

/// The rule of n nodes of the law whose orthonormal polynomials are
/// sqrt(b_{k+1}) p_{k+1} = (x - alpha_k) p_k - sqrt(b_k) p_{k-1}.
Rule gauss(const Jacobi& jacobi);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
