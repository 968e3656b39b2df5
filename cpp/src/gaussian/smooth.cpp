// One-dimensional smoothing of an activation by a Gaussian: E sigma(m + R G) and E[sigma'(m + R G) h_k(G)].
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "base/pieces.hpp"
#include "base/special.hpp"
#include "gaussian/blurred.hpp"
#include "gaussian/rule.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using Form = Facts::Form;
constexpr double kInvSqrt2Pi = special::kInvSqrt2Pi;

double density(double x) { return kInvSqrt2Pi * std::exp(-0.5 * x * x); }
double upper_tail(double x) { return 0.5 * std::erfc(x * std::sqrt(0.5)); }
double root(Index k) { return std::sqrt(static_cast<double>(k)); }

/// h_{k+1}(x) from h_k and h_{k-1}, orthonormal Hermite polynomials.
double next_hermite(Index k, double x, double h, double before) {
    return (x * h - root(k) * before) / root(k + 1);
}

/// Base of the smoothers of all kinds of sigma: one point (m, R) in, T and s_0 .. s_{count-1} out.
struct HermiteSmoother {
    virtual ~HermiteSmoother() = default;
    virtual void at(double m, double R, Index count, double* T, double* s) const = 0;
};

/// Eqs. (3.5), (4.11) with tau = (t - m)/R; s_k = sum_j delta_j h_{k-1}(tau_j) phi(tau_j)/sqrt(k) for k >= 1.
struct PiecewiseSmoother final : HermiteSmoother {
    const Activation& sigma;
    explicit PiecewiseSmoother(const Activation& sigma_) : sigma(sigma_) {}
    void at(double m, double R, Index count, double* T, double* s) const override {
        *T = sigma.offset + sigma.left_slope * m;
        std::fill(s, s + count, 0.0);
        if (count > 0) s[0] = sigma.left_slope;
        for (std::size_t j = 0; j < sigma.knots.size(); ++j) {
            const double to_knot = sigma.knots[j] - m;
            double tau = to_knot == 0 ? 0.0 : to_knot / R;  // R = 0: +-infinity, or 0 on the knot
            tau = std::clamp(tau, -1e3, 1e3);               // the density underflows long before
            const double tail = upper_tail(tau), phi = density(tau), jump = sigma.jumps[j];
            *T += jump * (R * phi - to_knot * tail);
            if (count > 0) s[0] += jump * tail;
            if (phi == 0) continue;
            double h = 1, before = 0;
            for (Index k = 1; k < count; ++k) {
                s[k] += jump * phi * h / root(k);
                const double next = next_hermite(k - 1, tau, h, before);
                before = h;
                h = next;
            }
        }
    }
};

/// T = erf(m/sqrt v), v = 1 + 2R^2; s_k = (2/sqrt pi)(-sqrt2 R/sqrt v)^k h_k(z) e^{-z^2/2}/sqrt v, z = sqrt2
/// m/sqrt v (eqs. (3.12), (4.12)).
struct ErfSmoother final : HermiteSmoother {
    void at(double m, double R, Index count, double* T, double* s) const override {
        const double scale = std::sqrt(1 + 2 * R * R), z = std::sqrt(2.0) * m / scale;
        *T = std::erf(m / scale);
        double factor = 2 * std::sqrt(2.0) * density(z) / scale, h = 1, before = 0;
        for (Index k = 0; k < count; ++k) {
            s[k] = factor == 0 ? 0.0 : factor * h;
            factor *= -std::sqrt(2.0) * R / scale;
            const double next = next_hermite(k, z, h, before);
            before = h;
            h = next;
        }
    }
};

/// sigma = t Phi(t); with A = 1 + R^2, x = m/sqrt A: T = m Phi(x) + R^2 phi(x)/sqrt A, s_0 = Phi(x) + x
/// phi(x)/A, s_k = (R/sqrt A)^k (-1)^{k+1} phi(x)[h_{k-1}(x)/sqrt k - sqrt(k+1) h_{k+1}(x)/A]:
/// eqs. (3.12), (4.13).
struct GeluSmoother final : HermiteSmoother {
    void at(double m, double R, Index count, double* T, double* s) const override {
        const double A = 1 + R * R, scale = std::sqrt(A), x = m / scale;
        const double cdf = upper_tail(-x), phi = density(x);
        *T = m * cdf + R * R * phi / scale;
        if (count > 0) s[0] = cdf + x * phi / A;
        double factor = phi * R / scale, before = 1, h = x;  // h_{k-1} and h_k
        for (Index k = 1; k < count; ++k) {
            const double next = next_hermite(k, x, h, before);
            s[k] = factor == 0 ? 0.0 : factor * (before / root(k) - root(k + 1) * next / A);
            factor *= -R / scale;
            before = h;
            h = next;
        }
    }
};

