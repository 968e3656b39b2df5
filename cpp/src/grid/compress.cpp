// Compression of a table of features to low rank (eq. (2.6)).
#include "mfcore/grid/compress.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dense.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/run.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {

// The least rank with the promised error: singular values are optimal in the Frobenius norm, but the promise
// is about the largest entry. So the rank grows from the first singular value that could matter until the
// measured deviation obeys.
LowRank compress(ConstMat values, double tolerance) {
    require(tolerance > 0, "tolerance", "must be > 0", tolerance);
    require(values.rows > 0 && values.cols > 0, "values", "must not be empty", values.rows);
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>> table(values.data, values.rows, values.cols,
                                                                    Eigen::OuterStride<>(values.stride));
    const double largest = table.cwiseAbs().maxCoeff();
    LowRank out;
    if (largest == 0) return out;

    // Tall tables: QR first, so that the singular value decomposition is of a Q x Q matrix.
    const Index n = values.rows, q = values.cols;
    Eigen::MatrixXd left, factor = table;
    if (n > q) {
        dense::Qr qr = dense::householder(factor);
        left = std::move(qr.q);
        factor = std::move(qr.r);
    }
    const dense::ThinSvd svd = dense::thin_svd(factor);
    const Eigen::VectorXd& sizes = svd.sizes;
    const Index full = sizes.size();
    // With sigma_{r+1} the largest one left out, no entry deviates by more than sigma_{r+1}.
    Index rank = 1;
    const double entries = static_cast<double>(n) * static_cast<double>(q);
    while (rank < full && sizes[rank] > tolerance * largest * std::sqrt(entries)) ++rank;
    Eigen::MatrixXd basis, coefficients, rest;
    const auto deviation = [&] { return rest.cwiseAbs().maxCoeff() / largest; };
    for (;; ++rank) {
        basis = svd.left.leftCols(rank);
        if (n > q) basis = dense::multiply(left, basis);
        coefficients = sizes.head(rank).asDiagonal() * svd.right.leftCols(rank).transpose();
        rest = table - dense::multiply(basis, coefficients);
        out.error = deviation();
        if (out.error <= tolerance || rank == full || !svd.finite) break;
        // Term by term up to where it may suffice: a product for each rank would cost as much as all terms.
        for (; rank + 1 < full; ++rank) {
            check_stop();
            Eigen::VectorXd direction = svd.left.col(rank);
            if (n > q) direction = left * direction;
            rest -= (sizes[rank] * direction) * svd.right.col(rank).transpose();
            if (deviation() <= tolerance) break;
        }
    }
    out.rank = rank;
    out.basis.resize(static_cast<std::size_t>(n * rank));
    out.coefficients.resize(static_cast<std::size_t>(rank * q));
    Eigen::Map<RowMajor>(out.basis.data(), n, rank) = basis;
    Eigen::Map<RowMajor>(out.coefficients.data(), rank, q) = coefficients;
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
