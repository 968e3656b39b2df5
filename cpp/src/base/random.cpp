// Random numbers by address: Philox4x32-10, and uniform, normal and sign numbers made of its bits.
#include "mfcore/base/random.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/simd.hpp"
#include "base/simd_log.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/run.hpp"
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace mfcore::inline MFCORE_LEVEL::inline base::random {
namespace {

static_assert(std::endian::native == std::endian::little, "words are cut out of packets in memory order");

using Word = std::uint64_t;
using Words = simd::Vec<Word>;  // one Philox block per lane

// (x mod 2^32) * m for m < 2^32. Whatever is in the upper halves of x costs nothing on a packet: the widening
// multiplication ignores it. By its own intrinsic, because GCC multiplies all 64 bits whatever is masked
// (vpmullq, or three multiplications).
inline Word multiply_low(Word x, std::uint32_t m) { return (x & 0xffffffffU) * m; }
inline Words multiply_low(Words x, std::uint32_t m) {
    const Words factor = simd::fill<Word>(m);
#if defined(__AVX512F__)
    return reinterpret_cast<Words>(
        _mm512_mul_epu32(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(factor)));
#elif defined(__AVX2__)
    return reinterpret_cast<Words>(
        _mm256_mul_epu32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(factor)));
#elif defined(__SSE2__) && !defined(__AVX__)
    return reinterpret_cast<Words>(
        _mm_mul_epu32(reinterpret_cast<__m128i>(x), reinterpret_cast<__m128i>(factor)));
#else
    return (x & Word{0xffffffffU}) * factor;
#endif
}

// The 128 bits of a block as two numbers: words 0 and 1 (low and high half), words 2 and 3.
template <class W>
struct Halves {
    W first, second;
};

// Philox4x32-10 for the blocks of one stream, on single words and on packets alike. Only the lower 32 bits of
// the four counter words mean anything until the end.
class Philox {
public:
    Philox(Word key, Word c2, Word c3) : c2_(c2), c3_(c3) {
        for (int r = 0; r < kRounds; ++r) {
            key0_[r] = static_cast<std::uint32_t>(key) + 0x9E3779B9U * static_cast<std::uint32_t>(r);
            key1_[r] = static_cast<std::uint32_t>(key >> 32) + 0xBB67AE85U * static_cast<std::uint32_t>(r);
        }
    }
    explicit Philox(const Stream& stream)
        : Philox(stream.seed, stream.step & 0xffffffffU,
                 static_cast<Word>(stream.purpose) << 24 | stream.step >> 32) {
        require(stream.step >> 56 == 0, "step", "must be < 2^56", stream.step);
    }

    /// The bits of K blocks, or packets of blocks, given their index (counter words 0 and 1). The ten rounds
    /// are one chain of dependent operations: two packets in step keep the processor busy (normals: -30 %).
    template <class W, std::size_t K>
    std::array<Halves<W>, K> operator()(const std::array<W, K>& index) const {
        W c0[K], c1[K], c2[K], c3[K];
        for (std::size_t k = 0; k < K; ++k) {
            c0[k] = index[k];
            c1[k] = index[k] >> 32;
            c2[k] = W{} + c2_;
            c3[k] = W{} + c3_;
        }
#pragma GCC unroll 10
        for (int r = 0; r < kRounds; ++r) {
#pragma GCC unroll 2
            for (std::size_t k = 0; k < K; ++k) {
                const W product0 = multiply_low(c0[k], 0xD2511F53U);
                const W product1 = multiply_low(c2[k], 0xCD9E8D57U);
                c0[k] = (product1 >> 32) ^ c1[k] ^ key0_[r];
                c1[k] = product1;
                c2[k] = (product0 >> 32) ^ c3[k] ^ key1_[r];
                c3[k] = product0;
            }
        }
        std::array<Halves<W>, K> bits;
        for (std::size_t k = 0; k < K; ++k) {
            bits[k].first = (c0[k] & Word{0xffffffffU}) | c1[k] << 32;
            bits[k].second = (c2[k] & Word{0xffffffffU}) | c3[k] << 32;
        }
        return bits;
    }

private:
    static constexpr int kRounds = 10;
    Word c2_, c3_;
    Word key0_[kRounds], key1_[kRounds];
};

constexpr Index kGroupBlocks = 8;  // for every instruction set, so that item and address belong together

// Blocks 8 g ... 8 g + 7 make group g of the items of a stream: numbers made of first halves (or cosines),
// then those of second halves (or sines), each in the order of the blocks. 16 doubles, or 32 floats.
template <class T>
struct Groups {
    static constexpr Index lanes = simd::kLanes<Word>;
    static constexpr Index per_block = static_cast<Index>(sizeof(Word) / sizeof(T));  // in one half
    static constexpr Index half = kGroupBlocks * per_block;
    static constexpr Index chunk =
        std::max(kGroupBlocks, 2 * lanes);                // blocks made at a time: one or two groups
    static constexpr Index size = 2 * chunk * per_block;  // items in them
};

// Whole chunks from a block on. Two packets are made into numbers while the bits of the next two are drawn: each is a
// long chain of operations, and together they keep the processor busy (normals: -25 %).
template <class T, class Transform>
void fill_chunks(const Philox& philox, std::uint64_t block, Index chunks, T* out, Transform transform) {
    using G = Groups<T>;
    Words lane;
    for (Index k = 0; k < G::lanes; ++k) lane[k] = static_cast<Word>(k);
    const auto draw = [&] { return philox(std::array<Words, 2>{lane + block, lane + (block + G::lanes)}); };
    auto bits = draw();
    for (Index b = 0; b < chunks * G::chunk; b += 2 * G::lanes) {
        block += 2 * G::lanes;
        const auto next = draw();
        for (Index k = 0; k < 2; ++k) {
            const auto made = transform(bits[static_cast<std::size_t>(k)]);
            const Index at = b + k * G::lanes;  // blocks before this packet
            T* const place = out + at / kGroupBlocks * 2 * G::half + at % kGroupBlocks * G::per_block;
            simd::store<T>(place, made.first);
            simd::store<T>(place + G::half, made.second);
        }
        bits = next;
    }
}

template <class T, class Transform>
void fill_groups(const Stream& stream, std::uint64_t first, Index count, T* out, Transform transform) {
    using G = Groups<T>;
    require(count >= 0, "count", "must be >= 0", count);
    const Philox philox(stream);
    std::uint64_t block = first / G::size * G::chunk;
    Index skip = static_cast<Index>(first % G::size);
    while (count > 0) {
        Index chunks = count / G::size, made = chunks * G::size;
        if (skip == 0 && chunks > 0) {
            fill_chunks(philox, block, chunks, out, transform);
        } else {
            T buffer[G::size];
            fill_chunks(philox, block, 1, buffer, transform);
            chunks = 1;
            made = std::min(count, G::size - skip);
            std::copy_n(buffer + skip, made, out);
            skip = 0;
        }
        block += chunks * G::chunk;
        out += made;
        count -= made;
    }
}

template <class T>
struct Pair {
    simd::Vec<T> first, second;
};
using Bits32 = simd::Vec<std::uint32_t>;

// Random mantissa bits under the exponent of 1 give 1 <= x < 2 exactly, with no conversion of integers.
inline simd::Vec<double> one_to_two(Words w) {
    return simd::bits<simd::Vec<double>>((w & 0x000fffffffffffffU) | 0x3ff0000000000000U);
}
inline simd::Vec<float> one_to_two(Bits32 w) {
    return simd::bits<simd::Vec<float>>((w & 0x007fffffU) | 0x3f800000U);
}

// (b + 1/2) 2^-52, or 2^-23: the subtraction is exact.
inline simd::Vec<double> unit(Words w) { return one_to_two(w) - (1 - 0x1p-53); }
inline simd::Vec<float> unit(Bits32 w) { return one_to_two(w) - (1 - 0x1p-24F); }

// The uniform number under the logarithm of Box-Muller. In single precision 31 bits instead of 23: its
// smallest values make the tails, which reach 6.6; rounding up to 1 only makes a radius 0.
inline simd::Vec<double> unit_for_radius(Words w) { return unit(w); }
inline simd::Vec<float> unit_for_radius(Bits32 w) {
    const auto b = simd::bits<simd::IntVec<float>>(w >> 1);
    return __builtin_convertvector(b, simd::Vec<float>) * 0x1p-31F + 0x1p-32F;
}

// Box-Muller: (r cos t, r sin t), r = sqrt(-2 log u), t uniform on the circle. Of the bits of t the low ones
// are an angle in [-pi/4, pi/4), the highest reflects it (cos becomes -cos), the next one swaps cos and sin:
// the whole circle, 54 bits of it, and nothing to reduce.
template <class T, class W>
inline Pair<T> box_muller(W radius_bits, W angle_bits) {
    using Element = std::remove_cvref_t<decltype(angle_bits[0])>;
    constexpr Element top = Element{1} << (8 * sizeof(T) - 1);
    const simd::Vec<T> r = simd::square_root<T>(T{-2} * simd::log_positive<T>(unit_for_radius(radius_bits)));
    const simd::CosSin<T> t = simd::cos_sin_quarter<T>(one_to_two(angle_bits) - T{1.5});
    const simd::Vec<T> x = r * simd::bits<simd::Vec<T>>(simd::bits<W>(t.cos) ^ (angle_bits & top));
    const simd::Vec<T> y = r * t.sin;
    const auto swap = (angle_bits & (top >> 1)) != Element{0};
    return {simd::select<T>(swap, y, x), simd::select<T>(swap, x, y)};
}

}  // namespace

