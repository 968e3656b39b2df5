#pragma once
// Which of the installed instruction-set levels a program that holds several should use.

namespace mfcore {

/// The name of the best installed level that this machine's processor and operating system support: "v2", "v3", "v4",
/// "generic" or "native". The environment variable MFCORE_ISA, where it is set, names the level instead. "" if no
/// installed level can be used. Compiled without instruction-set flags, so it runs on every machine.
const char* best();

}  // namespace mfcore
