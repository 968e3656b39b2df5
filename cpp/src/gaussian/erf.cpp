// Pairs of erf and of gelu neurons. With independent Z ~ N(0, 1), erf(g) = 2 P(Z < sqrt2 g) - 1 and
// gelu(g) = g P(Z < g): both reduce to one bivariate normal probability of g and Z together (eqs. (4.22) to
// (4.24)).
#include <algorithm>
#include <cmath>

#include "base/bivariate.hpp"
#include "gaussian/series.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using namespace special;

/// Neurons widened by the noise Z: variances V = 1 + e R^2 of sqrt(e) g - Z, and the thresholds -sqrt(e)
/// m/sqrt V with their tails and densities.
struct Thresholds {
    FilledScratch<double> V, inverse_root, threshold, tail, density;
    Thresholds(const Side& side, double e) {
        for (auto* v : {&V, &inverse_root, &threshold, &tail, &density}) v->resize(to_size(side.padded));
        for (Index j = 0; j < side.padded; j += kPack) {
            const std::size_t at = to_size(j);
            const Pack R = simd::load(&side.R[at]), variance = 1.0 + e * R * R,
                       inverse = 1.0 / sqrt(variance);
            const Pack h = -std::sqrt(e) * simd::load(&side.m[at]) * inverse;
            const Pack clamped = clamp(h, kFar);
            const Normal normal_at = normal(clamped);
            simd::store(&V[at], variance);
            simd::store(&inverse_root[at], inverse);
            simd::store(&threshold[at], clamped);
            simd::store(&tail[at], normal_at.tail);
            simd::store(&density[at], normal_at.density);
        }
    }
};

/// The bivariate normal law of two widened variables: their correlation rho, s = sqrt(1 - rho^2) from V1 V2
/// (1 - rho^2) = 1 + e R1^2 + e R2^2 + (e R1 R2)^2 (1 - corr(g1, g2)^2), where nothing cancels.
struct WidePair {
    Pack rho, s;
    Quadrant at;
    WidePair(const Side& first, const Side& second, const Thresholds& one, const Thresholds& two, double e,
             Chosen i, Chosen j, const Correlation& inner) {
        const Pack inverse1 = i(one.inverse_root), inverse2 = j(two.inverse_root);
        const Pack both = (std::sqrt(e) * i(first.R) * inverse1) * (std::sqrt(e) * j(second.R) * inverse2);
        const Pack square1 = inverse1 * inverse1, square2 = inverse2 * inverse2, apart = both * inner.s;
        rho = both * inner.rho;
        // 1/V1 + 1/V2 - 1/(V1 V2) with e R^2 in place of V - 1: squares of 1e150 are not formed twice
        s = sqrt(apart * apart + square1 + square2 * (1.0 - square1));
        at = quadrant(i(one.threshold), i(one.tail), i(one.density), j(two.threshold), j(two.tail),
                      j(two.density), rho, s);
    }
};

/// Narrow neurons near 0: closed forms lose a digit of 1e-16 times 1/R^2 beside terms of size one, but the
/// coefficients of the series fall off fast, like r^k with r^2 = e R^2/(1 + e R^2).
struct Narrow {
    const Side &first, &second;
    const Coefficients &one, &two;
    double e;

    void pairs(Index count, const Index* i, const Index* j, Pack rho, Index at, PairExpectations out) const {
        for (Index l = 0; l < count; ++l) pair(i[l], j[l], rho[l], at + l, out);
    }

private:
    static constexpr double kNarrow = 0.1;

    void pair(Index i, Index j, double rho, Index at, PairExpectations out) const {
        const double R1 = first.R[to_size(i)], R2 = second.R[to_size(j)], R = std::min(R1, R2);
        if (!(R < kNarrow)) return;
        const double left = std::log(1e-17) / std::log(std::sqrt(e) * std::max(R, 1e-17));
        const Index terms = std::min(one.terms(), static_cast<Index>(left) + 3);
        const auto sums = series_of_pair(first, one, i, second, two, j, rho, terms);
        out.k00[at] = sums.k00;
        if (!out.k11) return;
        out.k11[at] = sums.k11;
        if (!out.k20) return;
        out.k10[at] = sums.k10;
        out.k20[at] = R1 * sums.k20;
        if (!out.k01) return;
        const auto other = series_of_pair(second, two, j, first, one, i, rho, terms);
        out.k01[at] = other.k10;
        out.k02[at] = R2 * other.k20;
    }
};