PhiloxBlock philox4x32(const PhiloxBlock& counter, const std::array<std::uint32_t, 2>& key) {
    const Philox philox(Word{key[1]} << 32 | key[0], counter[2], counter[3]);
    const Halves<Word> h = philox(std::array{Word{counter[1]} << 32 | counter[0]})[0];
    return {static_cast<std::uint32_t>(h.first), static_cast<std::uint32_t>(h.first >> 32),
            static_cast<std::uint32_t>(h.second), static_cast<std::uint32_t>(h.second >> 32)};
}

void uniforms(const Stream& stream, std::uint64_t first, Index count, double* out) {
    fill_groups(stream, first, count, out,
                [](const Halves<Words>& h) { return Pair<double>{unit(h.first), unit(h.second)}; });
}
void uniforms(const Stream& stream, std::uint64_t first, Index count, float* out) {
    fill_groups(stream, first, count, out, [](const Halves<Words>& h) {
        return Pair<float>{unit(simd::bits<Bits32>(h.first)), unit(simd::bits<Bits32>(h.second))};
    });
}

void normals(const Stream& stream, std::uint64_t first, Index count, double* out) {
    fill_groups(stream, first, count, out,
                [](const Halves<Words>& h) { return box_muller<double>(h.first, h.second); });
}
void normals(const Stream& stream, std::uint64_t first, Index count, float* out) {
    fill_groups(stream, first, count, out, [](const Halves<Words>& h) {
        return box_muller<float>(simd::bits<Bits32>(h.first), simd::bits<Bits32>(h.second));
    });
}

