#include "mfcore/data.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "mfcore/errors.hpp"
#include "mfcore/random.hpp"
#include "products.hpp"

namespace mfcore {
namespace {

using random::Purpose;

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
    const random::Stream stream{seed, Purpose::inputs};
    const auto item = [&](Index k) { return static_cast<std::uint64_t>((first + k) * x.cols); };
    if (x.stride == x.cols) {
        fill(stream, item(0), x.rows * x.cols, x.data);
    } else {
        for (Index k = 0; k < x.rows; ++k) fill(stream, item(k), x.cols, x.row(k));
    }
}

void fill_normals(std::uint64_t seed, Index first, Mat x) {
    fill_rows([](const auto& stream, std::uint64_t item, Index n,
                 double* out) { random::normals(stream, item, n, out); },
              seed, first, x);
}

void fill_signs(std::uint64_t seed, Index first, Mat x) {
    fill_rows([](const auto& stream, std::uint64_t item, Index n,
                 double* out) { random::signs(stream, item, n, out); },
              seed, first, x);
}

void scale(double* x, Index n, double factor) {
    for (Index j = 0; j < n; ++j) x[j] *= factor;
}

/// Call body(first row, rows) for pieces that stay in the cache between their two passes.
template <class Body>
void for_pieces(Index rows, Index cols, Body&& body) {
    const Index step = std::max<Index>(1, 16'384 / cols);
    for (Index k = 0; k < rows; k += step) body(k, std::min(step, rows - k));
}

/// Everything that has a dimension and draws batches of matching width.
class Base : public Sampler {
public:
    explicit Base(Index d) : d_(d) { require(d >= 1, "d", "must be >= 1", d); }
    Index dimension() const final { return d_; }
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const final {
        require(x.cols == d_, "x", "has the wrong number of columns", x.cols);
        require(first >= 0, "first", "must be >= 0", first);
        require(size() == 0 || first + x.rows <= size(), "first + count",
                ("must be <= " + std::to_string(size())).c_str(), first + x.rows);
        if (x.rows > 0) fill(seed, first, x, y);
    }

protected:
    virtual void fill(std::uint64_t seed, Index first, Mat x, double* y) const = 0;
    const Index d_;
};

/// x | y = +-1 is standard normal, stretched by 1 +- delta on a subspace: the first s0 coordinates or the
/// span of the orthonormal rows of `basis`.
class GaussianClasses final : public Base {
public:
    GaussianClasses(Index d, Index s0, double delta, Copy basis = {})
        : Base(d), s0_(s0), delta_(delta), basis_(std::move(basis)) {
        require(delta >= 0 && delta < 1, "delta", "must be in [0, 1)", delta);
        require(s0 >= 1 && s0 <= d, "s0", "must be in [1, d]", s0);
    }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        random::signs({seed, Purpose::labels}, static_cast<std::uint64_t>(first), x.rows, y);
        for_pieces(x.rows, d_, [&](Index k, Index rows) {
            const Mat piece = x.middle_rows(k, rows);
            fill_normals(seed, first + k, piece);
            if (basis_.rows > 0) {
                stretch_along_basis(piece, y + k);
            } else {
                for (Index i = 0; i < rows; ++i) scale(piece.row(i), s0_, 1 + y[k + i] * delta_);
            }
        });
    }

    // x + (+-delta) B^T (B x), B = basis: stretches the span by 1 +- delta and leaves the rest alone.
    void stretch_along_basis(Mat x, const double* y) const {
        std::vector<double> memory(static_cast<std::size_t>(x.rows * s0_));
        const Mat inner{memory.data(), x.rows, s0_};
        row_products(x, basis_.view(), inner);
        for (Index i = 0; i < x.rows; ++i) {
            double* row = x.row(i);
            for (Index s = 0; s < s0_; ++s) {
                const double c = y[i] * delta_ * inner(i, s);
                const double* e = basis_.view().row(s);
                for (Index j = 0; j < d_; ++j) row[j] = c * e[j] + row[j];
            }
        }
    }

    const Index s0_;
    const double delta_;
    const Copy basis_;
};

/// y = phi(Pi x), Pi the rows of `directions` or the first coordinates.
class Labels {
public:
    Labels(Index d, Link link, ConstMat directions) : link_(std::move(link)), directions_(directions) {
        require(link_.dimension >= 1 && link_.dimension <= d, "P", "must be in [1, d]", link_.dimension);
        if (directions.rows == 0) return;
        require(directions.rows == link_.dimension, "directions", "has the wrong number of rows",
                directions.rows);
        require(directions.cols == d, "directions", "has the wrong number of columns", directions.cols);
    }
    bool concurrent() const { return link_.concurrent; }

    void operator()(ConstMat x, double* y) const {
        const Index p = link_.dimension;
        if (directions_.rows == 0) return link_.evaluate({x.data, x.rows, p, x.stride}, y);
        std::vector<double> memory(static_cast<std::size_t>(x.rows * p));
        const Mat z{memory.data(), x.rows, p};
        row_products(x, directions_.view(), z);
        link_.evaluate(z, y);
    }

private:
    Link link_;
    Copy directions_;
};

class MultiIndex final : public Base {
public:
    MultiIndex(Inputs inputs, Index d, Labels labels, double noise, ConstMat root = {})
        : Base(d), inputs_(inputs), labels_(std::move(labels)), noise_(noise), root_(root) {
        require(noise >= 0 && std::isfinite(noise), "noise", "must be finite and >= 0", noise);
        if (root.rows == 0) return;
        require(root.rows == d && root.cols == d, "root", "must have d rows and columns", root.rows);
    }
    bool concurrent() const override { return labels_.concurrent(); }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        if (inputs_ == Inputs::hypercube) {
            fill_signs(seed, first, x);
        } else if (root_.rows > 0) {
            fill_correlated(seed, first, x);
        } else {
            fill_normals(seed, first, x);
        }
        if (inputs_ == Inputs::sphere) {
            for (Index k = 0; k < x.rows; ++k) {
                double* row = x.row(k);
                scale(row, d_, std::sqrt(static_cast<double>(d_) / dot(row, row, d_)));
            }
        }
        labels_(x, y);
        if (noise_ > 0) add_noise(seed, first, x.rows, y);
    }

