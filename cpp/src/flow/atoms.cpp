// The velocity of weighted atoms in their own field (eq. (8.1)), and whether panels resolve them (eq. (8.3)).
#include "mfcore/flow/atoms.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {
namespace {

constexpr Index kScratch = 1 << 15;   // numbers of features in use at a time
constexpr Index kKept = 1 << 21;      // numbers of gradients that are kept from pass to pass
constexpr Index kPartials = 1 << 22;  // numbers of partial sums
constexpr Index kBlockNanoseconds = 20'000;
constexpr Index kGroupNanoseconds = 50'000'000;  // between questions whether to stop

void require_masses(const std::vector<double>& masses) {
    for (const double mass : masses) require(mass >= 0, "masses", "must be >= 0", mass);
}

class AtomGradient {
public:
    AtomGradient(PointFeatures features, NodeData nodes, std::vector<double> masses, RunOptions options)
        : features_(std::move(features)),
          nodes_(std::move(nodes)),
          masses_(std::move(masses)),
          options_(std::move(options)) {
        const Index n = size(), q = features_.nodes, k = features_.coordinates;
        require(n > 0, "masses", "must not be empty", n);
        require_masses(masses_);
        require(options_.threads >= 0, "threads", "must be >= 0", options_.threads);
        require_count(nodes_.weights.size(), q, "weights", "entries");
        require_count(nodes_.targets.size(), q, "targets", "entries");
        keeps_ = n * q * k <= kKept;
        // Partial sums are one row of nodes per block.
        const Index most = std::clamp<Index>(kPartials / q, 2, 256), cost = std::max<Index>(point_cost(), 1);
        block_ = std::max((n + most - 1) / most, std::max<Index>(kBlockNanoseconds / cost, 1));
        rows_ = std::clamp<Index>(kScratch / (q * (1 + k)), 1, block_);
        group_ = block_ * std::max<Index>(kGroupNanoseconds / (block_ * cost), 8);
        partial_.resize(static_cast<std::size_t>((n + block_ - 1) / block_ * q));
        residual_.resize(static_cast<std::size_t>(q));
        if (keeps_) kept_.resize(static_cast<std::size_t>(n * q * k));
    }

    bool operator()(ConstMat z, Mat gradient) {
        const Index q = features_.nodes, k = features_.coordinates;
        std::fill(partial_.begin(), partial_.end(), 0.0);
        const bool summed = each([&](Index begin, Index end, double* scratch) {
            double* slopes = keeps_ ? kept_.data() + begin * q * k : nullptr;
            features_.evaluate(z.middle_rows(begin, end - begin), scratch, slopes);
            double* sum = partial_.data() + begin / block_ * q;
            for (Index i = begin; i < end; ++i, scratch += q)
                for (Index m = 0; m < q; ++m) sum[m] += masses_[i] * scratch[m];
        });
        if (!summed) return false;
        for (Index m = 0; m < q; ++m) {
            double f = 0;
            for (std::size_t at = m; at < partial_.size(); at += q) f += partial_[at];
            residual_[m] = nodes_.weights[m] * (f - nodes_.targets[m]);
        }
        return each([&](Index begin, Index end, double* scratch) {
            const double* slopes = scratch;
            if (keeps_)
                slopes = kept_.data() + begin * q * k;
            else
                features_.evaluate(z.middle_rows(begin, end - begin), nullptr, scratch);
            for (Index i = begin; i < end; ++i, slopes += q * k) contract(slopes, gradient.row(i));
        });
    }

private:
    Index size() const { return static_cast<Index>(masses_.size()); }
    Index point_cost() const { return features_.nanoseconds + features_.nodes * features_.coordinates; }

    void contract(const double* slopes, double* out) const {
        const Index q = features_.nodes, k = features_.coordinates;
        std::fill_n(out, k, 0.0);
        for (Index m = 0; m < q; ++m)
            for (Index c = 0; c < k; ++c) out[c] += residual_[m] * slopes[m * k + c];
    }

