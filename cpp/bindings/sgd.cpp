// Python bindings of runs of stochastic gradient descent.
#include "mfcore/sgd/sgd.hpp"

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

std::unique_ptr<Sgd> start_sgd(const Network& network, const In& start, Index first,
                               const SamplerPtr& sampler, std::uint64_t seed, const py::object& step,
                               Index batch, double ridge, double temperature,
                               const std::tuple<double, double, double>& rates, Index block,
                               bool single_precision) {
    SgdParams params;
    if (py::isinstance<py::float_>(step)) {
        const double h = step.cast<double>();
        params.steps = [h](Index, Index count, double* out) { std::fill_n(out, count, h); };
    } else {
        // steps(first, count) -> array; kept alive by the shared pointer, dropped under the GIL.
        params.steps = [call = keep_object(py::function(step))](Index begin, Index count, double* out) {
            with_gil([&] {
                const In h = (*call)(begin, count).cast<In>();
                std::copy_n(vector(h, "schedule", count), count, out);
            });
        };
    }
    params.batch = batch;
    params.ridge = ridge;
    params.temperature = temperature;
    params.rates = {std::get<0>(rates), std::get<1>(rates), std::get<2>(rates)};
    params.block = block;
    const ConstMat rows = matrix(start, "start");
    return single_precision ? make_sgd<float>(network, rows, first, sampler, seed, std::move(params))
                            : make_sgd<double>(network, rows, first, sampler, seed, std::move(params));
}

py::array_t<double> rows_of(const Sgd& run, void (Sgd::*get)(Mat) const) {
    auto theta = make<double>({run.count(), run.row()});
    (run.*get)(writable(theta));
    return theta;
}

}  // namespace

void bind_sgd(py::module_& m) {
    py::class_<Sgd>(m, "Sgd")
        .def(py::init(&start_sgd), py::arg("network"), py::arg("start"), py::arg("first"), py::arg("sampler"),
             py::arg("seed"), py::arg("step"), py::kw_only(), py::arg("batch") = 1, py::arg("ridge") = 0.0,
             py::arg("temperature") = 0.0, py::arg("rates") = std::make_tuple(1.0, 1.0, 1.0),
             py::arg("block") = 0, py::arg("single_precision") = false)
        .def_property_readonly("step", &Sgd::step)
        .def_property_readonly("diverged_at", &Sgd::diverged_at)
        .def_property_readonly("anchor", &Sgd::anchor)
        .def_property_readonly("block_steps", &Sgd::block_steps)
        .def("theta", [](const Sgd& run) { return rows_of(run, &Sgd::theta); })
        .def("anchor_theta", [](const Sgd& run) { return rows_of(run, &Sgd::anchor_theta); });
    m.def(
        "run_sgd",
        [](const std::vector<Sgd*>& runs, Index target, int threads, double seconds) {
            const char* reason = nullptr;
            {
                Released nogil(seconds);
                run_together(runs, target, threads, [&] { return nogil.wants_end(); });
                reason = nogil.reason();
            }
            for (const Sgd* run : runs)
                if (run->diverged_at() >= 0) return "diverged";
            for (const Sgd* run : runs)
                if (run->step() < target) return reason;
            return "reached";
        },
        py::arg("runs"), py::arg("target"), py::arg("threads") = 0, py::arg("seconds") = INFINITY);
}

}  // namespace mfcore::bindings
