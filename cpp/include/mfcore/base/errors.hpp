#pragma once
// Misuse throws std::invalid_argument naming argument, rule and value; the bindings turn it into ValueError.
#include <sstream>
#include <stdexcept>
#include <string>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Throw "<argument> <rule>, got <value>" unless `ok`, e.g. require(h > 0, "step", "must be > 0", h).
template <class Value>
void require(bool ok, const char* argument, const char* rule, const Value& value) {
    if (ok) return;
    std::ostringstream message;
    message.precision(17);
    message << argument << ' ' << rule << ", got " << value;
    throw std::invalid_argument(message.str());
}

/// Throw "<argument> must have <wanted> <things>, got <count>" unless they are as many.
template <class Count, class Wanted>
void require_count(Count count, Wanted wanted, const char* argument, const char* things) {
    if (static_cast<Index>(count) == static_cast<Index>(wanted)) return;
    require(false, argument, ("must have " + std::to_string(wanted) + ' ' + things).c_str(), count);
}

/// Throw unless m has at least `least` rows, 0 or 1, and memory for them.
template <class T>
void require_matrix(const MatView<T>& m, const char* argument, Index least = 1) {
    require(m.rows >= least, argument, least == 0 ? "must have >= 0 rows" : "must have at least one row",
            m.rows);
    require(m.cols >= 0, argument, "must have >= 0 columns", m.cols);
    require(m.rows <= 1 || m.stride >= m.cols, argument, "must have a row stride of its columns at least",
            m.stride);
    require(m.data != nullptr || m.rows == 0 || m.cols == 0, argument, "must not be null", "null");
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
