#pragma once
// The functions of mfcore.h as one instruction-set level has compiled them, for dispatch.cpp, which chooses a level.
#include <mfcore/mfcore.h>

struct mfcore_functions {
    decltype(&mfcore_message) message;
    decltype(&mfcore_create) create;
    decltype(&mfcore_free) free;
    decltype(&mfcore_set_forces) set_forces;
    decltype(&mfcore_step) step;
    decltype(&mfcore_predict) predict;
    decltype(&mfcore_potentials) potentials;
    decltype(&mfcore_row) row;
    decltype(&mfcore_theta) theta;
};
