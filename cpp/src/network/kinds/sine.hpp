#pragma once
// sin(t) and cos(t): entire, and e^|y| at height y is below 2 e^{y^2/2}.
#include <cmath>
#include <cstdint>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

template <class T>
struct WaveTable;

template <>
struct WaveTable<double> {
    static constexpr double kFar = 0x1p20;  // beyond, quarter turns times a number of them are not exact
    static constexpr double kMagic = 0x1.8p52;
    static constexpr double kByQuarter = 0.6366197723675814;  // 2/pi
    // pi/2 in parts of 33 bits, and the rest.
    static constexpr double kQuarter[] = {1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21};
    // (sin r - r)/r^3 and (cos r - 1 + r^2/2)/r^4 in powers of r^2 for |r| <= pi/4: our own Remez fits; errors of sin r
    // 3.7e-18 relative, of cos r 4.8e-20.
    static constexpr double kSin[] = {-0.1666666666666663,   0.008333333333321974,   -0.00019841269829469594,
                                      2.755731357834752e-06, -2.505074081354142e-08, 1.5895815769739908e-10};
    static constexpr double kCos[] = {0.0416666666666666,     -0.001388888888887395, 2.4801587289368323e-05,
                                      -2.755731431802177e-07, 2.087571842900966e-09, -1.1359388193593984e-11};
};

template <>
struct WaveTable<float> {
    static constexpr float kFar = 4096;
    static constexpr float kMagic = 0x1.8p23F;
    static constexpr float kByQuarter = 0.63661975F;
    // Parts of 11 bits, and the rest.
    static constexpr float kQuarter[] = {1.5703125F, 0.00048375130F, 7.5495336e-08F, 2.563344e-12F};
    // Errors 3.8e-9 and 9.7e-11.
    static constexpr float kSin[] = {-0.16666655F, 0.008332155F, -0.00019514454F};
    static constexpr float kCos[] = {0.041666646F, -0.001388736F, 2.4437533e-05F};
};

template <class T>
struct Wave {
    Vec<T> sin, cos;
};

/// The lanes that are far from 0, by the library.
template <class T>
[[gnu::noinline]] inline void replace_far(const Vec<T>& t, Wave<T>& wave) {
    for (Index l = 0; l < kLanes<T>; ++l) {
        if (!(std::abs(t[l]) > WaveTable<T>::kFar)) continue;
        wave.sin[l] = static_cast<T>(std::sin(static_cast<double>(t[l])));
        wave.cos[l] = static_cast<T>(std::cos(static_cast<double>(t[l])));
    }
}

/// sin t and cos t from those of r = |t| - n pi/2, |r| <= pi/4, and the last two bits of n.
template <class T>
MFCORE_INLINE Wave<T> wave_at(Vec<T> t) {
    using Table = WaveTable<T>;
    const Vec<T> size = abs<T>(t), shifted = size * Table::kByQuarter + Table::kMagic,
                 n = shifted - Table::kMagic;
    Vec<T> r = size;
    for (const T part : Table::kQuarter) r = r - n * part;
    const Vec<T> z = r * r, half = T(0.5) * z, top = T(1) - half;
    const Vec<T> sine = r * z * horner(Table::kSin, z) + r;
    const Vec<T> cosine = top + (((T(1) - top) - half) + z * z * horner(Table::kCos, z));
    using Int = typename IntOf<T>::type;
    constexpr int kToSign = 8 * sizeof(Int) - 2;
    const IntVec<T> quarter = bits<IntVec<T>>(shifted), odd = (quarter & Int{1}) != 0;
    const auto turned = [](Vec<T> x, IntVec<T> by) {
        return bits<Vec<T>>(bits<IntVec<T>>(x) ^ ((by & Int{2}) << kToSign));
    };
    const Vec<T> of_size = turned(select<T>(odd, cosine, sine), quarter);
    Wave<T> wave{bits<Vec<T>>(bits<IntVec<T>>(of_size) ^ (bits<IntVec<T>>(t) & kSignBit<T>)),
                 turned(select<T>(odd, sine, cosine), quarter + Int{1})};
    if (simd::sum_of_lanes(size > Table::kFar) != 0) replace_far<T>(t, wave);
    return wave;
}

struct Sin : Fixed {
    static constexpr const char* name = "sin";
    static Facts facts(const Activation&) {
        return {.form = Facts::Form::sine, .parity = Parity::odd, .strip = kEntire, .growth = 0.5};
    }

    template <class T>
    struct Kernel {
        static constexpr int kAtOnce = 2;
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Wave<T> wave = wave_at<T>(t);
            return {wave.sin, wave.cos, -wave.sin};
        }
    };
};

struct Cos : Fixed {
    static constexpr const char* name = "cos";
    static Facts facts(const Activation&) {
        return {.form = Facts::Form::sine, .parity = Parity::even, .strip = kEntire, .growth = 0.5};
    }

    template <class T>
    struct Kernel {
        static constexpr int kAtOnce = 2;
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Wave<T> wave = wave_at<T>(t);
            return {wave.cos, -wave.sin, -wave.cos};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
