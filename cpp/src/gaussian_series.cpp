// Pairs by Mehler's series E s1(g1) s2(g2) = sum_k rho^k c_k c'_k, c_k = E[sigma(m + R u) h_k(u)], which is
// finite when one of the two activations is a polynomial.
#include <algorithm>
#include <cmath>

#include "gaussian_pairs.hpp"
#include "mfcore/gaussian.hpp"

namespace mfcore {
namespace {

using namespace special;

std::size_t to_size(Index n) { return static_cast<std::size_t>(n); }

/// Degree of a polynomial activation, a large number for the others.
Index degree(const Activation& s) {
    using Kind = Activation::Kind;
    if (s.kind == Kind::linear) return 1;
    if (s.kind == Kind::polynomial || s.kind == Kind::hermite)
        return static_cast<Index>(s.coefficients.size()) - 1;
    return 1 << 30;
}

/// c_k and the slope coefficients s_k = E[sigma'(m + R u) h_k(u)], c_{k+1} = R s_k/sqrt(k+1): [k * padded +
/// j].
struct Coefficients {
    Index count, padded;
    std::vector<double> c, s;
    Coefficients(const Side& side, Index count_) : count(count_), padded(side.padded) {
        c.assign(to_size(count * padded), 0.0);
        s.assign(to_size(count * padded), 0.0);
        std::vector<double> row(to_size(count));
        for (Index j = 0; j < side.n; ++j) {
            const std::size_t at = to_size(j);
            smooth(*side.sigma, 1, &side.m[at], &side.R[at], &c[at], nullptr, nullptr);
            slope_coefficients(*side.sigma, 1, &side.m[at], &side.R[at], {row.data(), 1, count});
            for (Index k = 0; k < count; ++k) {
                s[to_size(k * padded + j)] = row[to_size(k)];
                if (k + 1 < count)
                    c[to_size((k + 1) * padded + j)] =
                        side.R[at] * row[to_size(k)] / std::sqrt(static_cast<double>(k + 1));
            }
        }
    }
};

class Series final : public PairKernel {
public:
    Series(const Side& first, const Side& second)
        : first_(first),
          second_(second),
          degree_(std::max<Index>(0, std::min(degree(*first.sigma), degree(*second.sigma)))),
          one_(first, degree_ + 2),
          two_(second, degree_ + 2) {}

    void row(Index i, Index j, Index n, const double* q, Moments out) const override {
        for (Index c = 0; c < n; c += kPack) {
            const Correlation at(simd::load(q + c), first_.inverse_R[to_size(i)],
                                 simd::load(&second_.inverse_R[to_size(j + c)]));
            Pack k00{}, k10{}, k20{}, k11{};
            for (Index k = degree_; k >= 0; --k) {  // Horner in rho
                const std::size_t one = to_size(k * one_.padded + i), two = to_size(k * two_.padded + j + c);
                const Pack c2 = simd::load(&two_.c[two]);
                k00 = k00 * at.rho + one_.c[one] * c2;
                if (!out.k11) continue;
                k10 = k10 * at.rho + one_.s[one] * c2;
                k11 = k11 * at.rho + one_.s[one] * simd::load(&two_.s[two]);
                // R E[sigma''(g) h_k] = sqrt(k+1) s_{k+1}
                k20 = k20 * at.rho +
                      (std::sqrt(static_cast<double>(k + 1)) * one_.s[one + to_size(one_.padded)]) * c2;
            }
            simd::store(out.k00 + c, k00);
            if (!out.k11) continue;
            simd::store(out.k10 + c, k10);
            simd::store(out.k20 + c, k20);
            simd::store(out.k11 + c, k11);
        }
    }

private:
    const Side &first_, &second_;
    Index degree_;
    Coefficients one_, two_;
};

}  // namespace

PairKernelPtr series_kernel(const Side& first, const Side& second) {
    return std::make_unique<Series>(first, second);
}

}  // namespace mfcore
