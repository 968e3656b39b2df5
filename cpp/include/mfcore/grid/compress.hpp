#pragma once
// Compress a table of features to low rank (eq. (2.6)): values ~ basis * coefficients.
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {

/// The result of compress().
struct LowRank {
    Index rank = 0;
    std::vector<double> basis;         // n x rank, orthonormal columns
    std::vector<double> coefficients;  // rank x Q
    double error = 0;                  // largest deviation of an entry, relative to the largest entry
};

/// Compress until no entry of the product deviates by more than `tolerance` times the largest entry.
LowRank compress(ConstMat values, double tolerance);

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
