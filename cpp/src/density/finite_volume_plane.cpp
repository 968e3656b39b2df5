// One finite-volume stage in two coordinates, unsplit: a cell gives to its four neighbours at once. Blocks of
// rows are independent but for the transfers of the rows beside them, which are computed twice.
#include <array>

#include "base/parallel.hpp"
#include "density/finite_volume_cells.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

using namespace cells;

namespace {

constexpr Index kRows = GridPotential::kRows;
constexpr int kDirections = 4;  // up (to the row before), down, back, on

/// The transfers of the last three rows, with margins, in a ring.
class Turning {
public:
    Turning(double* memory, Index stride) : memory_(memory), row_(stride + 2 * kMargin) {}
    double* at(Index row, int direction) const {
        return memory_ + ((row + 3) % 3 * kDirections + direction) * row_ + kMargin;
    }

private:
    double* memory_;
    Index row_;
};

}  // namespace

struct FiniteVolume::Sums {
    Packet worst = {}, descent = {};
};

template <bool Muscl>
void FiniteVolume::rows(const Stage& s, Index first, Index count, double* scratch, Sums& sums) {
    const Index stride = potential_.stride(), all = potential_.rows();
    const double* conductance[] = {conductance_[0].data() + kMargin, conductance_[1].data() + kMargin};
    const double* inverse[] = {inverse_[0].data() + kMargin, inverse_[1].data() + kMargin};
    const double* psi = psi_.data() + front_;
    const Turning turning(scratch, stride);

    const auto transfers = [&](Index i) {
        std::array<double*, kDirections> to;
        for (int d = 0; d < kDirections; ++d) to[d] = turning.at(i, d);
        if (i < 0 || i >= all) {
            for (double* t : to) std::fill_n(t, stride, 0.0);
            return;
        }
        const Packet none = {};
        const Packet up = none + conductance[0][i - 1], down = none + conductance[0][i];
        const Three across = {none + inverse[0][i - 1], none + inverse[0][i], none + inverse[0][i + 1]};
        const bool own = i >= first && i < first + count;
        Packet excess = {};
        for (Index j = 0; j < stride; j += kWidth) {
            const Index at = i * stride + j;
            const Three mass = load_three(s.mass + at, 1), psi_here = load_three(psi + at, 1);
            const Leaving a =
                leave<Muscl>({simd::load(psi + at - stride), psi_here.here, simd::load(psi + at + stride)},
                             {simd::load(s.mass + at - stride), mass.here, simd::load(s.mass + at + stride)},
                             across, up, down);
            const Leaving b =
                leave<Muscl>(psi_here, mass, load_three(inverse[1] + j, 1),
                             simd::load(conductance[1] + j - 1), simd::load(conductance[1] + j));
            if (own) {
                sums.worst = larger(sums.worst, where_mass(mass.here, a.share + b.share));
                sums.descent += a.descent + b.descent;
            }
            const Packet out[] = {s.dt * a.back, s.dt * a.on, s.dt * b.back, s.dt * b.on};
            excess = larger(excess, (out[0] + out[1]) + (out[2] + out[3]) - kMost * mass.here);
            for (int d = 0; d < kDirections; ++d) simd::store(to[d] + j, out[d]);
        }
        if (largest(excess) > 0) cut(s.mass + i * stride, to.data(), kDirections, stride);
    };
    const auto update = [&](Index i) {
        const double *up = turning.at(i, 0), *down = turning.at(i, 1), *back = turning.at(i, 2),
                     *on = turning.at(i, 3), *from_above = turning.at(i - 1, 1),
                     *from_below = turning.at(i + 1, 0);
        for (Index j = 0; j < stride; j += kWidth) {
            const Index at = i * stride + j;
            const Packet left = simd::load(s.mass + at) - ((simd::load(up + j) + simd::load(down + j)) +
                                                           (simd::load(back + j) + simd::load(on + j)));
            const Packet came = (simd::load(from_above + j) + simd::load(from_below + j)) +
                                (simd::load(on + j - 1) + simd::load(back + j + 1));
            Packet next = left + came;
            if (s.base) next = 0.5 * (simd::load(s.base + at) + next);
            simd::store(s.next + at, next);
        }
    };

    transfers(first - 1);
    transfers(first);
    for (Index i = first; i < first + count; ++i) {
        transfers(i + 1);
        update(i);
    }
    potential_.add_rows(first, count, s.next + first * stride);
}

template <bool Muscl>
FiniteVolume::Report FiniteVolume::plane(const Stage& s, double* next_m) {
    const Index all = potential_.rows(), stride = potential_.stride(), blocks = (all + kRows - 1) / kRows;
    const Index scratch = 3 * kDirections * (stride + 2 * kMargin);
    const auto extent = [&](Index block) { return std::min(kRows, all - block * kRows); };
    // The potential of a block's neighbours must be there before its transfers: two loops.
    for_blocks(all, kRows, threads_, [&](Index, Index begin, Index end) {
        potential_.psi_rows(begin, end - begin, psi_.data() + front_ + begin * stride);
    });
    hand_out(blocks, threads_, [&](int rank, Index block) {
        Sums sums;
        rows<Muscl>(s, block * kRows, extent(block), &transfers_[rank * scratch], sums);
        sums_[2 * block] = largest(sums.worst);
        sums_[2 * block + 1] = simd::sum<double>(sums.descent);
    });
    potential_.end_moments(next_m);
    Report report;
    for (Index block = 0; block < blocks; ++block) {
        report.outflow = std::max(report.outflow, sums_[2 * block]);
        report.descent += sums_[2 * block + 1];
    }
    return report;
}

template FiniteVolume::Report FiniteVolume::plane<false>(const Stage&, double*);
template FiniteVolume::Report FiniteVolume::plane<true>(const Stage&, double*);

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
