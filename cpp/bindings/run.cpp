// Python bindings of the number of threads, measured peak speeds and build information.
#include "mfcore/base/run.hpp"

#include <pybind11/native_enum.h>

#include "arrays.hpp"
#include "mfcore/base/finite.hpp"
#include "mfcore/base/peak.hpp"

namespace mfcore::bindings {

void bind_run(py::module_& m) {
    py::native_enum<End>(m, "End", "enum.Enum", "How a stretch of a run ended.")
        .value("reached", End::reached)
        .value("out_of_time", End::out_of_time)
        .value("interrupted", End::interrupted)
        .value("stationary", End::stationary)
        .value("diverged", End::diverged)
        .value("stuck", End::stuck)
        .value("unresolved", End::unresolved)
        .value("open_end", End::open_end)
        .finalize();
    m.def("resolve_threads", &resolve_threads, py::arg("requested") = 0);
    m.def(
        "all_finite",
        [](const In& x) {
            const py::gil_scoped_release nogil;
            return all_finite({x.data(), 1, x.size()});
        },
        py::arg("x"));
    m.def("fma_peak", &fma_peak, py::arg("threads") = 0, py::arg("single_precision") = false,
          py::call_guard<Released>());
    m.def("memory_bandwidth", &memory_bandwidth, py::arg("threads") = 0, py::call_guard<Released>());
    m.def("build_info", [] {
        const BuildInfo info = build_info();
        py::dict d;
        d["version"] = info.version;
        d["isa"] = info.isa;
        d["compiler"] = info.compiler;
        d["eigen"] = info.eigen;
        d["openmp"] = info.openmp;
        d["vector_bits"] = info.vector_bits;
        return d;
    });
}

}  // namespace mfcore::bindings
