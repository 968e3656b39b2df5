// Python bindings of systems and their integrators (`_core.System`, `_core.Flow`).
#include "mfcore/flow/flow.hpp"

#include <map>
#include <string>

#include "arrays.hpp"
#include "grid.hpp"
#include "mfcore/flow/atoms.hpp"
#include "rates.hpp"

namespace mfcore::bindings {
namespace {

/// A function of Python from arrays of one shape to arrays of that shape, kept alive by the shared pointer,
/// dropped under the GIL. Ctrl-C inside it is an interruption, as in the core; any other exception passes.
auto python_map(py::function function, const char* name) {
    const auto call = keep_object(std::move(function));
    const auto evaluate = [call, name](const std::vector<py::ssize_t>& shape, const double* from,
                                       double* to) {
        auto argument = make(shape);
        std::copy_n(from, argument.size(), argument.mutable_data());
        try {
            const In result = (*call)(argument).cast<In>();
            require(std::equal(shape.begin(), shape.end(), result.shape(), result.shape() + result.ndim()),
                    name, "must return an array of the shape it is given, with size", result.size());
            std::copy_n(result.data(), result.size(), to);
        } catch (py::error_already_set& error) {
            if (!error.matches(PyExc_KeyboardInterrupt)) throw;
            return false;
        }
        return true;
    };
    return [evaluate](const std::vector<py::ssize_t>& shape, const double* from, double* to) {
        return with_gil([&] { return evaluate(shape, from, to); });
    };
}

Gradient python_gradient(py::function function) {
    return [call = python_map(std::move(function), "gradient")](ConstMat theta, Mat gradient) {
        return call({theta.rows, theta.cols}, theta.data, gradient.data);
    };
}

/// A system of the caller's own: speeds of all its entries, velocity(y) -> array, and which of them have
/// walls. The apex is that of rows of so many entries, all but the last ones; 0: there are no rows.
System python_system(std::vector<double> speed, py::function velocity, std::vector<bool> nonnegative,
                     Apex apex, Index row) {
    require(!speed.empty(), "speed", "must have an entry", 0);
    if (!nonnegative.empty()) require_count(nonnegative.size(), speed.size(), "nonnegative", "entries");
    System system;
    system.size = static_cast<Index>(speed.size());
    system.speed = std::move(speed);
    system.nonnegative = std::move(nonnegative);
    require(row >= 0 && row <= system.size, "row", "must be >= 0 and at most the size of the system", row);
    for (const Index j : apex.columns) require(j >= 0 && j < row, "apex", "must have columns of a row", j);
    require(apex.bias < row, "apex", "must have its bias in a row", apex.bias);
    system.apex = std::move(apex);
    system.apex.row = row;
    system.velocity = [call = python_map(std::move(velocity), "velocity"), size = system.size](
                          const double* y, double* v) { return call({size}, y, v); };
    return system;
}

py::array_t<double> velocity_of(const System& system, const In& y) {
    require_count(y.size(), system.size, "theta", "entries");
    auto velocity = make(std::vector<py::ssize_t>(y.shape(), y.shape() + y.ndim()));
    const double* from = y.data();
    double* to = velocity.mutable_data();
    bool complete = false;
    {
        Released nogil;
        complete = system.velocity_along(from, to);
    }
    if (!complete) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        throw py::error_already_set();
    }
    return velocity;
}

const double* start_of(const System& system, const In& y) {
    require_count(y.size(), system.size, "start", "entries");
    return y.data();
}

/// A copy of a state in other coordinates; an empty map leaves it as it is.
py::array_t<double> mapped(const std::function<void(double*)>& map, const In& y) {
    auto out = make(std::vector<py::ssize_t>(y.shape(), y.shape() + y.ndim()));
    std::copy_n(y.data(), y.size(), out.mutable_data());
    if (map) map(out.mutable_data());
    return out;
}

std::unique_ptr<Flow> fixed_flow(const System& system, const In& start, const std::string& scheme,
                                 double step, double temperature, std::uint64_t seed, double tolerance,
                                 int threads) {
    static const std::map<std::string, Scheme> names = {
        {"euler", Scheme::euler}, {"heun", Scheme::heun}, {"rk4", Scheme::rk4}};
    const auto found = names.find(scheme);
    require(found != names.end(), "scheme", "must be euler, heun or rk4", scheme);
    return fixed_steps(system, start_of(system, start),
                       {found->second, step, temperature, seed, tolerance, threads});
}

End advance_flow(Flow& flow, double t, double seconds) {
    Released nogil(seconds);
    return nogil.because(flow.run(t, [&] { return nogil.wants_end(); }));
}

py::dict state_of_flow(const Flow& flow) {
    const FlowState state = flow.save();
    py::dict arrays;
    arrays["numbers"] = array_of(state.numbers);
    arrays["vectors"] = array_of(state.vectors);
    return arrays;
}

void restore_flow(Flow& flow, const py::dict& arrays) {
    const FlowState state{entry_of<double>(arrays, "numbers"), entry_of<double>(arrays, "vectors")};
    Released nogil;
    flow.restore(state);
}

}  // namespace