/// T = e^{-R^2/2} sigma(m) and s_k = (R^k/sqrt(k!)) e^{-R^2/2} sigma^{(k+1)}(m) for sin and cos, whose derivatives are
/// sigma, sigma', -sigma, -sigma' (eq. (4.34)).
struct SineSmoother final : HermiteSmoother {
    bool even;
    explicit SineSmoother(const Activation& sigma) : even(facts(sigma).parity == Parity::even) {}
    void at(double m, double R, Index count, double* T, double* s) const override {
        const double sine = std::sin(m), cosine = std::cos(m), damped = std::exp(-0.5 * R * R);
        const double value = even ? cosine : sine, slope = even ? -sine : cosine;
        *T = damped * value;
        double factor = damped;
        for (Index k = 0; k < count; ++k) {
            s[k] = factor * (k % 2 == 0 ? slope : value) * ((k + 1) / 2 % 2 == 0 ? 1.0 : -1.0);
            factor *= R / root(k + 1);
        }
    }
};

/// E h_k(m + R G) = p_k with sqrt(k+1) p_{k+1} = m p_k - sqrt(k) v p_{k-1}, v = 1 - R^2 (generating
/// function); powers t^k/sqrt(k!) obey the same with v = -R^2. Derivatives: p_k^{(j)} = sqrt(k!/(k-j)!)
/// p_{k-j} (eq. (4.14)).
struct PolynomialSmoother final : HermiteSmoother {
    std::vector<double> c;  // in the basis h_k, or t^k/sqrt(k!)
    bool hermite;
    explicit PolynomialSmoother(const Activation& sigma)
        : c(sigma.coefficients), hermite(facts(sigma).form == Form::hermite) {
        double scale = 1;
        for (std::size_t k = 1; k < c.size() && !hermite; ++k) c[k] *= scale *= root(static_cast<Index>(k));
    }
    void at(double m, double R, Index count, double* T, double* s) const override {
        const double v = (hermite ? 1.0 : 0.0) - R * R;
        *T = 0;
        std::fill(s, s + count, 0.0);
        // s_j = R^j T^{(j+1)}/sqrt(j!) and T^{(j+1)} = sum_k c_k sqrt(k!/(k-j-1)!) p_{k-j-1}.
        double p = 1, before = 0;  // p_l, l = k - j - 1
        const Index degree = static_cast<Index>(c.size()) - 1;
        for (Index l = 0; l <= degree; ++l) {
            *T += c[static_cast<std::size_t>(l)] * p;
            double weight = p;  // p_l sqrt(k!/(l! j!)) R^j
            for (Index j = 0; j < std::min(count, degree - l); ++j) {
                weight *= root(l + j + 1);
                if (j > 0) weight *= R / root(j);
                s[j] += c[static_cast<std::size_t>(l + j + 1)] * weight;
            }
            const double next = (m * p - root(l) * v * before) / root(l + 1);
            before = p;
            p = next;
        }
    }
};

/// Smooth kinds without a closed form where R is large, as means over their noise V (gaussian/blurred.hpp):
/// with S^2 = R^2 + V^2, x = m/S and c = -R/S a step has T = Phi(x), s_k = c^k h_k(x) phi(x)/S, and a ramp
/// T = m Phi(x) + S phi(x), s_0 = Phi(x), s_k = -c^k h_{k-1}(x) phi(x)/sqrt k for k >= 1; the density has T = phi(x)/S,
/// s_k = -c^k sqrt(k+1) h_{k+1}(x) phi(x)/S^2.
struct BlurredSmoother final : HermiteSmoother {
    Blurred blur;
    explicit BlurredSmoother(const Activation& sigma) : blur(sigma) {}
    void at(double m, double R, Index count, double* T, double* s) const override {
        const bool step = blur.order == 1;
        *T = blur.offset;
        std::fill(s, s + count, 0.0);
        for (const auto& node : blur.nodes) {
            const double V = blur.stretch * node.V, S = std::hypot(R, V), x = m / S, c = -R / S;
            const double weight = blur.scale * node.weight, phi = density(x), cdf = upper_tail(-x);
            *T += weight * (step ? cdf : m * cdf + S * phi);
            if (count > 0 && !step) s[0] += weight * cdf;
            if (phi == 0) continue;
            if (blur.density) subtract_density(V, S, x, c, weight * phi, count, T, s);
            double factor = weight * phi * (step ? 1 / S : -c), h = 1, before = 0;
            for (Index k = step ? 0 : 1; k < count; ++k) {
                s[k] += step ? factor * h : factor * h / root(k);
                factor *= c;
                const double next = next_hermite(step ? k : k - 1, x, h, before);
                before = h;
                h = next;
            }
        }
    }

private:
    static void subtract_density(double V, double S, double x, double c, double weight, Index count,
                                 double* T, double* s) {
        const double share = (V / S) * (V / S) * weight;
        *T -= share * S;
        double factor = share, before = 1, h = x;  // h_k and h_{k+1}
        for (Index k = 0; k < count; ++k) {
            s[k] += factor * root(k + 1) * h;
            factor *= c;
            const double next = next_hermite(k + 1, x, h, before);
            before = h;
            h = next;
        }
    }
};

