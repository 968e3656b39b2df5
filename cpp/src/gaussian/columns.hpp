#pragma once
// The second neurons of pairs in the layouts that matrix products take, and a schedule for all pairs of
// blocks.
#include <atomic>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/parallel.hpp"
#include "base/tiles.hpp"
#include "gaussian/pairs.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// The second neurons of pairs, in tiles (base/tiles.hpp) and by rows.
class Columns {
public:
    static constexpr Index kLanes = simd::kLanes<double>, kWidth = 3 * kLanes;

    /// `scale`: factors of the rows in add_pull, 1 where null.
    explicit Columns(const Side& side, const double* scale = nullptr)
        : d_(side.d),
          stride_((side.d + kLanes - 1) / kLanes * kLanes),
          tiles_(to_size((side.n + kWidth - 1) / kWidth * kWidth * d_)),
          rows_(to_size(side.n * stride_)) {
        for (Index i = 0; i < side.n; ++i) {
            if (i % 4096 == 0) check_stop();
            for (Index k = 0; k < d_; ++k) {
                const double x = side.w[to_size(i * d_ + k)];
                tiles_[to_size((i / kWidth * d_ + k) * kWidth + i % kWidth)] = x;
                rows_[to_size(i * stride_ + k)] = (scale ? scale[i] : 1.0) * (side.unit[to_size(i)] * x);
            }
        }
    }
    Index stride() const { return stride_; }

    /// q(r, c) = <w_{i+r}, w'_{j+c}> in the units of both, rows of q `step` apart; j and step are multiples of kWidth, columns
    /// beyond the last neuron are zero or left alone.
    void gram(const Side& first, Index i, Index rows, Index j, Index cols, double* q, Index step) const {
        const ConstMat w(first.w.data() + i * d_, rows, d_);
        for (Index c = 0; c < cols; c += kWidth)
            tiles::forward<double, 3>(w, tiles_.data() + (j + c) * d_, nullptr, q + c, step);
    }

    /// pull(r, :) += sum_{c < count} k[c * along + r * across] scale_{j+c} w'_{j+c}, rows of pull stride()
    /// apart.
    void add_pull(Index rows, Index j, Index count, const double* k, Index along, Index across,
                  double* pull) const {
        Index v = 0;
        const auto add = [&](auto vectors) {
            add_pull_of<vectors()>(rows, j, count, k, along, across, pull, v);
            v += vectors() * kLanes;
        };
        while (v + kWidth <= stride_) add(std::integral_constant<int, 3>{});
        if (v + 2 * kLanes <= stride_) add(std::integral_constant<int, 2>{});
        if (v < stride_) add(std::integral_constant<int, 1>{});
    }

private:
    /// Add R vectors of coordinates, from v on, of the pull of add_pull.
    template <int R>
    void add_pull_of(Index rows, Index j, Index count, const double* k, Index along, Index across,
                     double* pull, Index v) const {
        tiles::for_columns(rows, [&](Index r, auto at_once) {
            constexpr int C = at_once();
            simd::Vec<double> acc[C][R];
            double* const to = pull + r * stride_ + v;
            for (int c = 0; c < C; ++c)
                for (int s = 0; s < R; ++s) acc[c][s] = simd::load(to + c * stride_ + s * kLanes);
            tiles::accumulate<double, R, C, false>(count, rows_.data() + j * stride_ + v, stride_,
                                                   k + r * across, along, across, acc);
            for (int c = 0; c < C; ++c)
                for (int s = 0; s < R; ++s) simd::store(to + c * stride_ + s * kLanes, acc[c][s]);
        });
    }

    Index d_, stride_;
    FilledScratch<double> tiles_, rows_;
};

/// Call body(i, j) once for every pair i <= j of blocks. In each round every block has one partner, and waits
/// for the round before it alone: sums are in the order of the rounds for any number of threads, and a thread
/// that the system has put aside holds up only those who need its blocks.
template <class Body>
void for_block_pairs(Index blocks, int threads, Body&& body) {
    std::atomic<Index> next{0};
    std::vector<std::atomic<Index>> rounds(to_size(blocks));  // that a block has behind it
    ErrorKeeper keeper;
    const auto wait_for = [&](Index block, Index round) {
        while (rounds[to_size(block)].load(std::memory_order_acquire) < round && !keeper.failed())
            std::this_thread::yield();
    };
    run_helpers(static_cast<int>(std::min<Index>(threads, (blocks + 1) / 2)), [&](int rank, int) {
        std::optional<StopScope> told;
        if (rank > 0) told.emplace(keeper.failed());
        // Tasks are handed out in order: whatever a pair waits for is done, or in the hands of a thread that
        // waits less.
        for (Index task = next++; task < blocks * blocks; task = next++) {
            const Index round = task / blocks, i = task % blocks, j = (round - i + blocks) % blocks;
            if (i > j) continue;
            wait_for(i, round);
            wait_for(j, round);
            keeper.guard([&] {
                check_stop();
                body(i, j);
            });
            if (keeper.failed()) break;
            rounds[to_size(i)].store(round + 1, std::memory_order_release);
            rounds[to_size(j)].store(round + 1, std::memory_order_release);
        }
    });
    keeper.rethrow();
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
