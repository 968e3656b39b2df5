#pragma once
// Whether numbers are finite, at the speed of memory.

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Whether no number of x is infinite or NaN. Never interrupted.
bool all_finite(ConstMat x, int threads = 1);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