    /// body(begin, end, scratch) for pieces of blocks; false: somebody wants to stop.
    template <class Body>
    bool each(Body&& body) const {
        const Index n = size(), q = features_.nodes, k = features_.coordinates;
        StopPoll stop(options_.wants_stop);
        for (Index from = 0; from < n; from += group_) {
            const Index count = std::min(group_, n - from);
            const int threads = threads_for(count * point_cost(), options_.threads);
            for_blocks(count, block_, threads, [&](Index, Index first, Index last) {
                Scratch<double> scratch(rows_ * q * std::max<Index>(k, 1));
                for (Index begin = from + first; begin < from + last; begin += rows_)
                    body(begin, std::min(begin + rows_, from + last), scratch.data());
            });
            if (from + count < n && stop()) return false;
        }
        return true;
    }

    PointFeatures features_;
    NodeData nodes_;
    std::vector<double> masses_;
    RunOptions options_;
    bool keeps_ = false;  // gradients, from the pass that makes f to the one that needs it
    Index block_ = 1;     // atoms whose sums are made together
    Index rows_ = 1;      // atoms whose features are in memory together
    Index group_ = 1;     // atoms between questions whether to stop
    std::vector<double> partial_, residual_, kept_;
};

/// One panel's atoms, radii not below 0.
struct PanelAtoms {
    const std::vector<bool>& walls;
    const double* z;
    Index nodes, columns;

    double operator()(Index i, Index c) const {
        const double value = z[i * columns + c];
        return walls[static_cast<std::size_t>(c)] ? std::max(value, 0.0) : value;
    }
    /// True if some of them wait at a wall and others do not.
    bool cut() const {
        for (Index c = 0; c < columns; ++c) {
            if (!walls[static_cast<std::size_t>(c)]) continue;
            Index at_wall = 0;
            for (Index i = 0; i < nodes; ++i) at_wall += (*this)(i, c) == 0;
            if (at_wall > 0 && at_wall < nodes) return true;
        }
        return false;
    }
};

/// The size of the last coefficients of coordinate c of panel p, weighted, and what is tolerated of it.
std::pair<double, double> tail_of(const Panels& panels, std::size_t p, const PanelAtoms& at, bool cut,
                                  Index c) {
    const Index n = panels.nodes;
    const Index orders = n > 0 ? static_cast<Index>(panels.tail.size()) / n : 0;
    double tail = 0, largest = 0;
    for (Index m = 0; m < orders; ++m) {
        double sum = 0;
        for (Index i = 0; i < n; ++i) sum += panels.tail[m * n + i] * at(i, c);
        tail += std::abs(sum);
    }
    for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(at(i, c)));
    return {panels.weight[p] * tail, (panels.atol + panels.rtol * largest) * (cut ? panels.at_wall : 1)};
}

/// True if no panel has last coefficients beyond what is tolerated.
bool resolved(const Panels& panels, const std::vector<bool>& walls, const double* z, Index columns) {
    for (std::size_t p = 0; p < panels.weight.size(); ++p, z += panels.nodes * columns) {
        const PanelAtoms at{walls, z, panels.nodes, columns};
        const bool cut = at.cut();
        for (Index c = 0; c < columns; ++c) {
            const auto [tail, tolerated] = tail_of(panels, p, at, cut, c);
            if (tail > tolerated) return false;
        }
    }
    return true;
}

bool inside(const AtomParams& params, const double* y, Index size) {
    const auto columns = static_cast<Index>(params.low.size());
    for (Index c = 0; c < columns; ++c) {
        const auto column = static_cast<std::size_t>(c);
        const double low = params.nonnegative[column] ? -INFINITY : params.low[column];
        for (Index i = c; i < size; i += columns)
            if (y[i] < low || y[i] > params.high[column]) return false;
    }
    return true;
}

}  // namespace

void panel_tails(const Panels& panels, const std::vector<bool>& nonnegative, ConstMat z, Mat tails,
                 Mat tolerated) {
    const auto count = static_cast<Index>(panels.weight.size());
    require(z.rows == count * panels.nodes, "z", "must have all atoms of the panels", z.rows);
    require_count(nonnegative.size(), z.cols, "nonnegative", "entries");
    for (Index p = 0; p < count; ++p) {
        const PanelAtoms at{nonnegative, z.row(p * panels.nodes), panels.nodes, z.cols};
        const bool cut = at.cut();
        for (Index c = 0; c < z.cols; ++c) {
            const auto [tail, allowed] = tail_of(panels, static_cast<std::size_t>(p), at, cut, c);
            tails.row(p)[c] = tail;
            tolerated.row(p)[c] = allowed;
        }
    }
}

