// Averages of smooth activations over a direction that spreads far, as averages of steps and ramps.
#include "reduction/wide.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "base/jacobi.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {
namespace {

// A rule of n nodes with the monic polynomial pi_n errs by ||pi_n||^2 f^{(2n)}/(2n)!: below 1e-13 of f where R u
// has a standard deviation of kSpread units of the noise, and the ends of its range are `reach` units away.
constexpr double kSpread = 8;
struct Noise {
    Index nodes;  // in pairs +-V
    double reach;
};
constexpr Noise kGaussian{16, 12}, kLogistic{24, 32};
constexpr double kSiluReach = 40;

// silu(t) = E (2 - L tanh(L/2)) (t + L)_+ with a logistic L, by parts from - E V^2 delta(t + V G): of the second term the
// positive nodes of the Gauss rule with 48, for the law of density x tanh(x/2) sech^2(x/2)/4, whose other weights are below
// 1e-20. Computed with 60 digits.
struct Pair {
    double x, weight;
};
constexpr Pair kSilu[] = {
    {1.5584696638402153, 0.24204304955104666},    {3.383706354319558, 0.20151754211826142},
    {5.575229926176551, 0.049223964923918805},    {8.092346428282692, 0.006578564085072},
    {10.885584260420583, 0.0005955363793866816},  {13.931032372341697, 3.931592981459998e-05},
    {17.21972347075954, 1.9510613262385287e-06},  {20.75019558856756, 7.376856162148538e-08},
    {24.525682453168535, 2.1346105267681545e-09}, {28.553092129334406, 4.71989647681362e-11},
    {32.84270893818505, 7.924013580556145e-13},   {37.408294968820776, 9.992858309986302e-15},
    {42.26750344292356, 9.323132343025012e-17},   {47.44261789652553, 6.3065886614671e-19}};
constexpr std::size_t kMost = 24 + 2 * std::size(kSilu);

// The rule of the Gaussian or, for Kolmogorov's law, of the logistic variable that the noise is a multiple of.
Rule noise_rule(bool logistic) {
    if (!logistic) return gauss_hermite(kGaussian.nodes);
    Jacobi jacobi(kLogistic.nodes);
    for (Index i = 1; i < kLogistic.nodes; ++i) {
        const double k = static_cast<double>(i), pi = std::numbers::pi;
        jacobi.squares[static_cast<std::size_t>(i)] = pi * pi * k * k * k * k / (4 * k * k - 1);
    }
    return gauss(jacobi);
}

}  // namespace

WideAverages::WideAverages(const Activation& sigma, double d) : blur_(facts(sigma).blur), d_(d), tails_(d) {
    const bool logistic = blur_.noise == Blur::Noise::kolmogorov;
    if (d == 1 || blur_.noise == Blur::Noise::none) return;
    const double unit = logistic ? blur_.stretch / 2 : blur_.stretch;  // 2 K G is logistic
    const Rule rule = noise_rule(logistic);
    for (std::size_t i = rule.nodes.size() / 2; i < rule.nodes.size(); ++i) {
        const double x = rule.nodes[i];
        // - E delta(t + G) = E (1 - G^2) (t + G)_+ by parts, twice.
        const double factor = !blur_.density ? 1 : logistic ? 2 : 2 - x * x;
        nodes_.push_back({unit * x, blur_.scale * factor * rule.weights[i]});
    }
    const bool silu = logistic && blur_.density;
    for (const Pair& pair : kSilu)
        if (silu) nodes_.push_back({unit * pair.x, -blur_.scale * pair.weight});
    density_at_zero_ = direction_density(d, 0.0);
    least_ = kSpread * unit * (std::isinf(d) ? 1 : std::sqrt(d));
    reach_ = std::isinf(d) ? 0 : unit * (silu ? kSiluReach : (logistic ? kLogistic : kGaussian).reach);
}

double WideAverages::density(double tau) const {
    if (std::isinf(d_)) return density_at_zero_ * std::exp(-tau * tau / 2);
    const double x = (1 - tau) * (1 + tau);
    return x > 0 ? density_at_zero_ * std::pow(x, (d_ - 3) / 2) : 0;
}

double WideAverages::density_slope(double tau) const {
    return std::isinf(d_) ? -tau : -(d_ - 3) * tau / ((1 - tau) * (1 + tau));
}

void WideAverages::evaluate(double m, double R, const Outputs& out) const {
    const bool step = blur_.order == 1;
    std::array<double, kMost> tau, size, A, B;
    const std::size_t pairs = nodes_.size();
    for (std::size_t i = 0; i < pairs; ++i) {
        tau[2 * i] = -(m + nodes_[i].V) / R;
        tau[2 * i + 1] = -(m - nodes_[i].V) / R;
    }
    for (std::size_t k = 0; k < 2 * pairs; ++k) size[k] = std::abs(tau[k]);
    tails_.evaluate(static_cast<Index>(2 * pairs), size.data(), A.data(), B.data());

    double S = step ? blur_.offset + 0.5 * blur_.scale : blur_.offset;
    double by_m = 0, by_R = 0, mm = 0, mR = 0, RR = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double weight = nodes_[i].weight;
        const std::size_t plus = 2 * i, minus = plus + 1;
        // A step counts by its odd part, which cancels at m = 0 without rounding.
        const auto value = [&](std::size_t k) {
            if (step) return std::copysign(0.5 - A[k], -tau[k]);
            return R * (std::max(-tau[k], 0.0) + (B[k] - size[k] * A[k]));
        };
        S += weight * (value(plus) + value(minus));
        for (const std::size_t k : {plus, minus}) {
            const double t = tau[k];
            if (!step && (out.m || out.R)) {
                by_m += weight * (t < 0 ? 1 - A[k] : A[k]);
                by_R += weight * B[k];
            }
            if (!(step && (out.m || out.R)) && !out.mm) continue;
            const double p = weight * density(t) / R;
            if (!step) {
                mm += p;
                mR += p * t;
                RR += p * t * t;
                continue;
            }
            by_m += p;
            by_R += p * t;
            if (!out.mm || p == 0) continue;
            const double slope = density_slope(t);
            mm -= p * slope / R;
            mR -= p * (slope * t + 1) / R;
            RR -= p * t * (slope * t + 2) / R;
        }
    }
    if (out.S) *out.S = S;
    if (out.m) *out.m = by_m;
    if (out.R) *out.R = by_R;
    if (out.mm) *out.mm = mm;
    if (out.mR) *out.mR = mR;
    if (out.RR) *out.RR = RR;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
