#pragma once
// What the integrators need of their vectors.
#include <algorithm>
#include <cmath>
#include <vector>

#include "mfcore/dynamics/flow.hpp"

namespace mfcore::flow {

using Vector = std::vector<double>;

inline bool all_finite(const Vector& y) {
    return std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); });
}

/// Root of sum of value(k)^2 over the entries that move, divided by their number; value(k, speed).
template <class Value>
double root_mean_square(const System& system, Value&& value) {
    const auto columns = static_cast<Index>(system.speed.size());
    double sum = 0;
    Index moving = 0;
    for (Index begin = 0; begin < system.size; begin += columns) {
        for (Index j = 0; j < columns; ++j) {
            if (system.speed[j] == 0) continue;
            const double v = value(begin + j, system.speed[j]);
            sum += v * v;
            ++moving;
        }
    }
    return std::sqrt(sum / static_cast<double>(std::max<Index>(moving, 1)));
}

/// Root mean square of the gradient that makes this velocity.
inline double gradient_size(const System& system, const Vector& velocity) {
    return root_mean_square(system, [&](Index k, double speed) { return velocity[k] / speed; });
}

}  // namespace mfcore::flow
