#pragma once
// Sums over samples with a weight for each: the last step of potentials, gradients and V.
#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {

/// Multiplies the slopes s'_qi of a tile by weights e_q, in their place, and sums up e_q s_qi and e_q s'_qi.
/// tiles::backward calls it for each vector of slopes once, while it multiplies them by x_q.
template <int R>
struct Weighed {
    const double *e, *value;
    double* slope;
    simd::Vec<double> sum_s[R] = {}, sum_slope[R] = {};

    /// The sums of values alone, where slopes are not wanted.
    void add_values(Index rows) {
        for (Index q = 0; q < rows; ++q) {
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) add_value(q, r);
        }
    }
    simd::Vec<double> operator()(Index q, int r) {
        add_value(q, r);
        const simd::Vec<double> es = e[q] * simd::load(slope + at(q, r));
        simd::store(slope + at(q, r), es);
        sum_slope[r] += es;
        return es;
    }

private:
    void add_value(Index q, int r) { sum_s[r] += e[q] * simd::load(value + at(q, r)); }
    static Index at(Index q, int r) { return (q * R + r) * simd::kLanes<double>; }
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
