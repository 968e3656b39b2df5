#pragma once
// Activation functions sigma with two derivatives, evaluated on arrays.
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline network {

struct Activation {
    enum class Kind {
        linear,
        relu,
        erf,
        tanh,
        sigmoid,
        softplus,
        gelu,
        piecewise_linear,
        polynomial,
        hermite
    };

    Kind kind = Kind::linear;
    // linear, relu and piecewise_linear are all given by these four, always filled for them:
    //   sigma(t) = offset + left_slope t + sum_k jumps[k] (t - knots[k])_+
    double offset = 0;
    double left_slope = 1;
    std::vector<double> knots;  // strictly increasing
    std::vector<double> jumps;  // change of slope at each knot
    // polynomial: sum_k coefficients[k] t^k; hermite: sum_k coefficients[k] h_k(t), orthonormal
    // h_k = He_k / sqrt(k!)
    std::vector<double> coefficients;

    bool is_piecewise() const {
        return kind == Kind::linear || kind == Kind::relu || kind == Kind::piecewise_linear;
    }
    void validate() const;  ///< throws std::invalid_argument naming what is wrong
};

/// value[i] = sigma(z[i]), slope[i] = sigma'(z[i]), curvature[i] = sigma''(z[i]); null outputs are skipped.
/// At a knot the slope is the left one; the curvature is that of the smooth pieces (0 for piecewise linear).
/// Outputs may be z itself. No allocation. NaN gives NaN, and a number the same bits wherever it stands in z.
/// Error in units in the last place, either precision: values of erf and softplus 2, sigmoid 3, tanh 4, gelu
/// 8; their slopes and curvatures 10, also in the tails (of gelu, which change sign: 3 epsilon absolute).
/// Magnitudes below 1e-304 (float: 1e-35) may be flushed to 0 in the tails.
template <class T>
void evaluate(const Activation& sigma, Index n, const T* z, T* value, T* slope = nullptr,
              T* curvature = nullptr);

extern template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
extern template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore::inline network
