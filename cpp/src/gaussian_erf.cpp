// Pairs of erf and of gelu neurons. With independent Z ~ N(0, 1), erf(g) = 2 P(Z < sqrt2 g) - 1 and
// gelu(g) = g P(Z < g): both reduce to one bivariate normal probability of g and Z together.
#include <cmath>

#include "base/bivariate.hpp"
#include "gaussian_pairs.hpp"

namespace mfcore {
namespace {

using namespace special;

/// Variances V = 1 + e R^2 of sqrt(e) g - Z, and the levels -sqrt(e) m/sqrt V with their tails and densities.
struct Widened {
    std::vector<double> V, inverse_root, level, tail, density;
    Widened(const Side& side, double e) {
        for (auto* v : {&V, &inverse_root, &level, &tail, &density}) v->resize(to_size(side.padded));
        for (Index j = 0; j < side.padded; j += kPack) {
            const std::size_t at = to_size(j);
            const Pack R = simd::load(&side.R[at]), variance = 1.0 + e * R * R,
                       inverse = 1.0 / sqrt(variance);
            const Pack h = -std::sqrt(e) * simd::load(&side.m[at]) * inverse;
            const Pack clamped = clamp(h, kFar);
            const Normal normal_at = normal(clamped);
            simd::store(&V[at], variance);
            simd::store(&inverse_root[at], inverse);
            simd::store(&level[at], clamped);
            simd::store(&tail[at], normal_at.tail);
            simd::store(&density[at], normal_at.density);
        }
    }
};

/// One pair of widened variables: the correlation rho of the two, s = sqrt(1 - rho^2) from
/// V1 V2 (1 - rho^2) = 1 + e R1^2 + e R2^2 + (e R1 R2)^2 (1 - corr(g1, g2)^2), where nothing cancels.
struct WidePair {
    Pack rho, s;
    Quadrant at;
    WidePair(const Side& first, const Side& second, const Widened& one, const Widened& two, double e,
             Chosen i, Chosen j, Pack q) {
        const Pack inverse = i(one.inverse_root) * j(two.inverse_root);
        const Correlation inner(q, i(first.inverse_R), j(second.inverse_R));
        const Pack both = e * i(first.R) * j(second.R) * inner.s;
        rho = e * q * inverse;
        s = sqrt((i(one.V) + j(two.V) - 1.0 + both * both)) * inverse;
        at = quadrant(i(one.level), i(one.tail), i(one.density), j(two.level), j(two.tail), j(two.density),
                      rho, s);
    }
};

/// K00 = 4L - 2Q(h) - 2Q(k) + 1; derivatives by dL/dh = -f(h) Q(k'), dL/drho = f(h) f(k')/s, and
/// K10 = dK/dm1, K20 = 2 dK/d(R1^2), K11 = dK/dq.
class ErfPairs final : public PairKernel {
public:
    ErfPairs(const Side& first, const Side& second)
        : first_(first), second_(second), one_(first, 2), two_(second, 2) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) {
            const Chosen first{i + c}, second{j + c};
            const WidePair pair(first_, second_, one_, two_, 2, first, second, simd::load(q + c));
            simd::store(out.k00 + c, 4.0 * pair.at.tail - 2.0 * (first(one_.tail) + second(two_.tail)) + 1.0);
            if (!out.k11) continue;
            const Pack inverse1 = first(one_.inverse_root), h = first(one_.level), f = first(one_.density);
            const Pack along = f * (4.0 * pair.at.k_of_h.tail - 2.0);
            const Pack joint = 4.0 * f * pair.at.k_of_h.density / pair.s;
            simd::store(out.k10 + c, std::sqrt(2.0) * inverse1 * along);
            simd::store(out.k20 + c, 2.0 * first(first_.R) / first(one_.V) * (h * along - pair.rho * joint));
            const Pack inverse2 = second(two_.inverse_root);
            simd::store(out.k11 + c, 2.0 * inverse1 * inverse2 * joint);
            if (!out.k01) continue;
            const Pack along2 = second(two_.density) * (4.0 * pair.at.h_of_k.tail - 2.0);
            simd::store(out.k01 + c, std::sqrt(2.0) * inverse2 * along2);
            simd::store(out.k02 + c, 2.0 * second(second_.R) / second(two_.V) *
                                         (second(two_.level) * along2 - pair.rho * joint));
        }
    }
    double cost() const override { return 80; }

private:
    const Side &first_, &second_;
    Widened one_, two_;
};

