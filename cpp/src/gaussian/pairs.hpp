#pragma once
// Pairs of neurons as two correlated Gaussians (eq. (4.1)): g1 = m1 + R1 u, g2 = m2 + R2 v, corr(u, v) = rho.
#include <limits>
#include <memory>
#include <vector>

#include "base/bivariate.hpp"
#include "base/scratch.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// The first or the second neurons of all pairs: a, m = b and R = |w| of every neuron, padded with harmless
/// values to whole packs. `w` is in units in which its square is a number: w / unit.
struct Side {
    const Activation* sigma;
    bool has_b;
    Index n, padded, d;
    FilledScratch<double> a, m, R, unit;
    FilledScratch<double> inverse_R;  // of |w / unit|; 0 at R = 0: then rho = 0
    FilledScratch<double> w;          // n x d, contiguous

    /// `units`: of the w of theta, which are divided by them already; by default they are chosen and divided by.
    Side(const Network& network, ConstMat theta, const char* name,
         const FilledScratch<double>* units = nullptr);
};

/// 1 for ordinary w; for those so small or large that |w|^2 leaves the range of numbers, a power of two of about
/// their size.
double unit_of(Index d, const double* w);

inline std::size_t to_size(Index n) { return static_cast<std::size_t>(n); }

/// Equal masses of n neurons in place of null weights; nothing where there are weights.
FilledScratch<double> masses_unless(const double* weights, Index n);

/// True if sigma has kinks, at which sigma' jumps.
inline bool has_kinks(const Activation& sigma) { return sigma.is_piecewise() || !facts(sigma).kinks.empty(); }

/// No bias and no kink but at 0: sigma(t) = slope t + jump t_+.
inline bool is_homogeneous(const Activation& s, bool has_b) {
    return s.is_piecewise() && s.offset == 0 && !has_b &&
           (s.knots.empty() || (s.knots.size() == 1 && s.knots[0] == 0));
}
inline bool is_homogeneous(const Side& side) { return is_homogeneous(*side.sigma, side.has_b); }

/// The potential that homogeneous neurons create for each other, and its gradient: pair_potential() with half
/// its pairs. Null outputs are skipped.
void own_homogeneous_potential(const Network& network, const Side& side, const double* weights, double* value,
                               Mat* grad, int threads);

/// One knot of a piecewise linear neuron: gap = t - m, h = gap/R (at R = 0: +-kFar, or 0 on the knot, the
/// mean of both sides), density and tail of u there, mean = E(g - t)_+.
struct Threshold {
    static constexpr double kLeast = std::numeric_limits<double>::denorm_min();
    Pack h;
    special::Normal normal;
    Pack mean;
    Threshold(Pack gap, Pack R)
        : h(special::clamp(gap / special::max(R, special::pack(kLeast)), special::kFar)),
          normal(special::normal(h)),
          mean(R * normal.density - gap * normal.tail) {}
};

/// For a list of pairs, K00 = E[s1(g1) s2(g2)], K10 = E[s1' s2], K20 = R1 E[s1'' s2], K11 = E[s1' s2'] (s'' as
/// a distribution; eqs. (4.2), (4.3)); K01 and K02 are K10 and K20 with the two neurons swapped.
struct PairExpectations {
    double* k00;
    double *k10, *k20;  ///< null: neither is wanted
    double*
        k11;  ///< null: only k00 is wanted. Of parallel neurons kernels may move it into k20 if that is wanted
    double *k01, *k02;  ///< null: neither is wanted
};

/// Neurons chosen from a list, one per lane: reads entries of arrays over neurons.
struct Chosen {
    const Index* neuron;
    Pack operator()(const double* of) const {
        Pack x;
        for (Index l = 0; l < kPack; ++l) x[l] = of[neuron[l]];
        return x;
    }
    Pack operator()(const FilledScratch<double>& of) const { return (*this)(of.data()); }
};

/// Closed forms of single pairs.
class PairKernel {
public:
    virtual ~PairKernel() = default;
    /// Neurons i[c] of the first side against j[c] of the second, c < n, a multiple of kPack; q[c] their
    /// inner product.
    virtual void pairs(Index n, const Index* i, const Index* j, const double* q,
                       PairExpectations out) const = 0;
    /// Cost of kPack pairs in nanoseconds, roughly.
    virtual double cost() const = 0;
};

class Coefficients;
using PairKernelPtr = std::unique_ptr<const PairKernel>;
PairKernelPtr piecewise_kernel(const Side& first, const Side& second);
PairKernelPtr blurred_kernel(const Side& first, const Side& second);
PairKernelPtr panel_kernel(const Side& first, const Side& second);
/// These keep references to the coefficients.
PairKernelPtr erf_kernel(const Side& first, const Side& second, const Coefficients& one,
                         const Coefficients& two);
PairKernelPtr gelu_kernel(const Side& first, const Side& second, const Coefficients& one,
                          const Coefficients& two);
PairKernelPtr quadrature_kernel(const Side& first, const Side& second, const Coefficients& one,
                                const Coefficients& two);

/// Pairs of homogeneous neurons in the angle form (eq. (4.15)): U = R1 R2 S + q P with
/// S = kinked sin(theta), P = linear + kinked (pi - theta).
struct AngleForm {
    double linear, kinked;
    AngleForm(const Activation& first, const Activation& second);
};

/// rho = q/(R1 R2), kept in [-1, 1], and s = sqrt(1 - rho^2). Rounding of rho costs 1e-16/s in K20 and K11
/// alone, but not in the gradient K20 w/R1 + K11 w', where the two errors cancel because both use this rho
/// and s.
struct Correlation {
    Pack rho, s;
    Correlation(Pack q, Pack inverse_R1, Pack inverse_R2) {
        using namespace special;
        rho = max(min(q * inverse_R1 * inverse_R2, pack(1.0)), pack(-1.0));
        s = sqrt((1.0 - rho) * (1.0 + rho));
    }
    /// The same where the angle itself matters, not its square: of nearly parallel neurons s is taken from
    /// what is left of w' across w, to about 1e-16 absolute, and 0 is exact. i and j: neurons of the two
    /// sides.
    Correlation(const Side& first, const Side& second, Chosen i, Chosen j, Pack q);
};

inline constexpr double kParallel = 2e-16;  ///< angles below are rounding

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
