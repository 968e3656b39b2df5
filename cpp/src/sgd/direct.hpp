#pragma once
// Plain sequential SGD of so few neurons in so few dimensions that they stay in one tile or two: blocks would
// cost more than the loads and stores they save.
#include "network/kinds.hpp"
#include "network/neurons.hpp"
#include "sgd/block.hpp"
#include "sgd/long_rows.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

inline constexpr Index kDirectSteps = 32;  // after which pre-activations are computed anew
/// The largest dimension for one tile; half of it for two. Measured: 1.1 times the speed of blocks there, 2 at 10 (one tile); 1.7 times
/// at 32, 2.9 at 5 (two).
inline constexpr Index kDirectDimension = 64;

/// Do steps of one sample each, theta <- theta + h rate (e grad sigma* - lambda theta) with e = y - f(x): eq.
/// (6.1). Each waits for the error of the one before, so little is left between an error and the next: the
/// neurons meet a sample while the sample before is still on its way, and what its step adds to their
/// pre-activations is one product, with <x, x'> (eq. (6.2)). Returns how many steps were done: fewer than
/// given if a prediction is not finite. V: vectors that hold all neurons.
template <int V, class T, int R, class Kernel>
Index direct_steps(const Kernel& kernel, const Network& network, const SgdParams& params,
                   NeuronTiles<T, R>& tiles, const StepBlock<T>& block) {
    using Vec = simd::Vec<T>;
    constexpr Index lanes = simd::kLanes<T>, width = NeuronTiles<T, R>::kWidth;
    const Index d = tiles.dimension();
    const T inverse_count = T(1) / static_cast<T>(tiles.count()), ridge = static_cast<T>(params.ridge);
    const bool trains_a = network.output == Output::trained, trains_b = network.trains_b();
    T* const w = tiles.w(0);
    // The address of coordinate j of vector r.
    const auto at = [&](Index j, int r) { return w + ((r / R) * d + j) * width + (r % R) * lanes; };
    Vec a[V], b[V] = {}, real[V];  // real: 1 for neurons, 0 for what fills the tile
    T numbers[V * lanes];
    for (Index i = 0; i < V * lanes; ++i) numbers[i] = i < tiles.count() ? T(1) : T(0);
    for (int r = 0; r < V; ++r) {
        a[r] = simd::load(tiles.a(0) + r * lanes);
        if (network.has_b()) b[r] = simd::load(tiles.b(0) + r * lanes);
        real[r] = simd::load(numbers + r * lanes);
    }
    Vec share[V];  // of a in a prediction
    for (int r = 0; r < V; ++r) share[r] = inverse_count * a[r];
    Vec z[V] = {};
    for (Index j = 0; j < d; ++j)
        for (int r = 0; r < V; ++r) z[r] += simd::fill(block.x(0, j)) * simd::load(at(j, r));
    for (int r = 0; r < V; ++r) z[r] += b[r];
    Index s = 0;
    for (; s < block.steps; ++s) {
        const T *const x = block.x.row(s), *const next = block.x.row(std::min(s + 1, block.steps - 1));
        const T h = static_cast<T>(block.h[s]), h_w = h * static_cast<T>(params.rates.w),
                h_b = h * static_cast<T>(params.rates.b);
        const T keep = T(1) - h_w * ridge, keep_b = trains_b ? T(1) - h_b * ridge : T(1);
        kinds::Jet<T> out[V];
        Vec left{};  // of y when the neurons' shares are taken away, summed over the lanes
        left[0] = block.y[s];
#pragma GCC unroll 6
        for (int r = 0; r < V; ++r) {  // unrolled, so that none of these arrays has to be in memory
            out[r] = kinds::soon<Kernel, T>(kernel, z[r]);
            left -= share[r] * out[r].value;
        }
        const Vec error = simd::sum_everywhere<T>(left);
        if (!std::isfinite(error[0])) break;
        // All of this is known before the error.
        T inner = 0;
        for (Index j = 0; j < d; ++j) inner += x[j] * next[j];
        Vec force[V];
        for (int r = 0; r < V; ++r) {
            force[r] = a[r] * out[r].slope;
            z[r] = Vec{};
        }
        for (Index j = 0; j < d; ++j)
            for (int r = 0; r < V; ++r) z[r] += simd::fill(next[j]) * simd::load(at(j, r));
        const T along = h_w * inner + (trains_b ? h_b : T(0));
        for (int r = 0; r < V; ++r) z[r] = error * (along * force[r]) + (keep * z[r] + keep_b * b[r]);
        for (int r = 0; r < V; ++r) force[r] *= error;
        for (Index j = 0; j < d; ++j)
            for (int r = 0; r < V; ++r) {
                T* const entry = at(j, r);
                simd::store(entry, keep * simd::load(entry) + (h_w * x[j]) * force[r]);
            }
        if (trains_a) {
            const T h_a = h * static_cast<T>(params.rates.a);
            for (int r = 0; r < V; ++r) {
                a[r] = (T(1) - h_a * ridge) * a[r] + error * (h_a * (real[r] * out[r].value));
                share[r] = inverse_count * a[r];
            }
        }
        if (trains_b)
            for (int r = 0; r < V; ++r) b[r] = keep_b * b[r] + h_b * force[r];
    }
    for (int r = 0; r < V; ++r) {
        simd::store(tiles.a(0) + r * lanes, a[r]);
        if (trains_b) simd::store(tiles.b(0) + r * lanes, b[r]);
    }
    return s;
}

/// Do the blocks of direct steps at(0), at(1), ... Returns how many were done; `made` steps of the next one
/// were before a prediction that is not finite.
template <class T, int R, class At>
Index direct_blocks(const Network& network, const SgdParams& params, NeuronTiles<T, R>& tiles, Index blocks,
                    const At& at, Index& made) {
    Index done = 0;
    if (is_of_long_rows(tiles.count(), tiles.dimension())) {
        LongRows<T, R> rows(network, params, tiles);
        for (; done < blocks; ++done) {
            const StepBlock<T> block = at(done);
            made = rows.advance(block);
            if (made < block.steps) break;
        }
        rows.store();
        return done;
    }
    kinds::with_kernel<T>(network.activation, [&]<class Kernel>(const Kernel& kernel) {
        if constexpr (kinds::OfVectors<Kernel, T>) {
            for (; done < blocks; ++done) {
                const StepBlock<T> block = at(done);
                if (tiles.tiles() > 1)
                    made = direct_steps<2 * R, T, R>(kernel, network, params, tiles, block);
                else if (R > 2 || tiles.count() > simd::kLanes<T>)
                    made = direct_steps<R, T, R>(kernel, network, params, tiles, block);
                else if constexpr (R == 2)
                    made = direct_steps<1, T, R>(kernel, network, params, tiles, block);
                if (made < block.steps) return;
            }
        }
    });
    return done;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
