#pragma once
// Helpers that all samplers share: a base class that checks batches, the labels of a multi-index law, owned
// matrices.
#include <algorithm>
#include <string>

#include "base/products.hpp"
#include "base/scratch.hpp"
#include "mfcore/base/errors.hpp"
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
