// Averages over two independent directions at all nodes at once (eqs. (3.16), (3.17)).
#include "reduction/two_radii.hpp"

#include <algorithm>
#include <cmath>

#include "base/products.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

constexpr double kLowest = 50;   // dimension
constexpr double kRatio = 1.69;  // largest s of a group over its smallest

std::vector<double> distinct(Index n, const double* s) {
    std::vector<double> values(s, s + n);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

Index place(const std::vector<double>& values, double s) {
    return std::lower_bound(values.begin(), values.end(), s) - values.begin();
}

// Orthonormal polynomials p_0 .. p_{n-1} of the law of u at x: sqrt(b_{k+1}) p_{k+1} = x p_k - sqrt(b_k)
// p_{k-1}.
void polynomials(double d, double x, std::vector<double>& p) {
    const auto root = [d](double k) {
        return std::sqrt(k == 1 ? 1 / d : k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4)));
    };
    p[0] = 1;
    p[1] = x / root(1);
    for (std::size_t k = 1; k + 1 < p.size(); ++k) {
        const auto j = static_cast<double>(k);
        p[k + 1] = (x * p[k] - root(j) * p[k - 1]) / root(j + 1);
    }
}

// Weights at the points x_n that average functions of u over the law of scale * u, scale <= 1: those of
// degree below n exactly, w_n sum_k p_k(x_n) E p_k(scale u).
void scaled_weights(double d, const Rule& rule, double scale, double* out) {
    const std::size_t n = rule.nodes.size();
    std::vector<double> p(n), means(n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        polynomials(d, scale * rule.nodes[j], p);
        for (std::size_t k = 0; k < n; ++k) means[k] += rule.weights[j] * p[k];
    }
    for (std::size_t j = 0; j < n; ++j) {
        polynomials(d, rule.nodes[j], p);
        double sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += p[k] * means[k];
        out[j] = rule.weights[j] * sum;
    }
}

}  // namespace

TwoRadii::Averages::Averages(Index nodes) {
    for (auto* v : {&S, &S_m, &S_r[0], &S_r[1]}) v->resize(static_cast<std::size_t>(nodes));
}

bool TwoRadii::applies(const Activation& sigma, const std::vector<double>& dims, Index nodes,
                       const double* s1, const double* s2) {
    if (std::min(dims[0], dims[1]) < kLowest) return false;
    // Polynomials may have a higher degree than the weights are exact for.
    if (facts(sigma).polynomial && !sigma.is_piecewise()) return false;
    const std::size_t grid = distinct(nodes, s1).size() * distinct(nodes, s2).size();
    return grid <= 4 * static_cast<std::size_t>(nodes);
}

TwoRadii::TwoRadii(const std::vector<double>& dims, Index nodes, const double* s1, const double* s2)
    : sides_{side(dims[0], nodes, s1), side(dims[1], nodes, s2)},
      at_(sides_[0].values.size() * sides_[1].values.size(), -1) {
    const auto columns = static_cast<Index>(sides_[1].values.size());
    for (Index q = 0; q < nodes; ++q) {
        Index& here = at_[static_cast<std::size_t>(place(sides_[0].values, s1[q]) * columns +
                                                   place(sides_[1].values, s2[q]))];
        if (here < 0)
            here = q;
        else
            copies_.emplace_back(here, q);
    }
}

TwoRadii::Side TwoRadii::side(double d, Index nodes, const double* s) {
    Side out{d, distinct(nodes, s), {}, {}, {}};
    const auto n = static_cast<Index>(out.values.size());
    for (Index end = n; end > 0;) {  // from the largest value downwards
        const double base = out.values[static_cast<std::size_t>(end) - 1];
        Index begin = end - 1;
        while (begin > 0 && out.values[static_cast<std::size_t>(begin) - 1] * kRatio >= base) --begin;
        out.groups.push_back({begin, end, base});
        end = begin;
    }
    for (std::size_t k = 0; k < kSizes.size(); ++k) {
        out.rules[k] = gauss_gegenbauer(d, kSizes[k]);
        out.weights[k].resize(static_cast<std::size_t>(n * kSizes[k]));
        for (const Group& group : out.groups)
            for (Index a = group.begin; a < group.end; ++a)
                scaled_weights(d, out.rules[k], out.values[static_cast<std::size_t>(a)] / group.base,
                               out.weights[k].data() + a * kSizes[k]);
    }
    return out;
}

