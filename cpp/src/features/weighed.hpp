#pragma once
// Sums over samples with a weight for each: the last step of potentials, gradients and V.
#include "base/simd.hpp"
#include "base/tiles.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {

/// Multiplies slopes s'_qi by weights e_q, in their place, and sums up e_q s_qi, for V of the R vectors of a tile.
/// tiles::backward calls it for each vector of slopes once, while it multiplies them by x_q. More sums than these would
/// not fit into the registers.
template <int R, int V>
struct Weighed {
    static constexpr Index kLanes = simd::kLanes<double>;

    const double *e, *value;
    double* slope;
    simd::Vec<double> sum[V];

    Weighed(const double* weights, const double* values, double* slopes, const double* sums)
        : e(weights), value(values), slope(slopes) {
        for (int r = 0; r < V; ++r) sum[r] = simd::load(sums + r * kLanes);
    }
    void write(double* sums) const {
        for (int r = 0; r < V; ++r) simd::store(sums + r * kLanes, sum[r]);
    }
    simd::Vec<double> operator()(Index q, int r) {
        add_value(q, r);
        const simd::Vec<double> es = e[q] * simd::load(slope + at(q, r));
        simd::store(slope + at(q, r), es);
        return es;
    }
    void add_value(Index q, int r) { sum[r] += e[q] * simd::load(value + at(q, r)); }
    static Index at(Index q, int r) { return (q * R + r) * kLanes; }
};

/// Pointers to the sums of a tile; null where they are not wanted.
struct TileSums {
    double* value;            ///< sum_q e_q s_qi
    double* slope = nullptr;  ///< sum_q e_q s'_qi, only with x
    double* x = nullptr;      ///< sum_q e_q s'_qi x_q, a row of the tile's neurons for each coordinate
};

/// Add the samples x, with their weights e, to the sums of a tile of R vectors that holds so many neurons. Where sums.x
/// is wanted, the slopes are overwritten by e_q s'_qi.
template <int R>
void add_weighed(Index neurons, ConstMat x, const double* e, const double* value, double* slope,
                 const TileSums& sums) {
    tiles::with_filled<double, R>(neurons, [&](auto vectors) {
        constexpr int V = vectors();
        using Weights = Weighed<R, V>;
        Weights weighed(e, value, slope, sums.value);
        if (sums.x) {
            constexpr Index kWidth = R * Weights::kLanes;
            tiles::backward<double, V>(x, slope, kWidth, 1.0, sums.x, kWidth, &weighed);
        } else {
            for (Index q = 0; q < x.rows; ++q) {
#pragma GCC unroll 4
                for (int r = 0; r < V; ++r) weighed.add_value(q, r);
            }
        }
        weighed.write(sums.value);
        for (int r = 0; sums.slope && r < V; ++r) {
            double* const to = sums.slope + r * Weights::kLanes;
            simd::Vec<double> sum = simd::load(to);
            for (Index q = 0; q < x.rows; ++q) sum += simd::load(slope + Weights::at(q, r));
            simd::store(to, sum);
        }
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
