// Pairs of neurons of which one has kinks and is not piecewise linear, or gives no curvature: eq. (4.25) with
// Gauss rules between kinks. No second derivative is formed: Stein's lemma has what it would give, deltas at
// kinks included.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/pieces.hpp"
#include "gaussian/pairs.hpp"
#include "gaussian/rule.hpp"
#include "mfcore/base/run.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

constexpr double kReach = 8.5;    // P(|G| > 8.5) = 2e-17
constexpr double kDigits = 38;    // of the trapezoid rule: e^-38
constexpr double kFarOff = 13;    // standard deviations beyond which a kink is not seen
constexpr double kSharp = 1e-13;  // widths that are none
constexpr double kMostPanels = 1 << 12;

/// Facts about sigma that a quadrature needs.
struct Analytic {
    std::span<const double> kinks;
    double strip;  ///< between kinks
    bool growing;

    explicit Analytic(const Activation& sigma)
        : kinks(facts(sigma).kinks), strip(facts(sigma).strip), growing(facts(sigma).may_grow()) {
        if (!sigma.is_piecewise()) return;
        kinks = sigma.knots;
        strip = std::numeric_limits<double>::infinity();
    }
};

struct Neuron {
    const Activation& sigma;
    const Analytic& known;
    double m, R;
};

/// k20 and k02 with the factors R of the neuron whose slope is differentiated.
struct Moments {
    double k00 = 0, k10 = 0, k01 = 0, k11 = 0, k20 = 0, k02 = 0;
    void swap() {
        std::swap(k10, k01);
        std::swap(k20, k02);
    }
};

/// Averages over one pair; its memory is reused for the next.
class PanelRule {
public:
    Moments average(const Neuron& outer, const Neuron& inner, double rho, double s) {
        Moments sum = within(kReach, outer, inner, rho, s);
        if (!outer.known.growing && !inner.known.growing) return sum;
        for (const double further : kFurther) {
            if (!(edge_ > 1e-13 * size_)) return sum;
            sum = within(further, outer, inner, rho, s);
        }
        return edge_ > 1e-13 * size_ ? none() : sum;
    }

private:
    static Moments none() {
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        return {nan, nan, nan, nan, nan, nan};
    }

    /// The average over |u|, |z| < reach; `edge_` is what its ends add to `size_`.
    Moments within(double reach, const Neuron& outer, const Neuron& inner, double rho, double s) {
        reach_ = reach;
        size_ = edge_ = 0;
        // g = m + R u of the outer neuron, g' = m' + along u + across z of the inner one.
        if (s < kSharp) s = 0;
        const double along = inner.R * rho, across = inner.R * s;
        inner_spread_ = across != 0;
        const double width = std::min({2.0, Pieces::width(outer.known.strip, outer.R),
                                       Pieces::width(inner.known.strip, std::abs(along))});
        if (!(2 * reach_ / width < kMostPanels) || !choose_rule(inner, across)) return none();
        cut(outer, inner, along, across, width);
        Moments sum;
        for (std::size_t k = 1; k < edges_.size(); ++k)
            pieces_.for_nodes<kNodes>(
                edges_[k - 1], edges_[k], edges_[k] - edges_[k - 1], 0, [](std::size_t) { return 0.0; },
                [&](const auto& u, const auto& weight) {
                    check_stop();
                    add_panel(outer, inner, rho, s, u, weight, k == 1 || k + 1 == edges_.size(), sum);
                });
        sum.k20 -= along * sum.k11;
        sum.k02 -= outer.R * rho * sum.k11;
        return sum;
    }

    static constexpr Index kNodes = Pieces::kOrder;
    struct
        Soft {  // a kink of the inner neuron as the outer average sees it: smooth at distances below `scale`
        double at, scale;
    };