    void fill_correlated(std::uint64_t seed, Index first, Mat x) const {
        std::vector<double> memory;
        for_pieces(x.rows, d_, [&](Index k, Index rows) {
            memory.resize(static_cast<std::size_t>(rows * d_));
            const Mat g{memory.data(), rows, d_};
            fill_normals(seed, first + k, g);
            row_products(g, root_.view(), x.middle_rows(k, rows));
        });
    }

    void add_noise(std::uint64_t seed, Index first, Index n, double* y) const {
        constexpr Index kChunk = 256;
        double g[kChunk];
        for (Index k = 0; k < n; k += kChunk) {
            const Index m = std::min(kChunk, n - k);
            random::normals({seed, Purpose::label_noise}, static_cast<std::uint64_t>(first + k), m, g);
            for (Index i = 0; i < m; ++i) y[k + i] += noise_ * g[i];
        }
    }

    const Inputs inputs_;
    const Labels labels_;
    const double noise_;
    const Copy root_;
};

class CubeNodes final : public Base {
public:
    CubeNodes(Index d, Labels labels) : Base(d), labels_(std::move(labels)) {
        require(d <= 40, "d", "must be <= 40 to enumerate the hypercube", d);
    }
    Index size() const override { return Index{1} << d_; }
    bool concurrent() const override { return labels_.concurrent(); }

private:
    void fill(std::uint64_t, Index first, Mat x, double* y) const override {
        for (Index k = 0; k < x.rows; ++k) {
            for (Index j = 0; j < d_; ++j) x(k, j) = ((first + k) >> j) & 1 ? -1 : 1;
        }
        labels_(x, y);
    }

    const Labels labels_;
};

class FiniteLaw final : public Base {
public:
    FiniteLaw(ConstMat x, const double* y, std::shared_ptr<const void> owner)
        : Base(x.cols), x_(x), y_(y), owner_(std::move(owner)) {
        require(x.rows >= 1, "x", "must have at least one row", x.rows);
    }
    Index size() const override { return x_.rows; }

private:
    void fill(std::uint64_t, Index first, Mat x, double* y) const override {
        for (Index k = 0; k < x.rows; ++k) std::copy_n(x_.row(first + k), d_, x.row(k));
        std::copy_n(y_ + first, x.rows, y);
    }

    const ConstMat x_;
    const double* const y_;
    const std::shared_ptr<const void> owner_;
};

class Resampled final : public Base {
public:
    explicit Resampled(SamplerPtr nodes) : Base(nodes->dimension()), nodes_(std::move(nodes)) {
        require(nodes_->size() > 0, "nodes", "must be a finite law", nodes_->size());
    }
    bool concurrent() const override { return nodes_->concurrent(); }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        // Node floor(u n), u uniform with 53 bits: the odds of the nodes differ by less than n 2^-53.
        random::uniforms({seed, Purpose::labels}, static_cast<std::uint64_t>(first), x.rows, y);
        const Index n = nodes_->size();
        for (Index k = 0; k < x.rows; ++k) {
            const auto node = static_cast<Index>(y[k] * static_cast<double>(n));
            nodes_->draw(seed, std::min(node, n - 1), x.middle_rows(k, 1), y + k);
        }
    }

    const SamplerPtr nodes_;
};

}  // namespace

SamplerPtr isotropic_gaussians(Index d, double delta) {
    return std::make_shared<GaussianClasses>(d, d, delta);
}

SamplerPtr anisotropic_gaussians(Index d, Index s0, double delta) {
    return std::make_shared<GaussianClasses>(d, s0, delta);
}

SamplerPtr anisotropic_gaussians(ConstMat basis, double delta) {
    return std::make_shared<GaussianClasses>(basis.cols, basis.rows, delta, Copy(basis));
}

SamplerPtr multi_index(Inputs inputs, Index d, Link link, ConstMat directions, double noise) {
    return std::make_shared<MultiIndex>(inputs, d, Labels(d, std::move(link), directions), noise);
}

SamplerPtr linear(Index d, const double* w, ConstMat root, double noise) {
    Labels labels(d, hermite_link(1, {{1.0, {{0, 1}}}}), {w, 1, d});
    return std::make_shared<MultiIndex>(Inputs::gaussian, d, std::move(labels), noise, root);
}

SamplerPtr cube_nodes(Index d, Link link, ConstMat directions) {
    return std::make_shared<CubeNodes>(d, Labels(d, std::move(link), directions));
}

SamplerPtr finite_law(ConstMat x, const double* y, std::shared_ptr<const void> owner) {
    return std::make_shared<FiniteLaw>(x, y, std::move(owner));
}

SamplerPtr resampled(SamplerPtr nodes) { return std::make_shared<Resampled>(std::move(nodes)); }

}  // namespace mfcore