/// L(m1, m2) = P(Z1 < g1, Z2 < g2) and E[g1 g2 1{..}] = D1 D2 L with D1 = m1 + q11 d1 + q12 d2, D2 likewise
/// (Stein). Mixed derivatives of L are those of the density p of N(0, C), C = (A q; q B), at (m1, m2); pure
/// ones follow from A L11 + q p = -m1 L1 and its derivatives.
class GeluPairs final : public PairKernel {
public:
    GeluPairs(const Side& first, const Side& second)
        : first_(first), second_(second), one_(first, 1), two_(second, 1) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) pack_of({i + c}, {j + c}, simd::load(q + c), c, out);
    }
    double cost() const override { return 110; }

private:
    void pack_of(Chosen i, Chosen j, Pack q, Index c, PairExpectations out) const {
        const WidePair pair(first_, second_, one_, two_, 1, i, j, q);
        const Pack m1 = i(first_.m), m2 = j(second_.m);
        const Pack A = i(one_.V), B = j(two_.V), q11 = A - 1.0, q22 = B - 1.0;
        const Pack inverse1 = i(one_.inverse_root), inverse2 = j(two_.inverse_root);
        const Pack L = pair.at.tail;
        const Pack L1 = i(one_.density) * pair.at.k_of_h.tail * inverse1;
        const Pack L2 = j(two_.density) * pair.at.h_of_k.tail * inverse2;
        const Pack p = i(one_.density) * pair.at.k_of_h.density * inverse1 * inverse2 / pair.s;
        const Pack L11 = -(m1 * L1 + q * p) / A, L22 = -(m2 * L2 + q * p) / B;
        const Pack of_l = m1 * m2 + q, of1 = m1 * q + m2 * q11, of2 = m1 * q22 + m2 * q;
        const Pack of11 = q11 * q, of12 = q11 * q22 + q * q, of22 = q * q22;
        simd::store(out.k00 + c, of_l * L + of1 * L1 + of2 * L2 + of11 * L11 + of12 * p + of22 * L22);
        if (!out.k11) return;

        const Pack inverse_det = 1.0 / (A * B * pair.s * pair.s);  // C^{-1} = (B -q; -q A) inverse_det
        const Pack H1 = (B * m1 - q * m2) * inverse_det, H2 = (A * m2 - q * m1) * inverse_det;
        const Pack p1 = -H1 * p, p2 = -H2 * p;
        const Pack p11 = (H1 * H1 - B * inverse_det) * p, p22 = (H2 * H2 - A * inverse_det) * p;
        const Pack p12 = (H1 * H2 + q * inverse_det) * p;
        // K10 and K20/R1 of the neuron with variance A, everything else mirrored for the other.
        const auto one_sided = [&](Pack mean1, Pack mean2, Pack V1, Pack V2, Pack l1, Pack l2, Pack l11,
                                   Pack by1, Pack by2, Pack p_1, Pack p_2, Pack p_11, double* k10,
                                   double* k20, Pack R1) {
            const Pack r11 = V1 - 1.0, r22 = V2 - 1.0, pure1 = r11 * q, pure2 = q * r22;
            const Pack l111 = -(l1 + mean1 * l11 + q * p_1) / V1;
            const Pack l1111 = -(2.0 * l11 + mean1 * l111 + q * p_11) / V1;
            const Pack d2_l1 = mean2 * l1 + q * l11 + r22 * p;  // D2 L1, and D2 L below
            simd::store(k10 + c, mean2 * L + q * l1 + r22 * l2 + of_l * l1 + by1 * l11 + by2 * p +
                                     pure1 * l111 + of12 * p_1 + pure2 * p_2);
            simd::store(k20 + c, R1 * (2.0 * d2_l1 + of_l * l11 + by1 * l111 + by2 * p_1 + pure1 * l1111 +
                                       of12 * p_11 + pure2 * p12));
        };
        one_sided(m1, m2, A, B, L1, L2, L11, of1, of2, p1, p2, p11, out.k10, out.k20, i(first_.R));
        if (out.k01)
            one_sided(m2, m1, B, A, L2, L1, L22, of2, of1, p2, p1, p22, out.k01, out.k02, j(second_.R));
        simd::store(out.k11 + c, L + m2 * L2 + m1 * L1 + 2.0 * q * p + q22 * L22 + q11 * L11 + of_l * p +
                                     of1 * p1 + of2 * p2 + of11 * p11 + of12 * p12 + of22 * p22);
    }

    const Side &first_, &second_;
    Widened one_, two_;
};

}  // namespace

PairKernelPtr erf_kernel(const Side& first, const Side& second) {
    return std::make_unique<ErfPairs>(first, second);
}
PairKernelPtr gelu_kernel(const Side& first, const Side& second) {
    return std::make_unique<GeluPairs>(first, second);
}

}  // namespace mfcore
