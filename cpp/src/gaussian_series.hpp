#pragma once
// Mehler's series E s1(g1) s2(g2) = sum_k rho^k c_k c'_k, c_k = E[sigma(m + R u) h_k(u)].
#include <cmath>
#include <vector>

#include "gaussian_pairs.hpp"

namespace mfcore {

/// c_k and the slope coefficients s_k = E[sigma'(m + R u) h_k(u)], c_{k+1} = R s_k/sqrt(k+1), of every neuron
/// of a side: [k * padded + j], k < count. R E[sigma'' h_k] = sqrt(k+1) s_{k+1}.
struct Coefficients {
    Index count, padded;
    std::vector<double> c, s;
    Coefficients(const Side& side, Index count);
};

/// The terms k < terms of neuron i against neurons j .. j + kPack - 1 (terms < count).
struct MehlerSums {
    Pack k00{}, k10{}, k20{}, k11{};

    MehlerSums(const Coefficients& one, Index i, const Coefficients& two, Index j, Pack rho, Index terms,
               bool slopes) {
        const double *c1 = one.c.data() + i, *s1 = one.s.data() + i;
        const double *c2 = two.c.data() + j, *s2 = two.s.data() + j;
        for (Index k = terms - 1; k >= 0; --k) {  // Horner in rho
            const Index at1 = k * one.padded, at2 = k * two.padded;
            const Pack c = simd::load(c2 + at2);
            k00 = k00 * rho + c1[at1] * c;
            if (!slopes) continue;
            const double curvature = std::sqrt(static_cast<double>(k + 1)) * s1[at1 + one.padded];
            k10 = k10 * rho + s1[at1] * c;
            k20 = k20 * rho + curvature * c;
            k11 = k11 * rho + s1[at1] * simd::load(s2 + at2);
        }
    }
    void store(Moments out, Index at) const {
        simd::store(out.k00 + at, k00);
        if (!out.k11) return;
        simd::store(out.k10 + at, k10);
        simd::store(out.k20 + at, k20);
        simd::store(out.k11 + at, k11);
    }
};

}  // namespace mfcore
