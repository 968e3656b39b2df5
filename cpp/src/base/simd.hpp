#pragma once
// Vectors of the widest register this module is compiled for, through the vector extensions of GCC and clang:
// plain operators, no intrinsics, the same source for every instruction set. a * b + c contracts to one fused
// operation.
#include <cstdint>
#include <cstring>
#include <utility>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::simd {

#if defined(__AVX512F__)
inline constexpr int kBytes = 64;
#elif defined(__AVX__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif

template <class T, int Bytes = kBytes>
struct VecType {
    typedef T type __attribute__((vector_size(Bytes)));
};
/// kLanes<T> numbers of type T; comparisons give lanes of all ones or zeros for select().
template <class T>
using Vec = typename VecType<T>::type;
template <class T>
inline constexpr Index kLanes = kBytes / static_cast<Index>(sizeof(T));

/// The integer type of the same width, for bit tricks on floating-point lanes.
template <class T>
struct IntOf;
template <>
struct IntOf<double> {
    using type = std::int64_t;
};
template <>
struct IntOf<float> {
    using type = std::int32_t;
};
template <class T>
using IntVec = Vec<typename IntOf<T>::type>;

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
    std::memcpy(p, &v, sizeof v);
}
template <class T>
inline Vec<T> fill(T x) {
    return x - Vec<T>{};  // broadcast
}
/// Make the compiler keep v in a register. Left alone it may read v from memory again at each use, and then
/// loads, not arithmetic, set the pace of a product.
template <class V>
inline void pin(V& v) {
#if defined(__x86_64__)
    asm("" : "+v"(v));
#elif defined(__aarch64__)
    asm("" : "+w"(v));
#else
    (void)v;
#endif
}
template <class T>
inline Vec<T> select(IntVec<T> mask, Vec<T> yes, Vec<T> no) {
    return mask ? yes : no;
}
/// The larger of x and `least`; NaN where x is.
template <class T>
inline Vec<T> at_least(Vec<T> x, T least) {
    const Vec<T> bound = fill(least);
#if defined(__AVX512F__) && !defined(__clang__)
    // One instruction, of which GCC does not know: it compares into a mask, and the choice waits for that.
    constexpr int kAsRounded = 4;
    if constexpr (sizeof(T) == sizeof(double))
        return __builtin_ia32_maxpd512_mask(bound, x, bound, std::uint8_t(-1), kAsRounded);
    else
        return __builtin_ia32_maxps512_mask(bound, x, bound, std::uint16_t(-1), kAsRounded);
#else
    return x < bound ? bound : x;
#endif
}
template <class To, class From>
inline To bits(From v) {
    static_assert(sizeof(To) == sizeof(From));
    To out;
    std::memcpy(&out, &v, sizeof out);
    return out;
}

/// Sum of the lanes, halves onto halves: a chain of additions would wait for each.
template <class V>
inline auto sum_of_lanes(V v) {
    constexpr std::size_t lanes = sizeof(V) / sizeof(v[0]);
    if constexpr (lanes == 1) {
        return v[0];
    } else {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return sum_of_lanes(__builtin_shufflevector(v, v, I...) +
                                __builtin_shufflevector(v, v, (I + lanes / 2)...));
        }(std::make_index_sequence<lanes / 2>{});
    }
}
template <class T>
inline T sum(Vec<T> v) {
    return sum_of_lanes(v);
}

/// Lanes of a and b in blocks of B: the sums of the halves of a's first block, of b's first ... of each in its order,
/// those of a before those of b.
template <std::size_t B, class V>
inline V halves_of_both(V a, V b) {
    constexpr std::size_t lanes = sizeof(V) / sizeof(a[0]), half = B / 2;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (I / half * B + I % half)...) +
               __builtin_shufflevector(a, b, (I / half * B + I % half + half)...);
    }(std::make_index_sequence<lanes>{});
}
/// sum(v[i]) in lane i, with the same bits and fewer operations. Overwrites v.
template <class T, std::size_t B = static_cast<std::size_t>(kLanes<T>)>
inline Vec<T> sums(Vec<T>* v) {
    if constexpr (B == 1) {
        return v[0];
    } else {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < B / 2; ++i) v[i] = halves_of_both<B>(v[2 * i], v[2 * i + 1]);
        return sums<T, B / 2>(v);
    }
}

/// The same sum, of the same bits, in every lane: no broadcast waits for it.
template <class T>
inline Vec<T> sum_everywhere(Vec<T> v) {
    constexpr std::size_t lanes = static_cast<std::size_t>(kLanes<T>);
    const auto fold = [&]<std::size_t... I>(std::index_sequence<I...>) {
        v += __builtin_shufflevector(v, v, (I ^ (lanes / 2))...);
        if constexpr (lanes > 2) v += __builtin_shufflevector(v, v, (I ^ (lanes / 4))...);
        if constexpr (lanes > 4) v += __builtin_shufflevector(v, v, (I ^ (lanes / 8))...);
        if constexpr (lanes > 8) v += __builtin_shufflevector(v, v, (I ^ (lanes / 16))...);
    };
    fold(std::make_index_sequence<lanes>{});
    return v;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::simd
