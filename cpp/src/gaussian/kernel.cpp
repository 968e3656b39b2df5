// The kernel value K00 + (constant + along <w, w'>) K11 of all pairs of neurons: both products at once where they have
// closed forms, and of neurons with themselves each pair once.
#include <algorithm>
#include <optional>

#include "base/parallel.hpp"
#include "gaussian/closed.hpp"
#include "gaussian/columns.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

constexpr Index kRowsOfKernel = 64, kColsOfKernel = 240;  // a tile of each product stays in the second cache
static_assert(kColsOfKernel % Columns::kWidth == 0 && kColsOfKernel % kPack == 0, "tiles are whole");

/// `constant` + `along` q, times P, plus `value` U, for a row of a tile.
void combine(const KernelOf& of, const Side& first, const Side& second, Index i, Index j, Index cols,
             const double* q, const double* P, double* U) {
    const double along = of.along * first.unit[to_size(i)];
    for (Index c = 0; c < cols; c += kPack) {
        const Pack inner = (along * simd::load(&second.unit[to_size(j + c)])) * simd::load(q + c);
        simd::store(U + c, of.value * simd::load(U + c) + (of.constant + inner) * simd::load(P + c));
    }
}

class ClosedKernel {
public:
    ClosedKernel(const Side& first, const Side& second, const KernelOf& of, Mat K)
        : first_(first), second_(second), of_(of), K_(K), pairs_(first, second), columns_(second) {}

    void add_rows(Index i, Index end) const {
        const bool own = &first_ == &second_;
        FilledScratch<double> buffer(to_size(3 * kRowsOfKernel * kColsOfKernel));
        double *const q = buffer.data(), *const P = q + kRowsOfKernel * kColsOfKernel,
                      *const U = P + kRowsOfKernel * kColsOfKernel;
        for (Index j = own ? i / kColsOfKernel * kColsOfKernel : 0; j < second_.n; j += kColsOfKernel) {
            check_stop();
            const Index cols = std::min(kColsOfKernel, second_.n - j);
            columns_.gram(first_, i, end - i, j, cols, q, kColsOfKernel);
            for (Index r = 0; r < end - i; ++r) {
                const Index from = own ? std::max<Index>(0, (i + r - j) / kPack * kPack) : 0;
                if (from >= cols) continue;
                const Index at = r * kColsOfKernel + from, count = cols - from;
                pairs_.row(i + r, j + from, count, q + at, U + at, P + at);
                combine(of_, first_, second_, i + r, j + from, count, q + at, P + at, U + at);
                const Index begin = own ? std::max(j + from, i + r) : j;
                std::copy(U + r * kColsOfKernel + begin - j, U + r * kColsOfKernel + cols,
                          K_.row(i + r) + begin);
            }
            if (!own) continue;
            for (Index c = 0; c < cols; ++c) {
                const Index rows = std::min(end - i, j + c - i);  // above the diagonal
                double* const to = K_.row(j + c) + i;
                for (Index r = 0; r < rows; ++r) to[r] = U[r * kColsOfKernel + c];
            }
        }
    }

private:
    const Side &first_, &second_;
    KernelOf of_;
    Mat K_;
    ClosedPairs pairs_;
    Columns columns_;
};

}  // namespace

void pair_kernel(const Network& network, ConstMat theta, ConstMat other, const KernelOf& of, Mat K,
                 int threads) {
    require(!network.has_a(), "network", "must have no output weight", "one");
    const Side first(network, theta, "theta");
    const bool own = theta.data == other.data && theta.rows == other.rows && theta.stride == other.stride;
    std::optional<Side> others;
    if (!own) others.emplace(network, other, "other");
    const Side& second = own ? first : *others;
    require(first.d == second.d, "other", "must have as many inputs as theta", second.d);
    require_matrix(K, "K", 0);
    require(K.rows == first.n && K.cols == second.n, "K",
            "must have a row for each of theta, a column for each of other", K.rows);
    if (ClosedPairs::serve(first, second)) {
        const ClosedKernel kernel(first, second, of, K);
        const Index work = first.n * second.n * (4 + first.d / 8) / (own ? 2 : 1);
        return for_blocks(first.n, kRowsOfKernel, threads_for(work, threads),
                          [&](Index, Index i, Index end) { kernel.add_rows(i, end); });
    }
    FilledScratch<double> slopes(to_size(first.n * second.n));
    pair_matrix(network, theta, network, other, K, threads);
    pair_slopes(network, theta, other, {slopes.data(), first.n, second.n}, threads);
    const Columns columns(second);
    for_blocks(
        first.n, kRowsOfKernel, threads_for(first.n * second.n, threads), [&](Index, Index i, Index end) {
            FilledScratch<double> q(to_size(kRowsOfKernel * kColsOfKernel));
            for (Index j = 0; j < second.n; j += kColsOfKernel) {
                const Index cols = std::min(kColsOfKernel, second.n - j);
                columns.gram(first, i, end - i, j, cols, q.data(), kColsOfKernel);
                for (Index r = 0; r < end - i; ++r) {
                    double* const to = K.row(i + r) + j;
                    const double* const P = &slopes[to_size((i + r) * second.n + j)];
                    const double along = of.along * first.unit[to_size(i + r)];
                    for (Index c = 0; c < cols; ++c)
                        to[c] = of.value * to[c] + (of.constant + (along * second.unit[to_size(j + c)]) *
                                                                      q[to_size(r * kColsOfKernel + c)]) *
                                                       P[c];
                }
            }
        });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
