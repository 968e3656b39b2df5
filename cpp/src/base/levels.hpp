#pragma once
// Which x86-64 levels may this process use? Included where no instruction-set flags are given: it must run everywhere.
// The compiler's builtins ask the operating system too (XGETBV): a processor with AVX-512 under a system that
// does not save its registers has no AVX-512.
#include <vector>

namespace mfcore::cpu {

/// Instruction-set levels usable here, lowest first.
inline std::vector<const char*> levels() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v2 = __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
                    __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    std::vector<const char*> found;
    if (v2) found.push_back("v2");
    if (v3) found.push_back("v3");
    if (v4) found.push_back("v4");
    return found;
#else
    return {"generic"};
#endif
}

}  // namespace mfcore::cpu
