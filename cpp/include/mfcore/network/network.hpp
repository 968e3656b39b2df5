#pragma once
// The neuron sigma*(x; theta) = a sigma(<w, x> + b) and the layout of its row of parameters, [a, b, w...]
// with absent parts left out: a unless output is one, b unless bias is none.
#include "mfcore/network/activation.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {

/// The output weight a of a neuron: 1 and not stored, stored and left as it is, or trained.
enum class Output { one, fixed, trained };
/// The bias b of a neuron: 0 and not stored, stored and left as it is, or trained.
enum class Bias { none, fixed, trained };

/// Which neurons a network has: their activation, and what their rows of parameters hold.
struct Network {
    Activation activation;
    Output output = Output::one;
    Bias bias = Bias::none;
    bool sphere = false;  ///< |w| = 1: w moves on the unit sphere

    bool has_a() const { return output != Output::one; }
    bool has_b() const { return bias != Bias::none; }
    bool trains_b() const { return bias == Bias::trained; }
    Index b_at() const { return has_a() ? 1 : 0; }
    Index w_at() const { return b_at() + (has_b() ? 1 : 0); }
    Index row(Index d) const { return w_at() + d; }  ///< D, the length of a row for inputs in R^d
};

/// The rates r_a, r_b, r_w of eq. (1.6): factors of the drift, whose square roots are factors of the noise.
struct Rates {
    double a = 1, b = 1, w = 1;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
