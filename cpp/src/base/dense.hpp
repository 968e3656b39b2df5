#pragma once
// Dense algebra by Eigen, compiled once (factor.cpp): its templates take a compiler longer than all of ours.
#include <Eigen/Core>
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::dense {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd multiply(const MatrixXd& a, const MatrixXd& b);

/// a = q r, with orthonormal columns of q, (m, s), and r upper triangular, (s, n), s = min(m, n).
struct Qr {
    MatrixXd q, r;
};
Qr householder(const MatrixXd& a);

/// The same of the columns of a in another order, each the one farthest from the span of those before it.
struct PivotedQr {
    MatrixXd q, r;
    std::vector<Index> order;
};
PivotedQr pivoted(const MatrixXd& a);

/// a = left · diag(sizes) · rightᵀ with min(rows, cols) columns on either side.
struct ThinSvd {
    MatrixXd left, right;
    VectorXd sizes;
    bool finite;
};
ThinSvd thin_svd(const MatrixXd& a);

/// x with a x = b, by LU with row pivots.
VectorXd solve(const MatrixXd& a, const VectorXd& b);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::dense
