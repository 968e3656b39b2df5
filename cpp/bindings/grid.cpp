// Python bindings of potentials on grids and of finite-volume steps.
#include "grid.hpp"

#include <cmath>
#include <utility>

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
    require(mass.size() == cells_of(potential), "mass", "has the wrong size", mass.size());
    std::vector<double> array(potential.size());
    potential.spread(mass.data(), array.data());
    return array;
}

Reconstruction reconstruction_of(const std::string& name) {
    require(name == "upwind" || name == "muscl", "scheme", "must be upwind or muscl", name);
    return name == "upwind" ? Reconstruction::upwind : Reconstruction::muscl;
}

/// A scheme for a foreign loop, with the fields it needs.
struct GridStepper {
    FiniteVolume scheme;
    FiniteVolume::Field mass, next;
    std::vector<double> m, next_m;

    GridStepper(const GridPotential& potential, std::vector<GridAxis> axes, const std::string& name)
        : scheme(potential, std::move(axes), reconstruction_of(name)),
          mass(scheme),
          next(scheme),
          m(potential.rank()),
          next_m(potential.rank()) {}

    /// Up to `steps` steps of size dt from the masses `cells`, which they replace. Stops before a step that
    /// is too large or leads to numbers that are not finite, and when `wants_stop` says so. Returns the steps
    /// done and the largest stable step at the last velocities, NaN if they are not finite.
    std::pair<Index, double> run(double* cells, double dt, Index steps, const StopPredicate& wants_stop) {
        scheme.potential().spread(cells, mass.data());
        scheme.potential().moments(mass.data(), m.data());
        StopPoll stop(wants_stop);
        double bound = INFINITY;
        Index done = 0;
        while (done < steps) {
            const FiniteVolume::Report report = scheme.step(mass, m.data(), dt, next, next_m.data());
            double sum = report.descent;
            for (const double value : next_m) sum += value;
            bound = !std::isfinite(sum)  ? NAN
                    : report.outflow > 0 ? scheme.courant() / report.outflow
                                         : INFINITY;
            if (!(dt <= bound)) break;
            std::swap(mass, next);
            std::swap(m, next_m);
            if (++done < steps && stop()) break;
        }
        if (done > 0) scheme.potential().gather(mass.data(), cells);
        return {done, bound};
    }
};

}  // namespace

void bind_grid(py::module_& m) {
    using namespace py::literals;
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

    py::class_<GridStepper>(m, "GridStepper", "Steps of finite volumes on masses of the caller's.")
        .def(py::init<const GridPotential&, std::vector<GridAxis>, const std::string&>(), "potential"_a,
             "axes"_a, "scheme"_a)
        .def(
            "run",
            [](GridStepper& self, py::array_t<double> mass, double dt, Index steps) {
                require((mass.flags() & py::array::c_style) != 0, "mass", "must be C-contiguous", false);
                require(mass.size() == cells_of(self.scheme.potential()), "mass", "has the wrong size",
                        mass.size());
                double* cells = mass.mutable_data();
                Released nogil;
                return self.run(cells, dt, steps, [&] { return nogil.wants_stop(); });
            },
            py::arg("mass").noconvert(), "dt"_a, "steps"_a,
            "Steps in place while dt is at most the bound: (steps done, bound); NaN: not finite.")
        .def(
            "bound",
            [](GridStepper& self, const In& mass) {
                require(mass.size() == cells_of(self.scheme.potential()), "mass", "has the wrong size",
                        mass.size());
                std::vector<double> cells(mass.data(), mass.data() + mass.size());
                Released nogil;
                return self.run(cells.data(), 0.0, 1, {}).second;
            },
            "mass"_a, "The largest stable step.");
}

std::unique_ptr<Flow> grid_flow(const GridPotential& potential, std::vector<GridAxis> axes, const In& start,
                                const std::string& scheme, double t, double first, double step,
                                double accuracy, double tolerance, double wall) {
    require(start.size() == cells_of(potential), "start", "has the wrong size", start.size());
    return finite_volume(FiniteVolume(potential, std::move(axes), reconstruction_of(scheme)), start.data(),
                         {t, first, step, accuracy, tolerance, wall});
}

}  // namespace mfcore::bindings