/// Sums over nodes in G for the kinds without a closed form: the trapezoid rule (eq. (3.13)), or Gauss rules
/// between kinks (eq. (3.18)). Where R is small, sums of slopes would leave of s_1 ~ R nothing but rounding: they
/// are of curvatures, s_k = R E[sigma'' h_{k-1}]/sqrt k (Stein's lemma).
struct NodeSmoother final : HermiteSmoother {
    static constexpr Index kChunk = 128;  // whole packs; the last chunk is padded with weight 0
    static constexpr double kSmall = 1e-4;
    using Chunk = std::array<double, kChunk>;
    const Activation& sigma;
    Facts known;
    BlurredSmoother wide;
    std::optional<Pieces> pieces;
    explicit NodeSmoother(const Activation& sigma_) : sigma(sigma_), known(facts(sigma_)), wide(sigma_) {
        require_analytic(sigma);
        if (!known.kinks.empty()) pieces.emplace();
    }
    void at(double m, double R, Index count, double* T, double* s) const override {
        if (R > kWide && !wide.blur.nodes.empty()) return wide.at(m, R, count, T, s);
        if (average(m, R, count, kUsual, T, s)) return;
        for (const double reach : kFurther)
            if (average(m, R, count, reach, T, s)) return;
        *T = std::nan("");
        std::fill(s, s + count, std::nan(""));
    }

private:
    static constexpr double kUsual = 9;

    /// The averages over |G| < reach; false if sigma has grown too much for that.
    bool average(double m, double R, Index count, double reach, double* T, double* s) const {
        const Index degree = std::max<Index>(count - 1, 0);
        const auto rule = Trapezoid::Builder().add(known, R).build(36, reach, degree);
        Pack sum{};
        std::fill(s, s + count, rule.usable() ? 0.0 : std::nan(""));
        *T = std::nan("");
        if (!rule.usable()) return true;
        if (!pieces) {
            for (Index first = -rule.half; first <= rule.half; first += kChunk) {
                const Index n = std::min(kChunk, rule.half - first + 1);
                Chunk g, weight{};
                for (Index i = 0; i < kChunk; ++i) {
                    const auto at = static_cast<std::size_t>(i);
                    g[at] = static_cast<double>(std::min(first + i, rule.half)) * rule.step;
                    if (i < n) weight[at] = rule.step * density(g[at]);
                }
                add(m, R, count, g, weight, sum, s);
            }
        } else {
            const double root_degree = root(degree), end = reach + root_degree;
            const double width = std::min(2 / (1 + root_degree / 6), Pieces::width(known.strip, R));
            const auto cut = [&](std::size_t k) { return (known.kinks[k] - m) / R; };
            pieces->for_nodes<kChunk>(-end, end, width, known.kinks.size(), cut,
                                      [&](const Chunk& g, Chunk& weight) {
                                          for (std::size_t i = 0; i < g.size(); ++i)
                                              weight[i] *= density(g[i]);
                                          add(m, R, count, g, weight, sum, s);
                                      });
        }
        *T = sum_lanes(sum);
        return !known.may_grow() || has_ended(m, R, reach, reach + root(degree), *T, count > 0 ? s[0] : 0.0);
    }

