#pragma once
// Dense algebra by Eigen, compiled once (factor.cpp, svd.cpp): its templates take a compiler longer than all of ours.
#include <Eigen/Core>

namespace mfcore::inline base::dense {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd multiply(const MatrixXd& a, const MatrixXd& b);

/// a = q r, with orthonormal columns of q, (m, s), and r upper triangular, (s, n), s = min(m, n).
struct Qr {
    MatrixXd q, r;
};
Qr householder(const MatrixXd& a);

/// a = left · diag(sizes) · rightᵀ with min(rows, cols) columns on either side.
struct ThinSvd {
    MatrixXd left, right;
    VectorXd sizes;
    bool finite;
};
ThinSvd thin_svd(const MatrixXd& a);

/// x with a x = b, by LU with row pivots.
VectorXd solve(const MatrixXd& a, const VectorXd& b);

}  // namespace mfcore::inline base::dense
