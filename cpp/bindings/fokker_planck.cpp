// Python bindings of densities with noise (`_core.FokkerPlanck`).
#include "mfcore/density/fokker_planck.hpp"

#include <map>
#include <string>

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

Index cells_of(const std::vector<DiffusionAxis>& axes) {
    Index cells = 1;
    for (const DiffusionAxis& axis : axes) cells *= static_cast<Index>(axis.edges.size()) - 1;
    return cells;
}

std::unique_ptr<FokkerPlanck> flow_of(const GridPotential& potential, const std::vector<DiffusionAxis>& axes,
                                      const In& start, const FokkerPlanckParams& params,
                                      const std::string& coupling) {
    static const std::map<std::string, Coupling> names = {
        {"lagged", Coupling::lagged}, {"implicit", Coupling::implicit}, {"automatic", Coupling::automatic}};
    const auto found = names.find(coupling);
    require(found != names.end(), "coupling", "must be lagged, implicit or automatic", coupling);
    FokkerPlanckParams all = params;
    all.coupling = found->second;
    return fokker_planck(potential, axes, vector(start, "start", cells_of(axes)), all);
}

}  // namespace

void bind_fokker_planck(py::module_& m) {
    py::class_<DiffusionAxis>(m, "DiffusionAxis", "Cells along one coordinate, under drift and noise.")
        .def(py::init([](std::vector<double> edges, double rate, double volume, std::vector<Index> watched) {
                 return DiffusionAxis{std::move(edges), rate, volume, std::move(watched)};
             }),
             py::arg("edges"), py::kw_only(), py::arg("rate") = 1.0, py::arg("volume") = 0.0,
             py::arg("watched") = std::vector<Index>{});
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
                Released nogil;
                diffuse(axes, temperature, potential, dt, from, to, threads);
            }
            return next;
        },
        py::arg("axes"), py::arg("temperature"), py::arg("psi"), py::arg("dt"), py::arg("mass"),
        py::arg("threads") = 0, "One implicit Scharfetter-Gummel step of flat masses.");

    py::class_<FokkerPlanck, Flow>(m, "FokkerPlanck", "A noisy density on a grid in progress.")
        .def(py::init([](const GridPotential& potential, const std::vector<DiffusionAxis>& axes,
                         const In& start, double temperature, double t, double rtol, double first,
                         double step, int order, const std::string& coupling, double tolerance,
                         double most_watched, int threads) {
                 return flow_of(
                     potential, axes, start,
                     {temperature, t, rtol, first, step, order, {}, tolerance, most_watched, threads},
                     coupling);
             }),
             py::arg("potential"), py::arg("axes"), py::arg("start"), py::kw_only(), py::arg("temperature"),
             py::arg("t") = 0.0, py::arg("rtol"), py::arg("first") = 0.0, py::arg("step") = 0.0,
             py::arg("order") = 2, py::arg("coupling") = "automatic", py::arg("tolerance") = 0.0,
             py::arg("most_watched") = 0.0, py::arg("threads") = 0)
        .def_property_readonly("free_energy", &FokkerPlanck::free_energy)
        .def_property_readonly("risk", &FokkerPlanck::risk)
        .def_property_readonly("dissipation", &FokkerPlanck::dissipation)
        .def_property_readonly("largest_rise", &FokkerPlanck::largest_rise);
}

}  // namespace mfcore::bindings