/// K00 = 4L - 2Q(h) - 2Q(k) + 1; derivatives by dL/dh = -f(h) Q(k'), dL/drho = f(h) f(k')/s, and
/// K10 = dK/dm1, K20 = 2 dK/d(R1^2), K11 = dK/dq. Of parallel neurons K11 w' is along w, too, and is
/// taken into K20, where the two cancel to 1/V1: K11 (q/R1) (1 - e R1^2/V1).
class ErfPairs final : public PairKernel {
public:
    ErfPairs(const Side& first, const Side& second, const Coefficients& one, const Coefficients& two)
        : first_(first),
          second_(second),
          one_(first, 2),
          two_(second, 2),
          narrow_{first, second, one, two, 2} {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) {
            const Chosen first{i + c}, second{j + c};
            const Correlation inner(first_, second_, first, second, simd::load(q + c));
            const WidePair pair(first_, second_, one_, two_, 2, first, second, inner);
            simd::store(out.k00 + c, 4.0 * pair.at.tail - 2.0 * (first(one_.tail) + second(two_.tail)) + 1.0);
            if (out.k11) slopes(first, second, inner, pair, c, out);
            narrow_.pairs(kPack, i + c, j + c, inner.rho, c, out);
        }
    }
    double cost() const override { return 80; }

private:
    void slopes(Chosen first, Chosen second, const Correlation& inner, const WidePair& pair, Index c,
                PairExpectations out) const {
        const Pack zero{};
        const auto parallel = inner.s < pack(kParallel);
        const Pack joint = 4.0 * first(one_.density) * pair.at.k_of_h.density / pair.s;
        const Pack inverse1 = first(one_.inverse_root), inverse2 = second(two_.inverse_root);
        const Pack product = 2.0 * inverse1 * inverse2 * joint;
        simd::store(out.k11 + c, out.k20 ? select(parallel, zero, product) : product);
        if (!out.k20) return;
        const auto one_sided = [&](const Side& side, const Thresholds& wide, Chosen at, Chosen partner,
                                   const Side& other, Pack inverse, Pack tail, double* k10, double* k20) {
            const Pack along = at(wide.density) * (4.0 * tail - 2.0), V = at(wide.V), R = at(side.R);
            const Pack left = inner.rho * partner(other.R) * product / V;
            const Pack alone = 2.0 * R / V * (at(wide.threshold) * along);
            simd::store(k10 + c, std::sqrt(2.0) * inverse * along);
            simd::store(k20 + c, alone + select(parallel, left, -2.0 * R / V * (pair.rho * joint)));
        };
        one_sided(first_, one_, first, second, second_, inverse1, pair.at.k_of_h.tail, out.k10, out.k20);
        if (out.k01)
            one_sided(second_, two_, second, first, first_, inverse2, pair.at.h_of_k.tail, out.k01, out.k02);
    }

    const Side &first_, &second_;
    Thresholds one_, two_;
    Narrow narrow_;
};

/// gelu(g) = E[(g + Z)_+ - delta(g + Z)]. With A = 1 + R1^2 = 1/alpha^2, B = 1/beta^2, x = m1 alpha, y = m2
/// beta, rho and s of the pair of sums, L = P(g1 + Z1 > 0, g2 + Z2 > 0), F1 = f(h) Q(k'), F2 = f(k) Q(h'),
/// p = f(h) f(k')/s, X1 = (x - rho y)/s^2 and X2 = (y - rho x)/s^2, derivatives of ramps and densities add up
/// to what is below; 1 - alpha^2 = (R1 alpha)^2.
class GeluPairs final : public PairKernel {
public:
    GeluPairs(const Side& first, const Side& second, const Coefficients& one, const Coefficients& two)
        : first_(first),
          second_(second),
          one_(first, 1),
          two_(second, 1),
          narrow_{first, second, one, two, 1} {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) {
            const Correlation inner(first_, second_, Chosen{i + c}, Chosen{j + c}, simd::load(q + c));
            pack_of({i + c}, {j + c}, inner, c, out);
            narrow_.pairs(kPack, i + c, j + c, inner.rho, c, out);
        }
    }
    double cost() const override { return 110; }

