#pragma once
// The parts of a kind of activation. Each kind is one struct in a file of this folder, listed in
// network/kinds.hpp:
//   name                 as in Python and in configuration files
//   facts(sigma)         what is known of sigma; fields that are left out keep their defaults
//   Kernel<T>            made of sigma or of nothing: a vector of arguments gives value, slope, curvature; or
//                        a function of spans that fills the arrays. soon(t), where there is one, gives the same
//                        by a shorter way of more operations; kAtOnce, where there is one: how many vectors a loop
//                        mixes, other than 8
//   validate(sigma)      throws std::invalid_argument naming what is wrong with the parameters
//   complete(sigma)      only of kinds without parameters: what is not 0 in Activation
#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "base/simd_exp.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/network/activation.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network::kinds {

using namespace simd;

inline constexpr double kEntire = std::numeric_limits<double>::infinity();

/// A smooth function without parameters.
struct Fixed {
    static void complete(Activation&) {}
    static void validate(const Activation&) {}
};

/// Loops use some of the three, and the compiler drops the work for the others.
template <class T>
struct Jet {
    Vec<T> value, slope, curvature;
};

/// Comparisons with NaN are false and constants do not see it, so it is put back.
template <class T>
MFCORE_INLINE Jet<T> keep_nan(Vec<T> t, Jet<T> out) {
    const IntVec<T> number = t == t;
    return {select<T>(number, out.value, t), select<T>(number, out.slope, t),
            select<T>(number, out.curvature, t)};
}

/// kernel(t), of the same bits, for loops in which everything waits for it.
template <class Kernel, class T>
MFCORE_INLINE auto soon(const Kernel& kernel, Vec<T> t) {
    if constexpr (requires { kernel.soon(t); })
        return kernel.soon(t);
    else
        return kernel(t);
}

inline void require_finite(const std::vector<double>& values, const char* name) {
    for (double x : values) require(std::isfinite(x), name, "must be finite", x);
}

/// Numbers as messages show them. Nothing is written before there is a message.
struct Listed {
    const std::vector<double>& values;

    friend std::ostream& operator<<(std::ostream& to, const Listed& numbers) {
        const char* before = "";
        to << '[';
        for (const double x : numbers.values) {
            to << before << x;
            before = ", ";
        }
        return to << ']';
    }
};
inline Listed list(const std::vector<double>& values) { return {values}; }

}  // namespace mfcore::inline MFCORE_LEVEL::inline network::kinds
