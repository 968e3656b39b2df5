// Features of reduced models and their gradients (eqs. (5.1) to (5.3)), at all nodes of the data.
#include "mfcore/reduction/reduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/parallel.hpp"
#include "mfcore/base/errors.hpp"
#include "reduction/two_radii.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

constexpr Index kChunk = 128;      // nodes taken together; fits the stack
constexpr Index kOuter = 64;       // most nodes of a quadrature over one direction taken together
constexpr Index kNanoseconds = 8;  // of one activation or tail, for the choice of threads
constexpr Index kBlockNanoseconds = 20'000;
constexpr double kSmall = 20;  // below this dimension features have kinks that matter

/// |(x, y)|, also where the squares leave the range of numbers.
double length(double x, double y) {
    const double square = x * x + y * y;
    return square > 1e-280 && square < 1e280 ? std::sqrt(square) : std::hypot(x, y);
}

/// True if sigma grows faster than t^4, as far as values show: the few nodes for two radii would not see the mass of
/// its averages.
bool grows(const Activation& sigma) {
    if (!facts(sigma).may_grow()) return false;
    constexpr double kFar = 64;
    double at[7] = {-kFar, kFar, -2, -1, 0, 1, 2}, near = 0;
    evaluate(sigma, 7, at, at);
    for (int k = 2; k < 7; ++k) near = std::max(near, std::abs(at[k]));
    return !(std::max(std::abs(at[0]), std::abs(at[1])) <= std::pow(kFar, 4) * near);
}

}  // namespace

struct ReducedFeatures::Point {
    double a = 1, b = 0;  // a times the scale
    const double* s = nullptr;
    std::array<double, 2> r{};  // >= 0
};

struct ReducedFeatures::Chunk {
    std::array<double, kChunk> m, R, S, S_m;
    std::array<std::array<double, kChunk>, 2> S_r;  // derivatives with respect to r_i s_{q,i}
    std::array<double, kChunk> S_s;  // with respect to the one direction, if projected along it

    void copy(const TwoRadii::Averages& all, Index first, Index count) {
        std::copy_n(all.S.data() + first, count, S.data());
        std::copy_n(all.S_m.data() + first, count, S_m.data());
        for (std::size_t i = 0; i < 2; ++i) std::copy_n(all.S_r[i].data() + first, count, S_r[i].data());
    }
};

ReducedFeatures::ReducedFeatures(const Activation& sigma, bool has_a, bool has_b, std::vector<double> dims,
                                 ConstMat nodes, std::shared_ptr<const ChiPanels> panels,
                                 std::shared_ptr<const NormalPanels> along, double scale,
                                 std::vector<double> centres)
    : sigma_(sigma),
      has_a_(has_a),
      has_b_(has_b),
      scale_(scale),
      nodes_(nodes.rows),
      dims_(std::move(dims)),
      panels_(std::move(panels)),
      along_(std::move(along)),
      centres_(std::move(centres)) {
    sigma.validate();
    require(dims_.size() <= 2, "dims", "must have at most 2 entries", dims_.size());
    directions_ = nodes.cols - radii();
    require(directions_ >= 0, "nodes", "must have a column for each radius", nodes.cols);
    require(coordinates() > 0 && nodes_ > 0, "nodes", "must not be empty", nodes.cols);
    columns_.resize(static_cast<std::size_t>(nodes_ * nodes.cols));
    for (Index q = 0; q < nodes_; ++q)
        for (Index c = 0; c < nodes.cols; ++c)
            columns_[static_cast<std::size_t>(c * nodes_ + q)] = nodes(q, c);

    require(!panels_ || (dims_.size() == 1 && std::isfinite(dims_[0]) && sigma.is_piecewise() &&
                         nodes_ % panels_->size() == 0),
            "panels", "must come with knots, one finite dimension and whole groups of nodes", nodes_);
    require(!along_ || (!panels_ && dims_.size() <= 1 && directions_ == 1 && sigma.is_piecewise() &&
                        nodes_ % along_->size() == 0),
            "along", "must come with knots, one direction, at most one radius and whole groups of nodes",
            nodes_);
    const Index groups = along_ ? nodes_ / along_->size() : 0;
    if (centres_.empty()) centres_.assign(static_cast<std::size_t>(groups), 0.0);
    require_count(static_cast<Index>(centres_.size()), groups, "centres", "entries");
    if (dims_.empty()) return;
    const bool infinite = std::isinf(dims_[0]);
    smoothers_.emplace_back(sigma, dims_[0]);
    if (dims_.size() == 1) return;
    require(std::isinf(dims_[1]) == infinite, "dims", "must be both finite or both infinite", dims_[1]);
    if (infinite) return;
    smoothers_.emplace_back(sigma, dims_[1]);
    two_ = true;
    const double* s = columns_.data() + directions_ * nodes_;
    const bool growing = grows(sigma);
    if (!growing && directions_ == 0 && TwoRadii::applies(sigma, dims_, nodes_, s, s + nodes_))
        shared_ = std::make_shared<const TwoRadii>(dims_, nodes_, s, s + nodes_);
    // The outer average is over the narrower direction, against a function smoothed over at least that width:
    // in high dimension 40 nodes are enough for 1e-13.
    const double smallest = std::min(dims_[0], dims_[1]);
    require(smallest >= kSmall || facts(sigma).kinks.empty(), "dims",
            "must be at least 20 each with two radii and a custom activation with kinks", smallest);
    // Each smoother's own rule, which is exact for polynomials and goes as far as functions grow.
    if ((smallest < kSmall || facts(sigma).polynomial || growing) && !sigma.is_piecewise()) return;
    const Index n = smallest >= 50 ? 40 : 64;
    for (const double d : dims_) outer_.push_back(gauss_gegenbauer(d, n));
    if (smallest >= kSmall) return;
    for (const double d : dims_) density_.push_back(direction_density(d, 0.0));
    piece_ = gauss_legendre(32);
    for (std::size_t k = 0; k < piece_.nodes.size(); ++k) {
        const double angle = std::numbers::pi / 2 * piece_.nodes[k];
        piece_.nodes[k] = std::sin(angle);
        piece_.weights[k] *= std::numbers::pi / 2 * std::cos(angle) * 2;  // Legendre weights have mass 1
    }
}

