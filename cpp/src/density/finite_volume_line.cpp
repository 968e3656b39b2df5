// One finite-volume stage in one coordinate: potential, transfers, masses and moments in one sweep, group of
// cells by group of cells, so that the basis comes from the second cache once.
#include "density/finite_volume_cells.hpp"
#include "grid/lines.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

using namespace cells;

template <bool Muscl>
FiniteVolume::Report FiniteVolume::line(const Stage& s, double* next_m) {
    constexpr Index kGroup = 4;  // blocks: 64 cells
    constexpr Index kBlock = GridPotential::kCells;
    const Index blocks = potential_.stride() / kBlock, groups = (blocks + kGroup - 1) / kGroup;
    const double* conductance = conductance_[0].data() + kMargin;
    const double* inverse = inverse_[0].data() + kMargin;
    double* psi = psi_.data() + front_;
    double* back = transfers_.data() + kMargin;
    double* on = back + potential_.stride() + 2 * kMargin;
    std::fill(sums_.begin(), sums_.end(), 0.0);
    Packet worst = {}, descent = {};

    const auto count = [&](Index g) { return std::min(kGroup, blocks - g * kGroup); };
    const auto potential = [&](Index g) {
        lines::psi_line(potential_, g * kGroup, count(g), psi + g * kGroup * kBlock);
    };
    const auto transfers = [&](Index g) {
        const Index begin = g * kGroup * kBlock, end = begin + count(g) * kBlock;
        Packet excess = {};
        for (Index j = begin; j < end; j += kWidth) {
            const Three mass = load_three(s.mass + j, 1);
            const Leaving out = leave<Muscl>(load_three(psi + j, 1), mass, load_three(inverse + j, 1),
                                             simd::load(conductance + j - 1), simd::load(conductance + j));
            worst = larger(worst, where_mass(mass.here, out.share));
            descent += out.descent;
            const Packet to_back = s.dt * out.back, to_on = s.dt * out.on;
            excess = larger(excess, to_back + to_on - kMost * mass.here);
            simd::store(back + j, to_back);
            simd::store(on + j, to_on);
        }
        if (largest(excess) > 0) {
            double* both[] = {back + begin, on + begin};
            cut(s.mass + begin, both, 2, end - begin);
        }
    };
    const auto update = [&](Index g) {
        const Index begin = g * kGroup * kBlock, end = begin + count(g) * kBlock;
        for (Index j = begin; j < end; j += kWidth) {
            const Packet left = simd::load(s.mass + j) - (simd::load(back + j) + simd::load(on + j));
            const Packet came = simd::load(on + j - 1) + simd::load(back + j + 1);
            Packet next = left + came;
            if (s.base) next = 0.5 * (simd::load(s.base + j) + next);
            simd::store(s.next + j, next);
        }
        lines::add_line(potential_, g * kGroup, count(g), s.next + begin, sums_.data());
    };

    potential(0);
    for (Index g = 0; g < groups; ++g) {
        if (g + 1 < groups) potential(g + 1);
        transfers(g);
        if (g > 0) update(g - 1);
    }
    update(groups - 1);
    lines::finish_line(potential_, sums_.data(), next_m);
    return {largest(worst), simd::sum<double>(descent)};
}

template FiniteVolume::Report FiniteVolume::line<false>(const Stage&, double*);
template FiniteVolume::Report FiniteVolume::line<true>(const Stage&, double*);

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
