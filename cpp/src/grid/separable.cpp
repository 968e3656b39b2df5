// Moments, residuals and potentials of moving points from separable features (eqs. (2.8) to (2.10)).
#include "mfcore/grid/separable.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "base/scratch.hpp"
#include "grid/panel_basis.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline grid {
namespace {

using namespace panels;
constexpr Index kMostCoordinates = 4;
constexpr Index kTask = 256;      // points of one task
constexpr Index kPartials = 64;   // of a sum over points
constexpr Index kRowTask = 1024;  // rows of L in one task
constexpr std::array<Index, kMostCoordinates> kPlaces = {1, 3, 9, 27};

}  // namespace

// Basis functions of one coordinate at kPoints points: row(i, o) has derivatives of order o at point i.
struct SeparableFeatures::PointBasis {
    std::vector<double> values;
    Index padded;
    int orders;

    PointBasis(Index padded_, int order) : padded(padded_), orders(order + 1) {
        values.resize(static_cast<std::size_t>(kPoints * orders * padded));
    }
    double* row(Index i, int o = 0) { return values.data() + (i * orders + o) * padded; }

    void fill(const Axis& axis, Index n, const double* z, Index stride, bool* outside) {
        std::array<const double*, kPoints> series{};
        std::array<double, kPoints> t{}, scale{};
        const auto& edges = axis.edges;
        for (Index i = 0; i < n; ++i) {
            const double x = axis.clamped && z[i * stride] < 0 ? 0 : z[i * stride];
            const bool inside = x >= edges.front() && x <= edges.back();
            const auto next = std::upper_bound(edges.begin() + 1, edges.end() - 1, inside ? x : edges[0]);
            const double low = *(next - 1), high = *next;
            series[i] = axis.table.data() + (next - 1 - edges.begin()) * axis.terms * axis.padded;
            t[i] =
                inside ? ((x - low) - (high - x)) / (high - low) : std::numeric_limits<double>::quiet_NaN();
            scale[i] = 2 / (high - low);
            outside[i] = outside[i] || !inside;
        }
        const Chebyshev T(axis.terms, orders - 1, t.data(), scale.data());
        const auto evaluate = orders == 1   ? evaluate_series<1>
                              : orders == 2 ? evaluate_series<2>
                                            : evaluate_series<3>;
        for (Index i = 0; i < n; ++i) evaluate(T, axis.terms, i, series[i], axis.padded, row(i));
    }
};

void PanelBasis::validate() const {
    require(edges.size() >= 2, "edges", "must have at least two entries", edges.size());
    for (std::size_t p = 0; p + 1 < edges.size(); ++p)
        require(edges[p] < edges[p + 1], "edges", "must increase", edges[p + 1]);
    require(terms >= 2 && terms <= kMostTerms, "terms", "must be between 2 and 32", terms);
    require(rank > 0, "rank", "must be > 0", rank);
    require_count(series.size(), panels() * terms * rank, "series", "entries");
}

SeparableFeatures::SeparableFeatures(std::vector<PanelBasis> axes, ConstMat core, std::vector<double> target,
                                     double rest)
    : target_(std::move(target)), rest_(rest) {
    require(!axes.empty() && static_cast<Index>(axes.size()) <= kMostCoordinates, "axes",
            "must be between 1 and 4", axes.size());
    for (PanelBasis& given : axes) {
        given.validate();
        Axis axis;
        static_cast<PanelBasis&>(axis) = std::move(given);
        axis.padded = padded_up(axis.rank);
        axis.table.assign(static_cast<std::size_t>(axis.panels() * axis.terms * axis.padded), 0.0);
        for (Index r = 0; r < axis.panels() * axis.terms; ++r)
            std::copy_n(axis.series.data() + r * axis.rank, axis.rank, axis.table.data() + r * axis.padded);
        size_ *= axis.rank;
        axes_.push_back(std::move(axis));
    }
    for (std::size_t c = axes_.size() - 1; c-- > 0;)
        axes_[c].across =
            axes_[c + 1].across * (c + 2 == axes_.size() ? axes_[c + 1].padded : axes_[c + 1].rank);
    require(core.rows == size_, "core", "must have a row for each product of functions", core.rows);
    require(core.cols == columns(), "core", "must have a column for each entry of target", core.cols);
    core_.reserve(static_cast<std::size_t>(core.rows * core.cols));
    for (Index r = 0; r < core.rows; ++r) core_.insert(core_.end(), core.row(r), core.row(r) + core.cols);
}