ReducedFeatures::Point ReducedFeatures::take_apart(const double* z) const {
    Point p;
    p.a = has_a_ ? scale_ * *z++ : scale_;
    if (has_b_) p.b = *z++;
    p.s = z;
    for (Index i = 0; i < radii(); ++i) p.r[static_cast<std::size_t>(i)] = std::max(z[directions_ + i], 0.0);
    return p;
}

void ReducedFeatures::average(const Point& p, Index first, Index count, Chunk& out, bool slopes) const {
    std::fill_n(out.m.begin(), count, p.b);
    for (Index j = 0; j < directions_; ++j) {
        const double* z = columns_.data() + j * nodes_ + first;
        for (Index i = 0; i < count; ++i) out.m[i] += p.s[j] * z[i];
    }
    double* S_m = slopes ? out.S_m.data() : nullptr;
    double* S_R = slopes ? out.S_r[0].data() : nullptr;
    if (dims_.empty()) {
        mfcore::evaluate(sigma_, count, out.m.data(), out.S.data(), S_m);
        if (along_) project_along(p, first, count, out, slopes);
        return;
    }

    const double* s1 = columns_.data() + directions_ * nodes_ + first;
    if (dims_.size() == 1) {
        for (Index i = 0; i < count; ++i) out.R[i] = p.r[0] * s1[i];
        smoothers_[0].evaluate(count, out.m.data(), out.R.data(), out.S.data(), S_m, S_R);
        if (panels_) project(p, first, count, out);
        if (along_) project_along(p, first, count, out, slopes);
        return;
    }
    const double* s2 = s1 + nodes_;
    if (two_) {
        for (Index i = 0; i < count; ++i) two_radii(out.m[i], p.r[0] * s1[i], p.r[1] * s2[i], out, i, slopes);
        return;
    }
    for (Index i = 0; i < count; ++i) {
        const double R1 = p.r[0] * s1[i], R2 = p.r[1] * s2[i];
        out.R[i] = length(R1, R2);
    }
    smoothers_[0].evaluate(count, out.m.data(), out.R.data(), out.S.data(), S_m, S_R);
    for (Index i = 0; slopes && i < count; ++i) {
        // dR/dR_i = R_i / R; at R = 0 the one-sided derivative along each axis.
        const double by_R = out.S_r[0][i], R = out.R[i];
        out.S_r[0][i] = R > 0 ? p.r[0] * s1[i] / R * by_R : by_R;
        out.S_r[1][i] = R > 0 ? p.r[1] * s2[i] / R * by_R : by_R;
    }
}

