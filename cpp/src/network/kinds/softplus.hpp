#pragma once
// softplus(t) = log(1 + e^t): branch points at +-i pi.
#include <numbers>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Softplus : Fixed {
    static constexpr const char* name = "softplus";
    static Facts facts(const Activation&) {
        return {
            .degree = 1, .strip = std::numbers::pi, .blur = {.noise = Blur::Noise::kolmogorov, .stretch = 2}};
    }

    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Vec<T> e = decay<T>(-abs<T>(t)).exp, r = T(1) / (e + T(1));
            const Vec<T> value = select<T>(t > 0, t, Vec<T>{}) + log1p_unit<T>(e);
            return {value, select<T>(t < 0, e * r, r), e * (r * r)};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
