#pragma once
// The namespace of the names in this file's translation unit. Every name lives in the inline namespaces of a version and
// of an instruction-set level: where MFCORE_ISA is v3, mfcore::predict of version 0.1.0 is mfcore::v0_1_0::v3::predict, of
// its libmfcore_v3.a, and mfcore::v3::predict for short. So one program can hold the archives of several levels, and a
// file that was compiled for one version is never linked to another. CMake's targets and pkg-config define MFCORE_ISA;
// without them it is the lowest level that was installed.
#include <mfcore/base/versioned.hpp>
#ifndef MFCORE_ISA
#include <mfcore/version.hpp>
#define MFCORE_ISA MFCORE_DEFAULT_LEVEL
#endif
/// The two namespaces of this library, one in the other: namespace mfcore::inline MFCORE_LEVEL { ... }
#define MFCORE_LEVEL MFCORE_VERSIONED::inline MFCORE_ISA
