#pragma once
// Thin singular value decomposition of a dense matrix.

#include <Eigen/Dense>

namespace mfcore::inline base {

/// a = left · diag(sizes) · rightᵀ with min(rows, cols) columns on either side.
struct ThinSvd {
    Eigen::MatrixXd left, right;
    Eigen::VectorXd sizes;
    bool finite;
};

inline ThinSvd thin_svd(const Eigen::MatrixXd& a) {
    const auto solved = [&](const auto& found) {
        return ThinSvd{found.matrixU(), found.matrixV(), found.singularValues(),
                       found.info() == Eigen::Success};
    };
    constexpr unsigned int thin = Eigen::ComputeThinU | Eigen::ComputeThinV;
    // With a single row or column the other solver would access an entry of an empty superdiagonal.
    if (a.rows() == 1 || a.cols() == 1) return solved(Eigen::JacobiSVD<Eigen::MatrixXd>(a, thin));
    return solved(Eigen::BDCSVD<Eigen::MatrixXd>(a, thin));
}

}  // namespace mfcore::inline base