    /// The trapezoid rule over z where no kink of the inner neuron is near; false if it has too many nodes.
    bool choose_rule(const Neuron& inner, double across) {
        plain_.clear();
        plain_weight_.clear();
        split_width_ = std::min(2.0, Pieces::width(inner.known.strip, across));
        if (across == 0) {
            plain_.assign(1, 0.0);
            plain_weight_.assign(1, 1.0);
            return true;
        }
        Facts smooth;
        smooth.strip = inner.known.strip;
        const Trapezoid rule = Trapezoid::Builder().add(smooth, across).build(kDigits, reach_);
        if (!rule.usable() || !(2 * reach_ / split_width_ < kMostPanels)) return false;
        for (Index k = -rule.half; k <= rule.half; ++k) {
            const double z = static_cast<double>(k) * rule.step;
            plain_.push_back(z);
            plain_weight_.push_back(rule.step * special::kInvSqrt2Pi * std::exp(-0.5 * z * z));
        }
        return true;
    }

    /// Ends of the panels over u.
    void cut(const Neuron& outer, const Neuron& inner, double along, double across, double width) {
        sharp_.assign({-reach_, reach_});
        soft_.clear();
        const auto add = [&](double u) {
            if (std::abs(u) < reach_) sharp_.push_back(u);
        };
        for (const double kink : outer.known.kinks) add((kink - outer.m) / outer.R);
        for (const double kink : inner.known.kinks) {
            const double u = (kink - inner.m) / along, scale = std::abs(across / along);
            if (scale <= kSharp)
                add(u);
            else
                soft_.push_back({u, scale});
        }
        std::sort(sharp_.begin(), sharp_.end());
        edges_.assign(1, -reach_);
        for (std::size_t k = 1; k < sharp_.size(); ++k)
            if (sharp_[k] > sharp_[k - 1]) halve(sharp_[k - 1], sharp_[k], width);
    }

    /// Panels from a to b, halved until soft kinks let a Gauss rule see what is there. Beyond kFarOff of its widths
    /// such a kink is as one that is sharp: panels grow with their distance.
    void halve(double a, double b, double width) {
        double most = width;
        for (const Soft& kink : soft_) {
            const double distance = std::max({0.0, a - kink.at, kink.at - b});
            most = std::min(most, 2 * (distance > kFarOff * kink.scale ? distance : kink.scale));
        }
        const double middle = 0.5 * (a + b);
        if (b - a <= most || !(a < middle && middle < b)) {
            edges_.push_back(b);
            return;
        }
        halve(a, middle, width);
        halve(middle, b, width);
    }

    void add_panel(const Neuron& outer, const Neuron& inner, double rho, double s,
                   const std::array<double, kNodes>& u, const std::array<double, kNodes>& weight, bool last,
                   Moments& sum) {
        std::array<double, kNodes> g, value, slope;
        std::array<std::size_t, kNodes + 1> first;
        arguments_.clear();
        z_.clear();
        z_weight_.clear();
        for (std::size_t k = 0; k < u.size(); ++k) {
            g[k] = outer.m + outer.R * u[k];
            first[k] = z_.size();
            add_nodes(inner, inner.m + inner.R * rho * u[k], inner.R * s);
        }
        first[kNodes] = z_.size();
        values_.resize(z_.size());
        slopes_.resize(z_.size());
        evaluate(outer.sigma, kNodes, g.data(), value.data(), slope.data());
        evaluate(inner.sigma, static_cast<Index>(z_.size()), arguments_.data(), values_.data(),
                 slopes_.data());
        for (std::size_t k = 0; k < u.size(); ++k) {
            double t0 = 0, t1 = 0, z1 = 0;  // E of the inner sigma, sigma' and z sigma'
            for (std::size_t l = first[k]; l < first[k + 1]; ++l) {
                t0 += z_weight_[l] * values_[l];
                t1 += z_weight_[l] * slopes_[l];
                z1 += z_weight_[l] * z_[l] * slopes_[l];
            }
            const double w = weight[k] * special::kInvSqrt2Pi * std::exp(-0.5 * u[k] * u[k]);
            const double v = w * value[k], d = w * slope[k];
            const double size = std::abs(v * t0) + std::abs(d * t0),
                         end = std::max(std::abs(z_weight_[first[k]] * values_[first[k]]),
                                        std::abs(z_weight_[first[k + 1] - 1] * values_[first[k + 1] - 1]));
            size_ += size;
            if (last) edge_ = std::max(edge_, size);
            if (inner_spread_) edge_ = std::max(edge_, (std::abs(v) + std::abs(d)) * end);
            sum.k00 += v * t0;
            sum.k10 += d * t0;
            sum.k01 += v * t1;
            sum.k11 += d * t1;
            sum.k20 += d * u[k] * t0;
            sum.k02 += v * (rho * u[k] * t1 + s * z1);
        }
    }

