#pragma once
// Measure the peak speed of this machine, arithmetic and memory, which benchmarks are compared with.

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Speed of fused multiply-adds on registers, in billions of floating-point operations per second (two per
/// FMA).
double fma_peak(int threads, bool single_precision = false);

/// Speed of reading and writing an array larger than the caches, in billions of bytes per second.
double memory_bandwidth(int threads);

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