void signs(const Stream& stream, std::uint64_t first, Index count, double* out) {
    require(count >= 0, "count", "must be >= 0", count);
    const Philox philox(stream);
    Index skip = static_cast<Index>(first % 128);
    for (std::uint64_t block = first / 128; count > 0; ++block) {
        const Halves<Word> h = philox(std::array{Word{block}})[0];
        for (const Word word : {h.first, h.second}) {
            const Index made = std::clamp<Index>(64 - skip, 0, count);
            for (Index k = 0; k < made; ++k) {  // bit to sign bit
                out[k] = std::bit_cast<double>(std::bit_cast<Word>(1.0) | (word >> (skip + k)) << 63);
            }
            skip = std::max<Index>(skip - 64, 0);
            out += made;
            count -= made;
        }
    }
}

void permutation(const Stream& stream, Index n, std::int64_t* out) {
    require(n >= 0, "n", "must be >= 0", n);
    require(out != nullptr || n == 0, "out", "must not be null", "null");
    constexpr Index kept = 64;
    Word buffer[kept];
    Index used = kept;
    std::uint64_t next = 0;
    const auto draw = [&] {
        if (used == kept) {
            fill_groups(stream, next, kept, buffer, [](const Halves<Words>& h) { return h; });
            next += kept;
            used = 0;
        }
        return buffer[used++];
    };
    // Uniform on 0 .. range-1 without bias (Lemire 2019): the upper word of draw * range, drawn again when
    // the lower one falls into the 2^64 mod range values that would be one too many.
    const auto below = [&](Word range) {
        __extension__ using Wide = unsigned __int128;
        Wide product = Wide{draw()} * range;
        if (static_cast<Word>(product) < range) {
            const Word surplus = (0 - range) % range;
            while (static_cast<Word>(product) < surplus) product = Wide{draw()} * range;
        }
        return static_cast<Index>(product >> 64);
    };
    in_pieces(n, kept << 10,
              [&](Index first, Index count) { std::iota(out + first, out + first + count, first); });
    for (Index i = n - 1; i > 0; --i) {
        if (i % (1 << 16) == 0) check_stop();
        std::swap(out[i], out[below(static_cast<Word>(i) + 1)]);
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::random
