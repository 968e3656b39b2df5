// Pairs of piecewise linear neurons, through the bivariate normal distribution.
#include <algorithm>
#include <cmath>

#include "base/bivariate.hpp"
#include "gaussian_pairs.hpp"
#include "mfcore/errors.hpp"
#include "mfcore/gaussian.hpp"

namespace mfcore {
namespace {

using namespace special;

/// What a side with knots t_k brings to every pair. A = t - m, h = A/R, Q = P(u > h), f = density of u at h.
struct Knots {
    Index count, padded;
    std::vector<double> A, h, Q, f, B;  // [k * padded + j]; B = E(g - t)_+ = R f - A Q
    std::vector<double> T, P, D;        // E sigma(g), E sigma'(g), sum_k jump_k f_k
    std::vector<double> affine;         // offset + left_slope m

    explicit Knots(const Side& side)
        : count(static_cast<Index>(side.sigma->knots.size())), padded(side.padded) {
        for (auto* v : {&A, &h, &Q, &f, &B}) v->assign(to_size(count * padded), 0.0);
        for (auto* v : {&T, &P, &D, &affine}) v->assign(to_size(padded), 0.0);
        for (Index j = 0; j < padded; j += kPack) {
            const Pack m = simd::load(&side.m[to_size(j)]), R = simd::load(&side.R[to_size(j)]);
            const Pack line = side.sigma->offset + side.sigma->left_slope * m;
            Pack t = line, p = pack(side.sigma->left_slope), density{};
            simd::store(&affine[to_size(j)], line);
            for (Index k = 0; k < count; ++k) {
                const double jump = side.sigma->jumps[to_size(k)];
                const std::size_t at = to_size(k * padded + j);
                const Pack gap = side.sigma->knots[to_size(k)] - m;
                const Level level(gap, R);
                simd::store(&A[at], gap);
                simd::store(&h[at], level.h);
                simd::store(&Q[at], level.normal.tail);
                simd::store(&f[at], level.normal.density);
                simd::store(&B[at], level.mean);
                t += jump * level.mean;
                p += jump * level.normal.tail;
                density += jump * level.normal.density;
            }
            simd::store(&T[to_size(j)], t);
            simd::store(&P[to_size(j)], p);
            simd::store(&D[to_size(j)], density);
        }
    }
};

/// Sums over pairs of knots of the centred moments of (g1 - t1)_+ and (g2 - t2)_+. With L = P(u > h, v > k),
/// k' = (k - rho h)/s and h' = (h - rho k)/s:
///   E (g1-t1)_+ (g2-t2)_+    = (q + A1 A2) L - A2 R1 f(h) Q(k') - A1 R2 f(k) Q(h') + R1 R2 s f(h) f(k')
///   E 1{g1 > t1} (g2-t2)_+   = R2 [f(k) Q(h') + rho f(h) Q(k')] - A2 L
///   E [(g2-t2)_+ | g1 = t1]  = R2 s f(k') - (A2 - R2 rho h) Q(k')
class Piecewise final : public PairKernel {
public:
    Piecewise(const Side& first, const Side& second)
        : first_(first), second_(second), knots1_(first), knots2_(second) {}

    void row(Index i, const Chosen& second, Index n, const double* q, Moments out) const override {
        for (Index c = 0; c < n; c += kPack) pack_of(i, second, simd::load(q + c), c, out);
    }
    double cost() const override { return 10.0 + 70.0 * static_cast<double>(knots1_.count * knots2_.count); }

private:
    void pack_of(Index i, const Chosen& second, Pack q, Index c, Moments out) const {
        const auto load = [&](const std::vector<double>& of) { return second.load(of, c); };
        const Activation &s1 = *first_.sigma, &s2 = *second_.sigma;
        const double R1 = first_.R[to_size(i)], P1 = knots1_.P[to_size(i)];
        const Pack R2 = load(second_.R), T2 = load(knots2_.T), P2 = load(knots2_.P);
        const Correlation at(q, first_.inverse_R[to_size(i)], load(second_.inverse_R));
        const Pack drift = R2 * at.rho;  // E[g2 | u] = m2 + drift u
        Pack k00 = knots1_.T[to_size(i)] * T2 + q * P1 * P2, k11 = P1 * P2;
        Pack k10 = P1 * T2 + s2.left_slope * drift * knots1_.D[to_size(i)], k20{};
        for (Index a = 0; a < knots1_.count; ++a) {
            const std::size_t one = to_size(a * knots1_.padded + i);
            const double jump1 = s1.jumps[to_size(a)], A1 = knots1_.A[one], Q1 = knots1_.Q[one];
            const double f1 = knots1_.f[one], h = knots1_.h[one];
            Pack on_knot = load(knots2_.affine) + s2.left_slope * drift * h;  // E[sigma(g2) | g1 = t1]
            for (Index b = 0; b < knots2_.count; ++b) {
                const auto knot = [&](const std::vector<double>& of) {
                    return second.load(of.data() + b * knots2_.padded, c);
                };
                const double jump2 = s2.jumps[to_size(b)], jumps = jump1 * jump2;
                const Pack A2 = knot(knots2_.A), Q2 = knot(knots2_.Q), f2 = knot(knots2_.f);
                const Pack B2 = knot(knots2_.B);
                const Quadrant l = quadrant(pack(h), pack(Q1), knot(knots2_.h), Q2, at.rho, at.s);
                const Pack fQ = f1 * l.k_of_h.tail, Qf = f2 * l.h_of_k.tail;
                k00 += jumps * ((q + A1 * A2) * l.tail - R1 * A2 * fQ - A1 * R2 * Qf +
                                R1 * R2 * at.s * f1 * l.k_of_h.density - knots1_.B[one] * B2 - q * Q1 * Q2);
                k10 += jumps * (R2 * Qf + drift * fQ - A2 * l.tail - Q1 * B2);
                k11 += jumps * (l.tail - Q1 * Q2);
                on_knot += jump2 * (R2 * at.s * l.k_of_h.density - (A2 - drift * h) * l.k_of_h.tail);
            }
            k20 += (jump1 * f1) * on_knot;
        }
        simd::store(out.k00 + c, k00);
        if (!out.k11) return;
        simd::store(out.k10 + c, k10);
        simd::store(out.k20 + c, k20);
        simd::store(out.k11 + c, k11);
    }

    const Side &first_, &second_;
    Knots knots1_, knots2_;
};

}  // namespace

void bivariate_normal(Index n, const double* h, const double* k, const double* rho, double* p) {
    for (Index i = 0; i < n; i += kPack) {
        Pack level_h{}, level_k{}, r{};
        const Index count = std::min(kPack, n - i);
        for (Index l = 0; l < count; ++l) {
            require(std::abs(rho[i + l]) <= 1, "rho", "must be in [-1, 1]", rho[i + l]);
            level_h[l] = std::clamp(h[i + l], -kFar, kFar);
            level_k[l] = std::clamp(k[i + l], -kFar, kFar);
            r[l] = rho[i + l];
        }
        const Pack tail = quadrant(level_h, normal(level_h).tail, level_k, normal(level_k).tail, r,
                                   sqrt((1.0 - r) * (1.0 + r)))
                              .tail;
        for (Index l = 0; l < count; ++l) p[i + l] = tail[l];
    }
}

PairKernelPtr piecewise_kernel(const Side& first, const Side& second) {
    return std::make_unique<Piecewise>(first, second);
}

}  // namespace mfcore