PointFeatures point_features(std::shared_ptr<const ReducedFeatures> features) {
    PointFeatures out{features->coordinates(), features->size(), features->nanoseconds(), {}};
    out.evaluate = [features](ConstMat z, double* phi, double* gradients) {
        features->evaluate(z, phi, gradients, 1);
    };
    return out;
}

Gradient atom_gradient(PointFeatures features, NodeData nodes, std::vector<double> masses,
                       RunOptions options) {
    require(features.evaluate != nullptr, "features", "must have a function", "none");
    require(features.coordinates > 0 && features.nodes > 0, "features", "must have coordinates and nodes",
            features.nodes);
    const auto work = std::make_shared<AtomGradient>(std::move(features), std::move(nodes), std::move(masses),
                                                     std::move(options));
    return [work](ConstMat z, Mat gradient) { return (*work)(z, gradient); };
}

Gradient separable_gradient(std::shared_ptr<const SeparableFeatures> features, std::vector<double> masses,
                            int threads) {
    require(features != nullptr, "features", "must not be null", "null");
    require(threads >= 0, "threads", "must be >= 0", threads);
    require_masses(masses);
    struct Work {
        std::vector<double> masses, moments, coefficients;
    };
    const auto size = static_cast<std::size_t>(features->size());
    const auto work =
        std::make_shared<Work>(Work{std::move(masses), std::vector<double>(size), std::vector<double>(size)});
    return [=](ConstMat z, Mat gradient) {
        if (features->moments(z, work->masses.data(), work->moments.data(), threads) > 0) {
            std::fill_n(gradient.data, gradient.rows * gradient.cols, NAN);
            return true;
        }
        features->residual(work->moments.data(), work->coefficients.data(), threads);
        features->potential(work->coefficients.data(), z, nullptr, gradient.data, nullptr, threads);
        return true;
    };
}

System atom_system(std::vector<double> masses, const AtomParams& params, Gradient gradient, Panels panels) {
    const auto atoms = static_cast<Index>(masses.size());
    const auto columns = static_cast<Index>(params.rates.size());
    require(atoms > 0, "masses", "must not be empty", atoms);
    require_masses(masses);
    require(columns > 0, "rates", "must not be empty", columns);
    for (const std::size_t size : {params.decays.size(), params.nonnegative.size(), params.volume.size()})
        require(size == params.rates.size(), "rates", "must be one for each coordinate", columns);
    for (const std::size_t size : {params.low.size(), params.high.size()})
        require(size == 0 || size == params.rates.size(), "low, high", "must be one for each coordinate",
                size);
    require(params.ridge >= 0, "ridge", "must be >= 0", params.ridge);
    for (const Index j : params.apex.columns)
        require(j >= 0 && j < columns && params.rates[static_cast<std::size_t>(j)] > 0, "apex",
                "must have columns that move", j);
    require(params.apex.bias < columns && (params.apex.bias < 0) == params.apex.knots.empty(), "apex",
            "must have a column of the bias, and knots, or neither", params.apex.bias);
    require(panels.weight.empty() || static_cast<Index>(panels.weight.size()) * panels.nodes == atoms,
            "panels", "must hold all atoms", panels.weight.size());
    System system;
    system.size = atoms * columns;
    system.speed = params.rates;
    system.nonnegative = params.nonnegative;
    system.volume = params.volume;
    system.masses = std::move(masses);
    system.apex = params.apex;
    system.velocity = [=](const double* y, double* velocity) {
        if (!gradient({y, atoms, columns}, {velocity, atoms, columns})) return false;
        for (Index c = 0; c < columns; ++c) {
            const auto column = static_cast<std::size_t>(c);
            const bool wall = params.nonnegative[column];
            const double decay = params.decays[column] ? params.ridge : 0;
            for (Index i = c; i < atoms * columns; i += columns) {
                const double z = wall ? std::max(y[i], 0.0) : y[i];
                velocity[i] = -params.rates[column] * (velocity[i] + decay * z);
                // At the wall 0 atoms rest until their velocity points away from it.
                if (wall && y[i] == 0) velocity[i] = std::max(velocity[i], 0.0);
            }
        }
        return true;
    };
    if (!panels.weight.empty() || !params.low.empty())
        system.resolved = [=, panels = std::move(panels)](const double* y) {
            return inside(params, y, atoms * columns) && resolved(panels, params.nonnegative, y, columns);
        };
    return system;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
