#pragma once
// Matrix products of samples with neurons, tile by tile.
// Neurons are stored in tiles of `R` vectors of lanes: entry k of the
// tile's neurons lies at data[k * width + i], i = 0 .. width-1. One micro-kernel then serves
//   forward    Z[q][i]  = sum_j X[q][j] W[j][i]      (k = coordinate j of the input)
//   backward   G[j][i]  = sum_q X[q][j] C[q][i]      (k = sample q)
//   moments    U[n][i]  = sum_q S'[q][n] S[q][i]     (k = sample q)
// with accumulators in registers, A streamed as whole vectors and B broadcast element by element: nothing is
// packed.
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::tiles {

using simd::Vec;

/// Columns of one micro-kernel call. With R = 3 vectors: 24 accumulators of 32 registers (AVX-512), 12 of 16
/// below.
inline constexpr int kCols = simd::kBytes == 64 ? 8 : 4;
/// The same for tiles of R vectors: narrow ones need more columns to hide the latency of additions.
template <int R>
inline constexpr int kColsOf = simd::kBytes == 64 && R == 2   ? 12
                               : simd::kBytes == 64 || R == 3 ? kCols
                               : R == 2                       ? 6
                                                              : 8;
/// The same where coefficients are made on the way, which takes registers, too.
template <int R>
inline constexpr int kColsMaking = simd::kBytes == 64 ? kColsOf<R> : kColsOf<R> / 2;

/// acc[c][r] += sum_{k < depth} A[k][r] B[k][c], where A[k][r] = a(k, r) and B[k][c] = b[k * b_step + c * b_col].
template <class T, int R, int C, bool kUnitCols, class Vectors>
inline void accumulate_of(Index depth, Vectors&& a, const T* b, Index b_step, Index b_col,
                          Vec<T> (&acc)[C][R]) {
    for (Index k = 0; k < depth; ++k) {
        Vec<T> column[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            Vec<T> v = a(k, r);
            simd::pin(v);
            column[r] = v;
        }
#pragma GCC unroll 12
        for (int c = 0; c < C; ++c) {
            const Vec<T> x = simd::fill<T>(b[k * b_step + (kUnitCols ? c : c * b_col)]);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) acc[c][r] += column[r] * x;
        }
    }
}

/// The same where A[k] lies in memory: R vectors at a + k * a_step.
template <class T, int R, int C, bool kUnitCols>
inline void accumulate(Index depth, const T* a, Index a_step, const T* b, Index b_step, Index b_col,
                       Vec<T> (&acc)[C][R]) {
    accumulate_of<T, R, C, kUnitCols>(
        depth, [&](Index k, int r) { return simd::load<T>(a + k * a_step + r * simd::kLanes<T>); }, b, b_step,
        b_col, acc);
}

/// Call body(c, r) for the vectors of a block of accumulators. The loops are unrolled before the compiler decides
/// which arrays to keep in registers: others pass through memory, there and back.
template <int C, int R, class Body>
inline void each_vector(Body&& body) {
#pragma GCC unroll 12
    for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) body(c, r);
    }
}

/// Call body(first column, std::integral_constant<int, C>) for Most columns at a time, then 8, 4, 2 and 1.
template <int Most = kCols, class Body>
inline void for_columns(Index n, Body&& body) {
    Index c = 0;
    for (; c + Most <= n; c += Most) body(c, std::integral_constant<int, Most>{});
    if constexpr (Most > 8) {
        for (; c + 8 <= n; c += 8) body(c, std::integral_constant<int, 8>{});
    }
    if constexpr (Most > 4) {
        for (; c + 4 <= n; c += 4) body(c, std::integral_constant<int, 4>{});
    }
    for (; c + 2 <= n; c += 2) body(c, std::integral_constant<int, 2>{});
    for (; c < n; ++c) body(c, std::integral_constant<int, 1>{});
}

/// Call body(std::integral_constant<int, C>) for the first columns of n > 0: Most, or 4, 2 or 1. Returns how many.
template <int Most, class Body>
inline Index with_first_columns(Index n, Body&& body) {
    if (n < Most) {
        if constexpr (Most > 1) return with_first_columns<(Most > 4 ? 4 : Most > 2 ? 2 : 1)>(n, body);
    }
    body(std::integral_constant<int, Most>{});
    return Most;
}

