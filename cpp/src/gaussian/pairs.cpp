// Pair expectations U and the potential they create, tile by tile: a Gram tile by a matrix product, the
// kernel on its rows, row sums and one more matrix product. Nothing of size n x m is kept.
#include "gaussian/pairs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/parallel.hpp"
#include "gaussian/columns.hpp"
#include "gaussian/tiles.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

constexpr Index kTileRows = 64, kTileCols = 240;  // a tile and its neurons stay in the second cache
static_assert(kTileCols % Columns::kWidth == 0 && kTileCols % Coefficients::kWidth == 0 &&
                  kTileRows % Coefficients::kWidth == 0,
              "tiles of pairs are whole tiles and blocks of neurons");

Index whole_blocks(Index n) {
    return (n + Coefficients::kWidth - 1) / Coefficients::kWidth * Coefficients::kWidth;
}

/// Nanoseconds, roughly: only decides how many threads are worth waking.
Index nanoseconds(const PairTiles& tiles, const Side& first, const Side& second) {
    return static_cast<Index>(static_cast<double>(first.n * second.n) *
                              (tiles.cost() + static_cast<double>(first.d) / 8));
}

void check(const Side& first, const Side& second) {
    require(first.d == second.d, "other", "must have as many inputs as theta", second.d);
}

/// True if sigma itself jumps: its values on the two sides of a kink differ by more than rounding and slopes of up
/// to 1e6 explain.
bool jumps_at(const Activation& sigma, double kink) {
    constexpr double kNear = 1e-14;
    const double gap = kNear * std::max(1.0, std::abs(kink));
    const double sides[] = {kink - gap, kink + gap};
    double value[2];
    evaluate(sigma, 2, sides, value);
    return !(std::abs(value[1] - value[0]) <= 1e-8 * std::max({1.0, std::abs(value[0]), std::abs(value[1])}));
}

}  // namespace

double unit_of(Index d, const double* w) {
    constexpr int kOrdinary = 400, kMost = 1000;  // exponents: 1 / unit is a number, too
    double largest = 0;
    for (Index k = 0; k < d; ++k) largest = std::max(largest, std::abs(w[k]));
    if (largest == 0 || !std::isfinite(largest)) return 1;
    const int exponent = std::ilogb(largest);
    return std::abs(exponent) <= kOrdinary ? 1.0 : std::ldexp(1.0, std::clamp(exponent, -kMost, kMost));
}

Side::Side(const Network& network, ConstMat theta, const char* name, const FilledScratch<double>* units)
    : sigma(&network.activation),
      has_b(network.has_b()),
      n(theta.rows),
      padded(whole_blocks(theta.rows)),
      d(theta.cols - network.row(0)) {
    sigma->validate();
    require_matrix(theta, name, 0);
    require(d >= 1, name, "must have a column for each parameter of this network and an input", theta.cols);
    a.assign(to_size(padded), 1.0);
    m.assign(to_size(padded), 0.0);
    R.assign(to_size(padded), 0.0);
    inverse_R.assign(to_size(padded), 0.0);
    unit.assign(to_size(padded), 1.0);
    w.resize(to_size(n * d));
    for (Index i = 0; i < n; ++i) {
        if (i % 4096 == 0) check_stop();
        const double* row = theta.row(i);
        if (network.has_a()) a[to_size(i)] = row[0];
        if (has_b) m[to_size(i)] = row[network.b_at()];
        row += network.w_at();
        const double scale = units ? (*units)[to_size(i)] : unit_of(d, row), inverse = units ? 1 : 1 / scale;
        double square = 0;
        for (Index k = 0; k < d; ++k) {
            const double x = inverse * row[k];
            w[to_size(i * d + k)] = x;
            square += x * x;
        }
        const double norm = std::sqrt(square);
        unit[to_size(i)] = scale;
        R[to_size(i)] = scale * norm;
        if (square > 0) inverse_R[to_size(i)] = 1 / norm;
    }
}

Correlation::Correlation(const Side& first, const Side& second, Chosen i, Chosen j, Pack q)
    : Correlation(q, i(first.inverse_R), j(second.inverse_R)) {
    const Index d = first.d;
    FilledScratch<double> across(to_size(d));
    for (Index lane = 0; lane < kPack; ++lane) {
        if (!(std::abs(rho[lane]) > 0.9)) continue;
        const std::size_t one = to_size(i.neuron[lane]), two = to_size(j.neuron[lane]);
        const double *w = first.w.data() + one * to_size(d), *other = second.w.data() + two * to_size(d);
        // Twice: the second time removes what rounding of the first has left along w.
        double along = q[lane] * first.inverse_R[one] * first.inverse_R[one], square = 0;
        for (Index k = 0; k < d; ++k) across[to_size(k)] = other[k] - along * w[k];
        along = 0;
        for (Index k = 0; k < d; ++k)
            along += (across[to_size(k)] * first.inverse_R[one]) * (w[k] * first.inverse_R[one]);
        for (Index k = 0; k < d; ++k) {
            const double x = (across[to_size(k)] - along * w[k]) * second.inverse_R[two];
            square += x * x;
        }
        s[lane] = std::min(std::sqrt(square), 1.0);
        rho[lane] = std::copysign(std::sqrt((1 - s[lane]) * (1 + s[lane])), rho[lane]);
    }
}

FilledScratch<double> masses_unless(const double* weights, Index n) {
    return FilledScratch<double>(weights ? 0 : to_size(n), 1 / static_cast<double>(n));
}

bool has_exact_pairs(const Activation& first, const Activation& second) {
    const auto known = [](const Activation& sigma) {
        const Facts found = facts(sigma);
        if (found.polynomial || sigma.is_piecewise()) return true;
        return found.strip > 0 &&
               std::ranges::none_of(found.kinks, [&](double kink) { return jumps_at(sigma, kink); });
    };
    return known(first) && known(second);
}

