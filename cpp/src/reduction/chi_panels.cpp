// Panels of chi_d and projections of features with kinks onto their polynomials.
#include "mfcore/reduction/chi_panels.hpp"

#include <algorithm>
#include <cmath>

#include "base/jacobi.hpp"
#include "base/simd_exp.hpp"
#include "base/simd_log.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline reduction {
namespace {

using Packet = simd::Vec<double>;

constexpr double kNone = 1e-17;    // kinks so small in a panel that what is left is linear
constexpr double kLongest = 1.25;  // of a piece in theta, s = kink cosh(theta): powers up to s^40 are smooth

// Number of panels that is enough for dimension d, measured for knots with jumps of 10, see
// tests/python/reductions/test_kinks.py.
Index enough(double d) {
    if (d < 4) return 60;
    if (d < 5) return 34;
    if (d < 6) return 24;
    if (d < 7) return 18;
    return d < 8 ? 14 : 10;
}

// Edges of the panels. The error of a product of two kinked features is their densities times (h /
// kink)^{d+2} of panels of length h near it, which the lengths balance. Far out, where little mass is, the
// density falls by e^-10 at most within a panel: values of projections at a light node lose digits like the
// square root of that.
std::vector<double> edges(double d, Index panels) {
    const double end = std::sqrt(d) + 7.7, tail = std::sqrt(d) + 2;
    constexpr Index n = 4000;
    const auto middle = [&](Index i) { return end * (static_cast<double>(i) + 0.5) / n; };
    const auto wanted = [d](double s) {
        s = std::max(s, 0.05);
        return std::exp(-(2 * std::log(s) + s * s / 2) / (d + 2));
    };
    double total = 0;
    for (Index i = 0; i < n; ++i) total += wanted(middle(i)) * end / n;
    const double scale = std::max(static_cast<double>(panels) - (end * end - tail * tail) / 20, 1.0) / total;
    std::vector<double> sums(n + 1, 0.0);  // of panels up to here
    for (Index i = 0; i < n; ++i) {
        const double s = middle(i), per_length = scale * wanted(s) + (s > tail ? s / 10 : 0);
        sums[static_cast<std::size_t>(i) + 1] = sums[static_cast<std::size_t>(i)] + per_length * end / n;
    }
    std::vector<double> out{0.0};
    Index i = 0;
    for (Index p = 1; p < panels; ++p) {
        const double sum = sums.back() * static_cast<double>(p) / static_cast<double>(panels);
        while (sums[static_cast<std::size_t>(i) + 1] < sum) ++i;
        const auto k = static_cast<std::size_t>(i);
        out.push_back(end * (static_cast<double>(i) + (sum - sums[k]) / (sums[k + 1] - sums[k])) / n);
    }
    out.push_back(end);
    return out;
}

}  // namespace

ChiPanels::ChiPanels(double d, Index panels) : d_(d), legendre_(gauss_legendre(kPoints)) {
    require(d >= 1 && std::isfinite(d), "d", "must be >= 1 and finite", d);
    require(panels >= 0, "panels", "must be >= 0", panels);
    const std::vector<double> ends = edges(d, panels > 0 ? panels : enough(d));
    for (std::size_t p = 0; p + 1 < ends.size(); ++p) panels_.push_back(panel(ends[p], ends[p + 1]));
    double mass = 0;
    for (const double w : rule_.weights) mass += w;
    for (double& w : rule_.weights) w /= mass;
}

double ChiPanels::log_density(double s) const {
    return (d_ == 1 ? 0 : (d_ - 1) * std::log(s / std::sqrt(d_))) - (s * s - d_) / 2;
}

// Add the nodes of the panel [low, high] to the rule. Its law is that of fine Legendre nodes, which integrate
// products of the polynomials with the density to rounding; the recurrence is Stieltjes's.
ChiPanels::Panel ChiPanels::panel(double low, double high) {
    Panel out{low, high, 0, {}, {}, {}, {}};
    const double mid = (low + high) / 2, half = (high - low) / 2;
    const Rule fine = gauss_legendre(4 * kOrder);
    const auto n = static_cast<Index>(fine.nodes.size());
    const auto x = Eigen::Map<const Eigen::ArrayXd>(fine.nodes.data(), n);
    Eigen::ArrayXd w = x.unaryExpr([&](double t) { return log_density(mid + half * t); });
    const double largest = w.maxCoeff();
    w = (w - largest).exp() * Eigen::Map<const Eigen::ArrayXd>(fine.weights.data(), n);
    const double mass = w.sum();
    out.log_mass = largest + std::log(mass);  // relative to 2 half
    w /= mass;

    Jacobi jacobi{Eigen::VectorXd::Zero(kOrder), Eigen::VectorXd::Ones(kOrder)};
    Eigen::ArrayXd before = Eigen::ArrayXd::Zero(n), p = Eigen::ArrayXd::Ones(n);
    double off = 0;
    for (Index k = 0; k < kOrder; ++k) {
        out.diagonal[static_cast<std::size_t>(k)] = jacobi.diagonal[k] = (w * x * p * p).sum();
        Eigen::ArrayXd next = (x - jacobi.diagonal[k]) * p - off * before;
        off = std::sqrt((w * next * next).sum());
        out.off[static_cast<std::size_t>(k)] = off;
        out.inverse_off[static_cast<std::size_t>(k)] = 1 / off;
        if (k + 1 < kOrder) jacobi.squares[k + 1] = off * off;
        before = p;
        p = next / off;
    }
    const Rule rule = gauss(jacobi);
    for (std::size_t q = 0; q < kOrder; ++q) {
        double last = 0, value = 1;
        for (std::size_t k = 0; k < kOrder; ++k) {
            out.at_nodes[k][q] = value;
            const double next =
                (rule.nodes[q] - out.diagonal[k]) * value - (k > 0 ? out.off[k - 1] : 0) * last;
            last = value;
            value = next * out.inverse_off[k];
        }
        rule_.nodes.push_back(mid + half * rule.nodes[q]);
        rule_.weights.push_back(rule.weights[q] * std::exp(out.log_mass) * half);
    }
    return out;
}

