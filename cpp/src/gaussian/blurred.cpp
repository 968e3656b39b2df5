// Expectations of pairs of wide smooth neurons as means of closed forms (gaussian/blurred.hpp), at the same
// cost for every |w|.
#include "gaussian/blurred.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "base/bivariate.hpp"
#include "gaussian/pairs.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {
namespace {

using namespace special;

/// Kolmogorov's law: K = e^{0.12 k}, weights 0.12 K f(K), computed with 40 digits.
constexpr Blurred::Node kKolmogorov[] = {{0.18637397603940997, 4.248701399968935e-14},
                                         {0.21013607120076475, 5.7740116898895745e-11},
                                         {0.23692775868212176, 1.555861139354728e-08},
                                         {0.2671353019658504, 1.1734004005767539e-06},
                                         {0.3011942119122021, 3.2478965677171524e-05},
                                         {0.33959552564493917, 0.000408256882000221},
                                         {0.382892885975112, 0.0027547301482711544},
                                         {0.4317105234290797, 0.011376692639467546},
                                         {0.4867522559599716, 0.031866947635096725},
                                         {0.5488116360940264, 0.06558702339179544},
                                         {0.6187833918061408, 0.1055211977200632},
                                         {0.697676326071031, 0.13911478741974947},
                                         {0.7866278610665534, 0.15557344786762842},
                                         {0.8869204367171575, 0.1510164502025761},
                                         {1.0, 0.12863382700283302},
                                         {1.1274968515793757, 0.0958213559270004},
                                         {1.2712491503214047, 0.0612239494119904},
                                         {1.4333294145603404, 0.03239645923471053},
                                         {1.6160744021928934, 0.01351148023160483},
                                         {1.8221188003905089, 0.004164929838854212},
                                         {2.0544332106438876, 0.0008741892884768765},
                                         {2.316366976781092, 0.00011257015431481206},
                                         {2.611696473423118, 7.789460677863333e-06},
                                         {2.9446795510655237, 2.4473317256919064e-07},
                                         {3.3201169227365477, 2.8181794211957005e-09},
                                         {3.7434213772608627, 9.059300467136034e-12},
                                         {4.220695816996553, 5.751197196167081e-15}};
constexpr Blurred::Node kOne[] = {{1.0, 1.0}};

/// A neuron in every lane with the noise V of one Kolmogorov node: S = sqrt(R^2 + V^2) and the threshold h =
/// -m/S.
struct Widened {
    Pack inverse, r, v;     // 1/S, R/S and V/S
    Pack mean, h;           // m/S, and -m/S within reach of the tables
    Normal at;              // at h
    double weight, square;  // V^2
};

/// B(a, b) = E[X_a(m1 + S1 u) X_b(m2 + S2 v)] with X_0 = t_+ and X_{k+1} = X_k', corr(u, v) = rho. With
/// L = P(u > h, v > k), F1 = f(h) Q(k'), F2 = f(k) Q(h'), p = f(h) f(k')/s: derivatives of L by h, k and rho,
/// and E[u 1 1] = F1 + rho F2.
struct Joint {
    Pack S1, S2, inverse1, inverse2;
    Pack x, y, near_x,
        near_y;  // m/S as it is, and kept within 40: what multiplies a density of its own threshold
    Pack rho, s2, L, F1, F2, p, X1, X2;  // X1 = (x - rho y)/s^2

    Joint mirrored() const {
        return {S2, S1, inverse2, inverse1, y, x, near_y, near_x, rho, s2, L, F2, F1, p, X2, X1};
    }

