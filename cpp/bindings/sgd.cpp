// Python bindings of runs of stochastic gradient descent.
#include "mfcore/sgd/sgd.hpp"

#include "step_sizes.hpp"

namespace mfcore::bindings {
namespace {

/// start(first, count) -> rows; the last ones handed out are kept until the next are.
StartRows rows_of(const py::function& start) {
    return [call = keep_object(start), held = std::shared_ptr<const In>()](Index first, Index count) mutable {
        return with_gil([&] {
            held = keep_object((*call)(first, count).cast<In>());
            return matrix(*held, "start");
        });
    };
}

/// Independent runs on one clock, which counts steps.
struct Replicas {
    std::vector<std::unique_ptr<Sgd>> runs;
    int threads;

    /// Each start is an array of rows, or a function that hands out rows of so many neurons.
    Replicas(const Network& network, const std::vector<py::object>& starts, Index neurons,
             const std::vector<SamplerPtr>& samplers, const std::vector<std::uint64_t>& seeds,
             const SgdParams& params, bool single_precision, int team)
        : threads(team) {
        require(!starts.empty(), "starts", "must not be empty", starts.size());
        for (const std::size_t size : {samplers.size(), seeds.size()})
            require(size == starts.size(), "samplers, seeds", "must be one for each start", size);
        for (std::size_t k = 0; k < starts.size(); ++k) {
            const auto begin = [&](const auto&... start) {
                runs.push_back(single_precision
                                   ? make_sgd<float>(network, start..., samplers[k], seeds[k], params)
                                   : make_sgd<double>(network, start..., samplers[k], seeds[k], params));
            };
            if (PyCallable_Check(starts[k].ptr())) {
                begin(neurons, rows_of(py::function(starts[k])));
            } else {
                const auto rows = starts[k].cast<In>();
                begin(matrix(rows, "start"));
            }
        }
    }

    End advance(Index target, const StopPredicate& wants_stop) {
        std::vector<Sgd*> all;
        for (const auto& run : runs) all.push_back(run.get());
        return run_together(all, target, threads, wants_stop);
    }

    py::list each(const std::function<py::object(const Sgd&)>& get) const {
        py::list list;
        for (const auto& run : runs) list.append(get(*run));
        return list;
    }
};

py::dict state_of_replicas(const Replicas& self) {
    const Index row = self.runs[0]->row(), count = self.runs[0]->count();
    std::vector<Index> anchors, steps;
    auto neurons = make({static_cast<py::ssize_t>(self.runs.size()), count, row});
    double* to = neurons.mutable_data();
    for (const auto& run : self.runs) {
        const SgdState state = run->save();
        anchors.push_back(state.anchor);
        steps.push_back(state.step);
        to = std::copy(state.neurons.begin(), state.neurons.end(), to);
    }
    py::dict arrays;
    arrays["anchor"] = array_of(anchors);
    arrays["step"] = array_of(steps);
    arrays["neurons"] = neurons;
    return arrays;
}

void restore_sgd(Replicas& self, const py::dict& arrays) {
    const auto anchors = entry_of<Index>(arrays, "anchor"), steps = entry_of<Index>(arrays, "step");
    const auto neurons = entry_of<double>(arrays, "neurons");
    for (const std::size_t size : {anchors.size(), steps.size()})
        require(size == self.runs.size(), "state", "must have as many replicas as the run", size);
    const auto share = static_cast<std::ptrdiff_t>(neurons.size() / self.runs.size());
    const double* from = neurons.data();
    Released nogil;
    for (std::size_t k = 0; k < self.runs.size(); ++k, from += share)
        self.runs[k]->restore({anchors[k], steps[k], {from, from + share}});
    const Index target = *std::max_element(steps.begin(), steps.end());
    if (self.advance(target, [&] { return nogil.wants_stop(); }) == End::out_of_time) throw Interrupted();
}

}  // namespace

void bind_sgd(py::module_& m) {
    py::class_<Replicas>(m, "Sgd", "Independent runs of stochastic gradient descent on one clock.")
        .def(py::init([](const Network& network, const std::vector<py::object>& starts,
                         const std::vector<SamplerPtr>& samplers, const std::vector<std::uint64_t>& seeds,
                         const py::object& step, Index batch, double ridge, double temperature,
                         const std::tuple<double, double, double>& rates, Index block, bool single_precision,
                         int threads, Index neurons) {
                 const Rates speeds{std::get<0>(rates), std::get<1>(rates), std::get<2>(rates)};
                 return Replicas(
                     network, starts, neurons, samplers, seeds,
                     {sizes_of(step), batch, ridge, temperature, speeds, block, 0, false, threads},
                     single_precision, threads);
             }),
             py::arg("network"), py::arg("starts"), py::arg("samplers"), py::arg("seeds"), py::arg("step"),
             py::kw_only(), py::arg("batch") = 1, py::arg("ridge") = 0.0, py::arg("temperature") = 0.0,
             py::arg("rates") = std::make_tuple(1.0, 1.0, 1.0), py::arg("block") = 0,
             py::arg("single_precision") = false, py::arg("threads") = 0, py::arg("neurons") = 0)
        .def(
            "advance",
            [](Replicas& self, Index step, double seconds) {
                Released nogil(seconds);
                return nogil.because(self.advance(step, [&] { return nogil.wants_end(); }));
            },
            py::arg("step"), py::arg("seconds") = INFINITY)
        .def("state", &state_of_replicas)
        .def("restore", &restore_sgd, py::arg("state"))
        .def_property_readonly("steps",
                               [](const Replicas& self) {
                                   return self.each([](const Sgd& run) { return py::int_(run.step()); });
                               })
        .def_property_readonly(
            "diverged_at",
            [](const Replicas& self) {
                return self.each([](const Sgd& run) { return py::int_(run.diverged_at()); });
            })
        .def_property_readonly("block_steps",
                               [](const Replicas& self) { return self.runs[0]->block_steps(); })
        .def(
            "predict",
            [](const Replicas& self, const In& x) {
                return self.each([&](const Sgd& run) {
                    const ConstMat rows = matrix(x, "x");
                    auto f = make({rows.rows});
                    double* const out = f.mutable_data();
                    {
                        const Released nogil;
                        run.predict(rows, out, self.threads);
                    }
                    return py::object(f);
                });
            },
            py::arg("x"))
        .def("theta", [](const Replicas& self) {
            return self.each([](const Sgd& run) {
                auto theta = make({run.count(), run.row()});
                run.theta(writable(theta));
                return py::object(theta);
            });
        });
}

}  // namespace mfcore::bindings
