// Which x86-64 levels may this process use? Compiled without instruction-set flags: it must run everywhere.
// The compiler's builtins ask the operating system too (XGETBV): a processor with AVX-512 under a system that
// does not save its registers has no AVX-512.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace py = pybind11;

namespace {

std::vector<std::string> levels() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    std::vector<std::string> found;
    const bool v2 = __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
                    __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v2) found.emplace_back("v2");
    if (v3) found.emplace_back("v3");
    if (v4) found.emplace_back("v4");
    return found;
#else
    return {"generic"};
#endif
}

}  // namespace

PYBIND11_MODULE(_cpu, m, py::mod_gil_not_used()) {
    m.doc() = "Asks the processor and the operating system what they support.";
    m.def("levels", &levels, "Instruction-set levels usable here, lowest first.");
}