    Pack moment(int a, int b) const {
        if (a > b) return mirrored().moment(b, a);
        const Pack i1 = inverse1, i2 = inverse2, Y = near_y;
        switch (5 * a + b) {
            case 0:
                return S1 * (S2 * ((x * y + rho) * L + y * F1 + x * F2 + s2 * p));
            case 1:
                return S1 * (x * L + F1 + rho * F2);
            case 2:
                return S1 * i2 * ((x - rho * Y) * F2 + s2 * p);
            case 3:
                return -(S1 * i2 * i2) * (F2 * (rho + Y * (x - rho * Y)) + s2 * Y * p);
            case 4:
                return -(S1 * i2 * i2 * i2) * (F2 * (x * (1.0 - Y * Y) - rho * Y * (3.0 - Y * Y)) +
                                               p * (s2 * (1.0 - Y * Y) - rho * rho));
            case 6:
                return L;
            case 7:
                return i2 * F2;
            case 8:
                return -i2 * i2 * (Y * F2 + rho * p);
            case 9:
                return i2 * i2 * i2 * ((Y * Y - 1.0) * F2 + rho * (Y + X2) * p);
            case 12:
                return i1 * i2 * p;
            case 13:
                return -i1 * i2 * (i2 * X2) * p;
            case 14:
                return i1 * i2 * ((i2 * X2) * (i2 * X2) - i2 * i2 / s2) * p;
            default:  // (3, 3)
                return i1 * i2 * ((i1 * X1) * (i2 * X2) + rho * i1 * i2 / s2) * p;
        }
    }
};

/// Closed forms of wide pairs, summed over the noises of both neurons.
class BlurredPairs final : public PairKernel {
public:
    BlurredPairs(const Side& first, const Side& second)
        : first_(first), second_(second), one_(*first.sigma), two_(*second.sigma) {}

    void pairs(Index n, const Index* i, const Index* j, const double* q,
               PairExpectations out) const override {
        for (Index c = 0; c < n; c += kPack) pack_of({i + c}, {j + c}, simd::load(q + c), c, out);
    }
    double cost() const override {
        return 100.0 * static_cast<double>(one_.nodes.size() * two_.nodes.size());
    }

private:
    using Wide = std::array<Widened, std::size(kKolmogorov)>;

    static void widen(const Blurred& blur, Pack m, Pack R, Wide& to) {
        for (std::size_t k = 0; k < blur.nodes.size(); ++k) {
            Widened& w = to[k];
            const double V = blur.stretch * blur.nodes[k].V;
            w.inverse = 1.0 / sqrt(R * R + V * V);
            w.r = R * w.inverse;
            w.v = V * w.inverse;
            w.mean = m * w.inverse;
            w.h = clamp(-w.mean, kFar);
            w.at = normal(w.h);
            w.weight = blur.nodes[k].weight;
            w.square = V * V;
        }
    }

    /// V1 V2 cancel nowhere in S1^2 S2^2 (1 - rho^2) = (R1 R2 s)^2 + (V1 R2)^2 + (V2 S1)^2, s of
    /// corr(g1, g2).
    static Joint joint(const Widened& one, const Widened& two, const Correlation& g) {
        const Pack both = one.r * two.r, apart = both * g.s, left = one.v * two.r;
        const Pack rho = both * g.rho, s2 = apart * apart + left * left + two.v * two.v, s = sqrt(s2);
        const Quadrant at =
            quadrant(one.h, one.at.tail, one.at.density, two.h, two.at.tail, two.at.density, rho, s);
        const Pack inverse = 1.0 / s;
        return {1.0 / one.inverse,
                1.0 / two.inverse,
                one.inverse,
                two.inverse,
                one.mean,
                two.mean,
                -one.h,
                -two.h,
                rho,
                s2,
                at.tail,
                one.at.density * at.k_of_h.tail,
                two.at.density * at.h_of_k.tail,
                one.at.density * at.k_of_h.density * inverse,
                -at.h_threshold * inverse,
                -at.k_threshold * inverse};
    }

