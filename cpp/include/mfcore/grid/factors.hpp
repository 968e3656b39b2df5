#pragma once
// Tables of features as sums of products of functions of two coordinates, in the form of GridFactors:
//   table[(i, j), q] = sum_abk first[i, a] second[j, b] core[(a, b), k] nodes[k, q],
// with orthonormal columns of first and second and orthonormal rows of nodes (eq. (2.8)).
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {

/// A matrix that owns its numbers, row by row.
struct OwnMatrix {
    Index rows = 0, cols = 0;
    std::vector<double> values;

    OwnMatrix() = default;
    OwnMatrix(Index r, Index c) : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}
    Mat view() { return {values.data(), rows, cols}; }
    ConstMat view() const { return {values.data(), rows, cols}; }
};

/// table = left . right up to what has singular values below `tolerance` times the largest one; orthonormal
/// columns of `left`.
struct ColumnSpan {
    OwnMatrix left, right;
};
ColumnSpan column_span(ConstMat table, double tolerance);

/// The factors of a table of two coordinates, named as in the formula above.
struct TableFactors {
    OwnMatrix first, second, core, nodes;
};

/// Factors of a full table whose rows are pairs of cells, `last` of the second coordinate. They leave out a part of
/// size `tolerance` in the spectral norm, relative to the largest singular value.
TableFactors factors_of_table(ConstMat table, Index last, double tolerance);

/// Factors with fewer functions of a table that is given by factors, which need not be orthonormal.
TableFactors fewer_factors(ConstMat first, ConstMat second, ConstMat core, ConstMat nodes, double tolerance);

/// A table of cells of one coordinate: basis . turn . nodes, orthonormal columns of `basis` and rows of
/// `nodes`, with no entry off by more than `tolerance` times the largest one (eq. (2.6)).
struct LineFactors {
    OwnMatrix basis, turn, nodes;
};
LineFactors factors_of_line(ConstMat table, double tolerance);

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
