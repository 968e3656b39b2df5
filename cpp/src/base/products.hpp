#pragma once
// Inner products of rows, each with a value that depends on its two rows alone, never on where they stand in
// a batch. (A general matrix product orders its sums by the shape of the whole, so a sample would depend on
// the batch.)
#include <algorithm>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// out[r * C + c] = <x[r], w[c]>: R x C accumulators over the vectors of n numbers, then the scalar rest.
template <int R, int C>
inline void tile_products(const double* const* x, const double* const* w, Index n, double* out) {
    using namespace simd;
    constexpr Index lanes = kLanes<double>;
    Vec<double> sum[R][C] = {};
    Index k = 0;
    for (; k + lanes <= n; k += lanes) {
        Vec<double> b[C];
        for (int c = 0; c < C; ++c) b[c] = load(w[c] + k);
        for (int r = 0; r < R; ++r) {
            const Vec<double> a = load(x[r] + k);
            for (int c = 0; c < C; ++c) sum[r][c] = a * b[c] + sum[r][c];
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) {
            double total = 0;
            for (Index i = 0; i < lanes; ++i) total += sum[r][c][i];
            for (Index i = 0; i < n % lanes; ++i) total += x[r][k + i] * w[c][k + i];
            out[r * C + c] = total;
        }
    }
}

inline double dot(const double* a, const double* b, Index n) {
    double out;
    tile_products<1, 1>(&a, &b, n, &out);
    return out;
}

/// put(k, j, <row k of x, row j of w>) for all k and j, R by C at a time. At the edges the tile repeats the last
/// row, so that every entry comes from the same sequence of operations.
template <int R, int C, class Put>
void each_product(ConstMat x, ConstMat w, const Put& put) {
    const double *a[R], *b[C];
    double tile[R * C];
    for (Index k = 0; k < x.rows; k += R) {
        const Index rows = std::min<Index>(R, x.rows - k);
        for (Index r = 0; r < R; ++r) a[r] = x.row(k + std::min(r, rows - 1));
        for (Index j = 0; j < w.rows; j += C) {
            const Index cols = std::min<Index>(C, w.rows - j);
            for (Index c = 0; c < C; ++c) b[c] = w.row(j + std::min(c, cols - 1));
            tile_products<R, C>(a, b, x.cols, tile);
            for (Index r = 0; r < rows; ++r)
                for (Index c = 0; c < cols; ++c) put(k + r, j + c, tile[r * C + c]);
        }
    }
}

/// out(k, j) = <row k of x, row j of w>.
inline void row_products(ConstMat x, ConstMat w, Mat out) {
    each_product<4, 2>(x, w, [&](Index k, Index j, double product) { out(k, j) = product; });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
