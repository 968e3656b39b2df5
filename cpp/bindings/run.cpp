// Python bindings of the number of threads, measured peak speeds and build information.
#include "mfcore/base/run.hpp"

#include "arrays.hpp"
#include "mfcore/base/peak.hpp"

namespace mfcore::bindings {

void bind_run(py::module_& m) {
    m.def("resolve_threads", &resolve_threads, py::arg("requested") = 0);
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
