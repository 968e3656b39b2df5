#pragma once
// Polynomials, by their coefficients in powers or in orthonormal Hermite polynomials.
#include <algorithm>
#include <cmath>
#include <vector>

#include "network/kinds/kind.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

inline void validate_coefficients(const Activation& sigma) {
    require(!sigma.coefficients.empty(), "coefficients", "must not be empty", list(sigma.coefficients));
    require_finite(sigma.coefficients, "coefficients");
}

inline Index degree_of(const std::vector<double>& coefficients) {
    return std::max<Index>(0, static_cast<Index>(coefficients.size()) - 1);
}

/// Powers and Hermite polynomials of degree k have the parity of k.
inline Parity parity_of(const std::vector<double>& coefficients) {
    bool even = false, odd = false;
    for (std::size_t k = 0; k < coefficients.size(); ++k)
        if (coefficients[k] != 0) (k % 2 == 0 ? even : odd) = true;
    return even == odd ? Parity::none : (odd ? Parity::odd : Parity::even);
}

struct Polynomial {
    static constexpr const char* name = "polynomial";
    static Facts facts(const Activation& sigma) {
        return {.form = Facts::Form::powers,
                .parity = parity_of(sigma.coefficients),
                .polynomial = true,
                .degree = degree_of(sigma.coefficients)};
    }
    static void validate(const Activation& sigma) { validate_coefficients(sigma); }

    /// Horner's rule for p, p' and p''/2 at once.
    template <class T>
    struct Kernel {
        const Activation& sigma;

        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            Vec<T> p = fill(T(sigma.coefficients.back())), slope{}, half_curvature{};
            for (std::size_t k = sigma.coefficients.size() - 1; k-- > 0;) {
                half_curvature = half_curvature * t + slope;
                slope = slope * t + p;
                p = p * t + T(sigma.coefficients[k]);
            }
            return keep_nan<T>(t, {p, slope, half_curvature + half_curvature});
        }
    };
};

struct Hermite {
    static constexpr const char* name = "hermite";
    static Facts facts(const Activation& sigma) {
        return {.form = Facts::Form::hermite,
                .parity = parity_of(sigma.coefficients),
                .polynomial = true,
                .degree = degree_of(sigma.coefficients)};
    }
    static void validate(const Activation& sigma) { validate_coefficients(sigma); }

    /// h_{k+1} = (t h_k - sqrt(k) h_{k-1}) / sqrt(k+1), h_k' = sqrt(k) h_{k-1}, h_k'' = sqrt(k (k-1))
    /// h_{k-2}.
    template <class T>
    struct Kernel {
        static constexpr Index kTable = 64;  // roots beyond are computed as they are met
        const Activation& sigma;
        T roots[kTable + 1], inverses[kTable + 1];

        explicit Kernel(const Activation& s) : sigma(s) {
            const Index last = std::min<Index>(kTable, static_cast<Index>(s.coefficients.size()));
            for (Index k = 0; k <= last; ++k) {
                roots[k] = T(std::sqrt(double(k)));
                inverses[k] = T(1 / std::sqrt(double(k)));
            }
        }
        T root(Index k) const { return k <= kTable ? roots[k] : T(std::sqrt(double(k))); }
        T inverse(Index k) const { return k <= kTable ? inverses[k] : T(1 / std::sqrt(double(k))); }

        MFCORE_INLINE Jet<T> operator()(Vec<T> t) const {
            Vec<T> before{}, previous{}, h = fill(T(1));  // h_{k-2}, h_{k-1}, h_k
            Jet<T> sum{fill(T(sigma.coefficients[0])), {}, {}};
            for (Index k = 1; k < static_cast<Index>(sigma.coefficients.size()); ++k) {
                before = previous;
                previous = h;
                h = (t * previous - root(k - 1) * before) * inverse(k);
                const T c = T(sigma.coefficients[k]);
                sum.value = c * h + sum.value;
                sum.slope = c * root(k) * previous + sum.slope;
                sum.curvature = c * root(k) * root(k - 1) * before + sum.curvature;
            }
            return keep_nan<T>(t, sum);
        }
    };
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
