#pragma once
// Inner products of the samples of a block, and their Cholesky factor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Inner products of samples shorter than a vector: the columns l lie in the lanes instead.
template <class T>
void gram_of_short(MatView<const T> x, Index first, Index last, T* at, Index stride) {
    constexpr Index kMost = 64;  // columns at a time
    T column[kMost];
    for (Index l0 = first; l0 < last; l0 += kMost) {
        const Index n = std::min(kMost, last - l0);
        for (Index k = 0; k < l0 + n; ++k) std::fill_n(at + k * stride + l0, n, T(0));
        for (Index j = 0; j < x.cols; ++j) {
            for (Index l = 0; l < n; ++l) column[l] = x(l0 + l, j);
            for (Index k = 0; k < l0 + n; ++k) {
                T* const row = at + k * stride + l0;
                for (Index l = 0; l < n; ++l) row[l] += x(k, j) * column[l];
            }
        }
    }
}

/// at[k * stride + l] = <x_k, x_l> for columns l of [first, last) and rows k at least up to l.
template <class T>
void gram(MatView<const T> x, Index first, Index last, T* at, Index stride) {
    constexpr Index lanes = simd::kLanes<T>, kSide = 4;  // 16 independent sums hide the latency of one
    const Index whole = x.cols / lanes * lanes;
    if (whole == 0) return gram_of_short(x, first, last, at, stride);
    for (Index l = first; l < last; l += kSide) {
        for (Index k = 0; k < std::min(l + kSide, x.rows); k += kSide) {
            simd::Vec<T> sum[kSide][kSide] = {};
            const T *left[kSide], *right[kSide];
            for (Index i = 0; i < kSide; ++i) {
                left[i] = x.row(std::min(k + i, x.rows - 1));
                right[i] = x.row(std::min(l + i, x.rows - 1));
            }
            for (Index j = 0; j < whole; j += lanes)
                for (Index i = 0; i < kSide; ++i)
                    for (Index c = 0; c < kSide; ++c)
                        sum[i][c] += simd::load(left[i] + j) * simd::load(right[c] + j);
            for (Index i = 0; i < kSide && k + i < x.rows; ++i) {
                for (Index c = 0; c < kSide && l + c < last; ++c) {
                    T total = simd::sum<T>(sum[i][c]);
                    for (Index j = whole; j < x.cols; ++j) total += left[i][j] * right[c][j];
                    at[(k + i) * stride + l + c] = total;
                }
            }
        }
    }
}

/// Lower Cholesky factor of the n x n Gram matrix whose upper triangle is `gram`; a pivot that is zero to
/// rounding (a sample in the span of the earlier ones) gives a zero column: it adds no direction.
template <class T>
void cholesky(Index n, const T* gram, Index stride, T* factor) {
    for (Index j = 0; j < n; ++j) {
        T pivot = gram[j * stride + j];
        const T scale = pivot;
        for (Index k = 0; k < j; ++k) pivot -= factor[j * n + k] * factor[j * n + k];
        const bool fresh = pivot > scale * T(1e3) * std::numeric_limits<T>::epsilon();
        const T diagonal = fresh ? std::sqrt(pivot) : T(0);
        for (Index i = 0; i < n; ++i) factor[i * n + j] = T(0);
        factor[j * n + j] = diagonal;
        if (!fresh) continue;
        for (Index i = j + 1; i < n; ++i) {
            T sum = gram[j * stride + i];
            for (Index k = 0; k < j; ++k) sum -= factor[i * n + k] * factor[j * n + k];
            factor[i * n + j] = sum / diagonal;
        }
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
