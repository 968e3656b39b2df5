// The singular value decomposition by Jacobi's rotations of pairs of columns, after QR with column pivots has sorted
// and concentrated them (Drmač and Veselić 2008). Short to compile, and fast where the numerical rank is low.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/dense.hpp"
#include "base/products.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::dense {
namespace {

void rotate(double* __restrict a, double* __restrict b, Index n, double cosine, double sine) {
    for (Index k = 0; k < n; ++k) {
        const double old = a[k];
        a[k] = cosine * old - sine * b[k];
        b[k] = sine * old + cosine * b[k];
    }
}

/// Make the columns of w orthogonal by rotating pairs of them, up to rounding of the largest.
void orthogonalise(MatrixXd& w) {
    const Index n = w.cols(), m = w.rows();
    constexpr double eps = std::numeric_limits<double>::epsilon();
    constexpr int sweeps = 60;  // convergence is quadratic: a handful is the rule
    std::vector<double> squares(static_cast<std::size_t>(n));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (Index j = 0; j < n; ++j) squares[j] = dot(w.col(j).data(), w.col(j).data(), m);
        const double largest = std::sqrt(*std::max_element(squares.begin(), squares.end()));
        bool rotated = false;
        for (Index i = 0; i < n; ++i)
            for (Index j = i + 1; j < n; ++j) {
                const double big = std::sqrt(std::max(squares[i], squares[j]));
                const double small = std::sqrt(std::min(squares[i], squares[j]));
                if (small <= eps * largest) continue;
                const double product = dot(w.col(i).data(), w.col(j).data(), m);
                // The component of one column along the other may be dropped once it is rounding of the largest.
                if (std::abs(product) <= eps * largest * big) continue;
                rotated = true;
                const double ratio = (squares[j] - squares[i]) / (2 * product);
                const double tangent = std::copysign(1 / (std::abs(ratio) + std::hypot(1, ratio)), ratio);
                const double cosine = 1 / std::hypot(1, tangent), sine = cosine * tangent;
                rotate(w.col(i).data(), w.col(j).data(), m, cosine, sine);
                squares[i] = std::max(0.0, squares[i] - tangent * product);
                squares[j] += tangent * product;
            }
        if (!rotated) return;
    }
}

/// Directions of orthogonal columns, longest first, completed where columns vanish: q, since their r is diagonal.
MatrixXd directions(const MatrixXd& columns) {
    Qr found = householder(columns);
    for (Index j = 0; j < columns.cols(); ++j)
        if (found.r(j, j) < 0) found.q.col(j) = -found.q.col(j);
    return std::move(found.q);
}

}  // namespace

ThinSvd thin_svd(const MatrixXd& a) {
    if (a.rows() < a.cols()) {
        ThinSvd out = thin_svd(a.transpose());
        out.left.swap(out.right);
        return out;
    }
    const Index n = a.cols();
    if (!a.allFinite()) {
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        return {MatrixXd::Constant(a.rows(), n, nan), MatrixXd::Constant(n, n, nan),
                VectorXd::Constant(n, nan), false};
    }
    const PivotedQr qr = pivoted(a);  // a p = q r
    MatrixXd w = qr.r.transpose();
    orthogonalise(w);  // rᵀ v = w, so that a = (q v) wᵀ pᵀ
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    VectorXd sizes(n);
    for (Index j = 0; j < n; ++j) sizes[j] = std::sqrt(dot(w.col(j).data(), w.col(j).data(), n));
    std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return sizes[i] > sizes[j]; });
    MatrixXd sorted(n, n);
    ThinSvd out{{}, MatrixXd(n, n), VectorXd(n), true};
    for (Index j = 0; j < n; ++j) {
        sorted.col(j) = w.col(order[j]);
        out.sizes[j] = sizes[order[j]];
    }
    const MatrixXd right = directions(sorted);
    out.left = multiply(qr.q, directions(multiply(qr.r, right)));
    for (Index k = 0; k < n; ++k) out.right.row(qr.order[k]) = right.row(k);
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::dense
