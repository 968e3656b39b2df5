#pragma once
// Helpers that all samplers share: a base class that checks batches, the labels of a multi-index law, owned
// matrices, standard normals as rows, roots of covariances.
#include <algorithm>
#include <string>

#include "base/products.hpp"
#include "base/scratch.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {

/// A matrix of our own, rows without gaps.
struct Copy {
    Copy() = default;
    explicit Copy(ConstMat m)
        : rows(m.rows), cols(m.cols), values(static_cast<std::size_t>(m.rows * m.cols)) {
        for (Index i = 0; i < rows; ++i) std::copy_n(m.row(i), cols, values.data() + i * cols);
    }
    ConstMat view() const { return {values.data(), rows, cols}; }
    Index rows = 0, cols = 0;
    std::vector<double> values;
};

/// Numbers first * d .. of the stream `inputs` as rows: one contiguous fill where the rows have no gaps.
template <class Fill>
void fill_rows(Fill fill, std::uint64_t seed, Index first, Mat x) {
    const random::Stream stream{seed, random::Purpose::inputs};
    const auto item = [&](Index k) { return static_cast<std::uint64_t>((first + k) * x.cols); };
    if (x.stride == x.cols) {
        fill(stream, item(0), x.rows * x.cols, x.data);
    } else {
        for (Index k = 0; k < x.rows; ++k) fill(stream, item(k), x.cols, x.row(k));
    }
}

/// Rows of standard normals: samples first .. of N(0, I).
inline void fill_normals(std::uint64_t seed, Index first, Mat x) {
    fill_rows([](const auto& stream, std::uint64_t item, Index n,
                 double* out) { random::normals(stream, item, n, out); },
              seed, first, x);
}

inline void scale(double* x, Index n, double factor) {
    for (Index j = 0; j < n; ++j) x[j] *= factor;
}

/// Call body(first row, rows) for pieces of a batch that stay in the cache between their two passes.
template <class Body>
void for_pieces(Index rows, Index cols, Body&& body) {
    const Index step = std::max<Index>(1, 16'384 / cols);
    for (Index k = 0; k < rows; k += step) body(k, std::min(step, rows - k));
}

/// A symmetric root A of a covariance, x = A g: a (d, d) matrix, one row of d diagonal entries, one number for a
/// multiple of the identity, or empty for the identity itself.
class Root {
public:
    Root(Index d, ConstMat root) : d_(d), root_(root) {
        const bool fits = root.rows == 0 || (root.rows == d && root.cols == d) ||
                          (root.rows == 1 && (root.cols == d || root.cols == 1));
        require(fits, "root", "must have d rows and columns, or one row of d numbers or of one", root.rows);
    }
    bool dense() const { return root_.rows == d_ && root_.cols == d_; }
    ConstMat matrix() const { return root_.view(); }

    /// The row A g in the place of g, for a root that is not dense.
    void scale_row(double* row) const {
        if (root_.cols == d_) {
            for (Index j = 0; j < d_; ++j) row[j] *= root_.values[static_cast<std::size_t>(j)];
        } else if (root_.cols == 1) {
            scale(row, d_, root_.values[0]);
        }
    }

private:
    Index d_;
    Copy root_;
};

/// Base class of samplers with a dimension; draws only batches of matching width.
class CheckedSampler : public Sampler {
public:
    explicit CheckedSampler(Index d) : d_(d) { require(d >= 1, "d", "must be >= 1", d); }
    Index dimension() const final { return d_; }
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const final {
        require_count(x.cols, d_, "x", "columns");
        require(first >= 0, "first", "must be >= 0", first);
        require(size() == 0 || first + x.rows <= size(), "first + count",
                ("must be <= " + std::to_string(size())).c_str(), first + x.rows);
        if (x.rows > 0) fill(seed, first, x, y);
    }

protected:
    virtual void fill(std::uint64_t seed, Index first, Mat x, double* y) const = 0;
    const Index d_;
};

/// y = phi(Pi x), Pi the rows of `directions` or the first coordinates.
class LinkLabels {
public:
    LinkLabels(Index d, Link link, ConstMat directions) : link_(std::move(link)), directions_(directions) {
        require(link_.dimension >= 1 && link_.dimension <= d, "P", "must be in [1, d]", link_.dimension);
        if (directions.rows == 0) return;
        require_count(directions.rows, link_.dimension, "directions", "rows");
        require_count(directions.cols, d, "directions", "columns");
    }
    bool concurrent() const { return link_.concurrent; }

    void operator()(ConstMat x, double* y) const {
        const Index p = link_.dimension;
        if (directions_.rows == 0) return link_.evaluate({x.data, x.rows, p, x.stride}, y);
        FilledScratch<double> memory(static_cast<std::size_t>(x.rows * p));
        const Mat z{memory.data(), x.rows, p};
        row_products(x, directions_.view(), z);
        link_.evaluate(z, y);
    }

private:
    Link link_;
    Copy directions_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
