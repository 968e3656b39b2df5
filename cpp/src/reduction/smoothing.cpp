// S_d(m, R) = E sigma(m + R u): closed forms for piecewise-linear sigma, quadrature rules for smooth ones.
#include "mfcore/reduction/smoothing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/pieces.hpp"
#include "mfcore/base/errors.hpp"
#include "reduction/wide.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

constexpr Index kNodes = 128;
constexpr double kNarrow = 1e-4;
constexpr double kReach = 9.5, kFurther = 38;  // standard deviations; of functions that grow like e^z
constexpr int kSpreads = 15;  // rules for spreads R / sqrt(d) up to 2^7, beyond which sigma is all but a step

// The largest spread that rule k serves: two rules for each factor of 2. (Small spreads do not allow fewer
// nodes: in low dimension the density of u would no longer be resolved.)
double widest(int k) { return std::pow(2.0, 0.5 * k); }

// Nodes for 1e-13 in S and its first derivatives when m + R u spreads over `spread` standard deviations of u.
Rule smooth_rule(const Activation& sigma, double d, double spread, double reach) {
    const Facts known = facts(sigma);
    if (known.polynomial) {
        const Index n = (known.degree + 1) / 2 + 1;  // exact
        return std::isinf(d) ? gauss_hermite(n) : gauss_gegenbauer(d, n);
    }
    if (d == 1) return gauss_gegenbauer(1, 2);  // u = +-1
    // Equal steps D err like exp(-2 pi a / (spread D)) for sigma with its nearest singularity at i a, and
    // like exp(-2 pi^2 / (D^2 (1 + 2 g spread^2))) for entire sigma that grow like e^{g y^2}.
    const double pi = std::numbers::pi, g = std::max(1.0, known.growth);
    if (std::isfinite(known.strip))
        return angle_rule(d, std::min(0.38, 2 * pi * known.strip / (36 * spread)), reach);
    return angle_rule(d, pi * 0.22 / std::sqrt(1 + 2 * g * spread * spread), reach);
}

// Call body for chunks of points that fit the stack: tau_k = (t_k - m) / R, for R = 0 the limit +-inf, or 0
// where m sits on the knot.
template <class Body>
void for_chunks(Index n, Body&& body) {
    for (Index first = 0; first < n; first += kNodes) body(first, std::min(kNodes, n - first));
}
void scaled_knots(Index n, double knot, const double* m, const double* R, double* tau) {
    for (Index i = 0; i < n; ++i) tau[i] = knot == m[i] ? 0.0 : (knot - m[i]) / R[i];
}

}  // namespace

Smoother::Smoother(const Activation& sigma, double d) : sigma_(sigma), d_(d) {
    require(d >= 1 && (std::isinf(d) || d == std::floor(d)), "d", "must be a whole number >= 1 or infinite",
            d);
    sigma.validate();
    if (sigma.is_piecewise()) {
        table_.emplace_back(d);
        return;
    }
    const Facts known = facts(sigma);
    if (!known.polynomial) require_analytic(sigma);
    if (d > 1 && !known.kinks.empty()) {
        pieces_ = std::make_shared<const Pieces>();
        return;
    }
    if (known.form == Facts::Form::sine && std::isinf(d)) nothing_ = {{0.0}, {0.0}};  // e^{-R^2/2}
    if (!known.polynomial) wide_ = std::make_shared<const WideAverages>(sigma, d);
    for (int k = 0; k < kSpreads; ++k) rules_.push_back(smooth_rule(sigma, d, widest(k), kReach));
    if (!known.may_grow() || kReach > std::numbers::pi / 2 * std::sqrt(d)) return;
    for (int k = 0; k < kSpreads; ++k) further_.push_back(smooth_rule(sigma, d, widest(k), kFurther));
}

double Smoother::spread_of(double R) const { return std::isinf(d_) ? R : R / std::sqrt(d_); }

const Rule& Smoother::rule(double R) const { return rule_for(rules_, R); }

const Rule& Smoother::rule_for(const std::vector<Rule>& rules, double R) const {
    const double spread = spread_of(R);
    std::size_t k = 0;
    while (k + 1 < rules.size() && !(spread <= widest(static_cast<int>(k)))) ++k;
    return rules[k];
}

/// True if sigma is nothing at m + R u for u = +-end, which have this weight, beside what it is near m.
bool Smoother::has_ended(double m, double R, double end, double weight, double least) const {
    const double unit = std::isinf(d_) ? 1 : 1 / std::sqrt(d_);
    double z[5] = {m, m - R * unit, m + R * unit, m - R * end, m + R * end};
    mfcore::evaluate(sigma_, 5, z, z);
    for (double& x : z) x = std::abs(x);
    return weight * std::max(z[3], z[4]) <= std::max(1e-13 * std::max({z[0], z[1], z[2]}), least);
}

