// The sampler of a mixture of Gaussian classes with means and covariances of their own.
#include <algorithm>
#include <cmath>

#include "base/products.hpp"
#include "base/scratch.hpp"
#include "data/sampling.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {
namespace {

/// x | class k ~ N(means[k], A_k^2), y = labels[k].
class MixtureOfGaussians final : public CheckedSampler {
public:
    MixtureOfGaussians(ConstMat means, const std::vector<ConstMat>& roots, const double* labels,
                       const double* weights)
        : CheckedSampler(means.cols), means_(means), labels_(labels, labels + means.rows) {
        require(means.rows >= 1, "means", "must have at least one row", means.rows);
        require_count(static_cast<Index>(roots.size()), means.rows, "roots", "entries");
        for (const ConstMat& root : roots) roots_.emplace_back(d_, root);
        double total = 0;
        for (Index k = 0; k < means.rows; ++k) {
            require(weights[k] > 0 && std::isfinite(weights[k]), "weights", "must be finite and > 0",
                    weights[k]);
            ends_.push_back(total += weights[k]);
        }
        for (double& end : ends_) end /= total;
        ends_.back() = 1;
    }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        random::uniforms({seed, random::Purpose::labels}, static_cast<std::uint64_t>(first), x.rows, y);
        std::vector<std::size_t> classes;
        for_pieces(x.rows, d_, [&](Index k, Index rows) {
            const Mat piece = x.middle_rows(k, rows);
            fill_normals(seed, first + k, piece);
            classes.resize(static_cast<std::size_t>(rows));
            for (Index i = 0; i < rows; ++i) {
                const auto at = std::upper_bound(ends_.begin(), ends_.end() - 1, y[k + i]) - ends_.begin();
                classes[static_cast<std::size_t>(i)] = static_cast<std::size_t>(at);
                y[k + i] = labels_[static_cast<std::size_t>(at)];
            }
            for (std::size_t c = 0; c < roots_.size(); ++c) {
                if (roots_[c].dense()) mix(c, classes, piece);
            }
            for (Index i = 0; i < rows; ++i) {
                const std::size_t c = classes[static_cast<std::size_t>(i)];
                double* row = piece.row(i);
                if (!roots_[c].dense()) roots_[c].scale_row(row);
                const double* mean = means_.view().row(static_cast<Index>(c));
                for (Index j = 0; j < d_; ++j) row[j] += mean[j];
            }
        });
    }

    /// A_c g in the place of the rows g of class c.
    void mix(std::size_t c, const std::vector<std::size_t>& classes, Mat x) const {
        const auto count = static_cast<Index>(std::count(classes.begin(), classes.end(), c));
        const auto size = static_cast<std::size_t>(count * d_);
        Scratch<double> before(size), after(size);
        const Mat g{before.data(), count, d_}, mixed{after.data(), count, d_};
        Index at = 0;
        for (Index i = 0; i < x.rows; ++i) {
            if (classes[static_cast<std::size_t>(i)] == c) std::copy_n(x.row(i), d_, g.row(at++));
        }
        row_products(g, roots_[c].matrix(), mixed);
        at = 0;
        for (Index i = 0; i < x.rows; ++i) {
            if (classes[static_cast<std::size_t>(i)] == c) std::copy_n(mixed.row(at++), d_, x.row(i));
        }
    }

    const Copy means_;
    const std::vector<double> labels_;
    std::vector<Root> roots_;
    std::vector<double> ends_;  // of the intervals of (0, 1) that stand for the classes
};

}  // namespace

SamplerPtr gaussian_mixture(ConstMat means, const std::vector<ConstMat>& roots, const double* labels,
                            const double* weights) {
    require(labels != nullptr && weights != nullptr, "labels, weights", "must not be null", "null");
    require_matrix(means, "means");
    return std::make_shared<MixtureOfGaussians>(means, roots, labels, weights);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
