#include "mfcore/run.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <atomic>

#include "base/simd.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace mfcore {
namespace {

std::atomic<bool> forked_child{false};

// Registered at the first question about threads, not by a static initialiser: those would run at import.
void watch_for_forks() {
#if defined(__unix__) || defined(__APPLE__)
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forked_child = true; });
    (void)registered;
#endif
}

}  // namespace

int resolve_threads(int requested) {
    watch_for_forks();
    if (forked_child) return 1;
    if (requested > 0) return requested;
#ifdef _OPENMP
    return std::max(1, omp_get_max_threads());
#else
    return 1;
#endif
}

BuildInfo build_info() {
    BuildInfo info;
    info.version = MFCORE_VERSION;
    info.isa = MFCORE_LEVEL;
#ifdef __clang__
    info.compiler = "clang " __clang_version__;
#else
    info.compiler = "gcc " __VERSION__;
#endif
    info.eigen = std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) + '.' +
                 std::to_string(EIGEN_MINOR_VERSION);
#ifdef _OPENMP
    info.openmp = std::to_string(_OPENMP);
#else
    info.openmp = "none";
#endif
    info.vector_bits = 8 * simd::kBytes;
    return info;
}

}  // namespace mfcore
