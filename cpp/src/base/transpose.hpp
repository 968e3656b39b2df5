#pragma once
// Rows of neurons to tiles and back: squares of as many rows as columns are transposed in registers.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/simd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base::tiles {

inline constexpr Index kSquare = simd::kLanes<double>;
using Square = std::array<simd::Vec<double>, static_cast<std::size_t>(kSquare)>;

/// Swap rows and columns, bit by bit of their numbers.
template <std::size_t kBit = static_cast<std::size_t>(kSquare) / 2>
inline void transpose(Square& rows) {
    const auto swap = [&]<std::size_t... I>(std::index_sequence<I...>) {
        constexpr std::size_t lanes = sizeof...(I);
        for (std::size_t k = 0; k < lanes; ++k) {
            if (k & kBit) continue;
            const simd::Vec<double> low = rows[k], high = rows[k + kBit];
            rows[k] = __builtin_shufflevector(low, high, (I & kBit ? I - kBit + lanes : I)...);
            rows[k + kBit] = __builtin_shufflevector(low, high, (I & kBit ? I + lanes : I + kBit)...);
        }
    };
    swap(std::make_index_sequence<static_cast<std::size_t>(kSquare)>{});
    if constexpr (kBit > 1) transpose<kBit / 2>(rows);
}

/// As many numbers of type T as a vector has doubles.
template <class T>
using Narrow = typename simd::VecType<T, static_cast<int>(kSquare* static_cast<Index>(sizeof(T)))>::type;

/// tile[j * width + i] = rows(i, j); 0 for i from rows.rows to the width of the tile, of R vectors.
template <class T, int R>
void pack_columns(ConstMat rows, T* tile) {
    constexpr Index width = R * simd::kLanes<T>;
    const Index d = rows.cols;
    for (Index i = 0; i < width; i += kSquare) {
        const Index here = std::clamp<Index>(rows.rows - i, 0, kSquare);
        Index j = 0;
        for (; here == kSquare && j + kSquare <= d; j += kSquare) {
            Square square;
#pragma GCC unroll 8
            for (Index k = 0; k < kSquare; ++k) square[k] = simd::load(rows.row(i + k) + j);
            transpose(square);
#pragma GCC unroll 8
            for (Index k = 0; k < kSquare; ++k) {
                const Narrow<T> column = __builtin_convertvector(square[k], Narrow<T>);
                std::memcpy(tile + (j + k) * width + i, &column, sizeof column);
            }
        }
        for (; j < d; ++j) {
            T* const column = tile + j * width + i;
            for (Index k = 0; k < here; ++k) column[k] = static_cast<T>(rows(i + k, j));
            std::fill(column + here, column + kSquare, T(0));
        }
    }
}

/// rows(i, j) = tile[j * width + i].
template <class T, int R>
void unpack_columns(const T* tile, Mat rows) {
    constexpr Index width = R * simd::kLanes<T>;
    const Index d = rows.cols;
    for (Index i = 0; i < rows.rows; i += kSquare) {
        const Index here = std::min(rows.rows - i, kSquare);
        Index j = 0;
        for (; here == kSquare && j + kSquare <= d; j += kSquare) {
            Square square;
#pragma GCC unroll 8
            for (Index k = 0; k < kSquare; ++k) {
                Narrow<T> column;
                std::memcpy(&column, tile + (j + k) * width + i, sizeof column);
                square[k] = __builtin_convertvector(column, simd::Vec<double>);
            }
            transpose(square);
#pragma GCC unroll 8
            for (Index k = 0; k < kSquare; ++k) simd::store(rows.row(i + k) + j, square[k]);
        }
        for (; j < d; ++j)
            for (Index k = 0; k < here; ++k) rows(i + k, j) = tile[j * width + i + k];
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base::tiles