/// The usual rule; where sin and cos have more waves than rules resolve, nothing; one that goes further where sigma has not ended with it, or no number if that has not either.
const Rule& Smoother::rule_at(double m, double R) const {
    if (facts(sigma_).form == Facts::Form::sine && d_ > 1 && !(spread_of(R) <= widest(kSpreads - 1)))
        return nothing_;
    if (further_.empty()) return rule(R);
    for (const auto* rules : {&rules_, &further_})
        if (const Rule& u = rule_for(*rules, R); has_ended(m, R, u.nodes.back(), u.weights.back())) return u;
    return nothing_;
}

/// The same of angles between kinks: how far they go, or no number.
double Smoother::reach_at(double m, double R) const {
    const bool gaussian = std::isinf(d_), growing = facts(sigma_).may_grow();
    for (const double deviations : {kReach, kFurther}) {
        const double reach =
            gaussian ? deviations : std::min(std::numbers::pi / 2, deviations / std::sqrt(d_));
        const double weight =
            gaussian ? std::exp(-reach * reach / 2) : std::pow(std::cos(reach), std::max(d_ - 2, 0.0));
        if (!growing || (!gaussian && reach >= std::numbers::pi / 2) ||
            has_ended(m, R, gaussian ? reach : std::sin(reach), weight, 1e-17))
            return reach;
    }
    return std::nan("");
}

Index Smoother::cost(double spread) const {
    if (sigma_.is_piecewise()) return std::max<Index>(1, static_cast<Index>(sigma_.knots.size()));
    if (pieces_) return Pieces::kOrder * static_cast<Index>(10 * (1 + spread / sigma_.span.strip));
    return static_cast<Index>(
        rule_for(rules_, std::isinf(d_) ? spread : spread * std::sqrt(d_)).nodes.size());
}

template <class Body>
void Smoother::for_nodes(double m, double R, Body&& body) const {
    if (!pieces_) {
        const Rule& u = rule_at(m, R);
        return for_chunks(static_cast<Index>(u.nodes.size()), [&](Index first, Index count) {
            body(count, u.nodes.data() + first, u.weights.data() + first);
        });
    }
    // In the angle u = sin(angle), of density cos(angle)^{d-2}; for d = inf in u itself.
    const bool gaussian = std::isinf(d_);
    const double unit = gaussian ? 1 : 1 / std::sqrt(d_);
    const double reach = reach_at(m, R);
    if (std::isnan(reach)) return body(1, nothing_.nodes.data(), nothing_.weights.data());
    const Facts known = facts(sigma_);
    const auto cut = [&](std::size_t k) {
        const double u = (known.kinks[k] - m) / R;
        return gaussian ? u : std::asin(u);  // NaN outside
    };
    const auto to_law = [&](auto& angle, auto& weight) {
        for (std::size_t k = 0; k < angle.size(); ++k) {
            const double x = angle[k];
            weight[k] *= gaussian ? std::exp(-x * x / 2) : std::pow(std::cos(x), d_ - 2);
            if (!gaussian) angle[k] = std::sin(x);
        }
    };
    const double c = gaussian ? 1 / std::sqrt(2 * std::numbers::pi) : direction_density(d_, 0.0);
    const double resolved = std::min(R, widest(kSpreads - 1) / unit);
    pieces_->for_nodes<kNodes>(-reach, reach, std::min(2 * unit, Pieces::width(known.strip, resolved)),
                               known.kinks.size(), cut, [&](auto& u, auto& weight) {
                                   to_law(u, weight);
                                   for (double& w : weight) w *= c;
                                   body(kNodes, u.data(), weight.data());
                               });
}