// In panels at a kink, projections replace the values of its term jump E(m + r s u - t)_+: of the part right
// of the kink, R E(u - tau)_+ with tau = |t - m|/R, and its derivatives (the rest is linear in m).
void ReducedFeatures::project(const Point& p, Index first, Index count, Chunk& out) const {
    using Panels = ChiPanels;
    const double* s = columns_.data() + directions_ * nodes_;
    const std::vector<double>& unscaled = panels_->rule().nodes;
    Panels::Projections change;
    for (Index at = 0; at < count; at += Panels::kOrder) {
        const Index within = (first + at) % panels_->size(), panel = within / Panels::kOrder;
        const double* nodes = unscaled.data() + within;
        const double r = p.r[0] * (s[first + at] / nodes[0]);
        for (std::size_t k = 0; k < sigma_.knots.size(); ++k) {
            const double gap = sigma_.knots[k] - out.m[at], kink = std::abs(gap) / r;
            if (!(r > 0) || panels_->resolves(panel, kink)) continue;
            const auto term = [&](const auto& x, auto& values) {
                std::array<double, Panels::kPoints> tau;
                const std::size_t n = values[0].size();
                for (std::size_t i = 0; i < n; ++i) tau[i] = kink / x[i];
                const DirectionTable& tails = smoothers_[0].tails();
                tails.evaluate(static_cast<Index>(n), tau.data(), values[1].data(), values[2].data());
                for (std::size_t i = 0; i < n; ++i) {
                    values[0][i] = r * x[i] * (values[2][i] - tau[i] * values[1][i]);
                    if (gap < 0) values[1][i] = -values[1][i];
                    values[2][i] *= x[i];
                }
            };
            panels_->project(panel, kink, term, change);
            Panels::Projections pointwise;
            std::array<double, Panels::kOrder> x;
            std::copy_n(nodes, x.size(), x.data());
            term(x, pointwise);
            for (std::size_t q = 0; q < x.size(); ++q) {
                const std::size_t i = static_cast<std::size_t>(at) + q;
                const double jump = sigma_.jumps[k];
                out.S[i] += jump * (change[0][q] - pointwise[0][q]);
                out.S_m[i] += jump * (change[1][q] - pointwise[1][q]);
                out.S_r[0][i] += jump * (change[2][q] - pointwise[2][q]) / x[q];
            }
        }
    }
}

// The same in panels of the one direction z: of jump E(b + s z + R u - t)_+, and its derivatives with respect
// to b, s and R.
void ReducedFeatures::project_along(const Point& p, Index first, Index count, Chunk& out, bool slopes) const {
    using Panels = NormalPanels;
    const double* z = columns_.data() + first;
    const double d = dims_.empty() ? 1 : dims_[0];
    const double reach = std::isinf(d) ? 9.2 : std::min(1.0, 9.2 / std::sqrt(d));
    const double deviation = std::isinf(d) ? 1 : 1 / std::sqrt(d);
    for (Index i = 0; slopes && i < count; ++i) out.S_s[i] = z[i] * out.S_m[i];
    Panels::Projections change;
    for (Index at = 0; at < count; at += Panels::kOrder) {
        const Index within = (first + at) % along_->size(), panel = within / Panels::kOrder;
        const double* nodes = along_->rule().nodes.data() + within;
        const double centre = centres_[static_cast<std::size_t>((first + at) / along_->size())];
        const double stretch = (z[at] - centre) / nodes[0], slope = p.s[0] * stretch;
        const double shift = p.b + p.s[0] * centre;
        const double R = dims_.empty() ? 0 : p.r[0] * z[nodes_ + at];
        for (std::size_t k = 0; k < sigma_.knots.size(); ++k) {
            const double gap = sigma_.knots[k] - shift, width = R / std::abs(slope);
            const Panels::Bend bend{gap / slope, reach * width, deviation * width, d < kSmall};
            if (slope == 0 || along_->resolves(panel, bend)) continue;
            const auto term = [&](const auto& x, auto& values) {
                std::array<double, Panels::kPoints> tau;
                const std::size_t n = values[0].size();
                for (std::size_t i = 0; i < n; ++i) {
                    const double over = gap - slope * x[i];
                    values[0][i] = -over;
                    values[1][i] = over < 0 ? 1 : 0;
                    values[3][i] = 0;
                    tau[i] = over / R;
                }
                if (R > 0)
                    smoothers_[0].tails().evaluate(static_cast<Index>(n), tau.data(), values[1].data(),
                                                   values[3].data());
                for (std::size_t i = 0; i < n; ++i) {
                    values[0][i] = values[0][i] * values[1][i] + R * values[3][i];
                    values[2][i] = (centre + stretch * x[i]) * values[1][i];
                }
            };
            along_->project(panel, bend, slope > 0, slopes ? Panels::kFunctions : 1, term, change);
            Panels::Projections pointwise;
            Panel::Coefficients x;
            std::copy_n(nodes, x.size(), x.data());
            term(x, pointwise);
            for (std::size_t q = 0; q < x.size(); ++q) {
                const std::size_t i = static_cast<std::size_t>(at) + q;
                const double jump = sigma_.jumps[k];
                out.S[i] += jump * (change[0][q] - pointwise[0][q]);
                if (!slopes) continue;
                out.S_m[i] += jump * (change[1][q] - pointwise[1][q]);
                out.S_s[i] += jump * (change[2][q] - pointwise[2][q]);
                out.S_r[0][i] += jump * (change[3][q] - pointwise[3][q]);
            }
        }
    }
}

