#pragma once
// Matrices of random numbers by address (random.hpp), drawn in parallel.
#include "mfcore/base/random.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::random {

/// Which law the numbers have: uniform on (0, 1), or standard normal.
enum class Numbers { uniform, normal };

/// out(k, j) = shift + scale z, z being number (first + k) cols + j of the stream: initial parameters, or a
/// block of their columns, from row `first` of all on.
void fill_rows(const Stream& stream, Numbers kind, double shift, double scale, Mat out, int threads = 0,
               Index first = 0);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::random
