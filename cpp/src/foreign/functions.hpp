#pragma once
// The functions of mfcore.h as one instruction-set level has compiled them, for dispatch.cpp, which chooses a level.
#include <mfcore/mfcore.h>

struct mfcore_functions {
    decltype(&mfcore_message) message;
    decltype(&mfcore_activation_named) activation_named;
    decltype(&mfcore_activation_piecewise_linear) activation_piecewise_linear;
    decltype(&mfcore_activation_polynomial) activation_polynomial;
    decltype(&mfcore_activation_hermite) activation_hermite;
    decltype(&mfcore_activation_custom) activation_custom;
    decltype(&mfcore_activation_free) activation_free;
    decltype(&mfcore_create_on) create_on;
    decltype(&mfcore_create) create;
    decltype(&mfcore_free) free;
    decltype(&mfcore_set_forces) set_forces;
    decltype(&mfcore_set_rates) set_rates;
    decltype(&mfcore_set_scale) set_scale;
    decltype(&mfcore_step) step;
    decltype(&mfcore_predict) predict;
    decltype(&mfcore_potentials) potentials;
    decltype(&mfcore_row) row;
    decltype(&mfcore_theta) theta;
    decltype(&mfcore_density_create) density_create;
    decltype(&mfcore_density_free) density_free;
    decltype(&mfcore_density_step) density_step;
    decltype(&mfcore_density_bound) density_bound;
    decltype(&mfcore_density_risk) density_risk;
};
