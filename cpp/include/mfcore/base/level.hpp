#pragma once
// The instruction-set level of the names in this file's translation unit. Every name lives in the inline namespace of a
// level: where MFCORE_LEVEL is v3, mfcore::predict is mfcore::v3::predict, of libmfcore_v3.a. So one program can hold the
// archives of several levels. CMake's targets and pkg-config define MFCORE_LEVEL; without them it is the lowest level
// that was installed.
#ifndef MFCORE_LEVEL
#include <mfcore/version.hpp>
#define MFCORE_LEVEL MFCORE_DEFAULT_LEVEL
#endif