Index TwoRadii::cost() const {
    const auto one = static_cast<Index>(sides_[0].values.size() * sides_[1].groups.size());
    const auto other = static_cast<Index>(sides_[1].values.size() * sides_[0].groups.size());
    return std::max(one, other) * 32;
}

void TwoRadii::average(double m, const std::array<double, 2>& r, const std::vector<Smoother>& smoothers,
                       Averages& out, bool slopes) const {
    for (const Group& first : sides_[0].groups) {
        for (const Group& second : sides_[1].groups) {
            // The average is exact over the direction that spreads more.
            const double one = r[0] * first.base * std::sqrt(sides_[1].d);
            const double other = r[1] * second.base * std::sqrt(sides_[0].d);
            const std::size_t wide = one >= other ? 0 : 1;
            const Group& rows = wide == 0 ? first : second;
            const Group& across = wide == 0 ? second : first;
            for (Index a = rows.begin; a < rows.end; ++a)
                row(m, wide, a, across, r, smoothers[wide], out, slopes);
        }
    }
    for (const auto& [from, to] : copies_) {
        for (auto* v : {&out.S, &out.S_m, &out.S_r[0], &out.S_r[1]})
            (*v)[static_cast<std::size_t>(to)] = (*v)[static_cast<std::size_t>(from)];
    }
}

// Average at the nodes with value number `a` of the wide direction and those of a group of the other one.
void TwoRadii::row(double m, std::size_t wide, Index a, const Group& across, const std::array<double, 2>& r,
                   const Smoother& exact, Averages& out, bool slopes) const {
    const std::size_t narrow = 1 - wide;
    const auto node_of = [&](Index b) { return wide == 0 ? node(a, b) : node(b, a); };
    Index first = across.begin;
    while (first < across.end && node_of(first) < 0) ++first;
    if (first == across.end) return;

    const double R = r[wide] * sides_[wide].values[static_cast<std::size_t>(a)];
    const double spread = r[narrow] * across.base;  // y = spread * u
    const double ratio = spread * std::sqrt(sides_[wide].d) / (R * std::sqrt(sides_[narrow].d));
    std::size_t size = 0;
    while (size + 1 < kSizes.size() && ratio > kRatios[size]) ++size;
    const Index n = kSizes[size];
    const std::vector<double>& u = sides_[narrow].rules[size].nodes;
    std::array<double, kMost> shift, Rs, S, S_m, S_R, uS_m;
    for (Index k = 0; k < n; ++k) {
        shift[k] = m + spread * u[static_cast<std::size_t>(k)];
        Rs[k] = R;
    }
    exact.evaluate(n, shift.data(), Rs.data(), S.data(), slopes ? S_m.data() : nullptr,
                   slopes ? S_R.data() : nullptr);
    for (Index k = 0; slopes && k < n; ++k) uS_m[k] = u[static_cast<std::size_t>(k)] * S_m[k];

    for (Index b = first; b < across.end; ++b) {
        if (node_of(b) < 0) continue;
        const auto q = static_cast<std::size_t>(node_of(b));
        const double* weights = sides_[narrow].weights[size].data() + b * n;
        out.S[q] = dot(weights, S.data(), n);
        if (!slopes) continue;
        const double* rows[3] = {S_m.data(), S_R.data(), uS_m.data()};
        double sums[3];
        tile_products<1, 3>(&weights, rows, n, sums);
        out.S_m[q] = sums[0];
        out.S_r[wide][q] = sums[1];
        // The direction's own u is y / (r s).
        out.S_r[narrow][q] = sums[2] * across.base / sides_[narrow].values[static_cast<std::size_t>(b)];
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
