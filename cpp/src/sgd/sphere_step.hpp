#pragma once
// One tile of neurons in a step of layer-wise training: small weights move along their sphere (eq. (12.8)), the
// others in a box (eq. (12.9)).
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "network/neurons.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Which weights of neurons in tiles are small: a bit each, those of a vector in one byte.
template <int R>
class SmallWeights {
public:
    static constexpr Index kLanes = simd::kLanes<double>, kWidth = R * kLanes;
    using Mask = simd::IntVec<double>;
    static_assert(kLanes <= 8);

    SmallWeights(Index tiles, Index d) : d_(d), bits_(static_cast<std::size_t>(tiles * d * R), 0) {}

    /// The bytes of tile t: R for each coordinate.
    const std::uint8_t* of(Index t) const { return bits_.data() + t * d_ * R; }

    bool is_small(Index i, Index j) const { return (byte(i, j) >> i % kLanes & 1) != 0; }
    void set(Index i, Index j, bool small) {
        const unsigned bit = 1u << i % kLanes;
        std::uint8_t& at = bits_[place(i, j)];
        at = static_cast<std::uint8_t>(small ? at | bit : at & ~bit);
    }

    /// Lanes of ones where the bits of a byte are set.
    static Mask mask(std::uint8_t byte) {
        Mask bit{};
        for (Index l = 0; l < kLanes; ++l) bit[l] = std::int64_t{1} << l;
        return ((bit & (Mask{} + byte)) != 0);
    }

private:
    std::size_t place(Index i, Index j) const {
        return static_cast<std::size_t>((i / kWidth * d_ + j) * R + i % kWidth / kLanes);
    }
    unsigned byte(Index i, Index j) const { return bits_[place(i, j)]; }

    Index d_;
    std::vector<std::uint8_t> bits_;
};

/// The outcome of a step for a tile.
struct TileMoved {
    bool finite;   ///< the weights after it, and what they moved by
    bool reached;  ///< whether a small weight has become as large as `reach`
};

/// moved = the weights w of a tile after a step by `move`, arrays of d x R vectors, of which those with bits in
/// `small` are small and have the norms `norms`.
template <int R>
TileMoved move_on_spheres(const double* w, const double* move, const std::uint8_t* small, const double* norms,
                          Index d, double reach, double clip, double* moved) {
    using Vec = simd::Vec<double>;
    using Small = SmallWeights<R>;
    constexpr Index lanes = simd::kLanes<double>, width = R * lanes;
    const Vec zero{};
    /// Call body(r, place, mask) for the vectors of a tile.
    const auto each = [&](auto&& body) {
        for (Index j = 0; j < d; ++j)
#pragma GCC unroll 3
            for (int r = 0; r < R; ++r) body(r, j * width + r * lanes, Small::mask(small[j * R + r]));
    };
    Vec square[R] = {}, along[R] = {};
    each([&](int r, Index k, auto mask) {
        const Vec x = simd::select<double>(mask, simd::load(w + k), zero);
        square[r] += x * x;
        along[r] += x * simd::load(move + k);
    });
    const Vec least = simd::fill(std::numeric_limits<double>::min());
    for (int r = 0; r < R; ++r) along[r] /= simd::select<double>(square[r] > least, square[r], least);
    const auto inside = [&](int r, Index k) {
        const Vec x = simd::load(w + k);
        return x + (simd::load(move + k) - along[r] * x);
    };
    Vec norm[R] = {};
    each([&](int r, Index k, auto mask) {
        const Vec v = simd::select<double>(mask, inside(r, k), zero);
        norm[r] += v * v;
    });
    Vec scale[R];
    for (int r = 0; r < R; ++r)
        for (Index l = 0; l < lanes; ++l)
            scale[r][l] = norms[r * lanes + l] / (norm[r][l] > 0 ? std::sqrt(norm[r][l]) : 1.0);
    const Vec most = simd::fill(clip), far = simd::fill(reach);
    Vec sum{};  // of zeros, unless a number is not finite
    for (int r = 0; r < R; ++r) sum += 0.0 * norm[r];
    simd::IntVec<double> reached{};
    each([&](int r, Index k, auto mask) {
        const Vec step = simd::load(move + k), plain = simd::load(w + k) + step;
        const Vec low = simd::select<double>(plain < -most, -most, plain);
        const Vec boxed = simd::select<double>(low > most, most, low);
        const Vec next = simd::select<double>(mask, scale[r] * inside(r, k), boxed);
        sum += 0.0 * step + 0.0 * next;
        reached |= mask & ((next >= far) | (next <= -far));
        simd::store(moved + k, next);
    });
    TileMoved out{true, false};
    for (Index l = 0; l < lanes; ++l) {
        out.finite = out.finite && sum[l] == 0;
        out.reached = out.reached || reached[l] != 0;
    }
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
