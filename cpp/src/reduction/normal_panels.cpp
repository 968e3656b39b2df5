// Panels of a normal law: their Gauss nodes, and projections of functions with a kink in a panel.
#include "mfcore/reduction/normal_panels.hpp"

#include <algorithm>
#include <cmath>

#include "base/simd_exp.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

using Packet = simd::Vec<double>;

constexpr double kTail = 2.5;  // from where on a panel may not be so long that the density falls by ...
constexpr double kFall = 16;   // ... e^-16: values at its light nodes lose the root of that

double log_density(double z) { return -z * z / 2; }

}  // namespace

// The error of a product of two kinked features is the density times (length of the panel)^3.
NormalPanels::NormalPanels(Index panels, double end) : legendre_(gauss_legendre(kPoints)) {
    require(panels > 0, "panels", "must be > 0", panels);
    require(end > kTail && end < 30, "end", "must be in (2.5, 30)", end);
    const double spare = static_cast<double>(panels) - (end * end - kTail * kTail) / kFall;
    const double scale = std::max(spare, 1.0) / 4.3;  // 4.3: about the integral of exp(-z^2/6)
    const std::vector<double> ends = panel_ends(-end, end, panels, [&](double z) {
        return scale * std::exp(-z * z / 6) + (std::abs(z) > kTail ? std::abs(z) / kFall : 0);
    });
    for (std::size_t p = 0; p + 1 < ends.size(); ++p)
        panels_.emplace_back(ends[p], ends[p + 1], log_density, rule_);
    double mass = 0;
    for (const double w : rule_.weights) mass += w;
    for (double& w : rule_.weights) w /= mass;
}

// Twenty nodes see what varies over the length of their panel, and a kink from that distance, as 1e-15.
bool NormalPanels::resolves(Index panel, const Bend& bend) const {
    const Panel& p = panels_[static_cast<std::size_t>(panel)];
    const double from = bend.centre - bend.half, to = bend.centre + bend.half, length = p.high - p.low;
    if (!(from < p.high && to > p.low)) return true;  // linear; or no number
    if (bend.deviation < length) return false;
    return !bend.kinked || (from <= p.low - length && to >= p.high + length);
}

NormalPanels::Pieces NormalPanels::cut(const Panel& panel, const Bend& bend, bool rising) const {
    double low = panel.low, high = panel.high;
    (rising ? low : high) =
        rising ? std::max(low, bend.centre - bend.half) : std::min(high, bend.centre + bend.half);
    Pieces out{{low}, 1};
    const int parts = bend.kinked ? 2 : kParts;
    for (int k = 0; k <= parts; ++k) {
        const double at = bend.centre + bend.half * (2.0 * k / parts - 1);
        if (at > out.ends[out.count - 1] && at < high) out.ends[out.count++] = at;
    }
    if (high > out.ends[out.count - 1]) out.ends[out.count++] = high;
    return out;
}

// Between two kinks a < b, z = (a + b)/2 + (b - a)/2 sin(angle) turns powers of z - a and b - z, whole and
// half ones, into analytic functions of the angle. A kink further away than the piece is long does no harm,
// and neither does an a or b where no kink is.
void NormalPanels::points(const Panel& panel, const Bend& bend, double from, double to,
                          Panel::Points& out) const {
    double a = from - (to - from), b = to + (to - from);
    for (const double kink : {bend.centre - bend.half, bend.centre + bend.half}) {
        if (kink <= from) a = std::max(a, kink);
        if (kink >= to) b = std::min(b, kink);
    }
    const double mid = (a + b) / 2, half = (b - a) / 2;
    const double first = std::asin(std::max((from - mid) / half, -1.0));
    const double last = std::asin(std::min((to - mid) / half, 1.0));
    const double scale = (last - first) * half / (panel.high - panel.low);
    for (std::size_t i = 0; i < out.x.size(); ++i) {
        const double angle = first + (last - first) * (1 + legendre_.nodes[i]) / 2;
        out.x[i] = mid + half * std::sin(angle);
        out.weights[i] = legendre_.weights[i] * scale * std::cos(angle);
    }
    for (std::size_t i = 0; i < out.x.size(); i += simd::kLanes<double>) {
        const Packet z = simd::load(out.x.data() + i);
        simd::store(out.weights.data() + i,
                    simd::load(out.weights.data() + i) * simd::exp<double>(-z * z / 2 - panel.log_mass));
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
