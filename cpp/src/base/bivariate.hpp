#pragma once
// The standard bivariate normal distribution, on packets.
#include "base/special.hpp"

namespace mfcore::special {

/// Owen's function T(h, q/h) = P(U > h, 0 < V < (q/h) U), U and V independent N(0, 1), h, q >= 0, given their
/// upper tails. For q <= h it is (1/2pi) int_0^a exp(-h^2 (1 + x^2)/2)/(1 + x^2) dx with a = q/h <= 1, whose
/// integrand is analytic off +-i and bounded beside them: 24 Gauss points on [-a, a], 12 by symmetry, give
/// 1e-16 for every h. For q > h swap: T(h, q/h) = (tail(h) + tail(q))/2 - tail(h) tail(q) - T(q, h/q).
inline Pack owen(Pack h, Pack q, Pack tail_h, Pack tail_q) {
    static constexpr double kSquares[] = {0.0041032855232113353, 0.036526421504397714, 0.099251890030139386,
                                          0.18817680725850769,   0.29748458145196671,  0.42002538168100562,
                                          0.54778381895980865,   0.67240325700114489,  0.78573248651449001,
                                          0.88035913493592888,   0.95009575782591427,  0.99039760284539979};
    static constexpr double kWeights[] = {0.12793819534675216,  0.1258374563468283,   0.12167047292780339,
                                          0.1155056680537256,   0.10744427011596563,  0.097618652104113884,
                                          0.086190161531953274, 0.0733464814110803,   0.059298584915436783,
                                          0.044277438817419808, 0.028531388628933663, 0.0123412297999872};
    const Pack big = max(h, q);
    const Pack a = min(h, q) / max(big, pack(1e-300));
    const Pack a2 = a * a, half = -0.5 * big * big;
    Pack sum{};
    for (int i = 0; i < 12; ++i) {
        const Pack v = 1.0 + a2 * kSquares[i];
        sum += kWeights[i] * exp(half * v) / v;
    }
    const Pack inner = kInv2Pi * a * sum;
    return select(q > h, 0.5 * (tail_h + tail_q) - tail_h * tail_q - inner, inner);
}

/// (u, v) standard normal with correlation rho, s = sqrt(1 - rho^2), at the levels (h, k), |h|, |k| <= kFar.
struct Quadrant {
    Pack tail;      ///< P(u > h, v > k), absolute error about 2e-16
    Normal k_of_h;  ///< density and tail at (k - rho h)/s: v > k given u = h
    Normal h_of_k;  ///< density and tail at (h - rho k)/s: u > h given v = k
};
inline constexpr double kFar = 40;  ///< tail(40) < 1e-349: levels beyond are clamped to it without loss

/// Owen (1956): tail = (tail(h) + tail(k))/2 - T(h, (k - rho h)/(h s)) - T(k, (h - rho k)/(k s)) - [hk <
/// 0]/2. k - rho h is taken as (k -+ h) +- (1 - |rho|) h and (1 - |rho|)/s = s/(1 + |rho|), so that nothing
/// cancels as rho -> +-1, and s = 0 gives the limit.
inline Quadrant quadrant(Pack h, Pack tail_h, Pack k, Pack tail_k, Pack rho, Pack s) {
    const Pack zero{};
    const auto origin = abs(h) + abs(k) == zero;  // only the ratio of the levels matters near (0, 0)
    h = select(origin, pack(1e-200), h);
    k = select(origin, pack(1e-200), k);
    const Pack sign = select(rho < zero, pack(-1.0), pack(1.0));
    const Pack root = max(s, pack(1e-20)), inverse = 1.0 / root, gap = sign * root / (1.0 + abs(rho));
    const Pack q_h = (k - sign * h) * inverse + h * gap;
    const Pack q_k = (h - sign * k) * inverse + k * gap;
    Quadrant at;
    at.k_of_h = normal(q_h);
    at.h_of_k = normal(q_k);
    // T is even in h, odd in its slope; upper tails at |h| from those at h.
    const auto upper = [&](Pack x, Pack tail) { return select(x < zero, 1.0 - tail, tail); };
    const auto odd = [&](Pack x, Pack q, Pack tail_x, Pack tail_q) {
        const Pack t = owen(abs(x), abs(q), upper(x, tail_x), upper(q, tail_q));
        return select((x < zero) ^ (q < zero), -t, t);
    };
    const Pack opposite = select((h < zero) ^ (k < zero), pack(0.5), zero);
    at.tail = 0.5 * (tail_h + tail_k) - odd(h, q_h, tail_h, at.k_of_h.tail) -
              odd(k, q_k, tail_k, at.h_of_k.tail) - opposite;
    return at;
}

}  // namespace mfcore::special