/// Call body(std::integral_constant<int, V>) with the least number V <= R of vectors that hold so many neurons: of
/// the last tile, which may be filled in part.
template <class T, int R, class Body>
void with_filled(Index neurons, Body&& body) {
    if constexpr (R > 1)
        if (neurons <= (R - 1) * simd::kLanes<T>) return with_filled<T, R - 1>(neurons, body);
    body(std::integral_constant<int, R>{});
}

/// C rows of forward(), from x on. Never inline: the registers are for these sums alone.
template <class T, int R, int C>
[[gnu::noinline]] void forward_rows(Index d, const T* x, Index x_stride, const T* w, Index width,
                                    const T* start, T* z, Index z_stride) {
    constexpr Index lanes = simd::kLanes<T>;
    Vec<T> acc[C][R];
    each_vector<C, R>([&](int c, int r) { acc[c][r] = start ? simd::load<T>(start + r * lanes) : Vec<T>{}; });
    accumulate<T, R, C, false>(d, w, width, x, 1, x_stride, acc);
    each_vector<C, R>([&](int c, int r) { simd::store<T>(z + c * z_stride + r * lanes, acc[c][r]); });
}

/// z[q * z_stride + i] = start[i] + sum_j x(q, j) w[j * width + i] for the rows q of x; start may be null
/// (zero). Of R vectors, which may be the first ones of a wider tile.
template <class T, int R>
void forward(MatView<const T> x, const T* w, const T* start, T* z, Index z_stride,
             Index width = R * simd::kLanes<T>) {
    for_columns<kColsOf<R>>(x.rows, [&](Index q, auto count) {
        forward_rows<T, R, count()>(x.cols, x.row(q), x.stride, w, width, start, z + q * z_stride, z_stride);
    });
}

/// Coefficients of backward() that lie in memory.
template <class T, int R>
struct Stored {
    const T* c;
    Index stride;

    Vec<T> operator()(Index q, int r) const { return simd::load<T>(c + q * stride + r * simd::kLanes<T>); }
};

/// C columns of backward(): g[k * width + i] = keep g[k * width + i] + sum_q x[q * x_stride + k] c(q, i), q from `first`
/// to `end`. Never inline: the registers are for these sums alone.
template <class T, int R, int C, class Coefficients>
[[gnu::noinline]] void backward_columns(Index first, Index end, Coefficients& c, const T* x, Index x_stride,
                                        T keep, T* g, Index width) {
    constexpr Index lanes = simd::kLanes<T>;
    Coefficients mine = c;  // what it may sum up is in registers, too
    Vec<T> acc[C][R];
    each_vector<C, R>([&](int k, int r) {
        acc[k][r] = keep == 0 ? Vec<T>{} : keep * simd::load<T>(g + k * width + r * lanes);
    });
    accumulate_of<T, R, C, true>(
        end - first, [&](Index q, int r) { return mine(first + q, r); }, x + first * x_stride, x_stride, 1,
        acc);
    each_vector<C, R>([&](int k, int r) { simd::store<T>(g + k * width + r * lanes, acc[k][r]); });
    c = mine;
}

/// g[j * width + i] = shrink g[j * width + i] + sum_q x(q, j) c[q * c_stride + i], of R vectors as above; where
/// shrink is 0, g is not read. The rows are taken some at a time: their coefficients c are read again for all
/// columns, and each time that costs as much as to load and store the sums.
///
/// Coefficients that are still to be made are made on the way: make(q, r) writes vector r of row q of c and returns
/// it. Only the first columns call it; what it reads arrives while they are multiplied.
template <class T, int R, class Make = std::nullptr_t>
void backward(MatView<const T> x, const T* c, Index c_stride, T shrink, T* g,
              Index width = R * simd::kLanes<T>, Make* make = nullptr) {
    constexpr Index kRows = 256;
    Stored<T, R> stored{c, c_stride};
    Index q = 0;
    do {
        const Index end = std::min(q + kRows, x.rows);
        const T keep = q == 0 ? shrink : T(1);
        const auto columns = [&](Index j, auto count, auto& coefficients) {
            backward_columns<T, R, count()>(q, end, coefficients, x.data + j, x.stride, keep, g + j * width,
                                            width);
        };
        Index made = 0;
        if constexpr (!std::is_same_v<Make, std::nullptr_t>)
            made = with_first_columns<kColsMaking<R>>(x.cols, [&](auto count) { columns(0, count, *make); });
        for_columns<kColsOf<R>>(x.cols - made,
                                [&](Index j, auto count) { columns(made + j, count, stored); });
        q = end;
    } while (q < x.rows);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::tiles
