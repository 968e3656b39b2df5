#pragma once
// Gauss rules from the recurrence of orthogonal polynomials.
#include <Eigen/Core>

#include "mfcore/base/quadrature.hpp"

namespace mfcore::inline base {

struct Jacobi {
    Eigen::VectorXd diagonal;  // alpha_0 .. alpha_{n-1}
    Eigen::VectorXd squares;   // b_0 = 1 (unused), b_1 .. b_{n-1}: squared off-diagonal entries
};

/// The rule of n nodes of the law whose orthonormal polynomials are
/// sqrt(b_{k+1}) p_{k+1} = (x - alpha_k) p_k - sqrt(b_k) p_{k-1}.
Rule gauss(const Jacobi& jacobi);

}  // namespace mfcore::inline base
