#pragma once
// Mehler's series E s1(g1) s2(g2) = sum_k rho^k c_k c'_k with c_k = E[sigma(m + R u) h_k(u)]; every other
// moment of a pair is such a series in the slope coefficients s_k = E[sigma'(m + R u) h_k(u)] and the c_k:
//   E[s1' s2] = sum rho^k s_k c'_k,  R1 E[s1'' s2] = sum rho^k sqrt(k+1) s_{k+1} c'_k,
//   E[s1' s2'] = sum rho^k s_k s'_k,  because c_{k+1} = R s_k/sqrt(k+1) and R E[sigma'' h_k] = sqrt(k+1)
//   s_{k+1}: eqs. (4.4) to (4.6).
#include <array>
#include <cmath>

#include "gaussian/pairs.hpp"
#include "mfcore/base/aligned.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// Computes and holds the coefficients of every neuron of a side, in blocks of kWidth neurons: entry k of a
/// neuron is at slopes(j)[k * kWidth] and means(j)[k * kWidth].
class Coefficients {
public:
    static constexpr Index kWidth = 2 * kPack;

    /// `weights`: factors of the means c_k, one for every neuron of the side; null for 1.
    Coefficients(const Side& side, Index terms, const double* weights, int threads);

    Index terms() const { return terms_; }
    const double* slopes(Index j) const { return slopes_.data() + place(j); }  ///< k <= terms
    const double* means(Index j) const { return means_.data() + place(j); }    ///< k < terms, weighted
    double root(Index k) const { return roots_[to_size(k)]; }                  ///< sqrt(k), k <= terms
    double inverse_root(Index k) const { return inverse_roots_[to_size(k)]; }
    double T(Index j) const { return T_[to_size(j)]; }  ///< c_0 without its weight
    const double* T() const { return T_.data(); }

private:
    Index place(Index j) const { return j / kWidth * (terms_ + 1) * kWidth + j % kWidth; }
    void piecewise_block(const Side& side, Index j);
    void smooth_neuron(const Side& side, Index j);

    Index terms_;
    Scratch<double> slopes_, means_;
    FilledScratch<double> T_;
    FilledScratch<double> roots_, inverse_roots_;
};

/// True if a neuron has its mean square far out, where sigma has grown: 100 times what it takes within a standard
/// deviation. What the series misses or rounds relative to such sizes may be more than the whole expectation.
bool is_heavy(const Side& side, const Coefficients& of, Index j);

/// The moments of one pair by the first `terms` terms of the series.
struct SeriesSums {
    double k00 = 0, k10 = 0, k20 = 0, k11 = 0;  // k20 without the factor R1
};
SeriesSums series_of_pair(const Side& first, const Coefficients& one, Index i, const Side& second,
                          const Coefficients& two, Index j, double rho, Index terms);

/// How many terms pairs of correlation rho need: K with |rho|^K <= left_out, eqs. (4.8), (4.9). What is
/// missed then is small relative to the sizes of the two neurons:
/// - smooth sigma: by Cauchy-Schwarz at most |rho|^K times the product of two of the mean-square sizes of
///   sigma, sigma' and R sigma'': 4e-15 of these;
/// - kinks, whose sigma'' has no size: |h_k(t)| f(t) <= 0.44 e^{-t^2/4} (Cramer) gives
///   |s_k| <= S/sqrt(k), S = 0.44 sum |jump|, and tails below
///   |rho|^K S S'/((K-1)(1-|rho|)): 1e-13 leaves 3e-15 of the jumps.
class Terms {
public:
    static constexpr double kSmooth = 4e-15, kKinked = 1e-13;

    /// `most`: number of terms; `all`: the series ends with them (polynomials). `far_cost`: what one pair
    /// costs beyond the series, in terms of one block of pairs.
    Terms(Index most, bool all, double left_out, double far_cost);

    double reach() const { return reach_; }  ///< pairs with larger |rho| are not for the series
    Index needed(double rho) const {
        if (all_) return most_;
        if (!(rho > 1e-8)) return std::min<Index>(2, most_);  // NaN too
        return std::min(most_, 1 + static_cast<Index>(log_left_out_ / std::log(std::min(rho, 0.99))));
    }
    /// Numbers of terms at which it may be cheaper to leave some pairs of a block to their closed form.
    static constexpr std::array<Index, 10> kTermCounts = {10, 14, 20, 28, 40, 56, 80, 112, 160, 220};
    double reach_of(std::size_t choice) const { return reach_of_[choice]; }
    double far_cost() const { return far_cost_; }

private:
    Index most_;
    bool all_;
    double far_cost_, log_left_out_, reach_;
    std::array<double, kTermCounts.size()> reach_of_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
