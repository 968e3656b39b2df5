#pragma once
// S_d(m, R) = E sigma(m + R u) where m + R u spreads far: sigma is a step or a ramp X under noise,
//   sigma(t) = offset + scale E X(t + V),
// so that S = offset + scale E_V E_u X(m + V + R u). The inner average is closed (eqs. (3.3) to (3.5)) and varies
// over R/sqrt(d), far more than V does, so that a Gauss rule of the noise needs few nodes whatever R is, while a
// rule in u needs more of them the steeper sigma(m + R u) gets.
#include <cmath>
#include <vector>

#include "mfcore/network/activation.hpp"
#include "mfcore/reduction/sphere.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline reduction {

/// Averages of one activation over one direction, for large R.
class WideAverages {
public:
    WideAverages(const Activation& sigma, double d);

    /// True if sigma has this form and the nodes of the noise are enough at m and R.
    bool applies(double m, double R) const {
        return !nodes_.empty() && R >= least_ && std::abs(std::abs(m) - R) >= reach_;
    }
    Index cost() const { return 2 * static_cast<Index>(nodes_.size()); }  ///< tails that a point takes

    /// S and its derivatives, of first and second order, at one point; null outputs are skipped.
    struct Outputs {
        double *S = nullptr, *m = nullptr, *R = nullptr, *mm = nullptr, *mR = nullptr, *RR = nullptr;
    };
    void evaluate(double m, double R, const Outputs& out) const;

private:
    struct Node {
        double V, weight;  ///< V > 0; -V has the same weight
    };
    double density(double tau) const;
    double density_slope(double tau) const;  ///< divided by the density

    Blur blur_;
    double d_, density_at_zero_ = 0;
    double least_ = 0, reach_ = 0;
    DirectionTable tails_;
    std::vector<Node> nodes_;  ///< none if sigma is not of this form
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline reduction
