// Pairs of smooth neurons without a closed form, by a two-dimensional trapezoid rule: over u of the wider
// neuron g = m + R u, and over z of the other, g' = m' + R'(rho u + s z). The inner rule costs R' s, the
// outer one R (eq. (4.25)). Wide neurons, of which that would be too many, are left to gaussian/blurred.cpp if
// it knows them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gaussian/blurred.hpp"
#include "gaussian/pairs.hpp"
#include "gaussian/rule.hpp"
#include "gaussian/series.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

constexpr double kPairDigits =
    38;  // e^-38, because the third-order poles of sigma'' multiply errors by up to 10^4
constexpr double kPairReach = 7.8;  // P(|G| > 7.8) = 6e-15
constexpr Index kChunk = 512;       // inner values in flight
constexpr double kSeriesError = 1e-12;
/// Largest |w| whose series is enough, also against a wide partner: the coefficients of a neuron fall off
/// like e^{-strip sqrt(2 k)/R}, and with R = 1/2 and strip pi/2 (tanh) the last is below 1e-21 of the first.
double narrow(const Activation& sigma) { return 0.5 * std::min(1.0, facts(sigma).strip / 1.57); }

/// Values of sigma and its first two derivatives at a list of arguments.
struct Jet {
    FilledScratch<double> z, value, slope, curvature;
    void resize(Index n) {
        for (auto* v : {&z, &value, &slope, &curvature}) v->resize(std::max(v->size(), to_size(n)));
    }
    void evaluate_at(const Activation& sigma, Index n, bool slopes, bool curvatures) {
        evaluate(sigma, n, z.data(), value.data(), slopes ? slope.data() : nullptr,
                 curvatures ? curvature.data() : nullptr);
    }
};

struct Nodes {
    FilledScratch<double> at, weight;
    void build(const Trapezoid& rule) {
        at.resize(rule.usable() ? to_size(rule.nodes()) : 0);
        weight.resize(at.size());
        for (Index k = -rule.half; k <= rule.half; ++k) {
            const double g = static_cast<double>(k) * rule.step;
            at[to_size(k + rule.half)] = g;
            weight[to_size(k + rule.half)] = rule.step * special::kInvSqrt2Pi * std::exp(-0.5 * g * g);
        }
    }
    void single() {
        at.assign(1, 0.0);
        weight.assign(1, 1.0);
    }
    Index size() const { return static_cast<Index>(at.size()); }
};

struct PairNeuron {
    const Activation& sigma;
    double m, R;
    double reach;  // of averages over it, in standard deviations
};

/// Memory for the values of one pair, reused for all pairs of a row, so that nothing is allocated per pair.
class Workspace {
public:
    using Sums = SeriesSums;

