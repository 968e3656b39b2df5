#pragma once
// Sums over the cells of a grid and what is computed along the way. Arrays have a multiple of 8 entries,
// those without a cell being 0 in masses.
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "base/simd_exp.hpp"
#include "base/simd_log.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

/// Three sums of terms(i) -> three packets over the packets at i = 0, width, ..., in blocks whose bounds
/// depend on n alone.
class BlockSums {
public:
    struct Sums {
        double a = 0, b = 0, c = 0;
    };
    struct Terms {
        simd::Vec<double> a, b, c;
    };

    BlockSums(Index n, int threads)
        : n_(n), threads_(threads_for(2 * n, threads)), partial_((n + kBlock - 1) / kBlock) {}

    template <class Body>
    Sums operator()(Body&& terms) {
        for_blocks(n_, kBlock, threads_, [&](Index block, Index begin, Index end) {
            Terms sum{};
            for (Index i = begin; i < end; i += simd::kLanes<double>) {
                const Terms more = terms(i);
                sum.a += more.a;
                sum.b += more.b;
                sum.c += more.c;
            }
            partial_[block] = {simd::sum<double>(sum.a), simd::sum<double>(sum.b), simd::sum<double>(sum.c)};
        });
        Sums all;
        for (const Sums& part : partial_) {
            all.a += part.a;
            all.b += part.b;
            all.c += part.c;
        }
        return all;
    }

private:
    static constexpr Index kBlock = 4096;
    Index n_;
    int threads_;
    std::vector<Sums> partial_;
};

/// Extrapolate one step and two of half its size to second order (eq. (7.15)), up to a common factor: 2 half
/// - full where half >= full, else half^2/full, which is the same to this order and positive. Sums: |half -
/// full|, and the new masses.
inline BlockSums::Sums extrapolate(BlockSums& sums, const double* full, const double* half, double* out) {
    return sums([&](Index i) {
        using simd::load;
        const simd::Vec<double> f = load(full + i), h = load(half + i), change = h - f;
        const simd::Vec<double> mass = simd::select<double>(change >= 0.0, h + change, h * h / f);
        simd::store(out + i, mass);
        return BlockSums::Terms{simd::abs<double>(change), mass, {}};
    });
}

/// Compute log_density = log(mass / volume), masses of 0 being taken for the smallest ones. Sums: mass *
/// log_density, its size, and mass * decay (eq. (7.12)).
inline BlockSums::Sums entropy(BlockSums& sums, const double* mass, const double* log_volume,
                               const double* decay, double* log_density) {
    return sums([&](Index i) {
        using simd::load;
        const simd::Vec<double> m = load(mass + i), tiny = simd::fill(1e-300);
        const simd::Vec<double> log_m = simd::log_positive<double>(simd::select<double>(m < tiny, tiny, m));
        const simd::Vec<double> log_d = log_m - load(log_volume + i);
        simd::store(log_density + i, log_d);
        return BlockSums::Terms{m * log_d, m * simd::abs<double>(log_d), m * load(decay + i)};
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
