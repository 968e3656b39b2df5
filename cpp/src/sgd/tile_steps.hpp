#pragma once
// The effect of many samples on one tile of neurons, chunk by chunk while its activations are in the first-level
// cache: shares of predictions, and the move of the tile.
#include <cmath>

#include "base/simd.hpp"
#include "base/tiles.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// f[q] += a value[q], lane by lane: the shares of a tile in the predictions of `rows` samples.
template <class T, int R>
void add_shares(const T* a, Index rows, const T* value, T* f) {
    constexpr Index lanes = simd::kLanes<T>, width = R * lanes;
    simd::Vec<T> weight[R];
    for (int r = 0; r < R; ++r) weight[r] = simd::load(a + r * lanes);
    for (Index q = 0; q < rows; ++q) {
        simd::Vec<T> sum = simd::load(f + q * lanes);
        for (int r = 0; r < R; ++r) sum += weight[r] * simd::load(value + q * width + r * lanes);
        simd::store(f + q * lanes, sum);
    }
}

/// The moves of a tile's a and b, per unit of their step size.
template <class T, int R>
struct TileSums {
    simd::Vec<T> a[R] = {}, b[R] = {};
};

/// Slopes become coefficients of the samples in the step of w, speed e a slope; `sums` receive what a and b do.
template <class T, int R>
void make_coefficients(const T* a, const T* error, Index rows, const T* value, T speed, T* slope,
                       TileSums<T, R>& sums) {
    constexpr Index lanes = simd::kLanes<T>, width = R * lanes;
    simd::Vec<T> weight[R];
    for (int r = 0; r < R; ++r) weight[r] = simd::load(a + r * lanes);
    TileSums<T, R> mine = sums;
    for (Index q = 0; q < rows; ++q) {
        const simd::Vec<T> e = simd::fill(error[q]);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const Index at = q * width + r * lanes;
            const simd::Vec<T> c = e * weight[r] * simd::load(slope + at);
            mine.a[r] += e * simd::load(value + at);
            mine.b[r] += c;
            simd::store(slope + at, speed * c);
        }
    }
    sums = mine;
}

/// x <- keep x + speed sum, for a tile's a or b.
template <class T, int R>
void pull_tile(T* x, T keep, T speed, const simd::Vec<T>* sum) {
    for (int r = 0; r < R; ++r) {
        T* const at = x + r * simd::kLanes<T>;
        simd::store(at, keep * simd::load(at) + speed * sum[r]);
    }
}

/// 1 / |w| of w with |w|^2 = square.
template <class T>
T inverse_length(T square) {
    const T inverse = T(1) / std::sqrt(square);
    return inverse > 0 ? inverse : square - square;  // beyond the square root of the largest: NaN, seen
}

/// Project the first `neurons` of a tile to the unit sphere.
template <class T, int R>
void normalise_tile(T* w, Index d, Index neurons) {
    constexpr Index width = R * simd::kLanes<T>;
    for (Index i = 0; i < neurons; ++i) {
        T square = 0;
        for (Index j = 0; j < d; ++j) square += w[j * width + i] * w[j * width + i];
        const T inverse = inverse_length(square);
        for (Index j = 0; j < d; ++j) w[j * width + i] *= inverse;
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
