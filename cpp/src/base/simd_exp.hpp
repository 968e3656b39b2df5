#pragma once
// exp, expm1, tanh, log1p, erf and the Mills ratio on vectors, for double and float, without branches or
// tables in memory. NaN stays NaN. A result below the smallest normal number is flushed to 0.
//
// The coefficients are our own weighted Remez fits, computed with 60 digits and then rounded; each array
// states the largest error of the rounded polynomial, relative to the function it serves unless said
// otherwise.
#include <cstddef>
#include <limits>

#include "base/simd.hpp"

// Inline always: a call would pass vectors through memory and compute results nobody asked for.
#define MFCORE_INLINE [[gnu::always_inline]] inline

namespace mfcore::inline MFCORE_LEVEL::inline base::simd {

template <class T>
struct ExpTable;

template <>
struct ExpTable<double> {
    // x + kMagic puts the integer nearest to x, plus the exponent bias minus 1, into the low bits.
    static constexpr double kMagic = 0x1.8p52 + 1022;
    static constexpr int kMantissaBits = 52;
    static constexpr double kLog2e = 1.4426950408889634;
    static constexpr double kLn2High = 0.6931471805592082;  // 40 bits: n * kLn2High is exact
    static constexpr double kLn2Low = 7.371002565167799e-13;
    static constexpr double kLowest = -708, kHighest = 710;  // e^x leaves the normal numbers
    static constexpr double kNothing = -709.2;               // here 2^n, put together bit by bit, is 0
    static constexpr std::int64_t kHighHalf = -(std::int64_t{1} << 27);  // 26 bits: their square is exact

    // (e^r - 1 - r - r^2/2) / r^3 for |r| <= log(2)/2; error of e^r - 1: 2.6e-17.
    static constexpr double kExp[] = {0.1666666666666668,    0.04166666666661936,    0.008333333333318824,
                                      0.001388888892080137,  0.00019841269894755242, 2.4801515933561602e-05,
                                      2.755723466518729e-06, 2.7622408340945425e-07, 2.5112531959906186e-08};
    // tanh(r) = odd/even for |r| <= log(2)/4: odd/r and even in powers of r^2; error 5.4e-18.
    static constexpr double kTanhOdd[] = {1.0, 0.11109938291846166, 0.0010574197415201938};
    static constexpr double kTanhEven[] = {1.0, 0.44443271625178926, 0.015868325160646117};
    // (2 atanh(s) - 2 s) / s^3 in powers of s^2 for 0 <= s <= 1/3; error of 2 atanh(s): 3.5e-18.
    static constexpr double kLog1p[] = {0.6666666666666631,  0.4000000000015723, 0.2857142854785537,
                                        0.22222223969640462, 0.1818174392801951, 0.15386559859785584,
                                        0.13300974379600805, 0.1210608028024032, 0.08340126293371479,
                                        0.1701853175579262};
    // erf(x)/x - 1 in powers of x^2 for |x| <= 0.875; error of erf: 3.0e-17.
    static constexpr double kErf[] = {0.12837916709551256,     -0.3761263890318299,    0.11283791670915581,
                                      -0.026866170637142812,   0.005223977542438787,   -0.0008548321977332456,
                                      0.00012055141078656071,  -1.492094202028534e-05, 1.6387374751558561e-06,
                                      -1.5619258676357358e-07, 1.045679128590658e-08};
    // e^(x^2) erfc(x) in powers of 6/(x + 3) - 1 for 0.875 <= x <= 5.95; absolute error of erfc: 2.1e-17.
    static constexpr double kErfTail[] = {
        0.17900115118125276,    0.32623356004928594,    0.24560380167781778,    0.1501159347033063,
        0.0716658764937935,     0.02439211230709858,    0.0042714224663375445,  -0.0007165752664769227,
        -0.0005740901515128929, -8.543839819391925e-05, 0.00010962198766138692, -1.7348360362667834e-05};
    // (a + 4) e^(a^2/2) Phi(-a) in powers of 8/(a + 4) - 1 for 0 <= a <= 39; error 2.2e-16.
    static constexpr double kMills[] = {
        0.7552851304157515,     0.6078966419718907,     0.3871374007422231,     0.18652185795979848,
        0.06039657489053023,    0.007540188962434214,   -0.0034796923594568228, -0.0016308183983715495,
        0.00013334422826464617, 0.00023109448962153382, -1.907709996915991e-06, -3.5142687222054426e-05,
        7.143423409369304e-07,  5.914621760174856e-06,  -6.231855379793372e-07, -1.0120551863801508e-06,
        2.598726788336743e-07,  1.4558954373443655e-07, -7.169668251136179e-08, -9.110396670892524e-09,
        1.0675645930413517e-08, -1.5596329690872388e-09};
};

template <>
struct ExpTable<float> {
    static constexpr float kMagic = 0x1.8p23F + 126;
    static constexpr int kMantissaBits = 23;
    static constexpr float kLog2e = 1.442695F;
    static constexpr float kLn2High = 0.693359375F;  // 9 bits
    static constexpr float kLn2Low = -0.00021219444F;
    static constexpr float kLowest = -86.9F, kHighest = 89, kNothing = -88;
    static constexpr std::int32_t kHighHalf = -(std::int32_t{1} << 12);  // 12 bits

