// Factors of tables of features on a grid (eq. (2.8)): products of functions of single coordinates.
#include "mfcore/grid/factors.hpp"

#include <algorithm>

#include "mfcore/base/errors.hpp"
#include "mfcore/base/factor.hpp"
#include "mfcore/base/run.hpp"
#include "mfcore/grid/compress.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {
namespace {

OwnMatrix transposed(ConstMat a) {
    OwnMatrix out(a.cols, a.rows);
    for (Index i = 0; i < a.rows; ++i)
        for (Index j = 0; j < a.cols; ++j) out.values[j * a.rows + i] = a.row(i)[j];
    return out;
}

OwnMatrix times(ConstMat a, ConstMat b) {
    OwnMatrix out(a.rows, b.cols);
    product(a, b, out.view());
    return out;
}

/// The same numbers in rows of another length.
OwnMatrix reshaped(OwnMatrix a, Index rows, Index cols) {
    a.rows = rows;
    a.cols = cols;
    return a;
}

/// Entry (i, j, k) of the n x m x q array as entry (j, i, k) of a matrix of m rows.
OwnMatrix swapped(const OwnMatrix& a, Index n, Index m, Index q) {
    OwnMatrix out(m, n * q);
    for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < m; ++j)
            std::copy_n(&a.values[(i * m + j) * q], q, &out.values[(j * n + i) * q]);
    return out;
}

struct Pair {
    OwnMatrix left, right;
};

Pair qr_of(ConstMat a) {
    const Index s = std::min(a.rows, a.cols);
    Pair out{{a.rows, s}, {s, a.cols}};
    qr(a, out.left.view(), out.right.view());
    return out;
}

/// a = left . right with orthonormal rows of `right`.
Pair orthonormal_rows(ConstMat a) {
    const Pair found = qr_of(transposed(a).view());
    return {transposed(found.right.view()), transposed(found.left.view())};
}

/// Orthonormal columns, and the coefficients of the table in them.
Pair cut(const OwnMatrix& table, double tolerance) {
    require(tolerance >= 0, "tolerance", "must be >= 0", tolerance);
    check_stop();
    // A wide table is replaced by one with the same span of columns and the same singular values.
    const OwnMatrix side =
        table.cols > table.rows ? transposed(qr_of(transposed(table.view()).view()).right.view()) : table;
    const Index s = std::min(side.rows, side.cols);
    OwnMatrix left(side.rows, s), right(s, side.cols);
    std::vector<double> sizes(static_cast<std::size_t>(s));
    svd(side.view(), left.view(), sizes.data(), right.view());
    const double least = tolerance * sizes[0];
    const auto found = std::count_if(sizes.begin(), sizes.end(), [&](double size) { return size > least; });
    const Index rank = std::max<Index>(1, found);
    OwnMatrix basis(side.rows, rank);
    for (Index i = 0; i < side.rows; ++i) std::copy_n(left.view().row(i), rank, basis.view().row(i));
    OwnMatrix rest = times(transposed(basis.view()).view(), table.view());
    return {std::move(basis), std::move(rest)};
}

TableFactors tucker(OwnMatrix table, Index last, double tolerance) {
    const Index q = table.cols, n = table.rows / last;
    Pair first = cut(reshaped(std::move(table), n, last * q), tolerance);
    const Index a = first.left.cols;
    Pair second = cut(swapped(first.right, a, last, q), tolerance);
    const Index b = second.left.cols;
    const Pair core = cut(reshaped(swapped(second.right, b, a, q), a * b, q), tolerance);
    Pair nodes = orthonormal_rows(core.right.view());
    return {std::move(first.left), std::move(second.left), times(core.left.view(), nodes.left.view()),
            std::move(nodes.right)};
}

OwnMatrix copied(ConstMat a) {
    OwnMatrix out(a.rows, a.cols);
    for (Index i = 0; i < a.rows; ++i) std::copy_n(a.row(i), a.cols, out.view().row(i));
    return out;
}

}  // namespace

ColumnSpan column_span(ConstMat table, double tolerance) {
    Pair found = cut(copied(table), tolerance);
    return {std::move(found.left), std::move(found.right)};
}

TableFactors factors_of_table(ConstMat table, Index last, double tolerance) {
    require(last > 0 && table.rows > 0 && table.rows % last == 0, "last", "must divide the rows of the table",
            last);
    return tucker(copied(table), last, tolerance);
}

TableFactors fewer_factors(ConstMat first, ConstMat second, ConstMat core, ConstMat nodes, double tolerance) {
    const Index a = first.cols, b = second.cols, rank = core.cols;
    require(core.rows == a * b, "core", "must have a row for each pair of functions", core.rows);
    const Pair one = qr_of(first), other = qr_of(second);
    const Index n = one.right.rows, m = other.right.rows;
    const OwnMatrix mixed = times(one.right.view(), reshaped(copied(core), a, b * rank).view());
    const OwnMatrix table = times(other.right.view(), swapped(mixed, n, b, rank).view());
    const TableFactors own = tucker(reshaped(swapped(table, m, n, rank), n * m, rank), m, tolerance);
    return {times(one.left.view(), own.first.view()), times(other.left.view(), own.second.view()), own.core,
            times(own.nodes.view(), nodes)};
}

LineFactors factors_of_line(ConstMat table, double tolerance) {
    LowRank low = compress(table, tolerance);
    LineFactors out;
    out.basis = OwnMatrix(table.rows, low.rank);
    out.basis.values = std::move(low.basis);
    Pair found = orthonormal_rows({low.coefficients.data(), low.rank, table.cols});
    out.turn = std::move(found.left);
    out.nodes = std::move(found.right);
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
