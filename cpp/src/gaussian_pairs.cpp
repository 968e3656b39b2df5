// Pair expectations U and the potential they create, tile by tile: a Gram tile by a matrix product, the
// kernel on its rows, row sums and one more matrix product. Nothing of size n x m is kept.
#include "gaussian_pairs.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <string>

#include "base/parallel.hpp"
#include "gaussian_columns.hpp"
#include "mfcore/errors.hpp"
#include "mfcore/gaussian.hpp"

namespace mfcore {
namespace {

using Kind = Activation::Kind;

constexpr Index kTileRows = 64, kTileCols = 240;  // a tile and its kernel rows stay in the second cache
static_assert(kTileCols % Columns::kWidth == 0, "tiles of pairs are whole tiles of neurons");

Index whole_packs(Index n) { return (n + kPack - 1) / kPack * kPack; }

bool is_polynomial(const Activation& s) {
    return s.kind == Kind::linear || s.kind == Kind::polynomial || s.kind == Kind::hermite;
}
bool is_smooth(const Activation& s) {
    return s.kind == Kind::erf || s.kind == Kind::gelu || s.kind == Kind::tanh || s.kind == Kind::sigmoid ||
           s.kind == Kind::softplus;
}
PairKernelPtr make_kernel(const Side& first, const Side& second) {
    const Activation &s1 = *first.sigma, &s2 = *second.sigma;
    if (!has_exact_pairs(s1, s2))
        throw std::invalid_argument(
            "other_network must have an activation whose pairs with the first have an exact expectation; "
            "use expectation=MonteCarlo(...)");
    if (is_homogeneous(first) && is_homogeneous(second)) return homogeneous_kernel(first, second);
    if (s1.is_piecewise() && s2.is_piecewise()) return piecewise_kernel(first, second);
    if (is_polynomial(s1) || is_polynomial(s2)) return series_kernel(first, second);
    if (s1.kind == Kind::erf && s2.kind == Kind::erf) return erf_kernel(first, second);
    if (s1.kind == Kind::gelu && s2.kind == Kind::gelu) return gelu_kernel(first, second);
    return quadrature_kernel(first, second);
}

/// Nanoseconds per pair, roughly: only decides how many threads are worth waking.
Index work(const Side& first, const Side& second) {
    const bool cheap = is_homogeneous(first) && is_homogeneous(second);
    return first.n * second.n * (cheap ? 2 + first.d / 8 : 50 + first.d / 8);
}

void check(const Side& first, const Side& second) {
    require(first.d == second.d, "other", "must have as many inputs as theta", second.d);
}

/// Buffers of one block of rows.
struct Tile {
    std::vector<double> q = std::vector<double>(kTileRows * kTileCols), k11 = q;
    Eigen::ArrayXd c{kTileCols}, k00{kTileCols}, k10{kTileCols}, k20{kTileCols};
};

}  // namespace

Side::Side(const Network& network, ConstMat theta, const char* name)
    : sigma(&network.activation),
      has_b(network.has_b()),
      n(theta.rows),
      padded(whole_packs(theta.rows)),
      d(theta.cols - network.row(0)) {
    sigma->validate();
    require(d >= 1, name, "has too few columns for this network", theta.cols);
    a.assign(to_size(padded), 1.0);
    m.assign(to_size(padded), 0.0);
    R.assign(to_size(padded), 0.0);
    inverse_R.assign(to_size(padded), 0.0);
    w.resize(to_size(n * d));
    for (Index i = 0; i < n; ++i) {
        const double* row = theta.row(i);
        if (network.has_a()) a[to_size(i)] = row[0];
        if (has_b) m[to_size(i)] = row[network.b_at()];
        double square = 0;
        for (Index k = 0; k < d; ++k) {
            const double x = row[network.w_at() + k];
            w[to_size(i * d + k)] = x;
            square += x * x;
        }
        R[to_size(i)] = std::sqrt(square);
        if (square > 0) inverse_R[to_size(i)] = 1 / R[to_size(i)];
    }
}

bool has_exact_pairs(const Activation& first, const Activation& second) {
    const auto known = [](const Activation& s) {
        return s.is_piecewise() || is_polynomial(s) || is_smooth(s);
    };
    return known(first) && known(second) &&
           (is_polynomial(first) || is_polynomial(second) || is_smooth(first) == is_smooth(second));
}

void pair_matrix(const Network& network, ConstMat theta, const Network& other_network, ConstMat other, Mat U,
                 int threads) {
    const Side first(network, theta, "theta"), second(other_network, other, "other");
    check(first, second);
    const PairKernelPtr kernel = make_kernel(first, second);
    const Columns columns(second);
    for_blocks(first.n, kTileRows, threads_for(work(first, second), threads), [&](Index, Index i, Index end) {
        Tile tile;
        for (Index j = 0; j < second.n; j += kTileCols) {
            const Index cols = std::min(kTileCols, second.n - j);
            columns.gram(first, i, end - i, j, cols, tile.q.data(), kTileCols);
            for (Index r = 0; r < end - i; ++r) {
                kernel->row(i + r, j, whole_packs(cols), tile.q.data() + r * kTileCols,
                            {tile.k00.data(), nullptr, nullptr, nullptr});
                const double a = first.a[to_size(i + r)];
                double* row = U.row(i + r) + j;
                for (Index c = 0; c < cols; ++c) row[c] = a * second.a[to_size(j + c)] * tile.k00[c];
            }
        }
    });
}

// value_i = a_i sum_j c_j K00, c_j = weights_j a'_j; d/da = value/a; d/db = a sum c K10;
// d/dw = a [(sum c K20) w/R + sum c K11 w'] (Stein's lemma, x = d/dg).
void pair_potential(const Network& network, ConstMat theta, const Network& other_network, ConstMat other,
                    const double* weights, double* value, Mat* grad, int threads) {
    const Side first(network, theta, "theta"), second(other_network, other, "other");
    check(first, second);
    const bool own = theta.data == other.data && theta.rows == other.rows && &network == &other_network;
    if (own && grad && is_homogeneous(first))
        return own_homogeneous_potential(network, first, weights, value, *grad, threads);
    const PairKernelPtr kernel = make_kernel(first, second);
    const Columns columns(second);
    const Index d = first.d;
    for_blocks(first.n, kTileRows, threads_for(work(first, second), threads), [&](Index, Index i, Index end) {
        const Index rows = end - i;
        Tile tile;
        Eigen::ArrayXd sum00 = Eigen::ArrayXd::Zero(rows), sum10 = sum00, sum20 = sum00;
        std::vector<double> pull(to_size(grad ? rows * columns.stride() : 0));  // sum_j c_j K11 w'_j
        for (Index j = 0; j < second.n; j += kTileCols) {
            const Index cols = std::min(kTileCols, second.n - j), padded = whole_packs(cols);
            columns.gram(first, i, rows, j, cols, tile.q.data(), kTileCols);
            tile.c.setZero();
            for (Index c = 0; c < cols; ++c) tile.c[c] = weights[j + c] * second.a[to_size(j + c)];
            const auto c = tile.c.head(padded);
            for (Index r = 0; r < rows; ++r) {
                double* k11 = grad ? tile.k11.data() + r * kTileCols : nullptr;
                kernel->row(i + r, j, padded, tile.q.data() + r * kTileCols,
                            {tile.k00.data(), tile.k10.data(), tile.k20.data(), k11});
                sum00[r] += (c * tile.k00.head(padded)).sum();
                if (!grad) continue;
                if (first.has_b) sum10[r] += (c * tile.k10.head(padded)).sum();
                sum20[r] += (c * tile.k20.head(padded)).sum();
                Eigen::Map<Eigen::ArrayXd>(k11, padded) *= c;
            }
            if (grad) columns.add_pull(rows, j, cols, tile.k11.data(), 1, kTileCols, pull.data());
        }
        for (Index r = 0; r < rows; ++r) {
            const auto at = to_size(i + r);
            const double a = first.a[at];
            if (value) value[i + r] = a * sum00[r];
            if (!grad) continue;
            double* out = grad->row(i + r);
            if (network.has_a()) out[0] = sum00[r];
            if (first.has_b) out[network.b_at()] = a * sum10[r];
            const double along = sum20[r] * first.inverse_R[at];
            for (Index k = 0; k < d; ++k)
                out[network.w_at() + k] =
                    a * (along * first.w[to_size((i + r) * d + k)] + pull[to_size(r * columns.stride() + k)]);
        }
    });
}

}  // namespace mfcore
