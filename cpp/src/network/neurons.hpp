#pragma once
// Rows of parameters packed in tiles (see tiles.hpp), and one tile's activations on a chunk of samples.
#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "base/shares.hpp"
#include "base/tiles.hpp"
#include "base/transpose.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/run.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {

/// Neurons in tiles of R vectors. The last tile is filled up with neurons of a = 0, w = 0, b = 0.
template <class T, int R>
class NeuronTiles {
public:
    static constexpr Index kWidth = R * simd::kLanes<T>;
    static constexpr Index kPacked = 1024;  // neurons between looks at the clock
    /// Samples whose activations by one tile stay in the first-level cache, in whole blocks of columns.
    static constexpr Index kNear =
        tiles::kColsOf<R> * (20480 / (kWidth * static_cast<Index>(sizeof(T)) * tiles::kColsOf<R>));

    NeuronTiles(const Network& network, ConstMat theta, int threads = 1)
        : count_(theta.rows),
          d_(theta.cols - network.w_at()),
          tiles_((theta.rows + kWidth - 1) / kWidth),
          w_(tiles_ * kWidth * d_),
          a_(tiles_ * kWidth),
          b_(network.has_b() ? tiles_ * kWidth : 0) {
        for_packed(0, tiles_, threads, [&](Index t) { pack(network, theta, 0, t); });
    }

    /// Tiles of `count` neurons in R^d, whose rows get(first, n) hands out piece by piece: they are in memory once.
    /// `finite` tells whether all of them are.
    template <class Get>
    NeuronTiles(const Network& network, Index count, Index d, const Get& get, int threads, bool& finite)
        : count_(count),
          d_(d),
          tiles_((count + kWidth - 1) / kWidth),
          w_(tiles_ * kWidth * d_),
          a_(tiles_ * kWidth),
          b_(network.has_b() ? tiles_ * kWidth : 0) {
        std::atomic<bool> all{true};
        const Index piece = std::max<Index>(1, kPiece / (kWidth * network.row(d)));
        for (Index begin = 0; begin < tiles_; begin += piece) {
            const Index end = std::min(tiles_, begin + piece), first = begin * kWidth;
            const ConstMat rows = get(first, std::min(count, end * kWidth) - first);
            touch_first(begin, end, threads);
            for_packed(begin, end, threads, [&](Index t) {
                pack(network, rows, first, t);
                if (!is_finite(t)) all.store(false, std::memory_order_relaxed);  // while it is in the cache
            });
        }
        finite = all;
    }

    /// Tiles of rows that keep their w in the caller's memory, from which tiles are borrowed.
    static NeuronTiles of_rows(const Network& network, Mat theta, int threads) {
        NeuronTiles made(network, theta, Unfilled{});
        made.for_packed(0, made.tiles_, threads, [&](Index t) { made.pack_scalars(network, theta, 0, t); });
        return made;
    }

    Index count() const { return count_; }
    Index tiles() const { return tiles_; }
    Index dimension() const { return d_; }
    /// Number of neurons of tile t that are not padding.
    Index filled(Index t) const { return std::min(kWidth, count_ - t * kWidth); }
    const T* w(Index t) const { return w_.data() + t * kWidth * d_; }
    const T* a(Index t) const { return a_.data() + t * kWidth; }
    const T* b(Index t) const { return b_.empty() ? nullptr : b_.data() + t * kWidth; }
    T* w(Index t) { return w_.data() + t * kWidth * d_; }
    T* a(Index t) { return a_.data() + t * kWidth; }
    T* b(Index t) { return b_.empty() ? nullptr : b_.data() + t * kWidth; }

    bool in_rows() const { return rows_.data != nullptr; }
    /// Numbers of memory that borrow() needs: none where w is in the tiles.
    Index room() const { return in_rows() ? kWidth * d_ : 0; }
    /// w of tile t, where it lies or packed there.
    T* borrow(Index t, T* room) {
        if (!in_rows()) return w(t);
        tiles::pack_columns<T, R>(rows_.middle_rows(t * kWidth, filled(t)), room);
        return room;
    }
    /// Put what was borrowed, and moved, into its rows.
    void give_back(Index t, const T* moved) {
        if (in_rows()) tiles::unpack_columns<T, R>(moved, rows_.middle_rows(t * kWidth, filled(t)));
    }
    /// Copy a and b to rows in the network's layout.
    void unpack_scalars(const Network& network, Mat theta, int threads) const {
        for_packed(0, tiles_, threads, [&](Index t) { unpack_scalars_of(network, theta, t); });
    }

