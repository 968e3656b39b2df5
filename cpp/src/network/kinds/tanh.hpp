#pragma once
// tanh(t) = 2 sigmoid(2 t) - 1: poles at +-i pi/2.
#include <numbers>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Tanh : Fixed {
    static constexpr const char* name = "tanh";
    static Facts facts(const Activation&) {
        return {.parity = Parity::odd,
                .strip = std::numbers::pi / 2,
                .blur = {.noise = Blur::Noise::kolmogorov, .order = 1, .offset = -1, .scale = 2}};
    }

    /// 1 - tanh^2 t = (1 - tanh |t|)(1 + tanh |t|) keeps its relative accuracy in the tails.
    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Saturation<T> of = saturation<T>(-abs<T>(t));
            const Vec<T> value = with_sign<T>(of.size, t), slope = of.rest * of.size + of.rest;
            return {value, slope, T(-2) * value * slope};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
