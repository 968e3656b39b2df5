#pragma once
// Speeds of a, b and w, as Python passes them.
#include <tuple>

#include "mfcore/sgd/sgd.hpp"

namespace mfcore::bindings {

using RateTuple = std::tuple<double, double, double>;

inline Rates rates_of(const RateTuple& rates) {
    return {std::get<0>(rates), std::get<1>(rates), std::get<2>(rates)};
}

}  // namespace mfcore::bindings
