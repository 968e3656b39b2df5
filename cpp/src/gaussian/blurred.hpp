#pragma once
// Smooth activations as steps and ramps under Gaussian noise:
//   sigma(t) = offset + scale E X(t + V G), G ~ N(0, 1),
// X the step 1{t > 0} or the ramp t_+. Then g = m + R u and the noise together are Gaussian, and
// what was an integral over sigma is a closed form at the standard deviation S = sqrt(R^2 + V^2).
//   erf:      step, V^2 = 1/2;            gelu(t) = E (t + G)_+ - phi(t): ramp, V = 1, less V^2 times its density;
//   logistic: a variable with P(L <= t) = sigmoid(t) is 2 K G with K Kolmogorov's (Andrews and Mallows 1974):
//             sigmoid is a step and softplus a ramp with V = 2 K,
//             tanh(t) = 2 sigmoid(2 t) - 1 a step with V = K, silu(t) = E[t 1{t + V G > 0}] a ramp with V = 2 K,
//             less V^2 times its density.
// E over K is the trapezoid rule in log K: the density is analytic for |Im log K| < pi/4 and falls off like
// e^{-2 K^2} and e^{-pi^2/(8 K^2)}, so that 27 nodes leave an error of 1e-15.
#include <span>

#include "mfcore/network/activation.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline gaussian {

/// Above this |w| the closed forms below are used instead of trapezoid rules in the input, whose cost grows
/// with |w|.
inline constexpr double kWide = 16;

struct Blurred : Blur {
    struct Node {
        double V, weight;  ///< V before it is stretched
    };
    std::span<const Node> nodes;  ///< none if sigma is not of this form

    explicit Blurred(const Activation& sigma);
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline gaussian