// E S_{d_j}(m + R_i u_i, R_j), eq. (3.16): exact over the direction j that spreads more, quadrature over the
// other one.
void ReducedFeatures::two_radii(double m, double R1, double R2, Chunk& out, Index at, bool slopes) const {
    std::size_t j = R1 * std::sqrt(dims_[1]) > R2 * std::sqrt(dims_[0]) ? 0 : 1;
    if (dims_[0] == 1 || dims_[1] == 1) j = dims_[0] == 1 ? 1 : 0;  // u = +-1 needs no quadrature
    const std::size_t i = 1 - j;
    const double narrow = i == 0 ? R1 : R2, wide = j == 0 ? R1 : R2;
    double value = 0, by_m = 0, by_narrow = 0, by_wide = 0;
    const auto add = [&](Index n, const double* u, const double* weights) {
        std::array<double, kOuter> shift, R, S, S_m, S_R;
        for (Index k = 0; k < n; ++k) {
            shift[k] = m + narrow * u[k];
            R[k] = wide;
        }
        smoothers_[j].evaluate(n, shift.data(), R.data(), S.data(), slopes ? S_m.data() : nullptr,
                               slopes ? S_R.data() : nullptr);
        for (Index k = 0; k < n; ++k) value += weights[k] * S[k];
        for (Index k = 0; slopes && k < n; ++k) {
            by_m += weights[k] * S_m[k];
            by_narrow += weights[k] * u[k] * S_m[k];
            by_wide += weights[k] * S_R[k];
        }
    };
    if (piece_.nodes.empty() || dims_[i] == 1) {
        const Rule& u = outer_.empty() ? smoothers_[i].rule_at(m, narrow) : outer_[i];
        const auto n = static_cast<Index>(u.nodes.size());
        for (Index k = 0; k < n; k += kOuter)
            add(std::min(kOuter, n - k), u.nodes.data() + k, u.weights.data() + k);
    } else {
        in_pieces(m, narrow, wide, i, add);
    }
    out.S[at] = value;
    if (!slopes) return;
    // At R1 = R2 = 0 take the one-sided derivative along each axis: the exact average over that axis.
    double unused = 0;
    if (wide == 0 && narrow == 0) {
        smoothers_[i].evaluate(1, &m, &narrow, &unused, nullptr, &by_narrow);
        smoothers_[j].evaluate(1, &m, &wide, &unused, nullptr, &by_wide);
    }
    out.S_m[at] = by_m;
    out.S_r[i][at] = by_narrow;
    out.S_r[j][at] = by_wide;
}

