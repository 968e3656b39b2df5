// Python bindings of activations: values and derivatives on arrays.
#include "mfcore/network/activation.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace mfcore::bindings {
namespace {

/// The derivative of the given order at every entry of z, in the precision T.
template <class T>
py::array_t<T> evaluated(const Activation& sigma, const py::array& z, int order, const py::object& out) {
    const auto in = py::cast<Array<T>>(z);
    std::vector<py::ssize_t> shape(in.shape(), in.shape() + in.ndim());
    py::array_t<T> result;
    if (out.is_none()) {
        result = make<T>(shape);
    } else {
        require(py::isinstance<Array<T>>(out), "out", "must be C-contiguous, with the precision of",
                "another array");
        result = py::reinterpret_borrow<py::array_t<T>>(out);
        const bool fits =
            std::equal(shape.begin(), shape.end(), result.shape(), result.shape() + result.ndim());
        require(fits, "out", "must have the shape of z", py::str(out.attr("shape")).cast<std::string>());
    }
    T* to[3] = {};
    to[order] = result.mutable_data();  // refuses a read-only array
    Released nogil;
    in_pieces(in.size(), kPiece, [&](Index k, Index n) {
        const auto at = [&](int o) { return to[o] ? to[o] + k : nullptr; };
        evaluate<T>(sigma, n, in.data() + k, at(0), at(1), at(2));
    });
    return result;
}

/// Functions of arrays in Python, called with the GIL: sigma, sigma' and sigma'' or None.
struct PythonFunctions {
    py::object functions[3];

    static void call(std::int64_t n, const double* z, double* value, double* slope, double* curvature,
                     void* user) {
        const auto& self = *static_cast<const PythonFunctions*>(user);
        const char* const names[3] = {"values of function", "values of slope", "values of curvature"};
        double* const to[3] = {value, slope, curvature};
        with_gil([&] {
            for (int order = 0; order < 3; ++order) {
                if (!to[order]) continue;
                auto copy = make({n});
                std::copy_n(z, n, copy.mutable_data());
                const auto values = self.functions[order](copy).template cast<In>();
                std::copy_n(vector(values, names[order], n), n, to[order]);
            }
        });
    }
};

Activation python_activation(py::object value, py::object slope, py::object curvature, double strip,
                             std::vector<double> kinks) {
    const bool curved = !curvature.is_none();
    auto kept = keep_object(PythonFunctions{{std::move(value), std::move(slope), std::move(curvature)}});
    auto* const user = const_cast<PythonFunctions*>(kept.get());
    return Activation::custom(
        {&PythonFunctions::call, user, std::move(kept), curved, strip, std::move(kinks)});
}

Activation span_activation(std::uintptr_t address, std::uintptr_t user, py::object owner, bool curved,
                           double strip, std::vector<double> kinks) {
    return Activation::custom({reinterpret_cast<SpanFunction*>(address), reinterpret_cast<void*>(user),
                               keep_object(std::move(owner)), curved, strip, std::move(kinks)});
}

}  // namespace

void bind_activation(py::module_& m) {
    py::class_<Activation>(m, "Activation")
        .def(py::init([](const std::string& kind, double offset, double left_slope, std::vector<double> knots,
                         std::vector<double> jumps, std::vector<double> coefficients) {
                 const Activation sigma{kind.c_str(),     offset,           left_slope,
                                        std::move(knots), std::move(jumps), std::move(coefficients)};
                 sigma.validate();
                 return sigma;
             }),
             py::arg("kind"), py::kw_only(), py::arg("offset") = 0.0, py::arg("left_slope") = 0.0,
             py::arg("knots") = std::vector<double>{}, py::arg("jumps") = std::vector<double>{},
             py::arg("coefficients") = std::vector<double>{})
        .def_static("named", &named_activation, py::arg("kind"),
                    "The activation of a kind without parameters.")
        .def_static("of_python", &python_activation, py::arg("value"), py::arg("slope"), py::arg("curvature"),
                    py::arg("strip"), py::arg("kinks"), "A custom activation of functions of arrays.")
        .def_static("of_spans", &span_activation, py::arg("address"), py::arg("user"), py::arg("owner"),
                    py::arg("curved"), py::arg("strip"), py::arg("kinks"),
                    "A custom activation by the address of a function of spans; owner is kept.")
        .def_property_readonly("kind", [](const Activation& sigma) { return sigma.kind.name(); })
        .def_readonly("offset", &Activation::offset)
        .def_readonly("left_slope", &Activation::left_slope)
        .def_readonly("knots", &Activation::knots)
        .def_readonly("jumps", &Activation::jumps)
        .def_readonly("coefficients", &Activation::coefficients)
        .def_property_readonly("is_piecewise", &Activation::is_piecewise)
        .def_property_readonly("facts", &facts);
    py::class_<Facts>(m, "Facts")
        .def_property_readonly(
            "parity",
            [](const Facts& known) {
                return known.parity == Parity::none ? "none" : known.parity == Parity::odd ? "odd" : "even";
            })
        .def_readonly("is_polynomial", &Facts::polynomial)
        .def_readonly("degree", &Facts::degree)
        .def_readonly("strip", &Facts::strip)
        .def_readonly("growth", &Facts::growth);
    m.def("named_kinds", &named_kinds, "Names of the kinds without parameters.");

    m.def(
        "evaluate",
        [](const Activation& sigma, const py::array& z, int order, const py::object& out) -> py::array {
            require(order >= 0 && order <= 2, "order", "must be 0, 1 or 2", order);
            if (z.dtype().equal(py::dtype::of<float>())) return evaluated<float>(sigma, z, order, out);
            return evaluated<double>(sigma, z, order, out);
        },
        py::arg("activation"), py::arg("z"), py::arg("order") = 0, py::arg("out") = py::none(),
        "sigma, sigma' or sigma'' at every entry of z; float32 for float32, float64 otherwise. out may be "
        "z.");
}

}  // namespace mfcore::bindings
