#pragma once
// sigmoid(t) = 1/(1 + e^-t): poles at +-i pi.
#include <numbers>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Sigmoid : Fixed {
    static constexpr const char* name = "sigmoid";
    static Facts facts(const Activation&) {
        return {.strip = std::numbers::pi,
                .blur = {.noise = Blur::Noise::kolmogorov, .order = 1, .stretch = 2}};
    }

    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Decay<T> e = decay<T>(-abs<T>(t));
            const Vec<T> r = T(1) / (e.exp + T(1));
            const Vec<T> slope = e.exp * (r * r);
            // sigma'' = sigma' (1 - 2 sigma), and 1 - 2 sigma = -tanh(t/2) = (e^-|t| - 1)/(e^-|t| + 1) sign t
            return {select<T>(t < 0, e.exp * r, r), slope, -slope * with_sign<T>(e.expm1 * r, t)};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
