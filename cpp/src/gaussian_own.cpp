// Pairs of neurons among themselves: every pair is visited once, for the sums of both.
#include <algorithm>

#include "base/parallel.hpp"
#include "gaussian_columns.hpp"
#include "gaussian_tiles.hpp"

namespace mfcore {
namespace {

constexpr Index kBlock = 144;  // a tile of pairs stays in the second cache
static_assert(kBlock % Columns::kWidth == 0 && kBlock % Coefficients::kWidth == 0,
              "blocks are whole tiles and blocks of neurons");

}  // namespace

void own_potential(const Network& network, ConstMat theta, const double* weights, double* value, Mat* grad,
                   int threads) {
    const Side side(network, theta, "theta");
    if (is_homogeneous(side)) return own_homogeneous_potential(network, side, weights, value, grad, threads);
    std::vector<double> c(to_size(side.n));
    for (Index j = 0; j < side.n; ++j) c[to_size(j)] = weights[j] * side.a[to_size(j)];
    const auto want = grad ? PairTiles::Want::gradient : PairTiles::Want::value;
    const PairTiles tiles(side, side, c.data(), want, threads);
    const Columns columns(side, c.data());
    PairSums sums(side.padded);
    std::vector<double> pull(to_size(side.n * columns.stride()));  // sum_j c_j K11 w_j
    const double work =
        static_cast<double>(side.n * side.n) * (tiles.cost() + static_cast<double>(side.d) / 8);
    const int team = threads_for(static_cast<Index>(work * 2 / 3), threads);
    BufferPool pool(tiles, kBlock, kBlock, true);
    const auto block_pair = [&](Index i, Index j, PairTiles::Buffers& buffers) {
        const Index rows = std::min(kBlock, side.n - i), cols = std::min(kBlock, side.n - j);
        double* const q = buffers.q.data();
        columns.gram(side, i, rows, j, cols, q, kBlock);
        tiles.tile(i, rows, j, cols, buffers, &sums, i != j ? &sums : nullptr);
        if (!grad) return;
        columns.add_pull(rows, j, cols, q, 1, kBlock, pull.data() + i * columns.stride());
        if (i != j) columns.add_pull(cols, i, rows, q, kBlock, 1, pull.data() + j * columns.stride());
    };
    for_block_pairs((side.n + kBlock - 1) / kBlock, team, [&](Index one, Index two) {
        pool.lend([&](PairTiles::Buffers& buffers) { block_pair(one * kBlock, two * kBlock, buffers); });
    });
    for (Index i = 0; i < side.n; ++i)
        write_potential(network, side, i, sums, pull.data() + i * columns.stride(), value, grad);
}

}  // namespace mfcore