    // As above for x <= 4 and a <= 14; errors 1.5e-8, 7.0e-10, 5.0e-9, 2.5e-8, 1.9e-9 (absolute), 2.6e-8.
    static constexpr float kExp[] = {0.16666543F, 0.041666403F, 0.00836649F, 0.001394061F};
    static constexpr float kTanhOdd[] = {1.0F, 0.066587195F};
    static constexpr float kTanhEven[] = {1.0F, 0.39992028F};
    static constexpr float kLog1p[] = {0.6666641F, 0.400217F, 0.27999136F, 0.2802448F};
    static constexpr float kErf[] = {0.12837915F,   -0.3761255F,  0.11282455F,
                                     -0.026791463F, 0.005032181F, -0.0006203253F};
    static constexpr float kErfTail[] = {0.17900018F, 0.3262582F,  0.24536005F,
                                         0.15135321F, 0.06815188F, 0.029940084F};
    static constexpr float kMills[] = {0.75528514F,   0.6078966F,    0.38713688F,   0.1865232F,
                                       0.060404144F,  0.007526727F,  -0.003514982F, -0.0015718582F,
                                       0.0001846293F, 0.00012952842F};
};

/// c[0] + c[1] x + ... + c[N-1] x^(N-1) by Horner's rule, from coefficient K - 1 downwards.
template <std::size_t K, class T, std::size_t N>
MFCORE_INLINE Vec<T> horner_from(const T (&c)[N], Vec<T> x, Vec<T> sum) {
    if constexpr (K == 0) {
        return sum;
    } else {
        return horner_from<K - 1, T, N>(c, x, sum * x + c[K - 1]);
    }
}
template <class T, std::size_t N>
MFCORE_INLINE Vec<T> horner(const T (&c)[N], Vec<T> x) {
    return horner_from<N - 1, T, N>(c, x, fill(c[N - 1]));
}

template <class T>
inline constexpr auto kSignBit = std::numeric_limits<typename IntOf<T>::type>::min();

template <class T>
MFCORE_INLINE Vec<T> abs(Vec<T> x) {
    return bits<Vec<T>>(bits<IntVec<T>>(x) & ~kSignBit<T>);
}
/// |magnitude| with the sign of `sign`.
template <class T>
MFCORE_INLINE Vec<T> with_sign(Vec<T> magnitude, Vec<T> sign) {
    return bits<Vec<T>>((bits<IntVec<T>>(magnitude) & ~kSignBit<T>) | (bits<IntVec<T>>(sign) & kSignBit<T>));
}

/// e^x = 2 half_scale (1 + minus1), minus1 in [-0.30, 0.42] with full relative accuracy. Half of the power of
/// two, because 2^1024 does not exist.
template <class T>
struct SplitExp {
    Vec<T> half_scale, minus1;