// In low dimension S_{d_j}(x, R_j) has kinks at x = t_k +- R_j, of the type |x - x_0|^{(d_j+1)/2}, and the
// density of u_i is singular at +-1. Between these points u = centre + half sin(angle) makes everything
// analytic.
template <class Add>
void ReducedFeatures::in_pieces(double m, double narrow, double wide, std::size_t i, const Add& add) const {
    const double d = dims_[i];
    std::array<double, 64> edges;  // more knots than fit cost accuracy only
    const double reach = std::min(1.0, 9.5 / std::sqrt(d));
    std::size_t count = 0;
    const double panels = std::ceil(reach * std::sqrt(d) / 2);  // at most four standard deviations each
    for (double p = 0; p < panels; p += 1) edges[count++] = reach * (2 * p / panels - 1);
    for (const double knot : sigma_.knots) {
        for (const double kink : {knot - m - wide, knot - m + wide}) {
            if (std::abs(kink) < reach * narrow && count + 1 < edges.size()) edges[count++] = kink / narrow;
        }
    }
    edges[count++] = reach;
    std::sort(edges.begin(), edges.begin() + static_cast<Index>(count));
    const Index n = static_cast<Index>(piece_.nodes.size());
    std::array<double, kOuter> u, weights;
    for (std::size_t e = 0; e + 1 < count; ++e) {
        const double centre = (edges[e] + edges[e + 1]) / 2, half = (edges[e + 1] - edges[e]) / 2;
        const double scale = half * density_[i];
        for (Index k = 0; k < n; ++k) {
            u[k] = centre + half * piece_.nodes[k];
            weights[k] = scale * piece_.weights[k] * std::pow((1 - u[k]) * (1 + u[k]), (d - 3) / 2);
        }
        add(n, u.data(), weights.data());
    }
}

Index ReducedFeatures::nanoseconds() const {
    // A typical spread is that of two standard deviations of u; two radii average twice.
    const Index cost = smoothers_.empty() ? 1 : smoothers_[0].cost(2);
    const Index averages = shared_ ? shared_->cost() : nodes_ * (two_ ? kOuter : 1);
    return averages * cost * kNanoseconds;
}

void ReducedFeatures::evaluate(ConstMat z, double* phi, double* gradients, int threads) const {
    require_count(z.cols, coordinates(), "z", "columns");
    const Index point_work = nanoseconds();
    const Index block = std::clamp<Index>(kBlockNanoseconds / std::max<Index>(point_work, 1), 1, 256);
    const Index k = coordinates();
    const bool is_odd = facts(sigma_).parity == Parity::odd;

    for_blocks(z.rows, block, threads_for(z.rows * point_work, threads), [&](Index, Index begin, Index end) {
        Chunk chunk;
        TwoRadii::Averages all(shared_ ? nodes_ : 0);
        for (Index n = begin; n < end; ++n) {
            check_stop();
            const Point p = take_apart(z.row(n));
            // The averages of an odd sigma are 0: what rounding leaves of them would be resolved as features.
            const bool odd = is_odd && directions_ == 0 && p.b == 0;
            const bool at_once = shared_ && (p.r[0] > 0 || p.r[1] > 0);
            if (at_once) shared_->average(p.b, p.r, smoothers_, all, gradients != nullptr);
            const Index step = panels_ || along_ ? kChunk / Panel::kOrder * Panel::kOrder : kChunk;
            for (Index first = 0; first < nodes_; first += step) {
                const Index count = std::min(step, nodes_ - first);
                if (at_once)
                    chunk.copy(all, first, count);
                else
                    average(p, first, count, chunk, gradients != nullptr);
                if (odd)
                    for (auto* zero : {&chunk.S, &chunk.S_r[0], &chunk.S_r[1]}) zero->fill(0.0);
                for (Index i = 0; phi && i < count; ++i) phi[n * nodes_ + first + i] = p.a * chunk.S[i];
                if (!gradients) continue;
                double* row = gradients + (n * nodes_ + first) * k;
                for (Index i = 0; i < count; ++i, row += k) {
                    double* g = row;
                    const double* node = columns_.data() + first + i;
                    if (has_a_) *g++ = scale_ * chunk.S[i];
                    if (has_b_) *g++ = p.a * chunk.S_m[i];
                    if (along_) *g++ = p.a * chunk.S_s[i];
                    for (Index j = 0; j < directions_ && !along_; ++j)
                        *g++ = p.a * chunk.S_m[i] * node[j * nodes_];
                    for (Index j = 0; j < radii(); ++j)
                        *g++ = p.a * chunk.S_r[static_cast<std::size_t>(j)][i] *
                               node[(directions_ + j) * nodes_];
                }
            }
        }
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
