#pragma once
// Helpers of the integrators: stops, norms over the entries that move, projections to constraints.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/scratch.hpp"
#include "mfcore/base/finite.hpp"
#include "mfcore/flow/flow.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {

/// The result of `body`, or `out_of_time` if it was stopped in its midst: it leaves the state as it was then.
template <class Body>
End unless_interrupted(Body&& body) {
    try {
        return body();
    } catch (const Interrupted&) {
        return End::out_of_time;
    }
}

using Vector = FilledScratch<double>;

inline bool all_finite(const Vector& y) {
    return base::all_finite({y.data(), 1, static_cast<Index>(y.size())});
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

/// Root mean square of the gradient that makes this velocity, over the measure if there are masses.
inline double gradient_size(const System& system, const Vector& velocity) {
    if (system.masses.empty())
        return root_mean_square(system, [&](Index k, double speed) { return velocity[k] / speed; });
    const auto columns = static_cast<Index>(system.speed.size());
    Index moving = 0;
    double total = 0;
    for (Index j = 0; j < columns; ++j) {
        if (system.speed[j] == 0) continue;
        ++moving;
        for (std::size_t i = 0; i < system.masses.size(); ++i) {
            const double v = velocity[static_cast<Index>(i) * columns + j] / system.speed[j];
            total += system.masses[i] * v * v;
        }
    }
    return std::sqrt(total / static_cast<double>(std::max<Index>(moving, 1)));
}

/// |2 int grad . error d rho|, what an error of the state changes the risk by (eq. (6.13)); error(k) of entry
/// k.
template <class Error>
double risk_change(const System& system, const Vector& velocity, Error&& error) {
    const auto columns = static_cast<Index>(system.speed.size());
    double total = 0;
    for (std::size_t i = 0; i < system.masses.size(); ++i) {
        const Index begin = static_cast<Index>(i) * columns;
        double row = 0;
        for (Index j = 0; j < columns; ++j)
            if (system.speed[j] != 0) row += velocity[begin + j] / system.speed[j] * error(begin + j);
        total += system.masses[i] * row;
    }
    return std::abs(2 * total);
}

inline bool has_wall(const System& system, Index entry) {
    return !system.nonnegative.empty() &&
           system.nonnegative[static_cast<std::size_t>(entry) % system.speed.size()];
}

/// Project a state to walls and constraints; false if it already satisfied them.
inline bool project(const System& system, Vector& y) {
    bool changed = false;
    if (system.project) {
        system.project(y.data());
        changed = true;
    }
    const std::size_t columns = system.speed.size();
    for (std::size_t j = 0; j < system.nonnegative.size(); ++j) {
        if (!system.nonnegative[j]) continue;
        for (std::size_t k = j; k < y.size(); k += columns) {
            if (!(y[k] < 0)) continue;
            y[k] = 0;
            changed = true;
        }
    }
    return changed;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