// body(task, first point, number of points, blocks, scratch) for groups of up to kPoints points, after
// filling a block for each coordinate; returns how many points are outside of the box.
template <class Body>
Index SeparableFeatures::for_points(ConstMat z, int order, Index task, Index scratch, int threads,
                                    const Body& body) const {
    require_count(z.cols, coordinates(), "z", "columns");
    Index work = coordinates() == 1 ? 0 : size_;
    for (const Axis& axis : axes_) work += axis.terms * axis.padded;
    work = work * (order + 1) / kLanes + 30;  // nanoseconds of a point, roughly
    std::atomic<Index> outside{0};
    for_blocks(z.rows, task, threads_for(z.rows * work, threads), [&](Index b, Index begin, Index end) {
        std::vector<PointBasis> blocks;
        for (const Axis& axis : axes_) blocks.emplace_back(axis.padded, order);
        FilledScratch<double> space(static_cast<std::size_t>(scratch));
        Index here = 0;
        for (Index i = begin; i < end; i += kPoints) {
            check_stop();
            const Index count = std::min(kPoints, end - i);
            std::array<bool, kPoints> bad{};
            for (std::size_t c = 0; c < axes_.size(); ++c)
                blocks[c].fill(axes_[c], count, z.row(i) + c, z.stride, bad.data());
            here += std::count(bad.begin(), bad.end(), true);
            body(b, i, count, blocks, space.data());
        }
        outside += here;
    });
    return outside;
}

Index SeparableFeatures::basis(Index c, Index n, const double* z, int order, double* out) const {
    require(c >= 0 && c < coordinates(), "coordinate", "must be one of the coordinates", c);
    require(order >= 0 && order < kOrders, "order", "must be 0, 1 or 2", order);
    const Axis& axis = axes_[static_cast<std::size_t>(c)];
    PointBasis block(axis.padded, order);
    Index outside = 0;
    for (Index i = 0; i < n; i += kPoints) {
        check_stop();
        const Index count = std::min(kPoints, n - i);
        std::array<bool, kPoints> bad{};
        block.fill(axis, count, z + i, 1, bad.data());
        outside += std::count(bad.begin(), bad.end(), true);
        for (Index k = 0; k < count; ++k)
            std::copy_n(block.row(k, order), axis.rank, out + (i + k) * axis.rank);
    }
    return outside;
}

Index SeparableFeatures::moments(ConstMat z, const double* weights, double* m, int threads) const {
    const Index n = z.rows, last = axes_.back().padded;
    // Tasks depend on n alone, and their sums are added in order.
    const Index task = std::max(kTask, (n + kPartials - 1) / kPartials);
    // A single coordinate counts as the second one of two: the first is the weight alone.
    const bool line = coordinates() == 1;
    const Index rows = line ? 1 : rank(0), stride = line ? 1 : axes_[0].padded;
    const Index width = line ? last : axes_[0].across;
    FilledScratch<double> sums(static_cast<std::size_t>((n + task - 1) / task * rows * width), 0.0);

    const auto add = [&](Index b, Index i, Index count, std::vector<PointBasis>& blocks, double* scratch) {
        double* x = scratch;
        for (Index k = 0; k < kPoints; ++k) {
            const double w = k >= count ? 0 : weights ? weights[i + k] : 1 / static_cast<double>(n);
            for (Index a = 0; a < rows; ++a)
                x[k * stride + a] = k >= count ? 0 : line ? w : w * blocks[0].row(k)[a];
        }
        // The products of the functions of the other coordinates, from the last one forwards.
        const double* y = blocks.back().row(0);
        double* next = x + kPoints * stride;
        for (Index c = coordinates() - 2, length = last; c > 0; --c) {
            PointBasis& block = blocks[static_cast<std::size_t>(c)];
            for (Index k = 0; k < kPoints; ++k) {
                for (Index a = 0; a < rank(c); ++a) {
                    const double left = block.row(k)[a];
                    double* out = next + (k * rank(c) + a) * length;
                    for (Index j = 0; j < length; ++j) out[j] = left * y[k * length + j];
                }
            }
            y = next;
            length *= rank(c);
            next += kPoints * length;
        }
        add_products(x, stride, rows, y, width, sums.data() + b * rows * width);
    };
    const Index outside = for_points(z, 0, task, kPoints * (stride + 2 * width), threads, add);

    std::fill_n(m, size_, 0.0);
    const Index ranks = axes_.back().rank;
    for (std::size_t at = 0; at < sums.size(); at += static_cast<std::size_t>(rows * width))
        for (Index k = 0; k < size_; ++k)
            m[k] += sums[at + static_cast<std::size_t>(k / ranks * last + k % ranks)];
    return outside;
}

