#pragma once
// gelu(t) = t Phi(t): entire, e^{y^2/2} at height y.
#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

struct Gelu : Fixed {
    static constexpr const char* name = "gelu";
    static Facts facts(const Activation&) {
        return {.form = Facts::Form::gelu,
                .degree = 1,
                .strip = kEntire,
                .growth = 0.5,
                .blur = {.noise = Blur::Noise::one, .density = true}};
    }

    /// t Phi(t) = max(t, 0) - |t| Phi(-|t|): no cancellation on either side.
    template <class T>
    struct Kernel {
        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            const Vec<T> a = select<T>(abs<T>(t) > T(40), fill(T(40)), abs<T>(t));  // Phi(-40) is 0 here
            const Vec<T> g = gauss<T>(a, T(0.5)), m = mills<T>(a), density = T(0.3989422804014327) * g;
            const Vec<T> tail = m * g, below = select<T>(t < 0, tail, T(1) - tail);  // Phi(-a), Phi(t)
            return {select<T>(t > 0, t, Vec<T>{}) - (a * m) * g, below + with_sign<T>(a, t) * density,
                    density * (T(2) - a * a)};
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