private:
    /// Factors of one neuron of a pair: R alpha, alpha, alpha^2, x, x kept within 40, F and X.
    struct Half {
        Pack r, alpha, square, x, near_x, F, X;
    };

    void pack_of(Chosen i, Chosen j, const Correlation& inner, Index c, PairExpectations out) const {
        const WidePair pair(first_, second_, one_, two_, 1, i, j, inner);
        const Pack rho = pair.rho, L = pair.at.tail, s = pair.s, s2 = s * s, inverse = 1.0 / s;
        const Pack p = i(one_.density) * pair.at.k_of_h.density * inverse;
        const auto half = [](const Side& side, const Thresholds& wide, Chosen at, Pack tail, Pack X) {
            const Pack alpha = at(wide.inverse_root);
            return Half{
                at(side.R) * alpha,      alpha, alpha * alpha, at(side.m) * alpha, -at(wide.threshold),
                at(wide.density) * tail, X};
        };
        const Half a = half(first_, one_, i, pair.at.k_of_h.tail, -pair.at.h_threshold * inverse);
        const Half b = half(second_, two_, j, pair.at.h_of_k.tail, -pair.at.k_threshold * inverse);
        const Pack both = a.r * b.r * inner.s;
        const Pack k00 = (a.x * b.x + rho) * L + a.F * (b.x * (a.r * a.r) + a.near_x * rho * a.square) +
                         b.F * (a.x * (b.r * b.r) + b.near_x * rho * b.square) +
                         p * (both * both + rho * rho * (a.square + b.square));
        simd::store(out.k00 + c, k00 / a.alpha / b.alpha);
        if (!out.k11) return;
        const Pack inverse2 = inverse * inverse;
        simd::store(out.k11 + c, L + a.square * a.near_x * a.F + b.square * b.near_x * b.F +
                                     p * ((a.square * a.X) * (b.square * b.X) +
                                          rho * (a.square + b.square + a.square * b.square * inverse2)));
        if (!out.k20) return;
        // K10 and K20 of the first neuron, and of the second where they are wanted.
        const auto one_sided = [&](const Half& u, const Half& v, double* k10, double* k20) {
            const Pack x = u.near_x, x2 = x * x, near = v.square * u.X;
            simd::store(k10 + c, (v.x * L + (v.r * v.r) * v.F +
                                  u.F * (x * v.x * u.square + rho * (1.0 + u.square * (1.0 - x2))) +
                                  u.square * p * (x * s2 - near)) /
                                     v.alpha);
            simd::store(k20 + c,
                        (u.r / v.alpha) * (u.F * (v.x * (1.0 + u.square * (1.0 - x2)) -
                                                  x * rho * (1.0 + u.square * (3.0 - x2))) +
                                           p * (s2 * (1.0 + u.square * (2.0 - x2)) - u.square - v.square +
                                                u.square * (near * u.X - v.square * inverse2))));
        };
        one_sided(a, b, out.k10, out.k20);
        if (out.k01) one_sided(b, a, out.k01, out.k02);
    }

    const Side &first_, &second_;
    Thresholds one_, two_;
    Narrow narrow_;
};

}  // namespace

PairKernelPtr erf_kernel(const Side& first, const Side& second, const Coefficients& one,
                         const Coefficients& two) {
    return std::make_unique<ErfPairs>(first, second, one, two);
}
PairKernelPtr gelu_kernel(const Side& first, const Side& second, const Coefficients& one,
                          const Coefficients& two) {
    return std::make_unique<GeluPairs>(first, second, one, two);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
