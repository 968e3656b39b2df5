#pragma once
// Parts that all functions of mfcore.h share: exceptions as codes, checks of pointers and counts, and the functions of this
// level, which functions.hpp lists.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "foreign/functions.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/views.hpp"
#include "mfcore/network/activation.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {

/// Keep the message for mfcore_message(), and return the code.
int failure(int code, const char* what);

/// Call body(), which returns a code, and turn what it throws into one.
template <class Body>
int guarded(Body&& body) {
    try {
        return body();
    } catch (const std::invalid_argument& error) {
        return failure(MFCORE_INVALID, error.what());
    } catch (const std::bad_alloc&) {
        return failure(MFCORE_NO_MEMORY, "memory is exhausted");
    } catch (const std::exception& error) {
        return failure(MFCORE_FAILED, error.what());
    } catch (...) {
        return failure(MFCORE_FAILED, "an unknown exception");
    }
}

inline void require_pointer(const void* pointer, const char* name) {
    require(pointer != nullptr, name, "must not be null", "null");
}

inline void require_count(std::int64_t count, const char* name) {
    require(count >= 1, name, "must be >= 1", count);
    require(count <= std::int64_t{1} << 31, name, "must be <= 2^31",
            count);  // so that products are no overflow
}

/// The activation behind an mfcore_activation.
const Activation& activation_of(const mfcore_activation* activation);

decltype(mfcore_message) last_message;
decltype(mfcore_activation_named) activation_named;
decltype(mfcore_activation_piecewise_linear) activation_piecewise_linear;
decltype(mfcore_activation_polynomial) activation_polynomial;
decltype(mfcore_activation_hermite) activation_hermite;
decltype(mfcore_activation_custom) activation_custom;
decltype(mfcore_activation_free) free_activation;
decltype(mfcore_create_on) create_network_on;
decltype(mfcore_create) create_network;
decltype(mfcore_free) free_network;
decltype(mfcore_set_forces) set_forces;
decltype(mfcore_set_rates) set_rates;
decltype(mfcore_set_scale) set_scale;
decltype(mfcore_step) take_step;
decltype(mfcore_predict) predict_at;
decltype(mfcore_potentials) potentials_at;
decltype(mfcore_row) row_length;
decltype(mfcore_theta) copy_theta;
decltype(mfcore_density_create) create_density;
decltype(mfcore_density_free) free_density;
decltype(mfcore_density_step) step_density;
decltype(mfcore_density_bound) bound_density;
decltype(mfcore_density_risk) risk_of_density;

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
