// Whole activations of each kind, for programs in C++.
#include <utility>

#include "network/kinds.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {
namespace {

Activation by_coefficients(const char* kind, std::vector<double> coefficients) {
    Activation sigma;
    sigma.kind = kind;
    sigma.left_slope = 0;
    sigma.coefficients = std::move(coefficients);
    sigma.validate();
    return sigma;
}

}  // namespace

Activation Activation::linear() { return named_activation(kinds::Linear::name); }
Activation Activation::relu() { return named_activation(kinds::Relu::name); }
Activation Activation::erf() { return named_activation(kinds::Erf::name); }
Activation Activation::tanh() { return named_activation(kinds::Tanh::name); }
Activation Activation::sigmoid() { return named_activation(kinds::Sigmoid::name); }
Activation Activation::softplus() { return named_activation(kinds::Softplus::name); }
Activation Activation::gelu() { return named_activation(kinds::Gelu::name); }
Activation Activation::silu() { return named_activation(kinds::Silu::name); }
Activation Activation::sin() { return named_activation(kinds::Sin::name); }
Activation Activation::cos() { return named_activation(kinds::Cos::name); }

Activation Activation::piecewise_linear(std::vector<double> knots, std::vector<double> jumps, double offset,
                                        double left_slope) {
    Activation sigma;
    sigma.kind = kinds::PiecewiseLinear::name;
    sigma.offset = offset;
    sigma.left_slope = left_slope;
    sigma.knots = std::move(knots);
    sigma.jumps = std::move(jumps);
    sigma.validate();
    return sigma;
}

Activation Activation::polynomial(std::vector<double> coefficients) {
    return by_coefficients(kinds::Polynomial::name, std::move(coefficients));
}
Activation Activation::hermite(std::vector<double> coefficients) {
    return by_coefficients(kinds::Hermite::name, std::move(coefficients));
}
Activation Activation::custom(Span span) {
    Activation sigma;
    sigma.kind = kinds::Custom::name;
    sigma.left_slope = 0;
    sigma.span = std::move(span);
    sigma.validate();
    return sigma;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
