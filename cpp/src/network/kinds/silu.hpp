#pragma once
// silu(t) = t/(1 + e^-t): poles at +-i pi.
#include <numbers>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Silu : Fixed {
    static constexpr const char* name = "silu";
    static Facts facts(const Activation&) {
        return {.degree = 1,
                .strip = std::numbers::pi,
                .blur = {.noise = Blur::Noise::kolmogorov, .density = true, .stretch = 2}};
    }

    /// With s = 1/(1 + e^-t): slope s + t s', s' = s (1 - s), curvature s' (2 + t (1 - 2 s)).
    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            constexpr T kMost = 1 - ExpTable<T>::kLowest;  // e^-kMost is 0 here
            const Vec<T> a = select<T>(abs<T>(t) > kMost, fill(kMost), abs<T>(t));
            const Decay<T> e = decay<T>(-a);
            const Vec<T> r = T(1) / (e.exp + T(1)), below = e.exp * r, steep = below * r;
            const IntVec<T> left = t < 0;
            return {select<T>(left, -a * below, t * r), select<T>(left, below - a * steep, r + a * steep),
                    steep * (T(2) + a * (e.expm1 * r))};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