    MFCORE_INLINE Vec<T> value() const {
        const Vec<T> half = half_scale * minus1 + half_scale;
        return half + half;
    }
    MFCORE_INLINE Vec<T> value_minus_1() const {
        const Vec<T> half = half_scale * minus1 + (half_scale - T(0.5));
        return half + half;
    }
};

/// 2^(n - 1) from n + kMagic, 2^n from n + kMagic + 1.
template <class T>
MFCORE_INLINE Vec<T> power_of_two(Vec<T> shifted_n) {
    return bits<Vec<T>>(bits<IntVec<T>>(shifted_n) << ExpTable<T>::kMantissaBits);
}
/// From n + kMagic and r with x = n log 2 + r.
template <class T>
MFCORE_INLINE SplitExp<T> split_exp(Vec<T> shifted_n, Vec<T> r) {
    using Table = ExpTable<T>;
    const Vec<T> tail = T(0.5) + r * horner(Table::kExp, r);
    return {power_of_two<T>(shifted_n), r + r * r * tail};
}
/// n + magic and r of x = n log(2)/K + r, |r| <= log(2)/(2 K), K a power of two.
template <class T>
struct Reduced {
    Vec<T> shifted_n, r;
};
template <int K, class T>
MFCORE_INLINE Reduced<T> reduced(Vec<T> x, T magic) {
    using Table = ExpTable<T>;
    const Vec<T> shifted_n = x * (K * Table::kLog2e) + magic;
    const Vec<T> n = shifted_n - magic;
    return {shifted_n, (x - n * (Table::kLn2High / K)) - n * (Table::kLn2Low / K)};
}
template <class T>
MFCORE_INLINE SplitExp<T> split_exp(Vec<T> x, T magic = ExpTable<T>::kMagic) {
    const Reduced<T> of = reduced<1, T>(x, magic);
    return split_exp<T>(of.shifted_n, of.r);
}

/// e^x and e^x - 1 for x <= 0: what the saturating functions need. There the whole power of two exists. Below the
/// normal numbers the limits 0 and -1 are put in at the end, where nothing waits for the comparison.
template <class T>
struct Decay {
    Vec<T> exp, expm1;
};
template <class T>
MFCORE_INLINE Decay<T> decay(Vec<T> x) {
    using Table = ExpTable<T>;
    const IntVec<T> gone = x < Table::kLowest;
    const SplitExp<T> e = split_exp<T>(x, Table::kMagic + T(1));
    const Vec<T> power = e.half_scale;
    return {select<T>(gone, Vec<T>{}, power * e.minus1 + power),
            select<T>(gone, fill(T(-1)), power * e.minus1 + (power - T(1)))};
}

/// tanh |x| and 1 - tanh |x| for x <= 0, both accurate to a few units in the last place of their own.
template <class T>
struct Saturation {
    Vec<T> size, rest;
};
/// With x = n log(2)/2 + r, tanh r = odd/even and e = e^(2 x) = above/below,
///     above = 2^n (even + odd),   below = even - odd,   below - above = even (1 - 2^n) - odd (1 + 2^n),
/// they are (1 - e)/(1 + e) and 2 e/(1 + e). Nothing cancels near x = 0, where 2^n = 1; where 2^n is 0, tanh is 1. Products
/// with 2^n are exact: whether the compiler fuses them with a sum changes no bit.
template <class T>
MFCORE_INLINE Saturation<T> saturation(Vec<T> x) {
    using Table = ExpTable<T>;
    const auto [shifted_n, r] = reduced<2, T>(at_least<T>(x, Table::kNothing / 2), Table::kMagic + T(1));
    const Vec<T> power = power_of_two<T>(shifted_n), r2 = r * r;
    const Vec<T> odd = r * horner(Table::kTanhOdd, r2), even = horner(Table::kTanhEven, r2);
    const Vec<T> above = power * (even + odd), sum = (even - odd) + above;
    return {(even * (T(1) - power) - (odd + power * odd)) / sum, (above + above) / sum};
}

template <class T>
MFCORE_INLINE Vec<T> exp(Vec<T> x) {
    const Vec<T> e = select<T>(x < ExpTable<T>::kLowest, Vec<T>{}, split_exp<T>(x).value());
    return select<T>(x > ExpTable<T>::kHighest, fill(std::numeric_limits<T>::infinity()), e);
}

/// e^x - 1, accurate also near 0.
template <class T>
MFCORE_INLINE Vec<T> expm1(Vec<T> x) {
    const Vec<T> e = select<T>(x < ExpTable<T>::kLowest, fill(T(-1)), split_exp<T>(x).value_minus_1());
    return select<T>(x > ExpTable<T>::kHighest, fill(std::numeric_limits<T>::infinity()), e);
}

/// e^(-c a^2) with c a power of two. a is split in two so that the rounding of a^2, up to 700 times magnified
/// by the exponential, does not show: full relative accuracy down to the smallest normal number.
template <class T>
MFCORE_INLINE Vec<T> gauss(Vec<T> a, T c) {
    using Table = ExpTable<T>;
    const Vec<T> high = bits<Vec<T>>(bits<IntVec<T>>(a) & Table::kHighHalf), low = a - high;
    const Vec<T> square = c * (a * a);
    const Vec<T> shifted_n = square * -Table::kLog2e + Table::kMagic;
    const Vec<T> n = shifted_n - Table::kMagic;
    const Vec<T> rest = c * (low * (a + high)) + n * Table::kLn2Low;
    const Vec<T> e = split_exp<T>(shifted_n, (-c * (high * high) - n * Table::kLn2High) - rest).value();
    return select<T>(square > -Table::kLowest, Vec<T>{}, e);
}

/// log(1 + x) for 0 <= x <= 1 as 2 atanh(s), s = x / (2 + x), arranged so that s enters a correction only.
template <class T>
MFCORE_INLINE Vec<T> log1p_unit(Vec<T> x) {
    const Vec<T> s = x / (x + T(2)), s2 = s * s;
    return x - s * (x - s2 * horner(ExpTable<T>::kLog1p, s2));
}

/// erf(x), given gauss(|x|, 1) which its slope needs too.
template <class T>
MFCORE_INLINE Vec<T> erf(Vec<T> x, Vec<T> gauss_x) {
    using Table = ExpTable<T>;
    const Vec<T> a = abs<T>(x);
    const Vec<T> near = x * horner(Table::kErf, x * x) + x;
    const Vec<T> v = T(6) / (a + T(3)) - T(1);
    const Vec<T> far = T(1) - gauss_x * horner(Table::kErfTail, v);
    return select<T>(a < T(0.875), near, with_sign<T>(far, x));
}
template <class T>
MFCORE_INLINE Vec<T> erf(Vec<T> x) {
    return erf<T>(x, gauss<T>(abs<T>(x), T(1)));
}

/// e^(a^2/2) Phi(-a) for a >= 0, Phi the normal distribution function.
template <class T>
MFCORE_INLINE Vec<T> mills(Vec<T> a) {
    const Vec<T> u = T(1) / (a + T(4));
    return u * horner(ExpTable<T>::kMills, T(8) * u - T(1));
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::simd
