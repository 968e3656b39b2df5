// The number of threads, and the scopes in which a thread asks whether to stop.
#include "mfcore/base/run.hpp"

#include <Eigen/src/Core/util/Macros.h>  // its version

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mfcore/version.hpp>
#include <sstream>

#include "base/quota.hpp"
#include "base/simd.hpp"
#include "mfcore/base/errors.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#define MFCORE_QUOTED(name) MFCORE_QUOTED_AS_IT_IS(name)  // what the macro `name` stands for, as a string
#define MFCORE_QUOTED_AS_IT_IS(name) #name

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

std::atomic<bool> forked_child{false};
constinit thread_local StopScope* innermost = nullptr;

// Register the fork handler, at the first question about threads: a static initialiser would run at import.
void watch_for_forks() {
#if defined(__unix__) || defined(__APPLE__)
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forked_child = true; });
    (void)registered;
#endif
}

/// The default number of threads: OMP_NUM_THREADS (of a list, its first entry), else the cores this process
/// may use, by its affinity and by the quota of its container. Not what OpenMP would use now: any library that shares its runtime may have changed that for
/// itself.
int default_threads() {
#ifdef _OPENMP
    if (const char* const wanted = std::getenv("OMP_NUM_THREADS")) {
        const long threads = std::strtol(wanted, nullptr, 10);
        if (threads > 0 && threads <= 4096) return static_cast<int>(threads);
    }
    const int cores = std::max(1, omp_get_num_procs()), quota = quota_of_group();
    return quota > 0 ? std::min(cores, quota) : cores;
#else
    return 1;
#endif
}

}  // namespace

int resolve_threads(int requested) {
    require(requested >= 0, "threads", "must be >= 0", requested);
    watch_for_forks();
    if (forked_child) return 1;
    if (requested > 0) return requested;
    static const int threads = default_threads();
    return threads;
}

StopScope::StopScope(StopPredicate wants_stop) : poll_(std::move(wants_stop)), outer_(innermost) {
    innermost = this;
}
StopScope::StopScope(const std::atomic<bool>& stopped) : stopped_(&stopped), outer_(innermost) {
    innermost = this;
}
StopScope::~StopScope() { innermost = outer_; }

void check_stop() {
    if (innermost && innermost->wants_stop()) throw Interrupted();
}

BuildInfo build_info() {
    std::ostringstream eigen;
    eigen << EIGEN_WORLD_VERSION << '.' << EIGEN_MAJOR_VERSION << '.' << EIGEN_MINOR_VERSION;
#ifdef __clang__
    const char* const compiler = "clang " __clang_version__;
#else
    const char* const compiler = "gcc " __VERSION__;
#endif
#ifdef _OPENMP
    const std::string openmp = std::to_string(_OPENMP);
#else
    const std::string openmp = "none";
#endif
    return {MFCORE_VERSION_STRING, MFCORE_QUOTED(MFCORE_ISA), compiler, eigen.str(), openmp,
            8 * simd::kBytes};
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
