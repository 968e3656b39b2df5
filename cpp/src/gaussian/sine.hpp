#pragma once
// Pairs of sin(g + p), p = 0 or pi/2 (cos), in closed form (eq. (4.33)).
#include "gaussian/pairs.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// With s_i = sin(m_i + p_i), c_i = cos(m_i + p_i), q = E (g1 - m1)(g2 - m2) and E = e^{-(R1^2 + R2^2)/2}
///   K00 = c1 c2 E sinh q + s1 s2 E cosh q,   K11 = c1 c2 E cosh q + s1 s2 E sinh q,
///   K10 = c1 s2 E cosh q - s1 c2 E sinh q,   K20 = -R1 K00, and likewise K01 and K02.
/// E e^|q| = e^{-D} with D = |w -+ w'|^2/2 is formed first, so that nothing overflows.
class SinePairs {
public:
    SinePairs(const Side& first, const Side& second);

    /// True if both sides are sin or cos.
    static bool serve(const Side& first, const Side& second);

    /// The four products of sin and cos of a neuron with a pack of neurons.
    struct Moments {
        Pack k00, k10, k01, k11;
    };
    /// Neurons i of the first side and j, j + 1, ... of the second, of which `count` are there; `inner`: their inner
    /// products in units.
    Moments at(Index i, Index j, Index count, Pack inner) const;

private:
    struct Phases {
        FilledScratch<double> sin, cos;
        explicit Phases(const Side& side);
    };

    Pack half_square(Index i, Index j, Index count, Pack inner, Pack rho) const;

    const Side &first_, &second_;
    Phases one_, two_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
