// Measurements of the machine's peak arithmetic speed and memory bandwidth.
#include "mfcore/base/peak.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "base/simd.hpp"
#include "mfcore/base/aligned.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds in which the members of a team, all at work at the same time, do work(rank, size) each; the least of
/// several runs: the machine's best, free of what else it was doing. Parallel loops, whose blocks go to whoever
/// is free, would give them all to the first member while the others wake up.
template <class Work>
double shortest_together(int threads, Work&& work) {
    double best = 1e30;
    for (int run = 0; run < 12; ++run) {
        std::vector<double> begin(threads), end(threads);
        std::atomic<int> awake{0};
        run_team(threads, [&](int rank, int size) {
            for (++awake; awake < size;) std::this_thread::yield();
            begin[rank] = seconds();
            work(rank, size);
            end[rank] = seconds();
        });
        const auto size = static_cast<std::size_t>(awake.load());
        best = std::min(best, *std::max_element(end.begin(), end.begin() + size) -
                                  *std::min_element(begin.begin(), begin.begin() + size));
    }
    return best;
}

template <class T>
double fma_rate(int threads) {
    constexpr int kChains = 12;  // enough independent chains for two units of latency four
    constexpr Index kSteps = 1'000'000;
    std::vector<T> sink(threads);
    std::atomic<int> members{1};
    const double time = shortest_together(threads, [&](int rank, int size) {
        members = size;
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
    return 2e-9 * static_cast<double>(simd::kLanes<T> * kChains * kSteps * members) / time;
}

}  // namespace

double fma_peak(int threads, bool single_precision) {
    const int team = resolve_threads(threads);
    return single_precision ? fma_rate<float>(team) : fma_rate<double>(team);
}

double memory_bandwidth(int threads) {
    const Index n = Index{1} << 24;  // 128 MB
    UnfilledVector a(n);
    const int team = resolve_threads(threads);
    run_team(team, [&](int rank, int size) {  // each touches its share first
        std::fill(a.begin() + n * rank / size, a.begin() + n * (rank + 1) / size, 1.0);
    });
    const double time = shortest_together(team, [&](int rank, int size) {
        for (Index i = n * rank / size; i < n * (rank + 1) / size; ++i) a[i] = a[i] * 0.5 + 0.5;
    });
    return 2e-9 * static_cast<double>(n * sizeof(double)) / time;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
