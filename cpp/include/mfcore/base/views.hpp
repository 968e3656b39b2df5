#pragma once
// Views of memory somebody else owns. Rows are contiguous; `stride` is the distance between rows.
#include <cstddef>
#include <type_traits>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Counts, sizes and numbers of rows.
using Index = std::ptrdiff_t;

/// A matrix in memory of the caller: entry (i, j) is data[i * stride + j].
template <class T>
struct MatView {
    T* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index stride = 0;

    MatView() = default;
    MatView(T* data_, Index rows_, Index cols_) : data(data_), rows(rows_), cols(cols_), stride(cols_) {}
    MatView(T* data_, Index rows_, Index cols_, Index stride_)
        : data(data_), rows(rows_), cols(cols_), stride(stride_) {}

    T* row(Index i) const { return data + i * stride; }
    T& operator()(Index i, Index j) const { return data[i * stride + j]; }
    MatView middle_rows(Index first, Index count) const { return {row(first), count, cols, stride}; }

    // A view to write through is also a view to read through.
    operator MatView<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, rows, cols, stride};
    }
};

/// A matrix to write to, and one that is only read.
using Mat = MatView<double>;
using ConstMat = MatView<const double>;

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
