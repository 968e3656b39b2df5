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

    /// e / (1 + e)^2 forms, e = exp(-2|t|) <= 1, keep the relative accuracy of slope and curvature in the
    /// tails.
    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Vec<T> half = with_sign<T>(t, fill(T(-1)));
            const Decay<T> e = decay<T>(half + half);
            const Vec<T> r = T(1) / (e.expm1 + T(2)), twice = r + r;
            const Vec<T> value = with_sign<T>(e.expm1 * r, t), slope = e.exp * (twice * twice);
            return {value, slope, T(-2) * value * slope};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