void Smoother::evaluate(Index n, const double* m, const double* R, double* S, double* S_m,
                        double* S_R) const {
    if (sigma_.is_piecewise() && !S_m && !S_R) {
        // S = c + m_L m + sum_k delta_k [(m - t_k)_+ + R E (u - |tau_k|)_+]
        for_chunks(n, [&](Index first, Index count) {
            std::array<double, kNodes> tau, excess;
            for (Index i = first; i < first + count; ++i) S[i] = sigma_.offset + sigma_.left_slope * m[i];
            for (std::size_t k = 0; k < sigma_.knots.size(); ++k) {
                const double knot = sigma_.knots[k], jump = sigma_.jumps[k];
                scaled_knots(count, knot, m + first, R + first, tau.data());
                table_.front().excess(count, tau.data(), excess.data());
                for (Index i = 0; i < count; ++i)
                    S[first + i] += jump * (std::max(m[first + i] - knot, 0.0) + R[first + i] * excess[i]);
            }
        });
        return;
    }
    if (sigma_.is_piecewise()) {
        // S = c + m_L m + sum_k delta_k [(m - t_k) A_k + R B_k], S_m = m_L + sum delta_k A_k,
        // S_R = sum delta_k B_k
        for_chunks(n, [&](Index first, Index count) {
            std::array<double, kNodes> tau, A, B;
            for (Index i = first; i < first + count; ++i) {
                S[i] = sigma_.offset + sigma_.left_slope * m[i];
                if (S_m) S_m[i] = sigma_.left_slope;
                if (S_R) S_R[i] = 0;
            }
            for (std::size_t k = 0; k < sigma_.knots.size(); ++k) {
                const double knot = sigma_.knots[k], jump = sigma_.jumps[k];
                scaled_knots(count, knot, m + first, R + first, tau.data());
                table_.front().evaluate(count, tau.data(), A.data(), B.data());
                for (Index i = 0; i < count; ++i)
                    S[first + i] += jump * ((m[first + i] - knot) * A[i] + R[first + i] * B[i]);
                for (Index i = 0; S_m && i < count; ++i) S_m[first + i] += jump * A[i];
                for (Index i = 0; S_R && i < count; ++i) S_R[first + i] += jump * B[i];
            }
        });
        return;
    }
    const bool slopes = S_m || S_R, curved = !pieces_ && facts(sigma_).curved;
    for (Index i = 0; i < n; ++i) {
        double value = 0, by_m = 0, by_R = 0;
        if (wide_ && wide_->applies(m[i], R[i])) {
            wide_->evaluate(m[i], R[i],
                            {.S = S + i, .m = S_m ? S_m + i : nullptr, .R = S_R ? S_R + i : nullptr});
            continue;
        }
        for_nodes(m[i], R[i], [&](Index count, const double* u, const double* weight) {
            std::array<double, kNodes> z, f, g;
            for (Index k = 0; k < count; ++k) z[k] = m[i] + R[i] * u[k];
            mfcore::evaluate(sigma_, count, z.data(), f.data(), slopes ? g.data() : nullptr);
            for (Index k = 0; k < count; ++k) value += weight[k] * f[k];
            for (Index k = 0; slopes && k < count; ++k) {
                by_m += weight[k] * g[k];
                by_R += weight[k] * u[k] * g[k];
            }
        });
        S[i] = value;
        if (S_m) S_m[i] = by_m;
        if (S_R) S_R[i] = curved && R[i] < kNarrow ? narrow_slope(m[i], R[i]) : by_R;
    }
}

/// E u sigma'(m + R u) = R E u^2 int_0^1 sigma''(m + s R u) ds, by two nodes in s: for small R, where rounding is all
/// that a sum of slopes would leave.
double Smoother::narrow_slope(double m, double R) const {
    double sum = 0;
    for_nodes(m, R, [&](Index count, const double* u, const double* weight) {
        for (const double s : {0.21132486540518712, 0.7886751345948129}) {
            std::array<double, kNodes> z, f, g, h;
            for (Index k = 0; k < count; ++k) z[k] = m + s * R * u[k];
            mfcore::evaluate(sigma_, count, z.data(), f.data(), g.data(), h.data());
            for (Index k = 0; k < count; ++k) sum += 0.5 * weight[k] * u[k] * u[k] * h[k];
        }
    });
    return R * sum;
}

void Smoother::curvature(Index n, const double* m, const double* R, double* S_mm, double* S_mR,
                         double* S_RR) const {
    for (Index i = 0; i < n; ++i) {
        double mm = 0, mR = 0, RR = 0;
        if (wide_ && wide_->applies(m[i], R[i])) {
            wide_->evaluate(m[i], R[i], {.mm = S_mm + i, .mR = S_mR + i, .RR = S_RR + i});
            continue;
        }
        if (sigma_.is_piecewise()) {
            for (std::size_t k = 0; R[i] > 0 && k < sigma_.knots.size(); ++k) {
                const double tau = (sigma_.knots[k] - m[i]) / R[i];
                const double density = sigma_.jumps[k] * direction_density(d_, tau) / R[i];
                mm += density;
                mR += density * tau;
                RR += density * tau * tau;
            }
        } else {
            require(sigma_.span.kinks.empty(), "kinks",
                    "must not be given where second derivatives are averaged", sigma_.span.kinks.size());
            for_nodes(m[i], R[i], [&](Index count, const double* u, const double* weight) {
                std::array<double, kNodes> z, f, g, h;
                for (Index k = 0; k < count; ++k) z[k] = m[i] + R[i] * u[k];
                mfcore::evaluate(sigma_, count, z.data(), f.data(), g.data(), h.data());
                for (Index k = 0; k < count; ++k) {
                    const double node = u[k], term = weight[k] * h[k];
                    mm += term;
                    mR += term * node;
                    RR += term * node * node;
                }
            });
        }
        S_mm[i] = mm;
        S_mR[i] = mR;
        S_RR[i] = RR;
    }
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
