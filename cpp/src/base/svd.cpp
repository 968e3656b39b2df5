// The singular value decomposition: the longest compilation of all, so it has a file of its own.
#include <Eigen/SVD>

#include "base/dense.hpp"

namespace mfcore::inline base::dense {

ThinSvd thin_svd(const MatrixXd& a) {
    const auto solved = [&](const auto& found) {
        return ThinSvd{found.matrixU(), found.matrixV(), found.singularValues(),
                       found.info() == Eigen::Success};
    };
    constexpr unsigned int thin = Eigen::ComputeThinU | Eigen::ComputeThinV;
    // With a single row or column the other solver would access an entry of an empty superdiagonal.
    if (a.rows() == 1 || a.cols() == 1) return solved(Eigen::JacobiSVD<MatrixXd>(a, thin));
    return solved(Eigen::BDCSVD<MatrixXd>(a, thin));
}

}  // namespace mfcore::inline base::dense