    void pack_of(Chosen i, Chosen j, Pack q, Index c, PairExpectations out) const {
        const Pack R1 = i(first_.R), R2 = j(second_.R);
        const Correlation g(first_, second_, i, j, q);
        const Pack along1 = q * i(first_.inverse_R) * j(second_.unit),  // q/R1 and q/R2
            along2 = q * j(second_.inverse_R) * i(first_.unit);
        Wide wide1, wide2;
        widen(one_, i(first_.m), R1, wide1);
        widen(two_, j(second_.m), R2, wide2);
        const bool slopes = out.k11 != nullptr;
        Pack k00{}, k10{}, k20{}, k11{}, k01{}, k02{}, radial1{}, radial2{};
        const double scales = one_.scale * two_.scale;
        for (std::size_t v = 0; v < one_.nodes.size(); ++v)
            for (std::size_t w = 0; w < two_.nodes.size(); ++w) {
                const Joint at = joint(wide1[v], wide2[w], g);
                const Joint other = at.mirrored();
                const double weight = scales * wide1[v].weight * wide2[w].weight;
                // Sum over the ramp or step and, if sigma has it, the density beside it.
                const auto sum = [&](int a, int b) {
                    Pack total = at.moment(one_.order + a, two_.order + b);
                    const double square1 = wide1[v].square, square2 = wide2[w].square;
                    if (one_.density) total -= square1 * at.moment(2 + a, two_.order + b);
                    if (two_.density) total -= square2 * at.moment(one_.order + a, 2 + b);
                    if (one_.density && two_.density) total += square1 * square2 * at.moment(2 + a, 2 + b);
                    return total;
                };
                k00 += weight * sum(0, 0);
                if (!slopes) continue;
                const Pack product = sum(1, 1);
                k11 += weight * product;
                if (!out.k20) continue;
                k10 += weight * sum(1, 0);
                const auto twice = [&](const Widened& near, const Joint& seen, const Blurred& blur,
                                       const Blurred& partner, Pack R, Pack along, Pack second, Pack& k,
                                       Pack& radial) {
                    k += weight * (R * second);
                    // R K20 + (q/R) K11 of a step: S^2 B(3, b) = -m B(2, b) - q B(2, b+1), Stein's lemma
                    if (blur.order == 1 && !partner.density)
                        radial += weight * (along * (near.v * near.v) * product -
                                            R * near.inverse * seen.near_x * seen.moment(2, partner.order));
                    else
                        radial += weight * (R * second + along * product);
                };
                twice(wide1[v], at, one_, two_, R1, along1, sum(2, 0), k20, radial1);
                if (!out.k01) continue;
                k01 += weight * sum(0, 1);
                twice(wide2[w], other, two_, one_, R2, along2, sum(0, 2), k02, radial2);
            }
        // The constant parts: E[(o1 + c1 X)(o2 + c2 Y)].
        Pack mean1{}, mean2{}, slope1{}, slope2{}, bend1{}, bend2{};
        single(one_, wide1, R1, mean1, slope1, bend1);
        single(two_, wide2, R2, mean2, slope2, bend2);
        k00 += one_.offset * mean2 + two_.offset * mean1 + one_.offset * two_.offset;
        simd::store(out.k00 + c, k00);
        if (!slopes) return;
        // For parallel neurons K20 w/R + K11 w' is along w, and both terms may be far larger than their sum.
        const auto parallel = g.s < pack(kParallel);
        const Pack zero{};
        simd::store(out.k11 + c, out.k20 ? select(parallel, zero, k11) : k11);
        if (!out.k20) return;
        simd::store(out.k10 + c, k10 + two_.offset * slope1);
        simd::store(out.k20 + c, select(parallel, radial1, k20) + two_.offset * bend1);
        if (!out.k01) return;
        simd::store(out.k01 + c, k01 + one_.offset * slope2);
        simd::store(out.k02 + c, select(parallel, radial2, k02) + one_.offset * bend2);
    }

    /// E X_k(m + S u), k <= 4.
    static Pack moment(const Widened& w, int k) {
        const Pack x = -w.h, density = w.at.density;
        switch (k) {
            case 0:
                return (w.mean * w.at.tail + density) / w.inverse;
            case 1:
                return w.at.tail;
            case 2:
                return w.inverse * density;
            case 3:
                return -w.inverse * w.inverse * x * density;
            default:
                return w.inverse * w.inverse * w.inverse * ((x * x - 1.0) * density);
        }
    }

    /// E sigma without its offset, E sigma' and R E sigma''.
    static void single(const Blurred& blur, const Wide& wide, Pack R, Pack& mean, Pack& slope, Pack& bend) {
        for (std::size_t k = 0; k < blur.nodes.size(); ++k) {
            const Widened& w = wide[k];
            const double weight = blur.scale * w.weight;
            const auto of = [&](int derivative) {
                const Pack value = moment(w, blur.order + derivative);
                return blur.density ? value - w.square * moment(w, 2 + derivative) : value;
            };
            mean += weight * of(0);
            slope += weight * of(1);
            bend += (weight * R) * of(2);
        }
    }

    const Side &first_, &second_;
    Blurred one_, two_;
};

}  // namespace

Blurred::Blurred(const Activation& sigma) : Blur(facts(sigma).blur) {
    if (noise == Noise::one) nodes = kOne;
    if (noise == Noise::kolmogorov) nodes = kKolmogorov;
}

PairKernelPtr blurred_kernel(const Side& first, const Side& second) {
    return std::make_unique<BlurredPairs>(first, second);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
