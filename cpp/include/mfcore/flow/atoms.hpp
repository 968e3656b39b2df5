#pragma once
// The limit itself as weighted atoms in reduced coordinates (eq. (8.1)): with masses w_i at z_i and nodes
// p_q, y_q,
//   f_q = sum_i w_i Phi_q(z_i),   dz_i = -rates (sum_q p_q (f_q - y_q) grad Phi_q(z_i) + lambda z_i) dt.
#include <functional>
#include <memory>
#include <vector>

#include "mfcore/flow/flow.hpp"
#include "mfcore/grid/separable.hpp"
#include "mfcore/reduction/reduction.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {

/// Features at moving points, on the calling thread.
struct PointFeatures {
    Index coordinates = 0;
    Index nodes = 0;
    Index nanoseconds = 0;  ///< cost of one point, roughly, for the choice of blocks and threads
    /// phi: n x nodes; gradients: n x nodes x coordinates; either may be null.
    std::function<void(ConstMat z, double* phi, double* gradients)> evaluate;
};

/// The features of a reduction, for atom_gradient().
PointFeatures point_features(std::shared_ptr<const ReducedFeatures> features);

/// The weights p_q and the targets y_q of the nodes.
struct NodeData {
    std::vector<double> weights, targets;
};

/// The gradient function grad Psi(z_i; rho) of atoms in their own field. Memory is a few hundred rows of
/// features, whatever their number, unless all gradients together are small enough to be kept between the two
/// passes.
Gradient atom_gradient(PointFeatures features, NodeData nodes, std::vector<double> masses,
                       RunOptions options = {});

/// The gradient function for separable features; with an atom outside of their box all numbers become NaN.
Gradient separable_gradient(std::shared_ptr<const SeparableFeatures> features, std::vector<double> masses,
                            int threads = 0);

/// Properties of the coordinates, one entry for each of them.
struct AtomParams {
    std::vector<double> rates;      ///< >= 0
    std::vector<bool> decays;       ///< which of them weight decay acts on
    std::vector<bool> nonnegative;  ///< radii
    std::vector<double> volume;     ///< exponents of the volume element
    double ridge = 0;               ///< lambda >= 0
    /// A box outside of which atoms count as not resolved; may be empty.
    std::vector<double> low, high;
    /// The points at which atoms can come to rest; may be empty.
    Apex apex;
};

/// Panels of atoms (eq. (8.2)): panel k holds atoms k `nodes` ... at the Gauss-Legendre nodes of an interval
/// of one parameter of the initial law. They are resolved while the last Legendre coefficients of every
/// coordinate are below atol + rtol |z| (eq. (8.3)).
struct Panels {
    Index nodes = 0;
    /// matrix from node values to the last coefficients, in rows of `nodes` numbers
    std::vector<double> tail;
    std::vector<double> weight;  ///< the factor g of eq. (8.3) of each panel
    double rtol = 0, atol = 0;
    double at_wall = 1;  ///< how much more is tolerated of panels that a wall cuts
};

/// Write what tells whether atoms z, one row each, are resolved: `tails`, for every panel and coordinate the size
/// of the last Legendre coefficients times the weight of the panel, and `tolerated`, the largest size that counts as
/// resolved. Both have a row for each panel and a column for each column of z.
void panel_tails(const Panels& panels, const std::vector<bool>& nonnegative, ConstMat z, Mat tails,
                 Mat tolerated);

/// The system of atoms with these masses >= 0 for the integrators of flow.hpp; one without mass moves in the field
/// of the others.
System atom_system(std::vector<double> masses, const AtomParams& params, Gradient gradient,
                   Panels panels = {});

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
