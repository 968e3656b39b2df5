#include "mfcore/run.hpp"

#include "arrays.hpp"

namespace mfcore::bindings {

void bind_run(py::module_& m) {
    m.def("resolve_threads", &resolve_threads, py::arg("requested") = 0);
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
