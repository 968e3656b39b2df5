#pragma once
// How busy the machine is at the moment, before a team is called together.
#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// True if at least half as many threads again are ready to run as the machine has cores. Members of a team that
/// meet every microsecond would wait for the scheduler at each of these meetings then. Where the system does
/// not tell: false. Asked of the system every few milliseconds at most.
bool cores_are_wanted();

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
