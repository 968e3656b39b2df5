// Tells whether numbers are finite: 0 x is 0 where x is, and NaN where it is not.
#include "mfcore/base/finite.hpp"

#include <atomic>

#include "base/parallel.hpp"
#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

constexpr Index kBlock = 1 << 14;  // numbers, or more where a row is longer

bool is_finite(const double* x, Index n) {
    constexpr Index lanes = simd::kLanes<double>;
    constexpr int kChains = 4;  // additions that do not wait for each other
    simd::Vec<double> zeros[kChains] = {};
    Index i = 0;
    for (; i + kChains * lanes <= n; i += kChains * lanes)
        for (int k = 0; k < kChains; ++k) zeros[k] += 0.0 * simd::load(x + i + k * lanes);
    double rest = simd::sum<double>((zeros[0] + zeros[1]) + (zeros[2] + zeros[3]));
    for (; i < n; ++i) rest += 0.0 * x[i];
    return rest == 0;
}

}  // namespace

bool all_finite(ConstMat x, int threads) {
    const StopScope whole{StopPredicate{}};  // there is an answer even where somebody wants to stop
    const Index n = x.rows * x.cols;
    const bool gaps = x.stride != x.cols;
    if (!gaps) x = {x.data, n, 1};  // cut wherever it suits
    std::atomic<bool> all{true};
    for_blocks(x.rows, std::max<Index>(1, kBlock / std::max<Index>(1, x.cols)), threads_for(n / 8, threads),
               [&](Index, Index begin, Index end) {
                   bool good = gaps || is_finite(x.data + begin, end - begin);
                   for (Index i = begin; gaps && good && i < end; ++i) good = is_finite(x.row(i), x.cols);
                   if (!good) all.store(false, std::memory_order_relaxed);
               });
    return all;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
