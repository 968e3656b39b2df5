// Pair expectations U and the potential they create, tile by tile: a Gram tile by a matrix product, the
// kernel on its rows, row sums and one more matrix product. Nothing of size n x m is kept.
#include "gaussian_pairs.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <string>

#include "base/parallel.hpp"
#include "base/tiles.hpp"
#include "mfcore/errors.hpp"
#include "mfcore/gaussian.hpp"

namespace mfcore {
namespace {

using Kind = Activation::Kind;

constexpr Index kTileRows = 64, kTileCols = 240;  // a tile and its kernel rows stay in the second cache

Index whole_packs(Index n) { return (n + kPack - 1) / kPack * kPack; }
std::size_t to_size(Index n) { return static_cast<std::size_t>(n); }

bool is_polynomial(const Activation& s) {
    return s.kind == Kind::linear || s.kind == Kind::polynomial || s.kind == Kind::hermite;
}
bool is_smooth(const Activation& s) {
    return s.kind == Kind::erf || s.kind == Kind::gelu || s.kind == Kind::tanh || s.kind == Kind::sigmoid ||
           s.kind == Kind::softplus;
}
bool is_homogeneous(const Side& side) {
    const Activation& s = *side.sigma;
    return s.is_piecewise() && s.offset == 0 && !side.has_b &&
           (s.knots.empty() || (s.knots.size() == 1 && s.knots[0] == 0));
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

/// The second neurons as the matrix products want them, see base/tiles.hpp.
class Columns {
public:
    static constexpr Index kLanes = simd::kLanes<double>, kWidth = 3 * kLanes;
    static_assert(kTileCols % kWidth == 0, "tiles of pairs are whole tiles of neurons");

    explicit Columns(const Side& side)
        : d_(side.d),
          stride_((side.d + kLanes - 1) / kLanes * kLanes),
          tiles_(to_size((side.n + kWidth - 1) / kWidth * kWidth * d_)),
          rows_(to_size(side.n * stride_)) {
        for (Index i = 0; i < side.n; ++i)
            for (Index k = 0; k < d_; ++k) {
                const double x = side.w[to_size(i * d_ + k)];
                tiles_[to_size((i / kWidth * d_ + k) * kWidth + i % kWidth)] = x;
                rows_[to_size(i * stride_ + k)] = x;
            }
    }
    Index stride() const { return stride_; }

    /// q(r, c) = <w_{i+r}, w'_{j+c}>; columns beyond the last neuron are zero or left alone.
    void gram(const Side& first, Index i, Index rows, Index j, Index cols, double* q) const {
        const ConstMat w(first.w.data() + i * d_, rows, d_);
        for (Index c = 0; c < cols; c += kWidth)
            tiles::forward<double, 3>(w, tiles_.data() + (j + c) * d_, nullptr, q + c, kTileCols);
    }

    /// pull(r, :) += sum_c k(r, c) w'_{j+c}, rows of pull and of k at strides stride() and kTileCols.
    void add_pull(Index rows, Index j, Index cols, const double* k, double* pull) const {
        Index v = 0;
        for (; v + kWidth <= stride_; v += kWidth) add_pull_of<3>(rows, j, cols, k, pull, v);
        if (v + 2 * kLanes <= stride_) add_pull_of<2>(rows, j, cols, k, pull, v), v += 2 * kLanes;
        if (v < stride_) add_pull_of<1>(rows, j, cols, k, pull, v);
    }

private:
    /// Coordinates v .. v + R vectors of it.
    template <int R>
    void add_pull_of(Index rows, Index j, Index cols, const double* k, double* pull, Index v) const {
        tiles::for_columns(rows, [&](Index r, auto count) {
            constexpr int C = count();
            simd::Vec<double> acc[C][R];
            double* const to = pull + r * stride_ + v;
            for (int c = 0; c < C; ++c)
                for (int s = 0; s < R; ++s) acc[c][s] = simd::load(to + c * stride_ + s * kLanes);
            tiles::accumulate<double, R, C, false>(cols, rows_.data() + j * stride_ + v, stride_,
                                                   k + r * kTileCols, 1, kTileCols, acc);
            for (int c = 0; c < C; ++c)
                for (int s = 0; s < R; ++s) simd::store(to + c * stride_ + s * kLanes, acc[c][s]);
        });
    }

    Index d_, stride_;
    std::vector<double> tiles_, rows_;
};

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
            columns.gram(first, i, end - i, j, cols, tile.q.data());
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
            columns.gram(first, i, rows, j, cols, tile.q.data());
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
            if (grad) columns.add_pull(rows, j, cols, tile.k11.data(), pull.data());
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