    /// Copy the neurons of the tiles to rows in the network's layout.
    void unpack(const Network& network, Mat theta, int threads = 1) const {
        for_packed(0, tiles_, threads, [&](Index t) {
            unpack_scalars_of(network, theta, t);
            const Mat rows = theta.middle_rows(t * kWidth, filled(t));
            tiles::unpack_columns<T, R>(w(t), {rows.data + network.w_at(), rows.rows, d_, rows.stride});
        });
    }

    /// Take over the neurons of tiles of the same shape.
    void assign(const NeuronTiles& other, int threads) {
        for_packed(0, tiles_, threads, [&](Index t) {
            std::copy_n(other.w(t), kWidth * d_, w(t));
            std::copy_n(other.a(t), kWidth, a(t));
            if (!b_.empty()) std::copy_n(other.b(t), kWidth, b(t));
        });
    }
    NeuronTiles copy(int threads) const {
        NeuronTiles made(*this, Unfilled{});
        made.touch_first(0, tiles_, threads);
        made.assign(*this, threads);
        return made;
    }

    bool finite(int threads = 1) const {
        std::atomic<bool> all{true};
        for_packed(0, tiles_, threads, [&](Index t) {
            if (!is_finite(t)) all.store(false, std::memory_order_relaxed);
        });
        return all;
    }

    /// value[q * kWidth + i] = sigma(<w_i, x_q> + b_i), and likewise the slope unless it is null.
    void activate(const Activation& sigma, Index t, MatView<const T> x, T* value, T* slope) const {
        for (Index q = 0; q < x.rows; q += kNear) {
            const Index rows = std::min(kNear, x.rows - q);
            T* z = value + q * kWidth;
            tiles::with_filled<T, R>(filled(t), [&](auto vectors) {
                constexpr int V = vectors();
                tiles::forward<T, V>(x.middle_rows(q, rows), w(t), b(t), z, kWidth, kWidth);
                for (Index k = 0; V < R && k < rows; ++k)
                    std::fill_n(z + k * kWidth + V * simd::kLanes<T>, (R - V) * simd::kLanes<T>, T(0));
            });
            evaluate<T>(sigma, rows * kWidth, z, z, slope ? slope + q * kWidth : nullptr, nullptr);
        }
    }

private:
    struct Unfilled {};
    NeuronTiles(const NeuronTiles& shape, Unfilled)
        : count_(shape.count_),
          d_(shape.d_),
          tiles_(shape.tiles_),
          w_(shape.w_.size()),
          a_(shape.a_.size()),
          b_(shape.b_.size()) {}

    NeuronTiles(const Network& network, Mat theta, Unfilled)
        : count_(theta.rows),
          d_(theta.cols - network.w_at()),
          tiles_((theta.rows + kWidth - 1) / kWidth),
          rows_(theta.data + network.w_at(), theta.rows, d_, theta.stride),
          a_(tiles_ * kWidth),
          b_(network.has_b() ? tiles_ * kWidth : 0) {}

    static constexpr Index kPiece = Index{1} << 19;  // numbers of neurons that are handed out at once

    /// Call body(tile) for tiles from `first` to `last`. Each is touched by the thread that will compute with it.
    template <class Body>
    void for_packed(Index first, Index last, int threads, Body&& body) const {
        const Index n = last - first;
        const int team = threads == 1 ? 1 : threads_for(n * kWidth * (d_ + 2), threads);
        const Index most = kPacked / kWidth,
                    piece = team == 1 ? most : std::clamp<Index>(n / (8 * team), 1, most);
        for_shares((n + piece - 1) / piece, team, [&](Index k) {
            for (Index t = first + k * piece; t < std::min(last, first + (k + 1) * piece); ++t) body(t);
        });
    }

