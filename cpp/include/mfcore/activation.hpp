#pragma once
// Activations: value and two derivatives, on packets.
#include <vector>

#include "mfcore/views.hpp"

namespace mfcore {

struct Activation {
    enum class Kind { linear, relu, erf, tanh, sigmoid, softplus, gelu, piecewise_linear, polynomial };

    Kind kind = Kind::relu;
    // piecewise_linear (relu and linear have this form too, see piecewise()):
    //   sigma(t) = offset + left_slope t + sum_k jumps[k] (t - knots[k])_+
    double offset = 0;
    double left_slope = 0;
    std::vector<double> knots;  // strictly increasing
    std::vector<double> jumps;  // change of slope at each knot
    // polynomial: sigma(t) = sum_k coefficients[k] t^k (a Hermite series is converted to this form up to the degree
    // where that is stable, see hermite_series)
    std::vector<double> coefficients;
    bool hermite = false;  // coefficients are those of orthonormal Hermite polynomials, h_k = He_k / sqrt(k!)

    void validate() const;  ///< throws std::invalid_argument naming what is wrong
};

/// value[i] = sigma(z[i]), slope[i] = sigma'(z[i]), curvature[i] = sigma''(z[i]); null outputs are skipped. At a kink
/// the slope is the mean of its two sides except for relu-like knots, where sigma'(knot) is the left slope; curvature
/// is that of the smooth pieces (0 for piecewise linear). Outputs may alias z. No allocation.
template <class T>
void evaluate(const Activation& sigma, Index n, const T* z, T* value, T* slope = nullptr, T* curvature = nullptr);

extern template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
extern template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore
