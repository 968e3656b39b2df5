// Pairs by Mehler's series, which is finite when one of the two activations is a polynomial.
#include "gaussian_series.hpp"

#include <algorithm>

#include "mfcore/gaussian.hpp"

namespace mfcore {
namespace {

/// Degree of a polynomial activation, a large number for the others.
Index degree(const Activation& s) {
    using Kind = Activation::Kind;
    if (s.kind == Kind::linear) return 1;
    if (s.kind == Kind::polynomial || s.kind == Kind::hermite)
        return static_cast<Index>(s.coefficients.size()) - 1;
    return 1 << 30;
}

class Series final : public PairKernel {
public:
    Series(const Side& first, const Side& second)
        : first_(first),
          second_(second),
          terms_(std::max<Index>(1, 1 + std::min(degree(*first.sigma), degree(*second.sigma)))),
          one_(first, terms_ + 1),
          two_(second, terms_ + 1) {}

    void row(Index i, Index j, Index n, const double* q, Moments out) const override {
        for (Index c = 0; c < n; c += kPack) {
            const Correlation at(simd::load(q + c), first_.inverse_R[to_size(i)],
                                 simd::load(&second_.inverse_R[to_size(j + c)]));
            MehlerSums(one_, i, two_, j + c, at.rho, terms_, out.k11 != nullptr).store(out, c);
        }
    }

private:
    const Side &first_, &second_;
    Index terms_;
    Coefficients one_, two_;
};

}  // namespace

Coefficients::Coefficients(const Side& side, Index count_) : count(count_), padded(side.padded) {
    c.assign(to_size(count * padded), 0.0);
    s.assign(to_size(count * padded), 0.0);
    std::vector<double> row(to_size(count));
    for (Index j = 0; j < side.n; ++j) {
        const double *m = &side.m[to_size(j)], *R = &side.R[to_size(j)];
        smooth(*side.sigma, 1, m, R, &c[to_size(j)], nullptr, nullptr);
        slope_coefficients(*side.sigma, 1, m, R, {row.data(), 1, count});
        for (Index k = 0; k < count; ++k) {
            s[to_size(k * padded + j)] = row[to_size(k)];
            if (k > 0)
                c[to_size(k * padded + j)] = *R * row[to_size(k - 1)] / std::sqrt(static_cast<double>(k));
        }
    }
}

PairKernelPtr series_kernel(const Side& first, const Side& second) {
    return std::make_unique<Series>(first, second);
}

}  // namespace mfcore
