// Products and factorisations of dense matrices by Eigen, on the calling thread.
#include "mfcore/base/factor.hpp"

#include <Eigen/Dense>
#include <algorithm>

#include "base/dense.hpp"
#include "base/jacobi.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace dense {

MatrixXd multiply(const MatrixXd& a, const MatrixXd& b) { return a * b; }

Qr householder(const MatrixXd& a) {
    const Index s = std::min(a.rows(), a.cols());
    const Eigen::HouseholderQR<MatrixXd> found(a);
    return {found.householderQ() * MatrixXd::Identity(a.rows(), s),
            found.matrixQR().topRows(s).triangularView<Eigen::Upper>()};
}

PivotedQr pivoted(const MatrixXd& a) {
    const Index s = std::min(a.rows(), a.cols());
    const Eigen::ColPivHouseholderQR<MatrixXd> found(a);
    const auto& order = found.colsPermutation().indices();
    return {found.householderQ() * MatrixXd::Identity(a.rows(), s),
            found.matrixQR().topRows(s).triangularView<Eigen::Upper>(),
            {order.data(), order.data() + order.size()}};
}

VectorXd solve(const MatrixXd& a, const VectorXd& b) { return a.partialPivLu().solve(b); }

}  // namespace dense

namespace {

using Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A copy of a matrix: the order of sums depends on the alignment of memory, which is the same for all copies.
MatrixXd copied(ConstMat a, const char* name) {
    require_matrix(a, name, 0);
    return Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>(a.data, a.rows, a.cols,
                                                               Eigen::OuterStride<>(a.stride));
}

void copy(const MatrixXd& from, Mat to, const char* name) {
    require_count(to.rows, from.rows(), name, "rows");
    require_count(to.cols, from.cols(), name, "columns");
    require_matrix(to, name, 0);
    Eigen::Map<RowMajor, 0, Eigen::OuterStride<>>(to.data, to.rows, to.cols,
                                                  Eigen::OuterStride<>(to.stride)) = from;
}

}  // namespace

void product(ConstMat a, ConstMat b, Mat out) {
    require(a.cols == b.rows, "b", "must have as many rows as a has columns", b.rows);
    copy(dense::multiply(copied(a, "a"), copied(b, "b")), out, "out");
}

void qr(ConstMat a, Mat q, Mat r) {
    const dense::Qr found = dense::householder(copied(a, "a"));
    copy(found.q, q, "q");
    copy(found.r, r, "r");
}

void svd(ConstMat a, Mat left, double* sizes, Mat right) {
    const dense::ThinSvd found = dense::thin_svd(copied(a, "a"));
    require(found.finite, "a", "must be finite", a.rows);
    copy(found.left, left, "left");
    copy(found.right.transpose(), right, "right");
    std::copy_n(found.sizes.data(), found.sizes.size(), sizes);
}

std::vector<Index> pivots(ConstMat a) { return dense::pivoted(copied(a, "a")).order; }

void solve_lower(ConstMat lower, Mat b) {
    require(lower.rows == lower.cols && lower.rows == b.rows, "lower", "must be square, with the rows of b",
            lower.rows);
    MatrixXd x = copied(b, "b");
    copied(lower, "lower").triangularView<Eigen::Lower>().solveInPlace(x);
    copy(x, b, "b");
}

std::vector<double> eigenvalues(const std::vector<double>& diagonal,
                                const std::vector<double>& off_diagonal) {
    const auto vector = [](const std::vector<double>& values) {
        return Eigen::VectorXd(Eigen::Map<const Eigen::VectorXd>(values.data(), std::ssize(values)));
    };
    Eigen::SelfAdjointEigenSolver<MatrixXd> solver;
    solver.computeFromTridiagonal(vector(diagonal), vector(off_diagonal), Eigen::EigenvaluesOnly);
    const auto& found = solver.eigenvalues();
    return {found.data(), found.data() + found.size()};
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
