// The table of the functions of mfcore.h, for one instruction-set level, and the message of the last failure.
#include "foreign/functions.hpp"

#include "foreign/codes.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {
namespace {

constinit thread_local char message[512] = "";

}  // namespace

int failure(int code, const char* what) {
    std::snprintf(message, sizeof message, "%s", what);
    return code;
}

const char* last_message() { return message; }

extern const mfcore_functions c_functions;
constinit const mfcore_functions c_functions = {
    .message = last_message,
    .activation_named = activation_named,
    .activation_piecewise_linear = activation_piecewise_linear,
    .activation_polynomial = activation_polynomial,
    .activation_hermite = activation_hermite,
    .activation_custom = activation_custom,
    .activation_free = free_activation,
    .create_on = create_network_on,
    .create = create_network,
    .free = free_network,
    .set_forces = set_forces,
    .set_rates = set_rates,
    .set_scale = set_scale,
    .step = take_step,
    .predict = predict_at,
    .potentials = potentials_at,
    .row = row_length,
    .theta = copy_theta,
    .density_create = create_density,
    .density_free = free_density,
    .density_step = step_density,
    .density_bound = bound_density,
    .density_risk = risk_of_density,
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
