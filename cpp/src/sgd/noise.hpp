#pragma once
// Langevin noise of a block of SGD steps, exact in law at a fraction of the draws (eqs. (6.5), (6.6)).
//
// The step-k increment of a neuron is amp_k g_k with g_k ~ N(0, I_d). All that the block can see of it is its
// projection on the span of the block's samples: with X^T = Q R (thin), L = R^T the Cholesky factor of the
// Gram matrix, <g_k, x_l> = sum_q e_kq L[l, q] with e_k ~ N(0, I_r) drawn per step. The complement is only
// ever summed, and the sum is one draw: W += E Q^T + s xi (I - Q Q^T). Blocks of a single step draw g itself.
#include <cmath>
#include <vector>

#include "mfcore/base/random.hpp"
#include "mfcore/sgd/sgd.hpp"
#include "network/neurons.hpp"
#include "sgd/gram.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Products of decay factors gamma_i = 1 - h_i lambda rate over the steps of a block.
class Shrinkage {
public:
    explicit Shrinkage(Index most_steps) { product_.reserve((most_steps + 1) * (most_steps + 1)); }
    void set(const double* h, Index steps, double speed) {
        steps_ = steps;
        none_ = speed == 0;
        if (none_) return;
        product_.assign((steps + 1) * (steps + 1), 1.0);
        for (Index from = 0; from < steps; ++from)
            for (Index to = from; to < steps; ++to)
                product_[from * (steps + 1) + to + 1] =
                    product_[from * (steps + 1) + to] * (1 - h[to] * speed);
    }
    bool none() const { return none_; }
    /// Product over steps from <= i < to.
    double operator()(Index from, Index to) const { return none_ ? 1.0 : product_[from * (steps_ + 1) + to]; }

private:
    Index steps_ = 0;
    bool none_ = true;
    std::vector<double> product_;
};

template <class T, int R>
class Noise {
public:
    using Tiles = NeuronTiles<T, R>;
    static constexpr Index kWidth = Tiles::kWidth;

    Noise(const Network& network, const SgdParams& params, std::uint64_t seed, const Tiles& tiles,
          Index tile0, Index tile1, Index max_rows)
        : network_(network),
          params_(params),
          seed_(seed),
          count_(tiles.count()),
          d_(tiles.dimension()),
          tile0_(tile0),
          tile1_(tile1),
          stride_((tile1 - tile0) * kWidth),
          first_(tile0 * kWidth),
          owned_(std::clamp<Index>(count_ - first_, 0, stride_)) {
        if (params.temperature == 0) return;
        const bool projected = max_rows > params.batch;
        draws_.resize(std::max<Index>(stride_, owned_ * (projected ? 1 : network.row(d_))) + d_);
        if (!projected) return;
        e_.resize(max_rows * stride_);
        factor_.resize(max_rows * max_rows);
        tile_.resize(d_ * kWidth);
        seen_.resize(max_rows * kWidth);
        for (std::vector<double>* sum : {&low_, &high_, &middle_}) sum->resize(d_);
        bridges_.reserve(8);  // halvings of a block of at most 64 steps
    }

    bool active() const { return params_.temperature > 0; }
    /// Standard deviation of one coordinate's increment over a step of size h.
    double amplitude(double h, double rate) const { return std::sqrt(2 * h * params_.temperature * rate); }

    /// Start a block with the Gram matrix of all its samples; `q` (rows x d) receives this thread's columns
    /// of Q^T.
    void begin(MatView<const T> x, const T* gram, Index gram_stride, T* q, int rank, int size) {
        rows_ = x.rows;
        std::fill(e_.begin(), e_.end(), T(0));
        cholesky(rows_, gram, gram_stride, factor_.data());
        // Q^T = L^-1 X, forward substitution down the columns of this thread.
        const Index j0 = d_ * rank / size, j1 = d_ * (rank + 1) / size;
        for (Index k = 0; k < rows_; ++k) {
            const T diagonal = factor(k, k);
            for (Index j = j0; j < j1; ++j) q[k * d_ + j] = diagonal > 0 ? x(k, j) : T(0);
            for (Index i = 0; i < k; ++i) {
                const T f = factor(k, i);
                for (Index j = j0; j < j1; ++j) q[k * d_ + j] -= f * q[i * d_ + j];
            }
            for (Index j = j0; j < j1; ++j) q[k * d_ + j] = diagonal > 0 ? q[k * d_ + j] / diagonal : T(0);
        }
    }

    Index rows() const { return rows_; }
    T factor(Index row, Index column) const { return factor_[row * rows_ + column]; }
    const T* projected(Index q) const { return e_.data() + q * stride_; }

    /// Record the noise of step `step`: the projections seen so far decay and receive this step's (eq.
    /// (6.5)).
    void advance(Index step, T decay, double h) {
        const T amp = static_cast<T>(amplitude(h, params_.rates.w));
        for (Index q = 0; q < rows_; ++q) {
            normals(random::Purpose::langevin_span, step, q * count_ + first_, owned_);
            T* e = e_.data() + q * stride_;
            for (Index i = 0; i < owned_; ++i) e[i] = decay * e[i] + amp * draws_[i];
        }
    }

    /// Add the noise of the scalars of this thread's neurons: x[i] += amplitude * normal; `which` is 0 for a,
    /// 1 for b.
    void add_scalars(Index step, Index which, double amp, T* x) {
        normals(random::Purpose::langevin_scalars, step, which * count_ + first_, owned_);
        for (Index i = 0; i < owned_; ++i) x[i] += static_cast<T>(amp) * draws_[i];
    }

