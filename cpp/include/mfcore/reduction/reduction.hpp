#pragma once
// Features of a network whose law of x is reduced by symmetry (eqs. (5.1) to (5.3)): every reduction here is
//   Phi_q(z) = alpha a E sigma(b + <s, z_q> + sum_i r_i s_{q,i} u_i),
// with the network's scale alpha and u_i the first coordinate of a uniform point of a sphere in R^{d_i}, independent; at d_i = inf the sum
// is sqrt(sum_i r_i^2 s_{q,i}^2) G. Without radii this is the network itself at the inputs z_q.
#include <memory>
#include <vector>

#include "mfcore/base/quadrature.hpp"
#include "mfcore/network/activation.hpp"
#include "mfcore/reduction/chi_panels.hpp"
#include "mfcore/reduction/normal_panels.hpp"
#include "mfcore/reduction/smoothing.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

class TwoRadii;  // of the implementation

/// The features of a reduced model at all nodes of the data, as functions of a neuron's reduced coordinates.
class ReducedFeatures {
public:
    /// `nodes`: a row [z_q, s_q] for each node: the directions z_q, then one radius for each entry of `dims`
    /// (at most two, both finite or both infinite). Coordinates are [a, b, s..., r...], a and b if present.
    /// With `panels`, for piecewise-linear sigma and one radius of finite dimension, the nodes are groups of
    /// panels->size() rows with one direction z and s = scale * panels->rule().nodes in that order; features
    /// are then projections (reduction/chi_panels.hpp).
    /// With `along`, for piecewise-linear sigma, one direction and at most one radius, the nodes are groups
    /// of along->size() rows with one s and z = centre + scale * along->rule().nodes (reduction/normal_panels.hpp),
    /// with a centre for each group, or none where all are 0.
    ReducedFeatures(const Activation& sigma, bool has_a, bool has_b, std::vector<double> dims, ConstMat nodes,
                    std::shared_ptr<const ChiPanels> panels = nullptr,
                    std::shared_ptr<const NormalPanels> along = nullptr, double scale = 1,
                    std::vector<double> centres = {});

    Index coordinates() const { return has_a_ + has_b_ + directions_ + radii(); }
    Index size() const { return nodes_; }  ///< Q
    Index nanoseconds() const;             ///< cost of one point, roughly, for the choice of threads

    /// phi: n x Q; gradients: n x Q x coordinates(); either may be null. Negative radii count as 0: features
    /// end there.
    void evaluate(ConstMat z, double* phi, double* gradients, int threads = 0) const;

private:
    struct Point;  // one parameter z, split into a, b, s and r
    struct Chunk;  // averages at some nodes
    Index radii() const { return static_cast<Index>(dims_.size()); }
    Point take_apart(const double* z) const;
    void average(const Point& p, Index first, Index count, Chunk& out, bool slopes) const;
    void project(const Point& p, Index first, Index count, Chunk& out) const;
    void project_along(const Point& p, Index first, Index count, Chunk& out, bool slopes) const;
    void two_radii(double m, double R1, double R2, Chunk& out, Index at, bool slopes) const;
    template <class Add>
    void in_pieces(double m, double narrow, double wide, std::size_t i, const Add& add) const;

    Activation sigma_;
    bool has_a_, has_b_;
    double scale_;
    Index directions_, nodes_;
    std::vector<double> dims_;
    std::vector<double> columns_;                // the nodes by columns: z_{.,1} .. z_{.,P}, s_{.,1}, s_{.,2}
    std::vector<Smoother> smoothers_;            // exact average over u_i; at d = inf one for both
    std::shared_ptr<const ChiPanels> panels_;    // of one radius, for sigma with kinks; may be null
    std::shared_ptr<const NormalPanels> along_;  // of one direction, for sigma with kinks; may be null
    std::vector<double> centres_;                // of its groups of nodes
    bool two_ = false;  // two radii in finite dimension: one exact average, one quadrature
    std::shared_ptr<const TwoRadii> shared_;  // the same at all nodes at once, if it applies
    std::vector<Rule> outer_;                 // that quadrature over u_1 or u_2, unless it is the smoothers'
    Rule piece_;                              // the same between two kinks, in low dimension ...
    std::vector<double> density_;  // ... where the density of u_i is this times (1 - u^2)^{(d_i-3)/2}
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