    /// Write to each page of w that begins in these tiles before they are filled, huge page by huge page, each
    /// in one thread: two that fill neighbours within one wait for each other while the system clears it.
    void touch_first(Index first, Index last, int threads) {
        constexpr Index kHuge = (Index{1} << 21) / static_cast<Index>(sizeof(T)), kPage = kHuge >> 9;
        const Index n = tiles_ * kWidth * d_;
        if (n < 4 * kHuge) return;
        const auto page = [&](Index t) { return (t * kWidth * d_ + kHuge - 1) / kHuge; };
        for_blocks(page(last) - page(first), 1, threads, [&](Index, Index k, Index) {
            const Index begin = (page(first) + k) * kHuge;
            for (Index i = begin; i < std::min(n, begin + kHuge); i += kPage) w_[i] = T{};
        });
    }

    bool is_finite(Index t) const {
        simd::Vec<T> sum{};  // of zeros, unless an entry is not finite
        const auto look = [&](const T* x, Index n) {
            for (Index i = 0; i < n; i += simd::kLanes<T>) sum += T(0) * simd::load(x + i);
        };
        look(w(t), kWidth * d_);
        look(a(t), kWidth);
        if (!b_.empty()) look(b(t), kWidth);
        for (Index lane = 0; lane < simd::kLanes<T>; ++lane)
            if (sum[lane] != 0) return false;
        return true;
    }

    /// Fill tile t from rows of which the first is neuron `first`.
    void pack(const Network& network, ConstMat rows, Index first, Index t) {
        pack_scalars(network, rows, first, t);
        const ConstMat mine = rows.middle_rows(t * kWidth - first, filled(t));
        tiles::pack_columns<T, R>({mine.data + network.w_at(), mine.rows, d_, mine.stride}, w(t));
    }
    void pack_scalars(const Network& network, ConstMat rows, Index first, Index t) {
        for (Index i = 0; i < kWidth; ++i) {
            const double* const row = i < filled(t) ? rows.row(t * kWidth + i - first) : nullptr;
            a(t)[i] = row ? static_cast<T>(network.has_a() ? row[0] : 1.0) : T(0);
            if (network.has_b()) b(t)[i] = row ? static_cast<T>(row[network.b_at()]) : T(0);
        }
    }
    void unpack_scalars_of(const Network& network, Mat theta, Index t) const {
        for (Index i = t * kWidth; i < t * kWidth + filled(t); ++i) {
            if (network.has_a()) theta(i, 0) = a_[i];
            if (network.has_b()) theta(i, network.b_at()) = b_[i];
        }
    }

    Index count_, d_, tiles_;
    Mat rows_;  // of the caller, if w is there
    Scratch<T> w_, a_, b_;
};

/// Call body(std::integral_constant<int, R>) with the tile width, `kLeast` to 3 vectors, that suits `neurons`
/// neurons: padding costs as much as neurons do, and narrow tiles leave loads exposed (measured: 1.35, 1.02
/// and 1 per vector). Ties go to the narrower tile: more of them are shared out more evenly.
template <class T, int kLeast = 1, class Body>
decltype(auto) with_tile_width(Index neurons, Body&& body) {
    const Index vectors = (neurons + simd::kLanes<T> - 1) / simd::kLanes<T>;
    const auto cost = [&](Index r, double per_vector) {
        return static_cast<double>((vectors + r - 1) / r * r) * per_vector;
    };
    const double three = cost(3, 1.0), two = cost(2, 1.02), one = cost(1, 1.35);
    if (three < two && (kLeast > 1 || three <= one)) return body(std::integral_constant<int, 3>{});
    if constexpr (kLeast == 1)
        if (one < two) return body(std::integral_constant<int, 1>{});
    return body(std::integral_constant<int, 2>{});
}

/// Cost in nanoseconds, roughly, of the values and slopes of `neurons` neurons on `rows` samples in R^d on
/// one core.
inline Index activation_cost(Index rows, Index neurons, Index d) { return rows * neurons * (d + 50) / 50; }

/// Check shapes: `rows` must have the network's length for inputs in R^d.
void require_rows(const Network& network, ConstMat rows, Index d, const char* name);

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
