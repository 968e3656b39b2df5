#pragma once
// Misuse throws std::invalid_argument naming argument, rule and value; the bindings turn it into ValueError.
#include <sstream>
#include <stdexcept>
#include <string>

#include "mfcore/base/level.hpp"

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

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
