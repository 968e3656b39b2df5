// Activations of mfcore.h, for one instruction-set level.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "foreign/codes.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {
namespace {

/// Hand over what make() returns.
template <class Make>
int create_activation(mfcore_activation** created, Make&& make) {
    return guarded([&] {
        require_pointer(created, "created");
        *created = nullptr;
        *created = reinterpret_cast<mfcore_activation*>(std::make_unique<Activation>(make()).release());
        return MFCORE_OK;
    });
}

/// The numbers of the caller as a vector.
std::vector<double> numbers_of(std::int64_t count, const double* numbers, const char* name) {
    require_count(count, "count");
    require_pointer(numbers, name);
    return {numbers, numbers + count};
}

}  // namespace

const Activation& activation_of(const mfcore_activation* activation) {
    require_pointer(activation, "activation");
    return *reinterpret_cast<const Activation*>(activation);
}

int activation_named(const char* name, mfcore_activation** created) {
    return create_activation(created, [&] {
        require_pointer(name, "name");
        return named_activation(name);
    });
}

int activation_piecewise_linear(std::int64_t count, const double* knots, const double* jumps, double offset,
                                double left_slope, mfcore_activation** created) {
    return create_activation(created, [&] {
        std::vector<double> at = numbers_of(count, knots, "knots"), by = numbers_of(count, jumps, "jumps");
        return Activation::piecewise_linear(std::move(at), std::move(by), offset, left_slope);
    });
}

int activation_polynomial(std::int64_t count, const double* coefficients, mfcore_activation** created) {
    return create_activation(
        created, [&] { return Activation::polynomial(numbers_of(count, coefficients, "coefficients")); });
}

int activation_hermite(std::int64_t count, const double* coefficients, mfcore_activation** created) {
    return create_activation(
        created, [&] { return Activation::hermite(numbers_of(count, coefficients, "coefficients")); });
}

int activation_custom(mfcore_function function, void* user, mfcore_activation** created) {
    return create_activation(created, [&] {
        require(function != nullptr, "function", "must not be null", "null");
        return Activation::custom({.function = function, .user = user});
    });
}

void free_activation(mfcore_activation* activation) { delete reinterpret_cast<Activation*>(activation); }

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
