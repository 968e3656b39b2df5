// The number of threads that are ready to run, as Linux tells it.
#include "base/runnable.hpp"

#include <chrono>

#ifdef __linux__
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#endif

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

bool asked() {
#ifdef __linux__
    char text[128] = {};  // "0.20 0.18 0.12 1/80 11206": three averages, threads ready to run / all
    const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char* const slash = length > 0 ? std::strchr(text, '/') : nullptr;
    if (!slash) return false;
    const char* start = slash;
    while (start > text && start[-1] != ' ') --start;
    return 2 * std::strtol(start, nullptr, 10) > 3 * sysconf(_SC_NPROCESSORS_ONLN);
#else
    return false;
#endif
}

}  // namespace

bool cores_are_wanted() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kFresh{5};
    static constinit thread_local Clock::time_point until{};
    static constinit thread_local bool wanted = false;
    const Clock::time_point now = Clock::now();
    if (now >= until) {
        wanted = asked();
        until = now + kFresh;
    }
    return wanted;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
