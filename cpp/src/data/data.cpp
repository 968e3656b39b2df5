// Samplers of Gaussian classes and of multi-index and linear labels.
#include "mfcore/data/data.hpp"

#include <algorithm>
#include <cmath>

#include "base/products.hpp"
#include "base/scratch.hpp"
#include "data/sampling.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {
namespace {

using random::Purpose;

void fill_signs(std::uint64_t seed, Index first, Mat x) {
    fill_rows([](const auto& stream, std::uint64_t item, Index n,
                 double* out) { random::signs(stream, item, n, out); },
              seed, first, x);
}

/// Multiply the first C numbers of row i by 1 + y_i delta: for short rows, of which a loop over any number would cost
/// more than what it does.
template <Index C>
void stretch_short(Mat x, const double* y, double delta) {
    for (Index i = 0; i < x.rows; ++i)
        for (Index j = 0; j < C; ++j) x(i, j) *= 1 + y[i] * delta;
}

/// x | y = +-1 is standard normal, stretched by 1 +- delta on a subspace: the first s0 coordinates or the
/// span of the orthonormal rows of `basis`.
class GaussianClasses final : public CheckedSampler {
public:
    GaussianClasses(Index d, Index s0, double delta, Copy basis = {})
        : CheckedSampler(d), s0_(s0), delta_(delta), basis_(std::move(basis)) {
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
            } else if (s0_ == 1) {
                stretch_short<1>(piece, y + k, delta_);
            } else if (s0_ == 2) {
                stretch_short<2>(piece, y + k, delta_);
            } else {
                for (Index i = 0; i < rows; ++i) scale(piece.row(i), s0_, 1 + y[k + i] * delta_);
            }
        });
    }

    // x + (+-delta) B^T (B x), B = basis: stretches the span by 1 +- delta and leaves the rest alone.
    void stretch_along_basis(Mat x, const double* y) const {
        FilledScratch<double> memory(static_cast<std::size_t>(x.rows * s0_));
        const Mat inner{memory.data(), x.rows, s0_};
        row_products(x, basis_.view(), inner);
        const ConstMat e = basis_.view();
        for (Index i = 0; i < x.rows; ++i) {
            double* row = x.row(i);
            double* c = inner.row(i);
            for (Index s = 0; s < s0_; ++s) c[s] *= y[i] * delta_;
            Index s = 0;
            for (; s + 4 <= s0_; s += 4) {  // four at a time: x is read and written once for all
                const double *e0 = e.row(s), *e1 = e.row(s + 1), *e2 = e.row(s + 2), *e3 = e.row(s + 3);
                for (Index j = 0; j < d_; ++j) {
                    row[j] += c[s] * e0[j] + c[s + 1] * e1[j] + c[s + 2] * e2[j] + c[s + 3] * e3[j];
                }
            }
            for (; s < s0_; ++s) {
                for (Index j = 0; j < d_; ++j) row[j] += c[s] * e(s, j);
            }
        }
    }

    const Index s0_;
    const double delta_;
    const Copy basis_;
};

class MultiIndex final : public CheckedSampler {
public:
    MultiIndex(Inputs inputs, Index d, LinkLabels labels, double noise, ConstMat root = {})
        : CheckedSampler(d), inputs_(inputs), labels_(std::move(labels)), noise_(noise), root_(d, root) {
        require(noise >= 0 && std::isfinite(noise), "noise", "must be finite and >= 0", noise);
    }
    bool concurrent() const override { return labels_.concurrent(); }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        if (inputs_ == Inputs::hypercube) {
            fill_signs(seed, first, x);
        } else if (root_.dense()) {
            fill_correlated(seed, first, x);
        } else {
            fill_normals(seed, first, x);
            for (Index k = 0; k < x.rows; ++k) root_.scale_row(x.row(k));
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
            row_products(g, root_.matrix(), x.middle_rows(k, rows));
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
    const LinkLabels labels_;
    const double noise_;
    const Root root_;
};

/// Another law's samples, every label times a factor.
class ScaledLabels final : public Sampler {
public:
    ScaledLabels(SamplerPtr law, double factor) : law_(std::move(law)), factor_(factor) {}
    Index dimension() const override { return law_->dimension(); }
    Index size() const override { return law_->size(); }
    bool concurrent() const override { return law_->concurrent(); }
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const override {
        law_->draw(seed, first, x, y);
        scale(y, x.rows, factor_);
    }

private:
    const SamplerPtr law_;
    const double factor_;
};

}  // namespace

SamplerPtr scaled_labels(SamplerPtr law, double factor) {
    require(law != nullptr, "law", "must not be null", "null");
    return std::make_shared<ScaledLabels>(std::move(law), factor);
}

SamplerPtr isotropic_gaussians(Index d, double delta) {
    return std::make_shared<GaussianClasses>(d, d, delta);
}

SamplerPtr anisotropic_gaussians(Index d, Index s0, double delta) {
    return std::make_shared<GaussianClasses>(d, s0, delta);
}

SamplerPtr anisotropic_gaussians(ConstMat basis, double delta) {
    return std::make_shared<GaussianClasses>(basis.cols, basis.rows, delta, Copy(basis));
}

SamplerPtr multi_index(Inputs inputs, Index d, Link link, ConstMat directions, double noise, ConstMat root) {
    require(link.evaluate != nullptr, "link", "must have a function", "none");
    require(root.rows == 0 || inputs == Inputs::gaussian, "root", "must come with Gaussian inputs",
            root.rows);
    return std::make_shared<MultiIndex>(inputs, d, LinkLabels(d, std::move(link), directions), noise, root);
}

SamplerPtr linear(Index d, const double* w, ConstMat root, double noise) {
    require(w != nullptr, "w", "must not be null", "null");
    LinkLabels labels(d, hermite_link(1, {{1.0, {{0, 1}}}}), {w, 1, d});
    return std::make_shared<MultiIndex>(Inputs::gaussian, d, std::move(labels), noise, root);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
