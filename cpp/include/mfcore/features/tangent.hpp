#pragma once
// Kernels of gradients: what a network learns while its neurons stay where they are (eq. (11.2)).
#include "mfcore/features/features.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline features {

/// K(i, j) = int sum_c rates_c <d_c sigma*(x_i; .), d_c sigma*(x'_j; .)> d rho over the trained blocks c, for
/// rows x_i of x and x'_j of other; on the sphere of tangential gradients in w. `other` null: K(x, x), half of
/// it computed. Memory O((n + m)(n + m + 512)): neurons pass through in blocks.
void tangent_kernel(const Network& network, const Measure& rho, const Rates& rates, ConstMat x,
                    const ConstMat* other, Mat K, int threads = 0);

}  // namespace mfcore::inline MFCORE_LEVEL::inline features
