// Pairs of neurons with sin or cos (eq. (4.33)).
#include "gaussian/sine.hpp"

#include <algorithm>
#include <cmath>

#include "base/simd_exp.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

using namespace special;

SinePairs::SinePairs(const Side& first, const Side& second)
    : first_(first), second_(second), one_(first), two_(second) {}

bool SinePairs::serve(const Side& first, const Side& second) {
    const auto is_sine = [](const Side& side) { return facts(*side.sigma).form == Facts::Form::sine; };
    return is_sine(first) && is_sine(second);
}

SinePairs::Phases::Phases(const Side& side) : sin(to_size(side.padded)), cos(sin) {
    const bool even = facts(*side.sigma).parity == Parity::even;
    for (std::size_t j = 0; j < sin.size(); ++j) {
        const double s = std::sin(side.m[j]), c = std::cos(side.m[j]);
        sin[j] = even ? c : s;  // sin(m + pi/2)
        cos[j] = even ? -s : c;
    }
}

/// D = (R1 - R2)^2/2 + R1 R2 (1 - |rho|). Of long and nearly parallel w, where the rounding of rho is seen, the
/// differences of their coordinates.
Pack SinePairs::half_square(Index i, Index j, Index count, Pack inner, Pack rho) const {
    constexpr double kLong = 16, kNothing = 750;  // e^-kNothing is 0
    const double R = first_.R[to_size(i)];
    const Pack both = R * simd::load(&second_.R[to_size(j)]), apart = R - simd::load(&second_.R[to_size(j)]);
    Pack D = 0.5 * apart * apart + both * (1.0 - abs(rho));
    const auto seen = (both > pack(kLong)) & (D < kNothing + 1e-14 * both);
    if (simd::sum_of_lanes(seen) == 0) return D;
    const Index d = first_.d;
    const double unit = first_.unit[to_size(i)], *w = first_.w.data() + i * d;
    for (Index l = 0; l < std::min(kPack, count); ++l) {
        if (seen[l] == 0) continue;
        const double other_unit = std::copysign(second_.unit[to_size(j + l)], inner[l]);
        const double* other = second_.w.data() + (j + l) * d;
        double square = 0;
        for (Index k = 0; k < d; ++k) {
            const double gap = unit * w[k] - other_unit * other[k];
            square += gap * gap;
        }
        D[l] = 0.5 * square;
    }
    return D;
}

SinePairs::Moments SinePairs::at(Index i, Index j, Index count, Pack inner) const {
    const std::size_t one = to_size(i), two = to_size(j);
    const Pack rho = clamp(inner * first_.inverse_R[one] * simd::load(&second_.inverse_R[two]), 1.0);
    const Pack D = half_square(i, j, count, inner, rho);
    const Pack q = (first_.R[one] * simd::load(&second_.R[two])) * rho;
    const simd::Decay<double> back = simd::decay<double>(-2.0 * abs(q));
    const Pack half = 0.5 * simd::decay<double>(-D).exp;
    const Pack sinh = select(q < pack(0.0), half * back.expm1, -half * back.expm1),
               cosh = half * (1.0 + back.exp);
    const double s = one_.sin[one], c = one_.cos[one];
    const Pack s2 = simd::load(&two_.sin[two]), c2 = simd::load(&two_.cos[two]);
    const Pack cc = c * c2, ss = s * s2, cs = c * s2, sc = s * c2;
    return {cc * sinh + ss * cosh, cs * cosh - sc * sinh, sc * cosh - cs * sinh, cc * cosh + ss * sinh};
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
