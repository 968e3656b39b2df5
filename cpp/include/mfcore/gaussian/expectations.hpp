#pragma once
// Exact expectations of neurons under x ~ N(0, I_d). Other covariances A A^T: pass A^T w for w.
#include <vector>

#include "mfcore/base/views.hpp"
#include "mfcore/network/activation.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// Gaussian smoothing T(m, R) = E sigma(m + R G), G ~ N(0, 1), R >= 0, and its derivatives; null outputs are
/// skipped. Closed forms, except for tanh, sigmoid, softplus and silu: a trapezoid rule in G up to R = 16, with
/// about 60 + 60 R points (half of that for the last two), and a mean of 27 closed forms beyond, at one cost
/// for every R; absolute error about 1e-14 (times |m| + R for softplus and silu). Of smooth kinds NaN where R > 1e153,
/// whose square is no number. At R = 0: sigma(m), its slope (the mean of both sides at a knot) and the limit
/// of d/dR as R -> 0+.
void smooth(const Activation& sigma, Index n, const double* m, const double* R, double* T, double* T_m,
            double* T_R);

/// s(i, k) = E[sigma'(m_i + R_i G) h_k(G)], k = 0 .. s.cols - 1, orthonormal h_k = He_k/sqrt(k!). They hold
/// every derivative: d^k/dm^k T = sqrt((k-1)!) s_{k-1}/R^{k-1}, and E[sigma(m + R G) h_k(G)] = R
/// s_{k-1}/sqrt(k), k >= 1.
void slope_coefficients(const Activation& sigma, Index n, const double* m, const double* R, Mat s);

/// p[i] = P(u > h[i], v > k[i]) for standard normals of correlation rho[i] in [-1, 1]; absolute error <
/// 1e-15.
void bivariate_normal(Index n, const double* h, const double* k, const double* rho, double* p);

/// True if pairs of neurons with these activations can be integrated exactly: all can but those of the user's that
/// are not analytic (strip 0), or jump at a kink.
bool has_exact_pairs(const Activation& first, const Activation& second);

/// Nanoseconds, roughly, that the exact expectation of one pair of neurons of a network takes, at most.
double pair_nanoseconds(const Network& network);

/// U(i, j) = E[sigma*(x; theta_i) sigma*(x; theta'_j)]. By Mehler's series where |<w, w'>| is below about 0.8
/// |w| |w'|, in closed form beyond: absolute error a few 1e-15 times the sizes of the two neurons (sigma,
/// sigma' and |w| sigma'' in mean square; slopes for kinks). Pairs of sin and cos are always in
/// closed form. Nearly parallel pairs of tanh, sigmoid, softplus, silu have none: a two-dimensional quadrature each where both |w| <= 16, error below 1e-12 (softplus, silu:
/// times these sizes), and a mean of closed forms beyond, 1e-14 times E sigma^2. Finite and as accurate up to
/// |w| = 1e150. Nearly parallel pairs of which one has kinks and the other is not piecewise linear, too, or of which
/// one has no curvature: Gauss rules between kinks, error about 1e-14 times these sizes, NaN where |w| exceeds some
/// 350 strips.
void pair_matrix(const Network& network, ConstMat theta, const Network& other_network, ConstMat other, Mat U,
                 int threads = 0);

/// P(i, j) = E[sigma'(b_i + <w_i, x>) sigma'(b'_j + <w'_j, x>)], without output weights, as accurate as
/// pair_matrix(), also of parallel neurons.
void pair_slopes(const Network& network, ConstMat theta, ConstMat other, Mat P, int threads = 0);

/// The parts of a kernel of neurons: value E s s' + (constant + along <w, w'>) E ds ds' with s = sigma(b + <w, x>), ds =
/// sigma'(b + <w, x>).
struct KernelOf {
    double value = 0, constant = 0, along = 0;
};

/// K(i, j) = this kernel of neurons i and j without output weights. Where both expectations have closed forms they are
/// made together, and if `other` is `theta`, each pair once.
void pair_kernel(const Network& network, ConstMat theta, ConstMat other, const KernelOf& of, Mat K,
                 int threads = 0);

/// value[i] = sum_j weights[j] U(theta_i, theta'_j) and its gradient with respect to every entry of theta_i;
/// null weights mean equal masses, null outputs are skipped. Memory O((n + m)(d + 400)); the same bits for any number of threads. At w = 0
/// the gradient is the mean over directions (for kinks at b; elsewhere it is the derivative).
void pair_potential(const Network& network, ConstMat theta, const Network& other_network, ConstMat other,
                    const double* weights, double* value, Mat* grad, int threads = 0);

/// x is drawn from part p with probability shares[p], and then is N(0, S_p^2): S_p is diagonal,
/// scales[p * ends.size() + s] on the coordinates of segment s, which ends before coordinate ends[s].
struct Mixture {
    std::vector<double> shares;
    std::vector<Index> ends;
    std::vector<double> scales;

    Index parts() const { return static_cast<Index>(shares.size()); }
    double scale(Index part, Index coordinate) const {
        std::size_t s = 0;
        while (ends[s] <= coordinate) ++s;
        return scales[static_cast<std::size_t>(part) * ends.size() + s];
    }
    void validate(Index d) const;  ///< throws std::invalid_argument naming what is wrong
};

/// pair_potential() of neurons in their own field under such inputs: every pair is visited once, and its
/// inner products serve all parts.
void own_potential(const Network& network, ConstMat theta, const double* weights, const Mixture& law,
                   double* value, Mat* grad, int threads = 0);

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
