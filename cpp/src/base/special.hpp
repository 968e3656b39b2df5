#pragma once
// Elementary and normal-distribution functions on packets of doubles, free of branches, for arguments the
// Gaussian formulas produce. Absolute errors are a few 1e-16 on the ranges stated; the polynomials are
// Chebyshev interpolants, computed with 50 digits and rounded once.
#include <cmath>
#include <cstdint>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

using Pack = simd::Vec<double>;
inline constexpr Index kPack = simd::kLanes<double>;

namespace special {

inline constexpr double kInvSqrt2Pi = 0.3989422804014326779;
inline constexpr double kInv2Pi = 0.15915494309189533577;
inline constexpr double kPi = 3.14159265358979323846;

inline Pack pack(double x) { return simd::fill(x); }
inline Pack select(simd::IntVec<double> mask, Pack yes, Pack no) {
    return simd::select<double>(mask, yes, no);
}
inline Pack min(Pack a, Pack b) { return select(a < b, a, b); }
inline Pack max(Pack a, Pack b) { return select(a > b, a, b); }
/// x kept in [-bound, bound]; NaN stays NaN.
inline Pack clamp(Pack x, double bound) {
    return select(x > pack(bound), pack(bound), select(x < pack(-bound), pack(-bound), x));
}
inline Pack abs(Pack x) { return max(x, -x); }
inline Pack sqrt(Pack x) {
    Pack root;
    for (Index l = 0; l < kPack; ++l) root[l] = std::sqrt(x[l]);  // one instruction at -O3
    return root;
}

template <int N>
inline Pack horner(const double (&c)[N], Pack x) {
    Pack sum = pack(c[N - 1]);
#pragma GCC unroll 32
    for (int k = N - 2; k >= 0; --k) sum = sum * x + c[k];
    return sum;
}

/// e^x for x <= 0, relative error 2e-16; below -708 the value at -708 (3e-308).
/// x = n log 2 + r, |r| <= log(2)/2: Taylor series to r^13, and n goes into the exponent bits.
inline Pack exp(Pack x) {
    static constexpr double kTaylor[] = {1.0,
                                         1.0,
                                         1.0 / 2,
                                         1.0 / 6,
                                         1.0 / 24,
                                         1.0 / 120,
                                         1.0 / 720,
                                         1.0 / 5040,
                                         1.0 / 40320,
                                         1.0 / 362880,
                                         1.0 / 3628800,
                                         1.0 / 39916800,
                                         1.0 / 479001600,
                                         1.0 / 6227020800};
    constexpr double kLog2e = 1.4426950408889634, kLog2High = 0x1.62e42fefap-1,
                     kLog2Low = 0x1.cf79abc9e3b3ap-40;
    constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
    x = max(x, pack(-708.0));
    const Pack shifted = x * kLog2e + kRound;
    const Pack n = shifted - kRound;
    const Pack r = (x - n * kLog2High) - n * kLog2Low;
    using Bits = simd::Vec<std::uint64_t>;
    const Pack power =
        simd::bits<Pack>((simd::bits<Bits>(shifted) + std::uint64_t{1023}) << std::uint64_t{52});
    return horner(kTaylor, r) * power;
}

/// arcsin z = z + z^3 Q(z^2) for |z| <= 1/2, relative error 3e-16.
inline Pack asin_of_small(Pack z, Pack square) {
    static constexpr double kQ[] = {0.16666666666666669,   0.074999999999983399, 0.044642857146535229,
                                    0.030381944125008751,  0.022372173467043486, 0.017352380709839098,
                                    0.013971387083102129,  0.011477517005507167, 0.010333372152967261,
                                    0.0054131844837155092, 0.01751883397953867,  -0.015032162599250314,
                                    0.028878362746452394};
    return z + z * square * horner(kQ, square);
}

/// arccos x for -1 <= x <= 1, absolute error 3e-16; arccos x = 2 arcsin(sqrt((1-x)/2)) for x > 1/2.
inline Pack acos(Pack x) {
    const Pack size = abs(x);
    const auto far = size > pack(0.5);
    const Pack square = select(far, (1.0 - size) * 0.5, x * x);
    const Pack asin = asin_of_small(select(far, sqrt(square), size), square);
    const Pack of_size = select(far, 2.0 * asin, 0.5 * kPi - asin);
    return select(x < pack(0.0), kPi - of_size, of_size);
}

/// arcsin x for -1 <= x <= 1, relative error 6e-16.
inline Pack asin(Pack x) {
    const Pack size = abs(x);
    const auto far = size > pack(0.5);
    const Pack square = select(far, (1.0 - size) * 0.5, x * x);
    const Pack small = asin_of_small(select(far, sqrt(square), size), square);
    const Pack of_size = select(far, 0.5 * kPi - 2.0 * small, small);
    return select(x < pack(0.0), -of_size, of_size);
}

/// Density phi(x) and upper tail P(G > x) of N(0, 1) for |x| < 1e150.
struct Normal {
    Pack density, tail;
};

/// tail = density * Mills ratio; (x + 2) Mills(x) is a polynomial in (x - 5)/(x + 5) to 4e-16 on [0, inf).
inline Normal normal(Pack x) {
    static constexpr double kMills[] = {
        1.3496567330072102,      -0.58908230248632487,   0.36872296454502257,     -0.17767363441040721,
        0.053777978348720834,    0.0028151008583522613,  -0.015488568533924281,   0.010385352755602446,
        -0.0036509582636545953,  0.00035611276901298584, 0.00030557481055060762,  -0.00013196462346152434,
        -8.1512045738531802e-06, 1.9525904544703408e-05, -1.8673867506317552e-06, -2.6669826089366711e-06,
        5.1204857004376348e-07,  3.9316822776409042e-07, -9.1664574273358996e-08, -6.2538419804942304e-08,
        1.2631650671408752e-08,  9.0707647194186919e-09, -1.0227471793316046e-09, -8.0078278114752965e-10};
    const Pack size = abs(x);
    const Pack density = kInvSqrt2Pi * exp(-0.5 * size * size);
    const Pack inverse = 1.0 / ((size + 5.0) * (size + 2.0));  // one division for both quotients
    const Pack t = (size - 5.0) * (size + 2.0) * inverse;
    const Pack upper = density * horner(kMills, t) * (size + 5.0) * inverse;
    return {density, select(x < pack(0.0), 1.0 - upper, upper)};
}

}  // namespace special
}  // namespace mfcore::inline MFCORE_LEVEL::inline base
