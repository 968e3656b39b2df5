// Panels of chi_d and projections of features with kinks onto their polynomials.
#include "mfcore/reduction/chi_panels.hpp"

#include <algorithm>
#include <cmath>

#include "base/jacobi.hpp"
#include "base/simd_exp.hpp"
#include "base/simd_log.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
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
    const auto wanted = [d](double s) {
        s = std::max(s, 0.05);
        return std::exp(-(2 * std::log(s) + s * s / 2) / (d + 2));
    };
    constexpr Index n = 4000;
    double total = 0;
    for (Index i = 0; i < n; ++i) total += wanted(end * (static_cast<double>(i) + 0.5) / n) * end / n;
    const double scale = std::max(static_cast<double>(panels) - (end * end - tail * tail) / 20, 1.0) / total;
    return panel_ends(0, end, panels, [&](double s) { return scale * wanted(s) + (s > tail ? s / 10 : 0); });
}

}  // namespace

ChiPanels::ChiPanels(double d, Index panels) : d_(d), legendre_(gauss_legendre(kPoints)) {
    require(d >= 1 && std::isfinite(d), "d", "must be >= 1 and finite", d);
    require(panels >= 0, "panels", "must be >= 0", panels);
    const std::vector<double> ends = edges(d, panels > 0 ? panels : enough(d));
    const auto log_density = [d](double s) {  // up to a constant
        return (d == 1 ? 0 : (d - 1) * std::log(s / std::sqrt(d))) - (s * s - d) / 2;
    };
    for (std::size_t p = 0; p + 1 < ends.size(); ++p)
        panels_.emplace_back(ends[p], ends[p + 1], log_density, rule_);
    double mass = 0;
    for (const double w : rule_.weights) mass += w;
    for (double& w : rule_.weights) w /= mass;
}

// Twenty nodes see a kink from the distance of the panel's length as 1e-15: there the radius of the largest
// ellipse without it is 5.8.
bool ChiPanels::resolves(Index panel, double kink) const {
    const Panel& p = panels_[static_cast<std::size_t>(panel)];
    return !(kink > kNone * p.high) || kink >= p.high || p.low - kink >= p.high - p.low;
}

ChiPanels::Pieces ChiPanels::cut(const Panel& p, double kink) const {
    const double from = std::acosh(std::max(p.low / kink, 1.0)), to = std::acosh(p.high / kink);
    const double count = std::max(1.0, std::ceil((to - from) / kLongest));
    return {from, (to - from) / count, static_cast<Index>(count)};
}

// s = kink cosh(theta) turns powers of s^2 - kink^2, whole and half ones, into entire functions of theta.
void ChiPanels::points(const Panel& p, double kink, double from, double width, Panel::Points& out) const {
    const double scale = width * kink / (2 * (p.high - p.low));
    const double constant = d_ / 2 - (d_ - 1) / 2 * std::log(d_) - p.log_mass;
    for (Index i = 0; i < kPoints; i += simd::kLanes<double>) {
        const Packet theta = from + width / 2 * (1 + simd::load(legendre_.nodes.data() + i));
        const Packet e = simd::exp<double>(theta), inverse = 1 / e;
        const Packet s = kink / 2 * (e + inverse);
        const Packet log_density = (d_ - 1) * simd::log_positive<double>(s) - s * s / 2 + constant;
        simd::store(out.x.data() + i, s);
        simd::store(out.weights.data() + i, simd::load(legendre_.weights.data() + i) * scale * (e - inverse) *
                                                simd::exp<double>(log_density));
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