    /// `swapped`: the outer neuron is the second of the pair.
    Sums integrate(const PairNeuron& outer, const PairNeuron& inner, double rho, double s, bool swapped,
                   bool slopes) {
        const Facts one = facts(outer.sigma), two = facts(inner.sigma);
        u_.build(
            Trapezoid::Builder().add(one, outer.R).add(two, inner.R * rho).build(kPairDigits, outer.reach));
        if (inner.R * s < 1e-7)
            z_.single();  // the spread matters to second order only
        else
            z_.build(Trapezoid::Builder().add(two, inner.R * s).build(kPairDigits, inner.reach));
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        if (u_.size() * z_.size() == 0) return {nan, nan, nan, nan};  // as the neurons are
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
    void smooth_inner(const PairNeuron& inner, double m, double R, bool slopes, bool curvatures, double* t) {
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

/// For every neuron, a bound on the part of sigma(g), sigma'(g) and R sigma''(g) beyond the first K = of.terms()
/// coefficients, in mean square, and how far out these squares have their mass. The series of a pair misses at most
/// |rho|^K times the product of the two bounds (Cauchy-Schwarz, eq. (4.10)).
struct Tails {
    FilledScratch<double> bound, reach;

    Tails(const Side& side, const Coefficients& of, double widest, bool curvatures)
        : bound(to_size(side.padded), 0.0), reach(to_size(side.padded), kPairReach) {
        const bool growing = facts(*side.sigma).may_grow();
        for (Index j = 0; j < side.n; ++j) {
            if (side.R[to_size(j)] > widest) continue;  // not asked for
            bool ended = measure(side, of, j, curvatures);
            for (const double further : kFurther) {
                if (ended || !growing) break;
                reach[to_size(j)] = further;
                ended = measure(side, of, j, curvatures);
            }
            if (is_heavy(side, of, j)) bound[to_size(j)] = std::numeric_limits<double>::infinity();
            if (growing && !ended) bound[to_size(j)] = reach[to_size(j)] = std::nan("");
        }
    }

private:
    /// True if the squares have ended where the rule does.
    bool measure(const Side& side, const Coefficients& of, Index j, bool curvatures) {
        const double m = side.m[to_size(j)], R = side.R[to_size(j)];
        const Facts square = facts(*side.sigma);
        nodes.build(Trapezoid::Builder().add(square, R).add(square, R).build(kPairDigits, reach[to_size(j)]));
        jet.resize(nodes.size());
        for (std::size_t k = 0; k < nodes.at.size(); ++k) jet.z[k] = m + R * nodes.at[k];
        jet.evaluate_at(*side.sigma, nodes.size(), true, true);
        double value = 0, slope = 0, curvature = 0, last = 0;
        for (std::size_t k = 0; k < nodes.at.size(); ++k) {
            const double w = nodes.weight[k], second = R * jet.curvature[k];
            const double of_value = w * jet.value[k] * jet.value[k],
                         of_slope = w * jet.slope[k] * jet.slope[k], of_second = w * second * second;
            value += of_value;
            slope += of_slope;
            curvature += of_second;
            if (k == 0 || k + 1 == nodes.at.size()) last += of_value + of_slope + of_second;
        }
        // No nodes prove nothing.
        if (nodes.size() == 0) {
            bound[to_size(j)] = std::nan("");
            return true;
        }
        const double size = value + slope + curvature;
        const double* s = of.slopes(j);
        value -= of.T(j) * of.T(j);
        for (Index k = 0; k < of.terms(); ++k, s += Coefficients::kWidth) {
            const double next = s[Coefficients::kWidth], by_degree = static_cast<double>(k + 1);
            if (k + 1 < of.terms()) value -= R * R * s[0] * s[0] / by_degree;
            slope -= s[0] * s[0];
            curvature -= by_degree * next * next;
        }
        // A mean-square difference below the rounding of the squares proves no more than that.
        const double left = std::max({value, slope, curvatures ? curvature : 0.0, 1e-14 * size});
        bound[to_size(j)] = std::sqrt(left);
        return last <= 1e-13 * size;
    }

    Nodes nodes;
    Jet jet;
};

/// The kernel of pairs whose correlation is too large for Terms: by the series where its coefficients prove
/// that it suffices (eq. (4.10)), else by the two-dimensional rule.
class Quadrature final : public PairKernel {
public:
    Quadrature(const Side& first, const Side& second, const Coefficients& one, const Coefficients& two)
        : first_(first),
          second_(second),
          one_(one),
          two_(two),
          narrow1_(narrow(*first.sigma)),
          narrow2_(narrow(*second.sigma)),
          wide_(is_blurred(first) && is_blurred(second) ? blurred_kernel(first, second) : nullptr),
          widest_(wide_ ? kWide : std::numeric_limits<double>::infinity()),
          tail1_(first, one, widest_, true),
          tail2_(second, two, widest_, false) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        const bool slopes = out.k11 != nullptr;
        Workspace work;
        for (Index c = 0; c < n; c += kPack) {
            const Chosen first{i + c}, second{j + c};
            const auto beyond = special::max(first(first_.R), second(second_.R)) > special::pack(widest_);
            if (simd::sum_of_lanes(beyond) != 0) wide_->pairs(kPack, i + c, j + c, q + c, from(out, c));
            const Correlation at(simd::load(q + c), first(first_.inverse_R), second(second_.inverse_R));
            for (Index lane = 0; lane < kPack; ++lane) {
                const Index l = c + lane;
                const double R1 = first_.R[to_size(i[l])], R2 = second_.R[to_size(j[l])];
                if (std::max(R1, R2) > widest_ && std::min(R1, R2) > (R1 < R2 ? narrow1_ : narrow2_))
                    continue;
                const auto sums = pair(work, i[l], j[l], at.rho[lane], at.s[lane], slopes);
                out.k00[l] = sums.k00;
                if (!slopes) continue;
                out.k11[l] = sums.k11;
                if (!out.k20) continue;
                out.k10[l] = sums.k10;
                out.k20[l] = first_.R[to_size(i[l])] * sums.k20;
                if (!out.k01) continue;
                const auto other = pair(work, j[l], i[l], at.rho[lane], at.s[lane], slopes);
                out.k01[l] = other.k10;
                out.k02[l] = second_.R[to_size(j[l])] * other.k20;
            }
        }
    }
    double cost() const override { return 1e5; }

private:
    static bool is_blurred(const Side& side) { return facts(*side.sigma).blur.noise != Blur::Noise::none; }
    static PairExpectations from(const PairExpectations& out, Index c) {
        const auto at = [c](double* k) { return k ? k + c : nullptr; };
        return {out.k00 + c, at(out.k10), at(out.k20), at(out.k11), at(out.k01), at(out.k02)};
    }
    Workspace::Sums pair(Workspace& work, Index i, Index j, double rho, double s, bool slopes) const {
        const double missed = std::pow(std::abs(rho), static_cast<double>(one_.terms()));
        if (std::max(first_.R[to_size(i)], second_.R[to_size(j)]) > widest_ ||
            missed * tail1_.bound[to_size(i)] * tail2_.bound[to_size(j)] <= kSeriesError)
            return series_of_pair(first_, one_, i, second_, two_, j, rho, one_.terms());
        const PairNeuron one{*first_.sigma, first_.m[to_size(i)], first_.R[to_size(i)],
                             tail1_.reach[to_size(i)]};
        const PairNeuron two{*second_.sigma, second_.m[to_size(j)], second_.R[to_size(j)],
                             tail2_.reach[to_size(j)]};
        const bool swapped = two.R > one.R;
        return work.integrate(swapped ? two : one, swapped ? one : two, rho, s, swapped, slopes);
    }
    const Side &first_, &second_;
    const Coefficients &one_, &two_;
    double narrow1_, narrow2_;
    PairKernelPtr wide_;
    double widest_;  // |w| of the rules
    Tails tail1_, tail2_;
};

}  // namespace

PairKernelPtr quadrature_kernel(const Side& first, const Side& second, const Coefficients& one,
                                const Coefficients& two) {
    return std::make_unique<Quadrature>(first, second, one, two);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
