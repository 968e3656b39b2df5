#pragma once
// Data laws P(x, y) as samplers: sample k is addressable, the same whatever is drawn before or beside it.
// Coordinate j of sample k is item k d + j of the stream `inputs`, class signs and numbers are item k of `labels`,
// additive noise is item k of `label_noise`.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "mfcore/base/views.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {

/// A law of the data. Derive from it to use a law of your own (examples/sampler.cpp).
class Sampler {
public:
    virtual ~Sampler() = default;
    virtual Index dimension() const = 0;
    /// Number of nodes of a finite law, all of equal weight 1/size (datasets, enumerated cubes); 0 for the
    /// others.
    virtual Index size() const { return 0; }
    /// True if draw() may be called from several threads at once (not where it calls Python).
    virtual bool concurrent() const { return true; }
    /// Draw samples first .. first + x.rows - 1 of the stream of `seed`; of a finite law, the nodes with
    /// these numbers.
    virtual void draw(std::uint64_t seed, Index first, Mat x, double* y) const = 0;
};

/// How laws are passed and kept.
using SamplerPtr = std::shared_ptr<const Sampler>;

/// The noiseless label y = phi(z) of projected inputs, a batch at a time.
struct Link {
    Index dimension = 1;                                  ///< P, the length of z
    bool concurrent = true;                               ///< false where `evaluate` calls Python
    std::function<void(ConstMat z, double* y)> evaluate;  ///< y[k] = phi(row k of z)
};

/// coefficient * prod h_degree(z_coordinate) over `factors`, with orthonormal Hermite h_k = He_k / sqrt(k!).
/// On coordinates +-1 degree one, h_1(z) = z, gives the Fourier monomials.
struct HermiteTerm {
    double coefficient = 0;
    std::vector<std::pair<Index, int>> factors;  // (coordinate of z, degree)
};

/// phi(z) = sum of the terms, z in R^p.
Link hermite_link(Index p, std::vector<HermiteTerm> terms);
/// phi(x) = mean over the rows of theta of sigma*(x; theta_j), x in R^d (theta is copied).
Link network_link(Network network, ConstMat theta, Index d);

/// The law of the inputs x of a multi-index model.
enum class Inputs {
    gaussian,   ///< x ~ N(0, I)
    hypercube,  ///< x uniform on {-1, 1}^d
    sphere,     ///< x uniform on the sphere of radius sqrt(d)
};

/// y = +-1 with equal odds, x | y ~ N(0, (1 +- delta)^2 I_d).
SamplerPtr isotropic_gaussians(Index d, double delta);
/// The same with variance (1 +- delta)^2 on the first s0 coordinates and 1 on the others.
SamplerPtr anisotropic_gaussians(Index d, Index s0, double delta);
/// The same on the span of the orthonormal rows of `basis` (s0, d), which is copied.
SamplerPtr anisotropic_gaussians(ConstMat basis, double delta);
/// x is drawn from class k with probability weights[k], and then is N(means[k], A_k^2), y = labels[k]. means is
/// (K, d); A_k = roots[k] as the root of linear(). The classes are those of uniform numbers of the stream
/// `labels`. All is copied.
SamplerPtr gaussian_mixture(ConstMat means, const std::vector<ConstMat>& roots, const double* labels,
                            const double* weights);
/// y = phi(Pi x) + noise g. Pi: the rows of `directions` (P, d), copied, or the first P coordinates if empty.
/// Gaussian x are A g' with A = `root`, as of linear().
SamplerPtr multi_index(Inputs inputs, Index d, Link link, ConstMat directions = {}, double noise = 0,
                       ConstMat root = {});
/// y = <w, x> + noise g, x = A g' with A = `root`: (d, d) symmetric, (1, d) for a diagonal, (1, 1) for a multiple
/// of the identity, or empty for the identity. Both are copied.
SamplerPtr linear(Index d, const double* w, ConstMat root = {}, double noise = 0);
/// The 2^d points of the hypercube with y = phi(Pi x): coordinate j of node k is -1 if bit j of k is set.
SamplerPtr cube_nodes(Index d, Link link, ConstMat directions = {});
/// The finite law of the rows (x_i, y_i). Nothing is copied: `owner`, if given, keeps the memory alive.
SamplerPtr finite_law(ConstMat x, const double* y, std::shared_ptr<const void> owner = {});
/// The samples of another law with its labels times `factor`.
SamplerPtr scaled_labels(SamplerPtr law, double factor);
/// Independent draws, with replacement, from the nodes of a finite law.
SamplerPtr resampled(SamplerPtr nodes);
/// The nodes of a finite law in passes: each pass is all of them once, in a random order of its own. Not for
/// several threads, nor for several runs at once.
SamplerPtr passes(SamplerPtr nodes);

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
