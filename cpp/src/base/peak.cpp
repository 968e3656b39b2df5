// Measurements of the machine's peak arithmetic speed and memory bandwidth.
#include "mfcore/base/peak.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The shortest time of several runs: the machine's best, free of what else it was doing.
template <class Body>
double shortest(Body&& body) {
    double best = 1e30;
    for (int run = 0; run < 12; ++run) {
        const double start = seconds();
        body();
        best = std::min(best, seconds() - start);
    }
    return best;
}

template <class T>
double fma_rate(int threads) {
    constexpr int kChains = 12;  // enough independent chains for two units of latency four
    constexpr Index kSteps = 400'000;
    std::vector<T> sink(threads);
    const double time = shortest([&] {
        for_blocks(threads, 1, threads, [&](Index rank, Index, Index) {
            simd::Vec<T> x[kChains];
            for (int c = 0; c < kChains; ++c) x[c] = simd::fill<T>(static_cast<T>(c + sink[rank]));
            const simd::Vec<T> scale = simd::fill<T>(T(0.5)), shift = simd::fill<T>(T(1));
            for (Index k = 0; k < kSteps; ++k) {
#pragma GCC unroll 12
                for (int c = 0; c < kChains; ++c) x[c] = x[c] * scale + shift;
            }
            simd::Vec<T> sum{};
            for (int c = 0; c < kChains; ++c) sum += x[c];
            sink[rank] = sum[0] * T(1e-9);
        });
    });
    return 2e-9 * static_cast<double>(simd::kLanes<T> * kChains * kSteps * threads) / time;
}

}  // namespace

double fma_peak(int threads, bool single_precision) {
    const int team = resolve_threads(threads);
    return single_precision ? fma_rate<float>(team) : fma_rate<double>(team);
}

double memory_bandwidth(int threads) {
    const Index n = Index{1} << 24;  // 128 MB
    std::vector<double> a(n, 1.0);
    const double time = shortest([&] {
        for_blocks(n, n / 64, threads, [&](Index, Index begin, Index end) {
            for (Index i = begin; i < end; ++i) a[i] = a[i] * 0.5 + 0.5;
        });
    });
    return 2e-9 * static_cast<double>(n * sizeof(double)) / time;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
