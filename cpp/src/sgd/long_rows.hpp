#pragma once
// Plain sequential SGD of very few neurons in many dimensions. A tile would leave most of its lanes idle, so each
// weight vector lies along the lanes here, and never leaves the first-level cache: a step is a scalar product
// and an update of it.
#include <algorithm>
#include <cmath>

#include "base/scratch.hpp"
#include "network/neurons.hpp"
#include "sgd/block.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// True if neurons are so few, and their weight vectors so long, that they lie along the lanes.
inline bool is_of_long_rows(Index count, Index d) { return count <= 4 && d >= 64; }

/// Sum of term(j) over j < d, where term(j, V{}) are all those of a vector V at once, or of one number.
template <class T, class Term>
MFCORE_INLINE T sum_along(Index d, const Term& term) {
    using Vec = simd::Vec<T>;
    constexpr Index lanes = simd::kLanes<T>,
                    kChains = 4;  // each addition waits for the last one of its chain
    Vec sum[kChains] = {};
    Index j = 0;
    for (; j + kChains * lanes <= d; j += kChains * lanes)
        for (Index k = 0; k < kChains; ++k) sum[k] += term(j + k * lanes, Vec{});
    for (; j + lanes <= d; j += lanes) sum[0] += term(j, Vec{});
    T rest = 0;
    for (; j < d; ++j) rest += term(j, T{});
    return simd::sum<T>((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

/// The neurons of tiles as rows, until store() puts them back.
template <class T, int R>
class LongRows {
public:
    using Tiles = NeuronTiles<T, R>;

    LongRows(const Network& network, const SgdParams& params, Tiles& tiles)
        : network_(network),
          params_(params),
          tiles_(tiles),
          count_(tiles.count()),
          d_(tiles.dimension()),
          stride_((d_ + kLine - 1) / kLine * kLine),
          w_(count_ * stride_) {
        for (Index j = 0; j < d_; ++j)
            for (Index i = 0; i < count_; ++i) row(i)[j] = tiles_.w(0)[j * Tiles::kWidth + i];
    }

    void store() {
        for (Index j = 0; j < d_; ++j)
            for (Index i = 0; i < count_; ++i) tiles_.w(0)[j * Tiles::kWidth + i] = row(i)[j];
    }

    /// Do steps of one sample each (eq. (6.1)). Returns how many were done: fewer than given if a prediction is
    /// not finite.
    Index advance(const StepBlock<T>& block) {
        const bool trains_a = network_.output == Output::trained, trains_b = network_.trains_b();
        const T inverse_count = T(1) / static_cast<T>(count_), ridge = static_cast<T>(params_.ridge);
        T *const a = tiles_.a(0), *const b = tiles_.b(0);
        T z[Tiles::kWidth] = {}, value[Tiles::kWidth], slope[Tiles::kWidth];
        const Index whole = (count_ + simd::kLanes<T> - 1) / simd::kLanes<T> * simd::kLanes<T>;
        for (Index s = 0; s < block.steps; ++s) {
            const T* const x = block.x.row(s);
            for (Index i = 0; i < count_; ++i) z[i] = meet(row(i), x) + (b ? b[i] : T(0));
            evaluate<T>(network_.activation, whole, z, value, slope, nullptr);
            T sum = 0;
            for (Index i = 0; i < count_; ++i) sum += a[i] * value[i];
            const T error = block.y[s] - sum * inverse_count;
            if (!std::isfinite(error)) return s;
            const T h = static_cast<T>(block.h[s]), h_w = h * static_cast<T>(params_.rates.w),
                    h_a = h * static_cast<T>(params_.rates.a), h_b = h * static_cast<T>(params_.rates.b);
            for (Index i = 0; i < count_; ++i) {
                const T force = error * (a[i] * slope[i]);
                move(row(i), T(1) - h_w * ridge, h_w * force, x);
                if (trains_a) a[i] = (T(1) - h_a * ridge) * a[i] + h_a * error * value[i];
                if (trains_b) b[i] = (T(1) - h_b * ridge) * b[i] + h_b * force;
            }
        }
        return block.steps;
    }

private:
    static constexpr Index kLine = 64 / static_cast<Index>(sizeof(T));  // numbers in a cache line

    T* row(Index i) { return w_.data() + i * stride_; }

    template <class V>
    static V get(const T* p) {
        V v;
        std::memcpy(&v, p, sizeof v);
        return v;
    }

    /// <w, x>
    T meet(const T* w, const T* x) const {
        return sum_along<T>(d_, [&]<class V>(Index j, V) { return get<V>(w + j) * get<V>(x + j); });
    }

    /// w <- keep w + c x, then to the unit sphere where the network has it there.
    void move(T* w, T keep, T c, const T* x) const {
        const T square = sum_along<T>(d_, [&]<class V>(Index j, V) {
            const V moved = keep * get<V>(w + j) + c * get<V>(x + j);
            std::memcpy(w + j, &moved, sizeof moved);
            return moved * moved;
        });
        if (!network_.sphere) return;
        const T inverse = inverse_length(square);
        for (Index j = 0; j < d_; ++j) w[j] *= inverse;
    }

    const Network& network_;
    const SgdParams& params_;
    Tiles& tiles_;
    Index count_, d_, stride_;
    Scratch<T> w_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
