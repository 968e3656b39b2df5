#pragma once
// The standard bivariate normal distribution (eqs. (4.19) to (4.21)), on packets.
#include "base/special.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::special {

/// Owen's function T(h, q/h) = P(U > h, 0 < V < (q/h) U), U and V independent N(0, 1), h, q >= 0, given their
/// upper tails and the product ff = f(h) f(q) of their densities. For q <= h, with a = q/h <= 1 and
/// y = q^2/2,
///   T = (a/2pi) e^{-h^2/2} int_0^1 e^{-y t^2}/(1 + a^2 t^2) dt = a ff sum_m D_m a^{2m} K_m(y),
/// where 1/(1 + z) is its interpolant of degree 20 on [0, 1] (error 2e-16) and K_m is proportional to
/// e^y int_0^1 t^{2m} e^{-y t^2} dt: K_20 is a polynomial to what ff leaves to see (1e-16), and
/// K_{m-1} = y K_m + c_m adds positive numbers. Beyond y = 38 ff < 1e-34. For q > h swap:
/// T(h, q/h) = (tail(h) + tail(q))/2 - tail(h) tail(q) - T(q, h/q).
/// Two at a time, whose chains of operations hide each other's latency.
struct Owen {
    Pack h, q, tail_h, tail_q, ff;
};
inline void owen(const Owen (&of)[2], Pack (&T)[2]) {
    static constexpr double kLast[] = {
        0.024390243902617938,   0.0011344299379443036,   5.041920747094121e-05, 2.1451884302347975e-06,
        8.800549791116866e-08,  3.1068557800791624e-09,  2.72999152544197e-10,  -3.431842783306036e-11,
        7.088013515351717e-12,  -8.180150960254146e-13,  6.659085053564037e-14, -3.5859086959600494e-15,
        1.2555122630360708e-16, -2.5673331257696444e-18, 2.4175389561065467e-20};
    static constexpr double kStep[] = {0.5,
                                       9.75,
                                       180.375,
                                       3156.5625,
                                       52083.28125,
                                       807290.859375,
                                       11705717.4609375,
                                       158027185.72265625,
                                       1975339821.5332031,
                                       22716407947.631836,
                                       238522283450.13428,
                                       2265961692776.276,
                                       19260674388598.344,
                                       144455057914487.56,
                                       938957876444169.2,
                                       5164268320442931.0,
                                       2.3239207441993188e+16,
                                       8.133722604697616e+16,
                                       2.033430651174404e+17,
                                       3.050145976761606e+17};
    static constexpr double kSum[] = {
        0.00036870670355088883, -0.00021744241491462673, 6.407013576949783e-05, -1.2642467753177937e-05,
        1.8942464102404847e-06, -2.325544035441746e-07,  2.477563878692505e-08, -2.409801023670512e-09,
        2.2472333202798681e-10, -2.106074008465621e-11,  2.068196123344257e-12, -2.199300476540932e-13,
        2.594320602914047e-14,  -3.4609632202752836e-15, 5.324998929871681e-16, -9.681906139115253e-17,
        2.1515362824094273e-17, -6.147246760891714e-18,  2.458898707464192e-18, -1.6392658050116828e-18,
        3.2785316100238506e-18};
    Pack a[2], z[2], y[2], term[2], sum[2];
    for (int i = 0; i < 2; ++i) {
        const Pack small = min(of[i].h, of[i].q);
        a[i] = small / max(max(of[i].h, of[i].q), pack(1e-300));
        z[i] = a[i] * a[i];
        y[i] = min(0.5 * small * small, pack(38.0));
        term[i] = pack(kLast[14]);
    }
    for (int m = 13; m >= 0; --m)
        for (int i = 0; i < 2; ++i) term[i] = y[i] * term[i] + kLast[m];
    for (int i = 0; i < 2; ++i) sum[i] = kSum[0] * term[i];
#pragma GCC unroll 4
    for (int m = 0; m < 20; ++m)
        for (int i = 0; i < 2; ++i) {
            term[i] = y[i] * term[i] + kStep[m];
            sum[i] = z[i] * sum[i] + kSum[m + 1] * term[i];
        }
    for (int i = 0; i < 2; ++i) {
        const Owen& x = of[i];
        const Pack inner = a[i] * x.ff * sum[i];
        T[i] = select(x.q > x.h, 0.5 * (x.tail_h + x.tail_q) - x.tail_h * x.tail_q - inner, inner);
    }
}

/// (u, v) standard normal with correlation rho, s = sqrt(1 - rho^2), at the thresholds (h, k),
/// |h|, |k| <= kFar.
struct Quadrant {
    Pack tail;                      ///< P(u > h, v > k), absolute error about 2e-16
    Normal k_of_h;                  ///< density and tail at (k - rho h)/s: v > k given u = h
    Normal h_of_k;                  ///< density and tail at (h - rho k)/s: u > h given v = k
    Pack k_threshold, h_threshold;  ///< these two arguments
};
inline constexpr double kFar = 40;  ///< tail(40) < 1e-349: thresholds beyond are clamped to it without loss

/// Owen (1956): tail = (tail(h) + tail(k))/2 - T(h, (k - rho h)/(h s)) - T(k, (h - rho k)/(k s)) - [hk <
/// 0]/2. k - rho h is taken as (k -+ h) +- (1 - |rho|) h and (1 - |rho|)/s = s/(1 + |rho|), so that nothing
/// cancels as rho -> +-1, and s = 0 gives the limit. Thresholds of neurons with |w| = 1e150 and s like 1/|w|
/// are still told apart.
inline Quadrant quadrant(Pack h, Pack tail_h, Pack f_h, Pack k, Pack tail_k, Pack f_k, Pack rho, Pack s) {
    const Pack zero{};
    // Near (0, 0) only the ratio of the thresholds matters.
    const auto origin = abs(h) + abs(k) == zero, tiny = abs(h) + abs(k) < pack(1e-290);
    h = select(origin, pack(1e-200), select(tiny, 0x1p100 * h, h));
    k = select(origin, pack(1e-200), select(tiny, 0x1p100 * k, k));
    const Pack sign = select(rho < zero, pack(-1.0), pack(1.0));
    const Pack root = max(s, pack(1e-160)), inverse = 1.0 / root, gap = sign * root / (1.0 + abs(rho));
    const Pack q_h = clamp((k - sign * h) * inverse + h * gap, 1e150);
    const Pack q_k = clamp((h - sign * k) * inverse + k * gap, 1e150);
    Quadrant at;
    at.k_threshold = q_h;
    at.h_threshold = q_k;
    at.k_of_h = normal(q_h);
    at.h_of_k = normal(q_k);
    // T is even in h, odd in its slope; upper tails at |h| from those at h.
    const auto upper = [&](Pack x, Pack tail) { return select(x < zero, 1.0 - tail, tail); };
    Pack T[2];
    owen({{abs(h), abs(q_h), upper(h, tail_h), upper(q_h, at.k_of_h.tail), f_h * at.k_of_h.density},
          {abs(k), abs(q_k), upper(k, tail_k), upper(q_k, at.h_of_k.tail), f_k * at.h_of_k.density}},
         T);
    const auto odd = [&](Pack x, Pack q, Pack t) { return select((x < zero) ^ (q < zero), -t, t); };
    const Pack opposite = select((h < zero) ^ (k < zero), pack(0.5), zero);
    at.tail = 0.5 * (tail_h + tail_k) - odd(h, q_h, T[0]) - odd(k, q_k, T[1]) - opposite;
    return at;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::special
