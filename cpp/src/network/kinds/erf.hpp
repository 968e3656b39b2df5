#pragma once
// erf(t): entire, e^{y^2} at height y.
#include <numbers>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Erf : Fixed {
    static constexpr const char* name = "erf";
    static Facts facts(const Activation&) {
        return {.form = Facts::Form::erf,
                .parity = Parity::odd,
                .strip = kEntire,
                .growth = 1,
                .blur = {.noise = Blur::Noise::one,
                         .order = 1,
                         .offset = -1,
                         .scale = 2,
                         .stretch = 1 / std::numbers::sqrt2}};
    }

    template <class T>
    struct Kernel {
        static constexpr int kAtOnce = 6;  // with 8 too many constants pass through memory: a sixth more time

        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Vec<T> g = gauss<T>(abs<T>(t), T(1)), slope = T(1.1283791670955126) * g;
            const Vec<T> bounded = select<T>(g == 0, Vec<T>{}, t);  // 0 times infinity would be NaN
            return {erf<T>(t, g), slope, T(-2) * bounded * slope};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
