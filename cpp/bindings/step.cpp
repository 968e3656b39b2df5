// Python bindings of steps on the caller's neurons.
#include "mfcore/sgd/step.hpp"

#include "arrays.hpp"
#include "rates.hpp"

namespace mfcore::bindings {
namespace {

StepParams step_params(double ridge, double temperature, const RateTuple& rates, std::uint64_t seed,
                       int threads) {
    return {ridge, temperature, rates_of(rates), seed, threads};
}

/// With the arrays that it looks at.
struct Split {
    py::array_t<double> theta;
    In x;
    Index samples;
    SplitStep step;
};

}  // namespace

void bind_step(py::module_& m) {
    py::class_<Split>(m, "SplitStep", "A step of neurons that are some of a network, in two halves.")
        .def(py::init([](const Network& network, py::array_t<double> theta, const In& x, Index total,
                         double ridge, double temperature, const RateTuple& rates, std::uint64_t seed,
                         Index first_neuron, int threads) {
                 StepParams params = step_params(ridge, temperature, rates, seed, threads);
                 params.first_neuron = first_neuron;
                 const ConstMat inputs = matrix(x, "X");
                 return Split{
                     theta, x, inputs.rows, {network, in_place(theta, "theta"), inputs, total, params}};
             }),
             py::arg("network"), py::arg("theta").noconvert(), py::arg("X"), py::arg("total"), py::kw_only(),
             py::arg("ridge") = 0.0, py::arg("temperature") = 0.0,
             py::arg("rates") = std::make_tuple(1.0, 1.0, 1.0), py::arg("seed") = 0,
             py::arg("first_neuron") = 0, py::arg("threads") = 0)
        .def("forward",
             [](Split& self) {
                 auto f = make({self.samples});
                 double* const to = f.mutable_data();
                 Released nogil;
                 self.step.forward(to);
                 return f;
             })
        .def(
            "backward",
            [](Split& self, const In& residual, double h, Index step) {
                const double* errors = vector(residual, "residual", self.samples);
                Released nogil;
                return self.step.backward(errors, h, step);
            },
            py::arg("residual"), py::arg("h"), py::arg("step"));
    m.def(
        "sgd_step",
        [](const Network& network, py::array_t<double> theta, const In& x, const In& y, double h, Index step,
           double ridge, double temperature, const RateTuple& rates, std::uint64_t seed, int threads) {
            const Mat rows = in_place(theta, "theta");
            const ConstMat inputs = matrix(x, "X");
            const double* labels = vector(y, "y", inputs.rows);
            const StepParams params = step_params(ridge, temperature, rates, seed, threads);
            Released nogil;
            return sgd_step(network, rows, inputs, labels, h, step, params);
        },
        py::arg("network"), py::arg("theta").noconvert(), py::arg("X"), py::arg("y"), py::arg("h"),
        py::arg("step"), py::kw_only(), py::arg("ridge") = 0.0, py::arg("temperature") = 0.0,
        py::arg("rates") = std::make_tuple(1.0, 1.0, 1.0), py::arg("seed") = 0, py::arg("threads") = 0,
        "One step in place; False, nothing done, if a prediction is not finite.");
    m.def(
        "sgd_run",
        [](const Network& network, py::array_t<double> theta, const In& x, const In& y, const In& h,
           Index first, double ridge, double temperature, const RateTuple& rates, std::uint64_t seed,
           int threads) {
            const Mat rows = in_place(theta, "theta");
            const ConstMat inputs = matrix(x, "X");
            const double* labels = vector(y, "y", inputs.rows);
            const double* sizes = vector(h, "h", inputs.rows);
            const StepParams params = step_params(ridge, temperature, rates, seed, threads);
            Released nogil;
            const StepsDone done = sgd_run(network, rows, inputs, labels, sizes, first, params,
                                           [&] { return nogil.wants_stop(); });
            return std::make_pair(done.steps, done.finite);
        },
        py::arg("network"), py::arg("theta").noconvert(), py::arg("X"), py::arg("y"), py::arg("h"),
        py::arg("first"), py::kw_only(), py::arg("ridge") = 0.0, py::arg("temperature") = 0.0,
        py::arg("rates") = std::make_tuple(1.0, 1.0, 1.0), py::arg("seed") = 0, py::arg("threads") = 0,
        "One step per row in place: (steps done, whether the next prediction is finite).");
}

}  // namespace mfcore::bindings
