#pragma once
// A function of each installed level: embed::v2::work(), embed::v3::work() ...
#include <mfcore/version.hpp>
#include <vector>

#define EMBED_DECLARE(level)    \
    namespace embed::level {    \
    std::vector<double> work(); \
    }
MFCORE_EACH_LEVEL(EMBED_DECLARE)
