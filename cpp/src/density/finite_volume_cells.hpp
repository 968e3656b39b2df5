#pragma once
// Mass that leaves cells along one coordinate in one explicit step (eqs. (7.1) to (7.3)), for a packet of
// cells at once.
#include "base/simd.hpp"
#include "mfcore/density/finite_volume.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density::cells {

using Packet = simd::Vec<double>;
inline constexpr Index kWidth = simd::kLanes<double>;
inline constexpr Index kMargin = 16;  // entries around a row, so that its ends have neighbours in memory

/// Largest fraction of its mass that may leave a cell in one step: just enough below 1 that rounding cannot
/// make the rest negative.
inline constexpr double kMost = 1 - 1.0 / (1 << 20);

/// Masses below this stay where they are: subnormal numbers are slow, and cannot be divided among neighbours.
inline constexpr double kDust = 1e-250;

inline Packet larger(Packet x, Packet y) { return simd::select<double>(x > y, x, y); }

inline double largest(Packet x) {
    double most = x[0];
    for (Index i = 1; i < kWidth; ++i) most = x[i] > most ? x[i] : most;
    return most;
}

/// A value or coefficient of a cell and of its two neighbours.
struct Three {
    Packet before, here, after;
};

/// `stride` entries from one neighbour to the next.
inline Three load_three(const double* at, Index stride) {
    return {simd::load(at - stride), simd::load(at), simd::load(at + stride)};
}

/// The mass per time that leaves a cell to both sides, and the sums that a report is made of.
struct Leaving {
    Packet back, on;
    Packet share;    // of the cell's mass, per time
    Packet descent;  // mass times velocity times slope of Psi
};

/// Velocities at the faces are -conductance (Psi_{i+1} - Psi_i) (rates and distances are in the conductances,
/// 0 at closed faces); only those that point out of the cell take its mass, the density being that of the
/// cell (upwind) or, for MUSCL, its linear reconstruction at the face with van Leer's slope 2 ab / (a + b):
/// eqs. (7.1) to (7.3).
template <bool Muscl>
inline Leaving leave(const Three& psi, const Three& mass, const Three& inverse, Packet before, Packet after) {
    const Packet zero = {};
    const Packet rise_back = psi.here - psi.before, rise_on = psi.here - psi.after;
    const Packet v_back = larger(before * rise_back, zero), v_on = larger(after * rise_on, zero);
    const Packet rho = simd::select<double>(mass.here > kDust + zero, mass.here * inverse.here, zero);
    Leaving out;
    out.share = (v_back + v_on) * inverse.here;
    if constexpr (Muscl) {
        // No slope across a closed face: there the neighbour would be this cell's mirror image.
        const Packet a = simd::select<double>(before > zero, rho - mass.before * inverse.before, zero);
        const Packet b = simd::select<double>(after > zero, mass.after * inverse.after - rho, zero);
        const auto same_sign = ((a > zero) & (b > zero)) | ((a < zero) & (b < zero));
        const Packet half = simd::select<double>(same_sign, a * (b / (a + b)), zero);
        out.back = v_back * larger(rho - half, zero);
        out.on = v_on * larger(rho + half, zero);
    } else {
        out.back = v_back * rho;
        out.on = v_on * rho;
    }
    out.descent = out.back * rise_back + out.on * rise_on;
    return out;
}

/// Keep the shares of cells with more than negligible mass, as only these limit the step.
inline Packet where_mass(Packet mass, Packet share) {
    return simd::select<double>(mass > kNegligible + Packet{}, share, Packet{});
}

/// Scale `count` transfers that leave one cell each where together they would exceed its mass.
inline void cut(const double* mass, double* const* transfers, int directions, Index count) {
    for (Index j = 0; j < count; j += kWidth) {
        Packet total = {};
        for (int d = 0; d < directions; ++d) total += simd::load(transfers[d] + j);
        const Packet limit = kMost * simd::load(mass + j);
        const Packet scale = simd::select<double>(total > limit, limit / total, 1.0 + Packet{});
        for (int d = 0; d < directions; ++d)
            simd::store(transfers[d] + j, scale * simd::load(transfers[d] + j));
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density::cells