double SeparableFeatures::residual(const double* m, double* g, int threads) const {
    const Index r = columns(), tasks = (size_ + kRowTask - 1) / kRowTask;
    const int team = threads_for(size_ * r / kLanes, threads);
    FilledScratch<double> parts(static_cast<std::size_t>(tasks * r), 0.0), e(target_.size());
    for_blocks(size_, kRowTask, team, [&](Index b, Index begin, Index end) {
        double* part = parts.data() + b * r;
        for (Index k = begin; k < end; ++k)
            for (Index j = 0; j < r; ++j) part[j] += m[k] * core_[static_cast<std::size_t>(k * r + j)];
    });
    double risk = rest_;
    for (Index j = 0; j < r; ++j) {
        double sum = 0;
        for (Index b = 0; b < tasks; ++b) sum += parts[static_cast<std::size_t>(b * r + j)];
        e[static_cast<std::size_t>(j)] = sum - target_[static_cast<std::size_t>(j)];
        risk += e[static_cast<std::size_t>(j)] * e[static_cast<std::size_t>(j)];
    }
    for_blocks(size_, kRowTask, team, [&](Index, Index begin, Index end) {
        for (Index k = begin; k < end; ++k) g[k] = dot(core_.data() + k * r, e.data(), r);
    });
    return risk;
}

// All derivatives of Psi at a point up to an order: number sum_c o_c 3^c has order o_c in coordinate c.
struct SeparableFeatures::Derivatives {
    const std::vector<Axis>& axes;
    std::vector<PointBasis>& blocks;
    Index point;
    std::array<double, 81> values{};

    void contract(std::size_t c, int order, const double* g, Index number, double* scratch) {
        const Axis& axis = axes[c];
        double* A = blocks[c].row(point);
        if (c + 1 == axes.size()) {
            for (int o = 0; o <= order; ++o)
                values[number + o * kPlaces[c]] = padded_dot(A + o * axis.padded, g, axis.padded);
            return;
        }
        const auto rows = order == 0 ? contract_rows<1> : order == 1 ? contract_rows<2> : contract_rows<3>;
        rows(A, axis.padded, axis.rank, g, axis.across, scratch);
        for (int o = 0; o <= order; ++o)
            contract(c + 1, order - o, scratch + o * axis.across, number + o * kPlaces[c],
                     scratch + (order + 1) * axis.across);
    }
};

Index SeparableFeatures::potential(const double* g, ConstMat z, double* value, double* gradient,
                                   double* hessian, int threads) const {
    const int order = hessian ? 2 : gradient ? 1 : 0;
    const Index k = coordinates(), ranks = axes_.back().rank, last = axes_.back().padded;
    FilledScratch<double> padded(static_cast<std::size_t>(size_ / ranks * last), 0.0);
    for (Index row = 0; row < size_ / ranks; ++row)
        std::copy_n(g + row * ranks, ranks, padded.data() + row * last);
    Index scratch = 0;
    for (const Axis& axis : axes_) scratch += kOrders * axis.across;
    return for_points(z, order, kTask, scratch, threads,
                      [&](Index, Index i, Index count, std::vector<PointBasis>& blocks, double* space) {
                          for (Index p = 0; p < count; ++p) {
                              Derivatives d{axes_, blocks, p};
                              d.contract(0, order, padded.data(), 0, space);
                              if (value) value[i + p] = d.values[0];
                              for (Index c = 0; gradient && c < k; ++c)
                                  gradient[(i + p) * k + c] = d.values[kPlaces[c]];
                              for (Index c = 0; hessian && c < k * k; ++c)
                                  hessian[(i + p) * k * k + c] = d.values[kPlaces[c / k] + kPlaces[c % k]];
                          }
                      });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline grid
