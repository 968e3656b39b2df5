#pragma once
// S_d(m, R) = E sigma(m + R u), u the first coordinate of a uniform point of S^{d-1}; for d = inf u ~ N(0, 1)
// and S is T(m, R). Closed form for piecewise-linear sigma, quadrature in u otherwise (eqs. (3.1), (3.5)).
#include <limits>
#include <memory>
#include <vector>

#include "mfcore/base/quadrature.hpp"
#include "mfcore/network/activation.hpp"
#include "mfcore/reduction/sphere.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {
class Pieces;
}
namespace mfcore::inline MFCORE_LEVEL::inline reduction {

class WideAverages;  // of the implementation

/// Evaluates S_d for one activation and one dimension.
class Smoother {
public:
    /// d >= 1, possibly infinite. Everything that depends on sigma and d alone is computed here.
    Smoother(const Activation& sigma, double d);

    /// S, its derivatives with respect to m and R at n points; null outputs are skipped, none may alias an
    /// input. R >= 0; at R = 0 the one-sided limits: with m on a knot, S_R does not vanish. No allocation.
    void evaluate(Index n, const double* m, const double* R, double* S, double* S_m = nullptr,
                  double* S_R = nullptr) const;

    /// Second derivatives. For piecewise-linear sigma R > 0 (the result is 0 at R = 0, where they blow up); for
    /// other sigma without kinks.
    void curvature(Index n, const double* m, const double* R, double* S_mm, double* S_mR, double* S_RR) const;

    /// For smooth sigma without kinks, a quadrature rule in u that averages functions of m + R u as smooth as sigma.
    const Rule& rule(double R) const;
    /// The same around one m: of sigma that grow it goes as far as they do; NaN if no rule does.
    const Rule& rule_at(double m, double R) const;
    /// The tails A and B of u; for piecewise-linear sigma only.
    const DirectionTable& tails() const { return table_.front(); }
    /// Cost of a point that spreads over so many standard deviations: about how many activations (tails for
    /// piecewise-linear sigma) are evaluated.
    Index cost(double spread) const;

private:
    double spread_of(double R) const;
    const Rule& rule_for(const std::vector<Rule>& rules, double R) const;
    bool has_ended(double m, double R, double end, double weight, double least = 0) const;
    double reach_at(double m, double R) const;
    double narrow_slope(double m, double R) const;
    /// Call body(count, u, weights) with the nodes of the average at m and R, some at a time.
    template <class Body>
    void for_nodes(double m, double R, Body&& body) const;

    Activation sigma_;
    double d_;
    std::vector<DirectionTable> table_;  // piecewise linear: one; none otherwise
    std::vector<Rule> rules_;            // smooth: rules_[k] serves spreads of m + R u up to 2^{k/2}
    std::vector<Rule> further_;          // of functions that may grow: the same further out
    Rule nothing_{{0.0}, {std::numeric_limits<double>::quiet_NaN()}};
    std::shared_ptr<const Pieces> pieces_;      // with kinks: in place of these
    std::shared_ptr<const WideAverages> wide_;  // smooth: in place of these where R is large
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
