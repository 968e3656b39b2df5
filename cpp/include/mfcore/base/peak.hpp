#pragma once
// What this machine can do, measured: the yardstick of the benchmarks.

namespace mfcore::inline base {

/// Fused multiply-adds on registers only, in billions of floating-point operations per second (two per FMA).
double fma_peak(int threads, bool single_precision = false);

/// Bytes per second, in billions, of reading and writing an array larger than the caches.
double memory_bandwidth(int threads);

}  // namespace mfcore::inline base