namespace {

/// Fills `out`, entry by entry of pairs, tile by tile: write(i, j, count, k00) makes count entries of row i from
/// column j on of the averages `want` of these pairs.
template <class Write>
void fill_pairs(const Side& first, const Side& second, Mat out, const char* name, PairTiles::Want want,
                int threads, const Write& write) {
    check(first, second);
    require_matrix(out, name, 0);
    require(out.rows == first.n && out.cols == second.n, name,
            "must have a row for each of theta, a column for each of other", out.rows);
    const PairTiles tiles(first, second, nullptr, want, threads);
    const Columns columns(second);
    const int team = threads_for(nanoseconds(tiles, first, second), threads);
    BufferPool pool(tiles, kTileRows, kTileCols, false);
    const auto block = [&](Index i, Index end, PairTiles::Buffers& work) {
        for (Index j = 0; j < second.n; j += kTileCols) {
            check_stop();
            const Index cols = std::min(kTileCols, second.n - j);
            columns.gram(first, i, end - i, j, cols, work.q.data(), kTileCols);
            tiles.tile(i, end - i, j, cols, work, nullptr, nullptr);
            for (Index r = 0; r < end - i; ++r) write(i + r, j, cols, work.q.data() + r * kTileCols);
        }
    };
    for_blocks(first.n, kTileRows, team, [&](Index, Index i, Index end) {
        pool.lend([&](PairTiles::Buffers& work) { block(i, end, work); });
    });
}

}  // namespace

void pair_matrix(const Network& network, ConstMat theta, const Network& other_network, ConstMat other, Mat U,
                 int threads) {
    const Side first(network, theta, "theta"), second(other_network, other, "other");
    fill_pairs(first, second, U, "U", PairTiles::Want::matrix, threads,
               [&](Index i, Index j, Index count, const double* k00) {
                   const double a = first.a[to_size(i)];
                   double* row = U.row(i) + j;
                   for (Index c = 0; c < count; ++c) row[c] = a * second.a[to_size(j + c)] * k00[c];
               });
}

void pair_slopes(const Network& network, ConstMat theta, ConstMat other, Mat P, int threads) {
    const Side first(network, theta, "theta"), second(network, other, "other");
    fill_pairs(
        first, second, P, "P", PairTiles::Want::slopes, threads,
        [&](Index i, Index j, Index count, const double* k11) { std::copy_n(k11, count, P.row(i) + j); });
}

// value_i = a_i sum_j c_j K00, c_j = weights_j a'_j; d/da = value/a; d/db = a sum c K10;
// d/dw = a [(sum c K20) w/R + sum c K11 w'] (Stein's lemma, x = d/dg).
void pair_potential(const Network& network, ConstMat theta, const Network& other_network, ConstMat other,
                    const double* weights, double* value, Mat* grad, int threads) {
    const FilledScratch<double> equal = masses_unless(weights, other.rows);
    if (!weights) weights = equal.data();
    const bool own = theta.data == other.data && theta.rows == other.rows && &network == &other_network;
    if (own) {
        const Mixture plain{{1.0}, {theta.cols - network.row(0)}, {1.0}};
        return own_potential(network, theta, weights, plain, value, grad, threads);
    }
    const Side first(network, theta, "theta"), second(other_network, other, "other");
    check(first, second);
    FilledScratch<double> c(to_size(second.n));
    for (Index j = 0; j < second.n; ++j) c[to_size(j)] = weights[j] * second.a[to_size(j)];
    const auto want = grad ? PairTiles::Want::gradient : PairTiles::Want::value;
    const PairTiles tiles(first, second, c.data(), want, threads);
    const Columns columns(second, c.data());
    const int team = threads_for(nanoseconds(tiles, first, second), threads);
    PairSums sums(first.padded);
    BufferPool pool(tiles, kTileRows, kTileCols, false);
    const auto block = [&](Index i, Index end, PairTiles::Buffers& work) {
        const Index rows = end - i;
        FilledScratch<double> pull(to_size(grad ? rows * columns.stride() : 0));  // sum_j c_j K11 w'_j
        for (Index j = 0; j < second.n; j += kTileCols) {
            check_stop();
            const Index cols = std::min(kTileCols, second.n - j);
            columns.gram(first, i, rows, j, cols, work.q.data(), kTileCols);
            tiles.tile(i, rows, j, cols, work, &sums, nullptr);
            if (grad) columns.add_pull(rows, j, cols, work.q.data(), 1, kTileCols, pull.data());
        }
        for (Index r = 0; r < rows; ++r)
            write_potential(network, first, i + r, sums,
                            grad ? &pull[to_size(r * columns.stride())] : nullptr, value, grad);
    };
    for_blocks(first.n, kTileRows, team, [&](Index, Index i, Index end) {
        pool.lend([&](PairTiles::Buffers& work) { block(i, end, work); });
    });
}

void write_potential(const Network& network, const Side& side, Index i, const PairSums& sums,
                     const double* pull, double* value, Mat* grad) {
    const std::size_t at = to_size(i);
    const double a = side.a[at];
    if (value) value[i] = a * sums.k00[at];
    if (!grad) return;
    double* out = grad->row(i);
    if (network.has_a()) out[0] = sums.k00[at];
    if (side.has_b) out[network.b_at()] = a * sums.k10[at];
    const double along = sums.k20[at] * side.inverse_R[at], *w = side.w.data() + i * side.d;
    for (Index k = 0; k < side.d; ++k) out[network.w_at() + k] = a * (along * w[k] + pull[k]);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
