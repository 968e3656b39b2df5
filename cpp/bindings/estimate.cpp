// Python bindings of averages over samples: predictions, potentials and Monte-Carlo estimates.
#include <array>
#include <stdexcept>

#include "arrays.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/features/tangent.hpp"

namespace mfcore::bindings {
namespace {

Measure measure(const In& points, const std::optional<In>& weights) {
    const ConstMat view = matrix(points, "measure");
    return {view, weights ? vector(*weights, "weights", view.rows) : nullptr};
}

py::array_t<double> predict_py(const Network& network, const In& points, const std::optional<In>& weights,
                               const In& x, int threads) {
    const Measure rho = measure(points, weights);
    const ConstMat inputs = matrix(x, "X");
    auto f = make({inputs.rows});
    double* out = f.mutable_data();
    {
        Released nogil;
        predict(network, rho, inputs, out, threads);
    }
    return f;
}

py::tuple potential_py(const Network& network, const In& theta, const std::optional<In>& points,
                       const std::optional<In>& weights, const Sampler& sampler, std::uint64_t seed,
                       Index samples, bool value, bool gradient, int threads) {
    const ConstMat rows = matrix(theta, "theta");
    Measure rho;
    if (points) rho = measure(*points, weights);
    py::object values = py::none(), gradients = py::none();
    double risk = 0;
    PotentialOut out;
    out.risk = &risk;
    if (value) {
        auto array = make({rows.rows});
        out.value = array.mutable_data();
        values = std::move(array);
    }
    if (gradient) {
        auto array = make({rows.rows, rows.cols});
        out.gradient = array.mutable_data();
        gradients = std::move(array);
    }
    {
        Released nogil;
        potential(network, rows, points ? &rho : nullptr, sampler, seed, samples, out, {threads, {}});
    }
    return py::make_tuple(values, gradients, risk);
}

py::dict estimate_py(const Network& network, const In& theta, const Sampler& sampler, std::uint64_t seed,
                     Index samples, Index chunk, bool interactions, bool gradient, int threads) {
    const ConstMat rows = matrix(theta, "theta");
    py::dict result;
    EstimateOut out;
    const auto add = [&](const char* name, std::vector<py::ssize_t> shape) {
        auto array = make(std::move(shape));
        result[name] = array;
        return array.mutable_data();
    };
    out.V = add("V", {rows.rows});
    out.V_error = add("V_error", {rows.rows});
    if (interactions) {
        out.U = add("U", {rows.rows, rows.rows});
        out.U_error = add("U_error", {rows.rows, rows.rows});
    }
    if (gradient) {
        out.grad_V = add("grad_V", {rows.rows, rows.cols});
        out.grad_V_error = add("grad_V_error", {rows.rows, rows.cols});
    }
    Index done = 0;
    {
        Released nogil;
        done = estimate(network, rows, sampler, seed, samples, chunk, out,
                        {threads, [&] { return nogil.wants_stop(); }});
    }
    result["samples"] = done;
    return result;
}

py::array_t<double> interaction_py(const Network& network, const In& theta, const In& other,
                                   const Sampler& sampler, std::uint64_t seed, Index samples, int threads) {
    const ConstMat rows = matrix(theta, "theta"), columns = matrix(other, "other");
    auto u = make({rows.rows, columns.rows});
    const Mat out = writable(u);
    {
        Released nogil;
        interaction(network, rows, columns, sampler, seed, samples, out, {threads, {}});
    }
    return u;
}

py::array_t<double> tangent_kernel_py(const Network& network, const In& points,
                                      const std::optional<In>& weights, std::array<double, 3> rates,
                                      const In& x, const std::optional<In>& other, int threads) {
    const Measure rho = measure(points, weights);
    const ConstMat inputs = matrix(x, "X");
    std::optional<ConstMat> others;
    if (other) others = matrix(*other, "other", inputs.cols);
    auto kernel = make({inputs.rows, others ? others->rows : inputs.rows});
    const Mat out = writable(kernel);
    {
        Released nogil;
        tangent_kernel(network, rho, {rates[0], rates[1], rates[2]}, inputs, others ? &*others : nullptr, out,
                       threads);
    }
    return kernel;
}

}  // namespace

void bind_estimate(py::module_& m) {
    m.def("predict", &predict_py, py::arg("network"), py::arg("points"), py::arg("weights"), py::arg("X"),
          py::arg("threads") = 0);
    m.def("potential", &potential_py, py::arg("network"), py::arg("theta"), py::arg("points"),
          py::arg("weights"), py::arg("sampler"), py::arg("seed"), py::arg("samples"), py::kw_only(),
          py::arg("value") = true, py::arg("gradient") = false, py::arg("threads") = 0);
    m.def("estimate", &estimate_py, py::arg("network"), py::arg("theta"), py::arg("sampler"), py::arg("seed"),
          py::arg("samples"), py::kw_only(), py::arg("chunk") = 0, py::arg("interactions") = true,
          py::arg("gradient") = false, py::arg("threads") = 0);
    m.def("interaction", &interaction_py, py::arg("network"), py::arg("theta"), py::arg("other"),
          py::arg("sampler"), py::arg("seed"), py::arg("samples"), py::kw_only(), py::arg("threads") = 0);
    m.def("tangent_kernel", &tangent_kernel_py, py::arg("network"), py::arg("points"), py::arg("weights"),
          py::arg("rates"), py::arg("X"), py::arg("other") = py::none(), py::arg("threads") = 0);
}

}  // namespace mfcore::bindings
