#pragma once
// Finite volumes in progress, shared by two files of bindings.
#include "arrays.hpp"
#include "mfcore/density/finite_volume.hpp"

namespace mfcore::bindings {

/// Finite volumes in progress, for `_core.Flow`.
std::unique_ptr<Flow> grid_flow(const GridPotential& potential, std::vector<GridAxis> axes, const In& start,
                                const std::string& scheme, double t, double first, double step,
                                double accuracy, double tolerance, double most_watched);

}  // namespace mfcore::bindings
