#pragma once
// Products and factorisations of dense matrices on the calling thread. A BLAS with threads of its own would
// make their bits depend on how many it has, and where processes share cores its threads wait for each other
// at every column.
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// out = a b.
void product(ConstMat a, ConstMat b, Mat out);

/// a = q r, with orthonormal columns of q, (m, s), and r upper triangular, (s, n), s = min(m, n).
void qr(ConstMat a, Mat q, Mat r);

/// a = left diag(sizes) right: (m, s), s = min(m, n) decreasing numbers, and (s, n).
void svd(ConstMat a, Mat left, double* sizes, Mat right);

/// Order the columns of a so that each is the one farthest from the span of those before it (pivots of QR).
std::vector<Index> pivots(ConstMat a);

/// Solve lower x = b in place of b; only the lower triangle of `lower` is read.
void solve_lower(ConstMat lower, Mat b);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