// A kink farther from a panel than its length is resolved: twenty nodes see it as 1e-15 there, as the radius
// of the largest ellipse without it is 5.8.
bool ChiPanels::resolves(Index panel, double kink) const {
    const Panel& p = panels_[static_cast<std::size_t>(panel)];
    return !(kink > kNone * p.high) || kink >= p.high || p.low - kink >= p.high - p.low;
}

ChiPanels::Pieces ChiPanels::cut(Index panel, double kink) const {
    const Panel& p = panels_[static_cast<std::size_t>(panel)];
    const double from = std::acosh(std::max(p.low / kink, 1.0)), to = std::acosh(p.high / kink);
    const double count = std::max(1.0, std::ceil((to - from) / kLongest));
    return {from, (to - from) / count, static_cast<Index>(count)};
}

// s = kink cosh(theta) turns powers of s^2 - kink^2, whole and half ones, into entire functions of theta.
void ChiPanels::points(Index panel, double kink, double from, double width, Points& out) const {
    const Panel& p = panels_[static_cast<std::size_t>(panel)];
    const double scale = width * kink / (2 * (p.high - p.low));
    const double constant = d_ / 2 - (d_ - 1) / 2 * std::log(d_) - p.log_mass;
    for (Index i = 0; i < kPoints; i += simd::kLanes<double>) {
        const Packet theta = from + width / 2 * (1 + simd::load(legendre_.nodes.data() + i));
        const Packet e = simd::exp<double>(theta), inverse = 1 / e;
        const Packet s = kink / 2 * (e + inverse);
        const Packet log_density = (d_ - 1) * simd::log_positive<double>(s) - s * s / 2 + constant;
        simd::store(out.s.data() + i, s);
        simd::store(out.weights.data() + i, simd::load(legendre_.weights.data() + i) * scale * (e - inverse) *
                                                simd::exp<double>(log_density));
    }
}

// Moments of the functions with p_k, whose recurrence runs over all points together.
void ChiPanels::add(Index panel, const Points& at, const Values& values, Projections& moments) const {
    constexpr Index kLanes = simd::kLanes<double>, kPacks = kPoints / kLanes;
    const Panel& panel_here = panels_[static_cast<std::size_t>(panel)];
    const double mid = panel_here.low + panel_here.high, inverse = 1 / (panel_here.high - panel_here.low);
    Packet x[kPacks], before[kPacks] = {}, p[kPacks], weighted[kFunctions][kPacks];
    for (Index i = 0; i < kPacks; ++i) {
        x[i] = (2 * simd::load(at.s.data() + i * kLanes) - mid) * inverse;
        p[i] = simd::fill(1.0);
        for (std::size_t f = 0; f < kFunctions; ++f)
            weighted[f][i] =
                simd::load(at.weights.data() + i * kLanes) * simd::load(values[f].data() + i * kLanes);
    }
    for (std::size_t k = 0; k < kOrder; ++k) {
        for (std::size_t f = 0; f < kFunctions; ++f) {
            Packet sum{};
            for (Index i = 0; i < kPacks; ++i) sum += weighted[f][i] * p[i];
            moments[f][k] += simd::sum<double>(sum);
        }
        const double off = k > 0 ? panel_here.off[k - 1] : 0, diagonal = panel_here.diagonal[k];
        for (Index i = 0; i < kPacks; ++i) {
            const Packet next = ((x[i] - diagonal) * p[i] - off * before[i]) * panel_here.inverse_off[k];
            before[i] = p[i];
            p[i] = next;
        }
    }
}

void ChiPanels::finish(Index panel, const Projections& moments, Projections& out) const {
    const auto& at_nodes = panels_[static_cast<std::size_t>(panel)].at_nodes;
    for (std::size_t f = 0; f < kFunctions; ++f) {
        out[f].fill(0.0);
        for (std::size_t k = 0; k < kOrder; ++k)
            for (std::size_t q = 0; q < kOrder; ++q) out[f][q] += moments[f][k] * at_nodes[k][q];
    }
}

}  // namespace mfcore::inline reduction
