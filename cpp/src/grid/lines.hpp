#pragma once
// Products of the basis b of a grid of one coordinate with vectors, block of cells by block of cells, so that
// a stepper can use a block twice while it is in the first cache.
#include "base/simd.hpp"
#include "mfcore/grid/potential.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid::lines {

using Packet = simd::Vec<double>;
inline constexpr Index kWidth = simd::kLanes<double>;
inline constexpr Index kCells = GridPotential::kCells;

/// psi = decay + sum_k b_k (m - v)_k in `Blocks` blocks from `first` on; psi points to their first cell.
template <Index Blocks>
void psi_blocks(const GridPotential& potential, Index first, double* psi) {
    constexpr Index packets = kCells / kWidth;
    const Index rank = potential.rank();
    const double* basis = potential.basis() + first * rank * kCells;
    const double* decay = potential.decay() + first * kCells;
    const double* residual = potential.residual();
    Packet sums[Blocks][packets];
    for (Index j = 0; j < Blocks; ++j)
        for (Index p = 0; p < packets; ++p) sums[j][p] = simd::load(decay + j * kCells + p * kWidth);
    for (Index k = 0; k < rank; ++k) {
        const double* from = basis + k * kCells;
        for (Index j = 0; j < Blocks; ++j)
            for (Index p = 0; p < packets; ++p)
                sums[j][p] = residual[k] * simd::load(from + j * rank * kCells + p * kWidth) + sums[j][p];
    }
    for (Index j = 0; j < Blocks; ++j)
        for (Index p = 0; p < packets; ++p) simd::store(psi + j * kCells + p * kWidth, sums[j][p]);
}

/// sums, one packet for each k, += b_k mass in `Blocks` blocks from `first` on.
template <Index Blocks>
void add_blocks(const GridPotential& potential, Index first, const double* mass, double* sums) {
    constexpr Index packets = kCells / kWidth;
    const Index rank = potential.rank();
    const double* basis = potential.basis() + first * rank * kCells;
    Packet here[Blocks][packets];
    for (Index j = 0; j < Blocks; ++j)
        for (Index p = 0; p < packets; ++p) here[j][p] = simd::load(mass + j * kCells + p * kWidth);
    for (Index k = 0; k < rank; ++k) {
        const double* from = basis + k * kCells;
        Packet sum = simd::load(sums + k * kWidth), other = {};
        for (Index j = 0; j < Blocks; ++j)
            for (Index p = 0; p < packets; ++p) {
                Packet& to = p % 2 ? other : sum;
                to = here[j][p] * simd::load(from + j * rank * kCells + p * kWidth) + to;
            }
        simd::store(sums + k * kWidth, sum + other);
    }
}

/// Blocks that fill the registers, whatever their width: eight packets.
inline constexpr Index kBlocks = 8 * kWidth / kCells;

/// Compute psi for any number of blocks.
inline void psi_line(const GridPotential& potential, Index first, Index count, double* psi) {
    Index j = 0;
    for (; j + kBlocks <= count; j += kBlocks) psi_blocks<kBlocks>(potential, first + j, psi + j * kCells);
    for (; j < count; ++j) psi_blocks<1>(potential, first + j, psi + j * kCells);
}
inline void add_line(const GridPotential& potential, Index first, Index count, const double* mass,
                     double* sums) {
    Index j = 0;
    for (; j + kBlocks <= count; j += kBlocks)
        add_blocks<kBlocks>(potential, first + j, mass + j * kCells, sums);
    for (; j < count; ++j) add_blocks<1>(potential, first + j, mass + j * kCells, sums);
}

/// Add the lanes of the packets: the moments m.
inline void finish_line(const GridPotential& potential, const double* sums, double* m) {
    for (Index k = 0; k < potential.rank(); ++k) m[k] = simd::sum<double>(simd::load(sums + k * kWidth));
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid::lines