void bind_flow(py::module_& m) {
    py::class_<Apex>(m, "Apex", "Where the potential of a row is a cone.")
        .def(py::init<>())
        .def(py::init(&apex_of), py::arg("activation"), py::arg("columns"), py::arg("bias"),
             py::arg("speed"));
    py::class_<AtomParams>(m, "AtomParams", "What holds for the coordinates of atoms.")
        .def(py::init<std::vector<double>, std::vector<bool>, std::vector<bool>, std::vector<double>, double,
                      std::vector<double>, std::vector<double>, Apex>(),
             py::kw_only(), py::arg("rates"), py::arg("decays"), py::arg("nonnegative"), py::arg("volume"),
             py::arg("ridge"), py::arg("low") = std::vector<double>{},
             py::arg("high") = std::vector<double>{}, py::arg("apex") = Apex{});
    py::class_<Panels>(m, "Panels", "Atoms at Gauss-Legendre nodes, with how well they must be resolved.")
        .def(py::init<>())
        .def(py::init<Index, std::vector<double>, std::vector<double>, double, double, double>(),
             py::kw_only(), py::arg("nodes"), py::arg("tail"), py::arg("weight"), py::arg("rtol"),
             py::arg("atol"), py::arg("at_wall"))
        .def(
            "tails",
            [](const Panels& panels, const In& z, const std::vector<bool>& nonnegative) {
                const ConstMat rows = matrix(z, "z", static_cast<Index>(nonnegative.size()));
                const auto count = static_cast<py::ssize_t>(panels.weight.size());
                auto tails = make({count, rows.cols}), tolerated = make({count, rows.cols});
                panel_tails(panels, nonnegative, rows, writable(tails), writable(tolerated));
                return py::make_tuple(tails, tolerated);
            },
            py::arg("z"), py::arg("nonnegative"),
            "Weighted sizes of the last coefficients, and what is tolerated: (panels, columns) each.");
    py::class_<System>(m, "System", "The velocity of neurons, to be integrated.")
        .def_static(
            "nodes",
            [](const Network& network, Index neurons, double ridge, const RateTuple& rates,
               const SamplerPtr& sampler, std::uint64_t seed, Index samples, int threads,
               std::vector<double> masses) {
                if (!masses.empty()) require_count(masses.size(), neurons, "masses", "entries");
                return neuron_system(
                    network, neurons, sampler->dimension(), ridge, rates_of(rates),
                    node_gradient(network, sampler, seed, samples, {threads, {}}, std::move(masses)),
                    threads);
            },
            py::arg("network"), py::arg("neurons"), py::arg("ridge"), py::arg("rates"), py::arg("sampler"),
            py::arg("seed"), py::arg("samples"), py::arg("threads") = 0,
            py::arg("masses") = std::vector<double>{})
        .def_static(
            "calling",
            [](const Network& network, Index neurons, Index d, double ridge, const RateTuple& rates,
               py::function gradient, int threads) {
                return neuron_system(network, neurons, d, ridge, rates_of(rates),
                                     python_gradient(std::move(gradient)), threads);
            },
            py::arg("network"), py::arg("neurons"), py::arg("d"), py::arg("ridge"), py::arg("rates"),
            py::arg("gradient"), py::arg("threads") = 0)
        .def_static(
            "atoms",
            [](const std::shared_ptr<const ReducedFeatures>& features, std::vector<double> weights,
               std::vector<double> targets, const std::vector<double>& masses, const AtomParams& params,
               const Panels& panels, int threads) {
                return atom_system(
                    masses, params,
                    atom_gradient(point_features(features), {std::move(weights), std::move(targets)}, masses,
                                  {threads, {}}),
                    panels);
            },
            py::arg("features"), py::arg("weights"), py::arg("targets"), py::arg("masses"), py::arg("params"),
            py::arg("panels") = Panels{}, py::arg("threads") = 0)
        .def_static(
            "atoms_separable",
            [](const std::shared_ptr<const SeparableFeatures>& features, const std::vector<double>& masses,
               const AtomParams& params, const Panels& panels, int threads) {
                return atom_system(masses, params, separable_gradient(features, masses, threads), panels);
            },
            py::arg("features"), py::arg("masses"), py::arg("params"), py::arg("panels") = Panels{},
            py::arg("threads") = 0)
        .def_static(
            "atoms_calling",
            [](py::function gradient, const std::vector<double>& masses, const AtomParams& params,
               const Panels& panels) {
                return atom_system(masses, params, python_gradient(std::move(gradient)), panels);
            },
            py::arg("gradient"), py::arg("masses"), py::arg("params"), py::arg("panels") = Panels{})
        .def_static("function", &python_system, py::arg("speed"), py::arg("velocity"),
                    py::arg("nonnegative") = std::vector<bool>{}, py::arg("apex") = Apex{},
                    py::arg("row") = 0)
        .def_readonly("size", &System::size)
        .def_readonly("speed", &System::speed)
        .def("__call__", &velocity_of, py::arg("theta"))
        .def(
            "resting_radius",
            [](const System& system, const In& start, double rtol) {
                return resting_radius(system, start_of(system, start), rtol);
            },
            py::arg("start"), py::arg("rtol"))
        .def("folded", &folded, py::arg("delta"), "The system in coordinates in which rows can rest.")
        .def(
            "fold", [](const System& system, const In& y) { return mapped(system.fold, y); },
            py::arg("theta"))
        .def(
            "unfold", [](const System& system, const In& y) { return mapped(system.unfold, y); },
            py::arg("y"));

    py::class_<Flow>(m, "Flow", "A population flow in progress.")
        .def_static("fixed", &fixed_flow, py::arg("system"), py::arg("start"), py::arg("scheme"),
                    py::arg("step"), py::kw_only(), py::arg("temperature") = 0.0, py::arg("seed") = 0,
                    py::arg("tolerance") = 0.0, py::arg("threads") = 0)
        .def_static(
            "dopri5",
            [](const System& system, const In& start, double rtol, double atol, double tolerance,
               double first_step) {
                return dopri5(system, start_of(system, start), {rtol, atol, tolerance, first_step});
            },
            py::arg("system"), py::arg("start"), py::kw_only(), py::arg("rtol"), py::arg("atol"),
            py::arg("tolerance") = 0.0, py::arg("first_step") = 0.0)
        .def_static("finite_volume", &grid_flow, py::arg("potential"), py::arg("axes"), py::arg("start"),
                    py::arg("scheme"), py::kw_only(), py::arg("t") = 0.0, py::arg("first") = 0.0,
                    py::arg("step") = 0.0, py::arg("accuracy") = 0.0, py::arg("tolerance") = 0.0,
                    py::arg("most_watched") = 0.0)
        .def("advance", &advance_flow, py::arg("t"), py::arg("seconds") = INFINITY)
        .def(
            "finish",
            [](Flow& flow, double t) {
                Released nogil;
                return flow.finish(t);
            },
            py::arg("t"), "One step of the length that is left to t.")
        .def("state", &state_of_flow)
        .def("restore", &restore_flow, py::arg("state"))
        .def_property_readonly("t", &Flow::t)
        .def_property_readonly("step_size", &Flow::step_size)
        .def_property_readonly("limiting_row", &Flow::limiting_row)
        .def_property_readonly("steps", [](const Flow& flow) { return flow.counts().steps; })
        .def_property_readonly("rejected", [](const Flow& flow) { return flow.counts().rejected; })
        .def_property_readonly("evaluations", [](const Flow& flow) { return flow.counts().evaluations; })
        .def_property_readonly("risk_error", [](const Flow& flow) { return flow.counts().risk_error; })
        .def("refused",
             [](const Flow& flow) {
                 auto values = make({flow.size()});
                 flow.refused(values.mutable_data());
                 return values;
             })
        .def("values", [](const Flow& flow) {
            auto values = make({flow.size()});
            flow.get(values.mutable_data());
            return values;
        });
}

}  // namespace mfcore::bindings
