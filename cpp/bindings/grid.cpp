// Python bindings of potentials on grids and of finite-volume steps.
#include "grid.hpp"

#include <cmath>
#include <utility>

#include "mfcore/grid/factors.hpp"
#include "mfcore/grid/potential.hpp"

namespace mfcore::bindings {
namespace {

GridPotential make_potential(const In& first, const std::optional<In>& second, const std::optional<In>& core,
                             const In& shift, double floor, const In& decay, int threads) {
    GridFactors factors;
    factors.first = matrix(first, "first");
    Index rank = factors.first.cols, cells = factors.first.rows;
    if (second) {
        require(core.has_value(), "core", "must be given with second", "None");
        factors.second = matrix(*second, "second");
        factors.core = matrix(*core, "core");
        rank = factors.core.cols;
        cells *= factors.second.rows;
    }
    factors.shift = vector(shift, "shift", rank);
    factors.floor = floor;
    factors.decay = vector(decay, "decay", cells);
    return GridPotential(factors, threads);
}

Index cells_of(const GridPotential& potential) { return potential.rows() * potential.cols(); }

/// Copy masses of the cells from C order to the layout of the potential.
std::vector<double> spread(const GridPotential& potential, const In& mass) {
    require_count(mass.size(), cells_of(potential), "mass", "entries");
    std::vector<double> array(potential.size());
    potential.spread(mass.data(), array.data());
    return array;
}

py::array_t<double> matrix_of(const OwnMatrix& matrix) {
    auto array = make({matrix.rows, matrix.cols});
    std::copy(matrix.values.begin(), matrix.values.end(), array.mutable_data());
    return array;
}

py::tuple arrays_of(const TableFactors& factors) {
    return py::make_tuple(matrix_of(factors.first), matrix_of(factors.second), matrix_of(factors.core),
                          matrix_of(factors.nodes));
}

Reconstruction reconstruction_of(const std::string& name) {
    require(name == "upwind" || name == "muscl", "scheme", "must be upwind or muscl", name);
    return name == "upwind" ? Reconstruction::upwind : Reconstruction::muscl;
}

}  // namespace

void bind_grid(py::module_& m) {
    using namespace py::literals;
    m.def(
        "factors_of_table",
        [](const In& table, Index last, double tolerance) {
            const ConstMat given = matrix(table, "table");
            TableFactors factors;
            {
                Released nogil;
                factors = factors_of_table(given, last, tolerance);
            }
            return arrays_of(factors);
        },
        "table"_a, "last"_a, "tolerance"_a, "(first, second, core, nodes)");
    m.def(
        "fewer_factors",
        [](const In& first, const In& second, const In& core, const In& nodes, double tolerance) {
            const ConstMat one = matrix(first, "first"), other = matrix(second, "second"),
                           mixed = matrix(core, "core"), rows = matrix(nodes, "nodes");
            TableFactors factors;
            {
                Released nogil;
                factors = fewer_factors(one, other, mixed, rows, tolerance);
            }
            return arrays_of(factors);
        },
        "first"_a, "second"_a, "core"_a, "nodes"_a, "tolerance"_a, "(first, second, core, nodes)");
    m.def(
        "column_span",
        [](const In& table, double tolerance) {
            const ConstMat given = matrix(table, "table");
            ColumnSpan span;
            {
                Released nogil;
                span = column_span(given, tolerance);
            }
            return py::make_tuple(matrix_of(span.left), matrix_of(span.right));
        },
        "table"_a, "tolerance"_a, "Orthonormal columns, and the coefficients of the table in them.");
    m.def(
        "factors_of_line",
        [](const In& table, double tolerance) {
            const ConstMat given = matrix(table, "table");
            LineFactors factors;
            {
                Released nogil;
                factors = factors_of_line(given, tolerance);
            }
            return py::make_tuple(matrix_of(factors.basis), matrix_of(factors.turn),
                                  matrix_of(factors.nodes));
        },
        "table"_a, "tolerance"_a, "(basis, turn, nodes)");
    py::class_<GridPotential>(m, "GridPotential",
                              "The potential of masses on a grid, in compressed features.")
        .def(py::init(&make_potential), "first"_a, py::kw_only(), "second"_a = py::none(),
             "core"_a = py::none(), "shift"_a, "floor"_a, "decay"_a, "threads"_a = 0)
        .def_property_readonly("rank", &GridPotential::rank)
        .def(
            "potential",
            [](GridPotential& self, const In& mass) {
                std::vector<double> array = spread(self, mass), moments(self.rank());
                auto psi = make({cells_of(self)});
                double* out = psi.mutable_data();
                Released nogil;
                self.moments(array.data(), moments.data());
                self.potential(moments.data(), array.data());
                self.gather(array.data(), out);
                return psi;
            },
            "mass"_a, "Psi at the centres of the cells, in C order, decay included.")
        .def(
            "moments",
            [](GridPotential& self, const In& mass) {
                const std::vector<double> array = spread(self, mass);
                auto moments = make({self.rank()});
                double* out = moments.mutable_data();
                Released nogil;
                self.moments(array.data(), out);
                return moments;
            },
            "mass"_a, "Sums over cells of the compressed features times mass.")
        .def(
            "risk",
            [](GridPotential& self, const In& mass) {
                const std::vector<double> array = spread(self, mass);
                std::vector<double> moments(self.rank());
                Released nogil;
                self.moments(array.data(), moments.data());
                return self.risk(moments.data());
            },
            "mass"_a);

    py::class_<GridAxis>(m, "GridAxis", "Cells along one coordinate.")
        .def(py::init(
                 [](std::vector<double> width, std::vector<double> conductance, std::vector<Index> watched) {
                     return GridAxis{std::move(width), std::move(conductance), std::move(watched)};
                 }),
             "width"_a, "conductance"_a, "watched"_a = std::vector<Index>());

    py::class_<FiniteVolumeSteps>(m, "GridStepper", "Steps of finite volumes on masses of the caller's.")
        .def(py::init(
                 [](const GridPotential& potential, std::vector<GridAxis> axes, const std::string& scheme) {
                     return FiniteVolumeSteps({potential, std::move(axes), reconstruction_of(scheme)});
                 }),
             "potential"_a, "axes"_a, "scheme"_a)
        .def(
            "run",
            [](FiniteVolumeSteps& self, py::array_t<double> mass, double dt, Index steps) {
                require((mass.flags() & py::array::c_style) != 0, "mass", "must be C-contiguous", false);
                require_count(mass.size(), self.cells(), "mass", "entries");
                double* cells = mass.mutable_data();
                Released nogil;
                const auto done = self.run(cells, dt, steps, [&] { return nogil.wants_stop(); });
                return std::make_pair(done.steps, done.bound);
            },
            py::arg("mass").noconvert(), "dt"_a, "steps"_a,
            "Steps in place while dt is at most the bound: (steps done, bound); NaN: not finite.")
        .def(
            "bound",
            [](FiniteVolumeSteps& self, const In& mass) {
                require_count(mass.size(), self.cells(), "mass", "entries");
                const double* cells = mass.data();
                Released nogil;
                return self.bound(cells);
            },
            "mass"_a, "The largest stable step.");
}

std::unique_ptr<Flow> grid_flow(const GridPotential& potential, std::vector<GridAxis> axes, const In& start,
                                const std::string& scheme, double t, double first, double step,
                                double accuracy, double tolerance, double most_watched) {
    require_count(start.size(), cells_of(potential), "start", "entries");
    return finite_volume(FiniteVolume(potential, std::move(axes), reconstruction_of(scheme)), start.data(),
                         {t, first, step, accuracy, tolerance, most_watched});
}

}  // namespace mfcore::bindings
