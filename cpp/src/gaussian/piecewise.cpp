// Pairs of piecewise linear neurons, through the bivariate normal distribution (eqs. (4.16) to (4.18)).
#include <algorithm>
#include <cmath>

#include "base/bivariate.hpp"
#include "gaussian/pairs.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/gaussian/expectations.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using namespace special;

/// Quantities of each neuron with knots t_k that all its pairs use. A = t - m, h = A/R, Q = P(u > h), f =
/// density of u at h.
struct Knots {
    Index count, padded;
    FilledScratch<double> A, h, Q, f, B;  // [k * padded + j]; B = E(g - t)_+ = R f - A Q
    FilledScratch<double> T, P, D;        // E sigma(g), E sigma'(g), sum_k jump_k f_k
    FilledScratch<double> affine;         // offset + left_slope m

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
                const Threshold threshold(gap, R);
                simd::store(&A[at], gap);
                simd::store(&h[at], threshold.h);
                simd::store(&Q[at], threshold.normal.tail);
                simd::store(&f[at], threshold.normal.density);
                simd::store(&B[at], threshold.mean);
                t += jump * threshold.mean;
                p += jump * threshold.normal.tail;
                density += jump * threshold.normal.density;
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
/// and the last two with the neurons swapped.
class Piecewise final : public PairKernel {
public:
    Piecewise(const Side& first, const Side& second)
        : first_(first), second_(second), knots1_(first), knots2_(second) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) pack_of({i + c}, {j + c}, simd::load(q + c), c, out);
    }
    double cost() const override { return 20.0 + 70.0 * static_cast<double>(knots1_.count * knots2_.count); }

private:
    void pack_of(Chosen one, Chosen two, Pack q, Index c, PairExpectations out) const {
        const Activation &s1 = *first_.sigma, &s2 = *second_.sigma;
        const Pack R1 = one(first_.R), P1 = one(knots1_.P), T1 = one(knots1_.T);
        const Pack R2 = two(second_.R), P2 = two(knots2_.P), T2 = two(knots2_.T);
        const Correlation at(q, one(first_.inverse_R), two(second_.inverse_R));
        q = q * one(first_.unit) * two(second_.unit);
        const Pack rho_R2 = R2 * at.rho, rho_R1 = R1 * at.rho;  // E[g2 | u] = m2 + rho_R2 u
        Pack k00 = T1 * T2 + q * P1 * P2, k11 = P1 * P2;
        Pack k10 = P1 * T2 + s2.left_slope * rho_R2 * one(knots1_.D), k20{};
        Pack k01 = P2 * T1 + s1.left_slope * rho_R1 * two(knots2_.D), k02{};
        for (Index b = 0; b < knots2_.count && out.k01; ++b) {
            const auto knot2 = [&](const FilledScratch<double>& of) {
                return two(of.data() + b * knots2_.padded);
            };
            k02 += (s2.jumps[to_size(b)] * knot2(knots2_.f)) *
                   (one(knots1_.affine) + s1.left_slope * rho_R1 * knot2(knots2_.h));
        }
        for (Index a = 0; a < knots1_.count; ++a) {
            const auto knot1 = [&](const FilledScratch<double>& of) {
                return one(of.data() + a * knots1_.padded);
            };
            const double jump1 = s1.jumps[to_size(a)];
            const Pack A1 = knot1(knots1_.A), Q1 = knot1(knots1_.Q), f1 = knot1(knots1_.f),
                       h = knot1(knots1_.h);
            const Pack B1 = knot1(knots1_.B);
            Pack on_knot = two(knots2_.affine) + s2.left_slope * rho_R2 * h;  // E[sigma(g2) | g1 = t1]
            for (Index b = 0; b < knots2_.count; ++b) {
                const auto knot2 = [&](const FilledScratch<double>& of) {
                    return two(of.data() + b * knots2_.padded);
                };
                const double jump2 = s2.jumps[to_size(b)], jumps = jump1 * jump2;
                const Pack A2 = knot2(knots2_.A), Q2 = knot2(knots2_.Q), f2 = knot2(knots2_.f);
                const Pack B2 = knot2(knots2_.B), k = knot2(knots2_.h);
                const Quadrant l = quadrant(h, Q1, f1, k, Q2, f2, at.rho, at.s);
                const Pack fQ = f1 * l.k_of_h.tail, Qf = f2 * l.h_of_k.tail;
                k00 += jumps * ((q + A1 * A2) * l.tail - R1 * A2 * fQ - A1 * R2 * Qf +
                                R1 * R2 * at.s * f1 * l.k_of_h.density - B1 * B2 - q * Q1 * Q2);
                k10 += jumps * (R2 * Qf + rho_R2 * fQ - A2 * l.tail - Q1 * B2);
                k01 += jumps * (R1 * fQ + rho_R1 * Qf - A1 * l.tail - Q2 * B1);
                k02 += (jumps * f2) * (R1 * at.s * l.h_of_k.density - (A1 - rho_R1 * k) * l.h_of_k.tail);
                k11 += jumps * (l.tail - Q1 * Q2);
                on_knot += jump2 * (R2 * at.s * l.k_of_h.density - (A2 - rho_R2 * h) * l.k_of_h.tail);
            }
            k20 += (jump1 * f1) * on_knot;
        }
        simd::store(out.k00 + c, k00);
        if (!out.k11) return;
        simd::store(out.k11 + c, k11);
        if (!out.k20) return;
        simd::store(out.k10 + c, k10);
        simd::store(out.k20 + c, k20);
        if (!out.k01) return;
        simd::store(out.k01 + c, k01);
        simd::store(out.k02 + c, k02);
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
        const Normal at_h = normal(level_h), at_k = normal(level_k);
        const Pack tail = quadrant(level_h, at_h.tail, at_h.density, level_k, at_k.tail, at_k.density, r,
                                   sqrt((1.0 - r) * (1.0 + r)))
                              .tail;
        for (Index l = 0; l < count; ++l) p[i + l] = tail[l];
    }
}

PairKernelPtr piecewise_kernel(const Side& first, const Side& second) {
    return std::make_unique<Piecewise>(first, second);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
