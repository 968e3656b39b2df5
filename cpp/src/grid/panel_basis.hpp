#pragma once
// Kernels of products of piecewise polynomials: Chebyshev series at points, and contractions with their
// values. Rows of functions are padded with zeros to whole vectors.
#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid::panels {

using Pack = simd::Vec<double>;
inline constexpr Index kLanes = simd::kLanes<double>;
inline constexpr Index kPoints = 8;  // taken together; the lanes of every instruction set divide it
inline constexpr Index kMostTerms = 32;
inline constexpr int kOrders = 3;  // value, first and second derivative

inline Index padded_up(Index n) { return (n + kLanes - 1) / kLanes * kLanes; }

/// at[o][j][i] = d^o/dz^o T_j(t_i) with scale = dt/dz: T_{j+1} = 2 t T_j - T_{j-1} and its derivatives. NaN
/// where t is.
struct Chebyshev {
    double at[kOrders][kMostTerms][kPoints];

    Chebyshev(Index terms, int order, const double* t, const double* scale) {
        for (Index i = 0; i < kPoints; ++i) {
            const double nothing = 0 * t[i];
            at[0][0][i] = 1 + nothing;
            at[0][1][i] = t[i];
            at[1][0][i] = at[2][0][i] = at[2][1][i] = nothing;
            at[1][1][i] = scale[i] + nothing;
        }
        for (Index j = 2; j < terms; ++j) {
            for (Index i = 0; i < kPoints; ++i) at[0][j][i] = 2 * t[i] * at[0][j - 1][i] - at[0][j - 2][i];
            for (int o = 1; o <= order; ++o) {
                const double factor = 2.0 * o;
                for (Index i = 0; i < kPoints; ++i)
                    at[o][j][i] = factor * scale[i] * at[o - 1][j - 1][i] + 2 * t[i] * at[o][j - 1][i] -
                                  at[o][j - 2][i];
            }
        }
    }
};

/// out[o][f] = sum_j at[o][j][point] series[j][f] for V vectors of functions, whose rows have length
/// `padded`.
template <int Orders, int V>
inline void sum_series(const Chebyshev& T, Index terms, Index point, const double* series, Index padded,
                       double* out) {
    Pack sum[Orders][V] = {};
    for (Index j = 0; j < terms; ++j, series += padded) {
        for (int v = 0; v < V; ++v) {
            const Pack c = simd::load(series + v * kLanes);
            for (int o = 0; o < Orders; ++o) sum[o][v] = T.at[o][j][point] * c + sum[o][v];
        }
    }
    for (int o = 0; o < Orders; ++o)
        for (int v = 0; v < V; ++v) simd::store(out + o * padded + v * kLanes, sum[o][v]);
}
template <int Orders>
void evaluate_series(const Chebyshev& T, Index terms, Index point, const double* series, Index padded,
                     double* out) {
    constexpr int V = 4;
    Index f = 0;
    for (; f + V * kLanes <= padded; f += V * kLanes)
        sum_series<Orders, V>(T, terms, point, series + f, padded, out + f);
    for (; f < padded; f += kLanes) sum_series<Orders, 1>(T, terms, point, series + f, padded, out + f);
}

/// out[o][..] = sum_a A[o][a] g[a][..]: rows of A have length `A_stride`, those of g and out are V vectors of
/// rows of length `width`.
template <int Orders, int V>
inline void sum_rows(const double* A, Index A_stride, Index rows, const double* g, Index width, double* out) {
    Pack sum[Orders][V] = {};
    for (Index a = 0; a < rows; ++a, g += width) {
        for (int v = 0; v < V; ++v) {
            const Pack row = simd::load(g + v * kLanes);
            for (int o = 0; o < Orders; ++o) sum[o][v] = A[o * A_stride + a] * row + sum[o][v];
        }
    }
    for (int o = 0; o < Orders; ++o)
        for (int v = 0; v < V; ++v) simd::store(out + o * width + v * kLanes, sum[o][v]);
}
template <int Orders>
void contract_rows(const double* A, Index A_stride, Index rows, const double* g, Index width, double* out) {
    constexpr int V = 4;
    Index at = 0;
    for (; at + V * kLanes <= width; at += V * kLanes)
        sum_rows<Orders, V>(A, A_stride, rows, g + at, width, out + at);
    for (; at < width; at += kLanes) sum_rows<Orders, 1>(A, A_stride, rows, g + at, width, out + at);
}

/// <a, b> of rows that are whole numbers of vectors.
inline double padded_dot(const double* a, const double* b, Index n) {
    Pack sum{};
    for (Index k = 0; k < n; k += kLanes) sum = simd::load(a + k) * simd::load(b + k) + sum;
    return simd::sum<double>(sum);
}

/// m[a][..] += sum_i x_i[a] y_i[..] over the points i of a block; rows of y and m have length `width`, those
/// of x length `x_stride`.
inline void add_products(const double* x, Index x_stride, Index rows, const double* y, Index width,
                         double* m) {
    constexpr int A = 4;
    for (Index a = 0; a < rows; a += A) {
        const Index count = rows - a < A ? rows - a : A;
        for (Index at = 0; at < width; at += kLanes) {
            Pack sum[A] = {};
            for (Index r = 0; r < count; ++r) sum[r] = simd::load(m + (a + r) * width + at);
            for (Index i = 0; i < kPoints; ++i) {
                const Pack row = simd::load(y + i * width + at);
                const double* left = x + i * x_stride + a;
                if (count == A) {
                    for (int r = 0; r < A; ++r) sum[r] = left[r] * row + sum[r];
                } else {
                    for (Index r = 0; r < count; ++r) sum[r] = left[r] * row + sum[r];
                }
            }
            for (Index r = 0; r < count; ++r) simd::store(m + (a + r) * width + at, sum[r]);
        }
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid::panels
