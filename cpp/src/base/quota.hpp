#pragma once
// How many processors the control group of this process may use. A container sees all processors of its
// machine, but is given only so much of their time; threads beyond would wait for each other.
#include <string>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Whole processors, at least 1, in the smallest quota (`cpu.max`) of a control group (version 2) of this
/// process and of the groups around it; 0 without one. Arguments: the list of groups a process is in, and
/// where groups are mounted.
int quota_of_group(const std::string& membership = "/proc/self/cgroup",
                   const std::string& root = "/sys/fs/cgroup");

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