    /// Nodes and weights over z at an inner mean, and the arguments of the inner sigma there.
    void add_nodes(const Neuron& inner, double mean, double across) {
        const auto kinks = inner.known.kinks;
        const bool near = std::any_of(kinks.begin(), kinks.end(),
                                      [&](double kink) { return std::abs(kink - mean) < kFarOff * across; });
        const auto add = [&](double z, double weight) {
            z_.push_back(z);
            z_weight_.push_back(weight);
            arguments_.push_back(mean + across * z);
        };
        if (!near) {
            for (std::size_t l = 0; l < plain_.size(); ++l) add(plain_[l], plain_weight_[l]);
            return;
        }
        pieces_.for_nodes<kNodes>(
            -reach_, reach_, split_width_, kinks.size(),
            [&](std::size_t k) { return (kinks[k] - mean) / across; },
            [&](const auto& z, const auto& weight) {
                for (std::size_t l = 0; l < z.size(); ++l)
                    add(z[l], weight[l] * special::kInvSqrt2Pi * std::exp(-0.5 * z[l] * z[l]));
            });
    }

    Pieces pieces_;
    double split_width_ = 2, reach_ = kReach, size_ = 0, edge_ = 0;
    bool inner_spread_ = false;
    std::vector<double> plain_, plain_weight_, sharp_, edges_;
    std::vector<Soft> soft_;
    std::vector<double> z_, z_weight_, arguments_, values_, slopes_;
};

class Panels final : public PairKernel {
public:
    Panels(const Side& first, const Side& second)
        : first_(first), second_(second), known1_(*first.sigma), known2_(*second.sigma) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        PanelRule rule;
        for (Index c = 0; c < n; c += kPack) {
            const Correlation at(first_, second_, Chosen{i + c}, Chosen{j + c}, simd::load(q + c));
            for (Index lane = 0; lane < kPack; ++lane) {
                const Index l = c + lane;
                if (l > 0 && i[l] == i[0] && j[l] == j[0]) {  // what fills the last pack
                    copy(out, 0, l);
                    continue;
                }
                const Neuron one{*first_.sigma, known1_, first_.m[to_size(i[l])], first_.R[to_size(i[l])]};
                const Neuron two{*second_.sigma, known2_, second_.m[to_size(j[l])], second_.R[to_size(j[l])]};
                const bool swapped = two.R > one.R;
                Moments sum =
                    rule.average(swapped ? two : one, swapped ? one : two, at.rho[lane], at.s[lane]);
                if (swapped) sum.swap();
                out.k00[l] = sum.k00;
                if (!out.k11) continue;
                out.k11[l] = sum.k11;
                if (!out.k20) continue;
                out.k10[l] = sum.k10;
                out.k20[l] = sum.k20;
                if (!out.k01) continue;
                out.k01[l] = sum.k01;
                out.k02[l] = sum.k02;
            }
        }
    }
    double cost() const override { return 1e6; }

private:
    static void copy(const PairExpectations& out, Index from, Index to) {
        for (double* const k : {out.k00, out.k10, out.k20, out.k11, out.k01, out.k02})
            if (k) k[to] = k[from];
    }

    const Side &first_, &second_;
    Analytic known1_, known2_;
};

}  // namespace

PairKernelPtr panel_kernel(const Side& first, const Side& second) {
    return std::make_unique<Panels>(first, second);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
