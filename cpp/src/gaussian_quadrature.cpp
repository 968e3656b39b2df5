// Pairs of smooth neurons without a closed form, by a two-dimensional trapezoid rule: over u of the wider
// neuron g = m + R u, and over z of the other, g' = m' + R'(rho u + s z). The inner rule costs R' s, the
// outer one R.
#include <algorithm>
#include <cmath>

#include "gaussian_pairs.hpp"
#include "gaussian_rule.hpp"

namespace mfcore {
namespace {

// e^-32 = 1e-14 for values; the third-order poles of sigma'' multiply the error by up to 10^4, hence e^-38
// for slopes.
constexpr double kValueDigits = 32, kSlopeDigits = 38;
constexpr double kReach = 7.8;  // P(|G| > 7.8) = 6e-15
constexpr Index kChunk = 512;   // inner values in flight

std::size_t to_size(Index n) { return static_cast<std::size_t>(n); }

/// Values of sigma and its first two derivatives at a list of arguments.
struct Jet {
    std::vector<double> z, value, slope, curvature;
    void resize(Index n) {
        for (auto* v : {&z, &value, &slope, &curvature}) v->resize(std::max(v->size(), to_size(n)));
    }
    void evaluate_at(const Activation& sigma, Index n, bool slopes, bool curvatures) {
        evaluate(sigma, n, z.data(), value.data(), slopes ? slope.data() : nullptr,
                 curvatures ? curvature.data() : nullptr);
    }
};

struct Nodes {
    std::vector<double> at, weight;
    void build(const Trapezoid& rule) {
        at.resize(to_size(2 * rule.half + 1));
        weight.resize(at.size());
        for (Index k = -rule.half; k <= rule.half; ++k) {
            const double g = static_cast<double>(k) * rule.step;
            at[to_size(k + rule.half)] = g;
            weight[to_size(k + rule.half)] = rule.step * special::kInvSqrt2Pi * std::exp(-0.5 * g * g);
        }
    }
    Index size() const { return static_cast<Index>(at.size()); }
};

struct Neuron {
    const Activation& sigma;
    double m, R;
};

/// Reused for every pair of one row, so that nothing is allocated per pair once it has grown.
class Workspace {
public:
    struct Sums {
        double k00 = 0, k10 = 0, k20 = 0, k11 = 0;  // k20 without the factor R1
    };

    /// `swapped`: the outer neuron is the second of the pair.
    Sums integrate(const Neuron& outer, const Neuron& inner, double rho, double s, bool swapped,
                   bool slopes) {
        const Analytic one = analytic(outer.sigma.kind), two = analytic(inner.sigma.kind);
        const double digits = slopes ? kSlopeDigits : kValueDigits;
        u_.build(Trapezoid::Builder().add(one, outer.R).add(two, inner.R * rho).build(digits, kReach));
        z_.build(Trapezoid::Builder().add(two, inner.R * s).build(digits, kReach));
        outer_.resize(u_.size());
        for (Index k = 0; k < u_.size(); ++k) outer_.z[to_size(k)] = outer.m + outer.R * u_.at[to_size(k)];
        outer_.evaluate_at(outer.sigma, u_.size(), slopes, slopes && !swapped);
        Sums sums;
        for (Index k = 0; k < u_.size(); ++k) {
            const std::size_t at = to_size(k);
            double t[3];
            smooth_inner(inner, inner.m + inner.R * rho * u_.at[at], inner.R * s, slopes, slopes && swapped,
                         t);
            const double w = u_.weight[at], value = w * outer_.value[at];
            sums.k00 += value * t[0];
            if (!slopes) continue;
            const double slope = w * outer_.slope[at];
            sums.k11 += slope * t[1];
            sums.k10 += swapped ? value * t[1] : slope * t[0];
            sums.k20 += swapped ? value * t[2] : w * outer_.curvature[at] * t[0];
        }
        return sums;
    }

private:
    void smooth_inner(const Neuron& inner, double m, double R, bool slopes, bool curvatures, double* t) {
        inner_.resize(std::min(kChunk, z_.size()));
        t[0] = t[1] = t[2] = 0;
        for (Index first = 0; first < z_.size(); first += kChunk) {
            const Index n = std::min(kChunk, z_.size() - first);
            const double *z = &z_.at[to_size(first)], *w = &z_.weight[to_size(first)];
            for (Index l = 0; l < n; ++l) inner_.z[to_size(l)] = m + R * z[l];
            inner_.evaluate_at(inner.sigma, n, slopes, curvatures);
            t[0] += dot(n, w, inner_.value.data());
            if (slopes) t[1] += dot(n, w, inner_.slope.data());
            if (curvatures) t[2] += dot(n, w, inner_.curvature.data());
        }
    }
    static double dot(Index n, const double* x, const double* y) {
        Pack sum{};
        Index l = 0;
        for (; l + kPack <= n; l += kPack) sum += simd::load(x + l) * simd::load(y + l);
        double total = 0;
        for (Index lane = 0; lane < kPack; ++lane) total += sum[lane];
        for (; l < n; ++l) total += x[l] * y[l];
        return total;
    }

    Nodes u_, z_;
    Jet outer_, inner_;
};

class Quadrature final : public PairKernel {
public:
    Quadrature(const Side& first, const Side& second) : first_(first), second_(second) {}

    void row(Index i, Index j, Index n, const double* q, Moments out) const override {
        Workspace work;
        const Neuron one{*first_.sigma, first_.m[to_size(i)], first_.R[to_size(i)]};
        for (Index c = 0; c < n; ++c) {
            const std::size_t b = to_size(j + c);
            const Neuron two{*second_.sigma, second_.m[b], second_.R[b]};
            const double ratio = q[c] * first_.inverse_R[to_size(i)] * second_.inverse_R[b];
            const double rho = std::clamp(ratio, -1.0, 1.0), s = std::sqrt((1 - rho) * (1 + rho));
            const bool swapped = two.R > one.R, slopes = out.k11 != nullptr;
            Workspace::Sums sums;  // stays zero in the padding
            if (j + c < second_.n)
                sums = swapped ? work.integrate(two, one, rho, s, true, slopes)
                               : work.integrate(one, two, rho, s, false, slopes);
            out.k00[c] = sums.k00;
            if (!slopes) continue;
            out.k10[c] = sums.k10;
            out.k20[c] = one.R * sums.k20;
            out.k11[c] = sums.k11;
        }
    }

private:
    const Side &first_, &second_;
};

}  // namespace

PairKernelPtr quadrature_kernel(const Side& first, const Side& second) {
    return std::make_unique<Quadrature>(first, second);
}

}  // namespace mfcore
