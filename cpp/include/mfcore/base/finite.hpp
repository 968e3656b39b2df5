#pragma once
// Tell whether numbers are finite, as fast as memory hands them over.

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// True if no number of x is infinite or NaN. Never interrupted.
bool all_finite(ConstMat x, int threads = 1);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