    /// Plan the draws of S_l = sum_{k<l} amp_k (gamma_{k+1} ... gamma_{l-1}) xi_k at l = `steps`: S at the
    /// end of the block is one draw of deviation whole_, those inside are bridges below it.
    void plan(const double* h, Index block_steps, Index steps, const Shrinkage& decay) {
        const auto variance = [&](Index from, Index to) {
            double sum = 0;
            for (Index k = from; k < to; ++k) {
                const double term = amplitude(h[k], params_.rates.w) * decay(k + 1, to);
                sum += term * term;
            }
            return sum;
        };
        whole_ = std::sqrt(variance(0, block_steps));
        bridges_.clear();
        for (Index low = 0, high = block_steps, heap = 1; high != steps;) {
            const Index mid = (low + high) / 2;
            const bool left = steps <= mid;
            const double before = variance(low, mid), after = variance(mid, high), keep = decay(mid, high);
            const double all = keep * keep * before + after, gain = before * keep / all;
            bridges_.push_back(
                {heap, decay(low, mid) * after / all, gain, std::sqrt(before * after / all), left});
            (left ? high : low) = mid;
            heap = 2 * heap + (left ? 0 : 1);
        }
    }

    /// Add all noise of the planned steps to tile t of w (eq. (6.6)).
    void finish(Index first_step, const T* q, Index t, T* w) {
        complement(first_step, t);
        tiles::forward<T, R>({q, rows_, d_}, tile_.data(), nullptr, seen_.data(), kWidth);
        for (Index k = 0; k < rows_; ++k) {
            const T* e = projected(k) + (t - tile0_) * kWidth;
            for (Index i = 0; i < kWidth; ++i) seen_[k * kWidth + i] = e[i] - seen_[k * kWidth + i];
        }
        tiles::backward<T, R>({q, rows_, d_}, seen_.data(), kWidth, T(1), w);
        for (Index i = 0; i < d_ * kWidth; ++i) w[i] += tile_[i];
    }

    /// In blocks of one step add g itself, at the address that all rungs share, number i D + j of (langevin,
    /// step).
    void add_direct(Index step, double h, Tiles& state) {
        const Index row = network_.row(d_), w_at = network_.w_at();
        normals(random::Purpose::langevin, step, first_ * row, owned_ * row);
        const double a = network_.output == Output::trained ? amplitude(h, params_.rates.a) : 0;
        const double b = network_.trains_b() ? amplitude(h, params_.rates.b) : 0,
                     w = amplitude(h, params_.rates.w);
        for (Index i = 0; i < owned_; ++i) {
            const T* g = draws_.data() + i * row;
            if (network_.has_a()) state.a(tile0_)[i] += static_cast<T>(a) * g[0];
            if (network_.has_b()) state.b(tile0_)[i] += static_cast<T>(b) * g[network_.b_at()];
            T* column = state.w(tile0_ + i / kWidth) + i % kWidth;
            for (Index j = 0; j < d_; ++j) column[j * kWidth] += static_cast<T>(w) * g[w_at + j];
        }
    }

private:
    void normals(random::Purpose purpose, Index step, Index item, Index count) {
        if (count > 0)
            random::normals({seed_, purpose, static_cast<std::uint64_t>(step)},
                            static_cast<std::uint64_t>(item), count, draws_.data());
    }

    /// A bridge from the sums S at both ends of an interval of steps to the one at its midpoint: S_mid =
    /// from_low S_low + from_high S_high + scale xi (eq. (6.7)).
    struct Bridge {
        Index heap;  // number of the midpoint, those of the halves being 2 heap and 2 heap + 1
        double from_low, from_high, scale;
        bool left;  // whether the search goes on to the left of it
    };

    /// tile_ = S at the planned step, of the complement, for the neurons of tile t: every prefix of a block
    /// has its joint law whoever asks for it.
    void complement(Index first_step, Index t) {
        std::fill(tile_.begin(), tile_.end(), T(0));
        for (Index i = 0; i < kWidth && t * kWidth + i < count_; ++i) {
            const Index neuron = t * kWidth + i;
            const auto draw = [&](Index heap, double scale, std::vector<double>& to) {
                normals(random::Purpose::langevin_rest, first_step, (heap * count_ + neuron) * d_, d_);
                for (Index j = 0; j < d_; ++j) to[j] += scale * draws_[j];
            };
            std::fill(low_.begin(), low_.end(), 0.0);
            std::fill(high_.begin(), high_.end(), 0.0);
            draw(0, whole_, high_);
            for (const Bridge& bridge : bridges_) {
                for (Index j = 0; j < d_; ++j)
                    middle_[j] = bridge.from_low * low_[j] + bridge.from_high * high_[j];
                draw(bridge.heap, bridge.scale, middle_);
                std::swap(bridge.left ? high_ : low_, middle_);
            }
            for (Index j = 0; j < d_; ++j) tile_[j * kWidth + i] = static_cast<T>(high_[j]);
        }
    }

    const Network& network_;
    const SgdParams& params_;
    std::uint64_t seed_;
    Index count_, d_, tile0_, tile1_, stride_, first_, owned_, rows_ = 0;
    std::vector<T> draws_, e_, factor_, tile_, seen_;
    std::vector<double> low_, high_, middle_;
    std::vector<Bridge> bridges_;
    double whole_ = 0;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
