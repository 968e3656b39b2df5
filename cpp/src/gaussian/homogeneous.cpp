// The potential of neurons without bias and with no kink but at 0 (rectifiers, leaky ones, lines) in their
// own field, in the angle form of eq. (4.15).
#include <algorithm>

#include "gaussian/columns.hpp"
#include "gaussian/pairs.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using namespace special;

/// Sums over the pairs of neurons of one side, every pair visited once: with c_j = weights_j a_j
///   spread_i = sum_j c_j R_j S_ij,     pull_i = sum_j c_j P_ij w_j.
class OwnPairs {
public:
    OwnPairs(const Side& side, const double* weights)
        : side_(side),
          form_(*side.sigma, *side.sigma),
          c_(to_size(side.n)),
          cR_(to_size(side.padded)),
          spread_(to_size(side.padded)),
          columns_(side, coefficients(weights)),
          pull_(to_size(side.n * columns_.stride())) {
        for (Index j = 0; j < side.n; ++j) cR_[to_size(j)] = c_[to_size(j)] * side.R[to_size(j)];
    }

    void add_up(int threads) {
        const Index blocks = (side_.n + kBlock - 1) / kBlock;
        for_block_pairs(blocks, threads, [&](Index i, Index j) { block_pair(i * kBlock, j * kBlock); });
    }

    double spread(Index i) const { return spread_[to_size(i)]; }
    const double* pull(Index i) const { return pull_.data() + i * columns_.stride(); }

private:
    static constexpr Index kBlock = 120;  // a tile of pairs stays in the second cache
    static_assert(kBlock % Columns::kWidth == 0, "blocks are whole tiles of neurons");

    const double* coefficients(const double* weights) {
        for (Index j = 0; j < side_.n; ++j) c_[to_size(j)] = weights[j] * side_.a[to_size(j)];
        return c_.data();
    }

    void block_pair(Index i, Index j) {
        FilledScratch<double> buffer(kBlock * kBlock);
        double* const tile = buffer.data();
        const Index rows = std::min(kBlock, side_.n - i), cols = std::min(kBlock, side_.n - j);
        columns_.gram(side_, i, rows, j, cols, tile, kBlock);
        for (Index r = 0; r < rows; ++r) angles(i + r, j, cols, i != j, tile + r * kBlock);
        const Index stride = columns_.stride();
        columns_.add_pull(rows, j, cols, tile, 1, kBlock, pull_.data() + i * stride);
        if (i != j) columns_.add_pull(cols, i, rows, tile, kBlock, 1, pull_.data() + j * stride);
    }

    /// Replace the inner products q by P (eq. (4.15)); add to the spread of neuron i and, if `both`, of its
    /// partners.
    void angles(Index i, Index j, Index cols, bool both, double* q) {
        const double inverse_R = side_.inverse_R[to_size(i)];
        const double other = both ? cR_[to_size(i)] : 0.0;
        Pack sum{};
        for (Index c = 0; c < cols; c += kPack) {
            const auto at = to_size(j + c);
            const Correlation pair(simd::load(q + c), special::pack(inverse_R),
                                   simd::load(&side_.inverse_R[at]));
            sum += simd::load(&cR_[at]) * pair.s;
            simd::store(&spread_[at], simd::load(&spread_[at]) + (form_.kinked * other) * pair.s);
            simd::store(q + c, form_.linear + form_.kinked * (kPi - acos(pair.rho)));
        }
        spread_[to_size(i)] += form_.kinked * simd::sum<double>(sum);
    }

    const Side& side_;
    AngleForm form_;
    FilledScratch<double> c_, cR_, spread_;
    Columns columns_;
    FilledScratch<double> pull_;
};

}  // namespace

AngleForm::AngleForm(const Activation& first, const Activation& second) {
    const auto jump = [](const Activation& s) { return s.jumps.empty() ? 0.0 : s.jumps[0]; };
    const double mu1 = first.left_slope, mu2 = second.left_slope;
    linear = mu1 * mu2 + 0.5 * (mu1 * jump(second) + mu2 * jump(first));
    kinked = jump(first) * jump(second) * kInv2Pi;
}

// value_i/a_i = R_i spread_i + <w_i, pull_i>, because q_ij = <w_i, w_j>; d/dw = a (spread w/R + pull).
void own_homogeneous_potential(const Network& network, const Side& side, const double* weights, double* value,
                               Mat* grad, int threads) {
    OwnPairs pairs(side, weights);
    const Index work = side.n * side.n * (2 + side.d / 8) * 2 / 3;
    pairs.add_up(threads_for(work, threads));
    for (Index i = 0; i < side.n; ++i) {
        const double a = side.a[to_size(i)], along = pairs.spread(i) * side.inverse_R[to_size(i)];
        const double *w = side.w.data() + i * side.d, *pull = pairs.pull(i);
        double sum = pairs.spread(i) * side.R[to_size(i)];
        for (Index k = 0; k < side.d; ++k) sum += (side.unit[to_size(i)] * w[k]) * pull[k];
        if (value) value[i] = a * sum;
        if (!grad) continue;
        double* out = grad->row(i);
        if (network.has_a()) out[0] = sum;
        for (Index k = 0; k < side.d; ++k) out[network.w_at() + k] = a * (along * w[k] + pull[k]);
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
