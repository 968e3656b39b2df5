#pragma once
// Logarithm, square root, sine and cosine on packets: what Box-Muller needs. No tables and no branches, so
// that loops around them stay straight lines of arithmetic. The polynomials are minimax fits made for this
// file (Remez iteration in 60 digits); the errors stated are theirs, rounding comes on top.
#include <array>
#include <cmath>
#include <cstddef>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::simd {

template <class T>
struct LogConstants;
template <>
struct LogConstants<double> {
    using Int = std::int64_t;
    static constexpr int kShift = 52;
    static constexpr Int kOne = 0x3ff0000000000000, kMantissa = 0x000fffffffffffff;
    static constexpr Int kRootHalf = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
    // 1/3 + z/5 + ..., so that 2 atanh(s) = 2 s + 2 s z poly(z), z = s^2 <= 0.0295: relative error 1e-18
    static constexpr std::array<double, 7> kAtanh = {
        0.33333333333333564296,  0.19999999999762414771,  0.14285714360973669615, 0.11111100201130647042,
        0.090917395505589233481, 0.076580213563442707502, 0.073887442677109740183};
    // sin(pi f / 2) = f poly(w), w = f^2 <= 1/4: relative error 4e-18
    static constexpr std::array<double, 7> kSin = {1.57079632679489661923,    -0.6459640975062450566,
                                                   0.079692626246068379006,   -0.0046817541326960421518,
                                                   0.00016044115311909150587, -3.5986509428368746809e-6,
                                                   5.6348635104326524352e-8};
    // cos(pi f / 2) = poly(w): relative error 6e-17
    static constexpr std::array<double, 7> kCos = {1.0,
                                                   -1.2337005501361570799,
                                                   0.25366950790003299178,
                                                   -0.020863480736994550241,
                                                   0.00091925996207501556552,
                                                   -0.000025200169193449958714,
                                                   4.6556647327150995178e-7};
};
template <>
struct LogConstants<float> {
    using Int = std::int32_t;
    static constexpr int kShift = 23;
    static constexpr Int kOne = 0x3f800000, kMantissa = 0x007fffff, kRootHalf = 0x3f3504f3;
    // as above: relative errors 8e-10, 4e-9 and 6e-11
    static constexpr std::array<float, 3> kAtanh = {0.33333388207772753F, 0.19988768464339076F,
                                                    0.14935931777035451F};
    static constexpr std::array<float, 4> kSin = {1.5707963267948966F, -0.64596363019550621F,
                                                  0.079681412775109220F, -0.0046048340941431306F};
    static constexpr std::array<float, 5> kCos = {1.0F, -1.2337005425976718F, 0.25366922596553547F,
                                                  -0.020860165111403837F, 0.00090376654254512739F};
};

/// c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
template <class T, std::size_t N>
inline Vec<T> horner(Vec<T> x, const std::array<T, N>& c) {
    Vec<T> sum = fill<T>(c[N - 1]);
    for (std::size_t k = 2; k <= N; ++k) sum = sum * x + c[N - k];
    return sum;
}

template <class T>
inline Vec<T> square_root(Vec<T> x) {
    Vec<T> root;
#pragma GCC unroll 16
    for (Index k = 0; k < kLanes<T>; ++k) root[k] = std::sqrt(x[k]);  // compiles to one packed instruction
    return root;
}

/// Natural logarithm of positive normal numbers (not 0, subnormal, infinite or NaN): within 3 ulp for any x,
/// also near
/// 1. x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1)/(m + 1).
template <class T>
inline Vec<T> log_positive(Vec<T> x) {
    using C = LogConstants<T>;
    const IntVec<T> shifted = bits<IntVec<T>>(x) + (C::kOne - C::kRootHalf);
    const IntVec<T> biased = shifted >> C::kShift;  // e + bias > 0
    Vec<T> e;
    if constexpr (sizeof(T) == 8) {
        // 64-bit integers convert to double in one instruction only with AVX-512: plant them in the low bits
        // of 2^52 instead.
        e = bits<Vec<T>>(biased | std::int64_t{0x4330000000000000}) - (0x1p52 + 1023);
    } else {
        e = __builtin_convertvector(biased, Vec<T>) - T{127};
    }
    const Vec<T> m = bits<Vec<T>>((shifted & C::kMantissa) + C::kRootHalf);
    const Vec<T> s = (m - T{1}) / (m + T{1});
    const Vec<T> z = s * s;
    const Vec<T> two_s = s + s;
    // No cancellation that matters: for e = -1 the sum is at least half of e ln 2.
    return e * T{0.693147180559945309417} + (two_s * z * horner<T>(z, C::kAtanh) + two_s);
}

template <class T>
struct CosSin {
    Vec<T> cos, sin;
};

/// cos and sin of (pi/2) f for |f| <= 1/2.
template <class T>
inline CosSin<T> cos_sin_quarter(Vec<T> f) {
    using C = LogConstants<T>;
    const Vec<T> w = f * f;
    return {horner<T>(w, C::kCos), f * horner<T>(w, C::kSin)};
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::simd