    /// True if sigma and its slope, where the rule ends, are nothing beside their averages and what they are at m.
    bool has_ended(double m, double R, double reach, double end, double T, double slope) const {
        const double at[3] = {m, m - R * end, m + R * end};
        double value[3], by[3];
        evaluate(sigma, 3, at, value, by);
        const double inside = std::abs(T) + std::abs(slope) + std::abs(value[0]) + std::abs(by[0]);
        const double outside =
            std::max(std::abs(value[1]), std::abs(value[2])) + std::max(std::abs(by[1]), std::abs(by[2]));
        return density(reach) * outside <= 1e-13 * inside;
    }

    void add(double m, double R, Index count, const Chunk& g, const Chunk& weight, Pack& sum,
             double* s) const {
        Chunk value, slope, curvature;
        const bool bent = R < kSmall && count > 1 && known.curved && !pieces;
        for (std::size_t i = 0; i < kChunk; ++i) value[i] = m + R * g[i];
        evaluate(sigma, kChunk, value.data(), value.data(), slope.data(), bent ? curvature.data() : nullptr);
        for (std::size_t i = 0; i < kChunk; i += kPack) sum += simd::load(&weight[i]) * simd::load(&value[i]);
        if (!bent) return add_hermite(count, g, weight, slope, [&](Index k, double term) { s[k] += term; });
        add_hermite(1, g, weight, slope, [&](Index, double term) { s[0] += term; });
        add_hermite(count - 1, g, weight, curvature,
                    [&](Index k, double term) { s[k + 1] += R / root(k + 1) * term; });
    }

    /// Call to(k, sum of weight f h_k) for k < count; f is overwritten.
    template <class To>
    static void add_hermite(Index count, const Chunk& g, const Chunk& weight, Chunk& f, To&& to) {
        Chunk before;
        for (std::size_t i = 0; i < kChunk; i += kPack) {
            simd::store(&f[i], simd::load(&weight[i]) * simd::load(&f[i]));  // becomes weight f h_k
            simd::store(&before[i], Pack{});
        }
        for (Index k = 0; k < count; ++k) {
            const double back = root(k), scale = 1 / root(k + 1);
            Pack total{};
            for (std::size_t i = 0; i < kChunk; i += kPack) {
                const Pack h = simd::load(&f[i]);
                total += h;
                simd::store(&f[i], (simd::load(&g[i]) * h - back * simd::load(&before[i])) * scale);
                simd::store(&before[i], h);
            }
            to(k, sum_lanes(total));
        }
    }
    static double sum_lanes(Pack x) {
        double total = 0;
        for (Index l = 0; l < kPack; ++l) total += x[l];
        return total;
    }
};

/// Call body(const HermiteSmoother&) with the one for `sigma`.
template <class Body>
void with_smoother(const Activation& sigma, Body&& body) {
    switch (facts(sigma).form) {
        case Form::pieces:
            return body(PiecewiseSmoother(sigma));
        case Form::erf:
            return body(ErfSmoother());
        case Form::gelu:
            return body(GeluSmoother());
        case Form::sine:
            return body(SineSmoother(sigma));
        case Form::powers:
        case Form::hermite:
            return body(PolynomialSmoother(sigma));
        case Form::other:
            return body(NodeSmoother(sigma));
    }
}

/// Whether R is too large: squares of R are formed for smooth kinds, and beyond there is no answer.
bool too_wide(const Activation& sigma, double R) { return R > 1e153 && !sigma.is_piecewise(); }

}  // namespace

void smooth(const Activation& sigma, Index n, const double* m, const double* R, double* T, double* T_m,
            double* T_R) {
    sigma.validate();
    with_smoother(sigma, [&](const HermiteSmoother& smoother) {
        for (Index i = 0; i < n; ++i) {
            require(!(R[i] < 0), "R", "must be >= 0", R[i]);
            double value, s[2];  // d/dm T = s_0, d/dR T = E[G sigma'] = s_1
            smoother.at(m[i], R[i], T_R ? 2 : (T_m ? 1 : 0), &value, s);
            if (too_wide(sigma, R[i])) value = s[0] = s[1] = std::nan("");
            if (T) T[i] = value;
            if (T_m) T_m[i] = s[0];
            if (T_R) T_R[i] = s[1];
        }
    });
}

void slope_coefficients(const Activation& sigma, Index n, const double* m, const double* R, Mat s) {
    sigma.validate();
    with_smoother(sigma, [&](const HermiteSmoother& smoother) {
        for (Index i = 0; i < n; ++i) {
            require(!(R[i] < 0), "R", "must be >= 0", R[i]);
            double value;
            smoother.at(m[i], R[i], s.cols, &value, s.row(i));
            if (too_wide(sigma, R[i])) std::fill_n(s.row(i), s.cols, std::nan(""));
        }
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
