#include "mfcore/dynamics/fokker_planck.hpp"

#include <string>

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

Index cells_of(const std::vector<DiffusionAxis>& axes) {
    Index cells = 1;
    for (const DiffusionAxis& axis : axes) cells *= static_cast<Index>(axis.edges.size()) - 1;
    return cells;
}

}  // namespace

void bind_fokker_planck(py::module_& m) {
    py::class_<DiffusionAxis>(m, "DiffusionAxis", "Cells along one coordinate, under drift and noise.")
        .def(py::init([](std::vector<double> edges, double rate, double volume) {
                 return DiffusionAxis{std::move(edges), rate, volume};
             }),
             py::arg("edges"), py::kw_only(), py::arg("rate") = 1.0, py::arg("volume") = 0.0);
    m.def("log_cell_volume", py::vectorize(log_cell_volume), py::arg("low"), py::arg("high"), py::arg("e"));
    m.def(
        "diffuse",
        [](const std::vector<DiffusionAxis>& axes, double temperature, const In& psi, double dt,
           const In& mass, int threads) {
            const Index cells = cells_of(axes);
            const double* potential = vector(psi, "psi", cells);
            const double* from = vector(mass, "mass", cells);
            auto next = make({cells});
            double* to = next.mutable_data();
            {
                py::gil_scoped_release nogil;
                diffuse(axes, temperature, potential, dt, from, to, threads);
            }
            return next;
        },
        py::arg("axes"), py::arg("temperature"), py::arg("psi"), py::arg("dt"), py::arg("mass"),
        py::arg("threads") = 0, "One implicit Scharfetter-Gummel step of flat masses.");
}

}  // namespace mfcore::bindings
