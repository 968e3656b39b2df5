// Laws with finitely many nodes of equal weight: datasets and enumerated hypercubes.
#include <algorithm>

#include "data/sampling.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"
#include "mfcore/data/data.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline data {
namespace {

class CubeNodes final : public CheckedSampler {
public:
    CubeNodes(Index d, LinkLabels labels) : CheckedSampler(d), labels_(std::move(labels)) {
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

    const LinkLabels labels_;
};

class FiniteLaw final : public CheckedSampler {
public:
    FiniteLaw(ConstMat x, const double* y, std::shared_ptr<const void> owner)
        : CheckedSampler(x.cols), x_(x), y_(y), owner_(std::move(owner)) {
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

class Resampled final : public CheckedSampler {
public:
    explicit Resampled(SamplerPtr nodes) : CheckedSampler(nodes->dimension()), nodes_(std::move(nodes)) {
        require(nodes_->size() > 0, "nodes", "must be a finite law", nodes_->size());
    }
    bool concurrent() const override { return nodes_->concurrent(); }

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        // Node floor(u n), u uniform with 53 bits: the odds of the nodes differ by less than n 2^-53.
        random::uniforms({seed, random::Purpose::labels}, static_cast<std::uint64_t>(first), x.rows, y);
        const Index n = nodes_->size();
        for (Index k = 0; k < x.rows; ++k) {
            const auto node = static_cast<Index>(y[k] * static_cast<double>(n));
            nodes_->draw(seed, std::min(node, n - 1), x.middle_rows(k, 1), y + k);
        }
    }

    const SamplerPtr nodes_;
};

class Passes final : public CheckedSampler {
public:
    explicit Passes(SamplerPtr nodes) : CheckedSampler(nodes->dimension()), nodes_(std::move(nodes)) {
        require(nodes_->size() > 0, "nodes", "must be a finite law", nodes_->size());
        order_.resize(nodes_->size());
    }
    bool concurrent() const override { return false; }  // the order of one pass is kept between draws

private:
    void fill(std::uint64_t seed, Index first, Mat x, double* y) const override {
        const Index n = nodes_->size();
        for (Index k = 0; k < x.rows; ++k) {
            const std::pair<std::uint64_t, Index> pass{seed, (first + k) / n};
            if (pass != held_) {
                random::permutation({seed, random::Purpose::shuffle, static_cast<std::uint64_t>(pass.second)},
                                    n, order_.data());
                held_ = pass;
            }
            nodes_->draw(seed, order_[(first + k) % n], x.middle_rows(k, 1), y + k);
        }
    }

    const SamplerPtr nodes_;
    mutable std::vector<std::int64_t> order_;
    mutable std::pair<std::uint64_t, Index> held_{0, -1};
};

}  // namespace

SamplerPtr cube_nodes(Index d, Link link, ConstMat directions) {
    return std::make_shared<CubeNodes>(d, LinkLabels(d, std::move(link), directions));
}

SamplerPtr finite_law(ConstMat x, const double* y, std::shared_ptr<const void> owner) {
    require(x.data != nullptr && y != nullptr, "x, y", "must not be null", "null");
    require_matrix(x, "x");
    return std::make_shared<FiniteLaw>(x, y, std::move(owner));
}

SamplerPtr passes(SamplerPtr nodes) {
    require(nodes != nullptr, "nodes", "must not be null", "null");
    return std::make_shared<Passes>(std::move(nodes));
}

SamplerPtr resampled(SamplerPtr nodes) {
    require(nodes != nullptr, "nodes", "must not be null", "null");
    return std::make_shared<Resampled>(std::move(nodes));
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline data
