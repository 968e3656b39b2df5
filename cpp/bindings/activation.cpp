#include "mfcore/activation.hpp"

#include <map>
#include <string>

#include "arrays.hpp"

namespace mfcore::bindings {

void bind_activation(py::module_& m) {
    py::class_<Activation>(m, "Activation")
        .def(py::init([](const std::string& kind, double offset, double left_slope, std::vector<double> knots,
                         std::vector<double> jumps, std::vector<double> coefficients) {
                 using Kind = Activation::Kind;
                 static const std::map<std::string, Kind> kinds = {
                     {"linear", Kind::linear},
                     {"relu", Kind::relu},
                     {"erf", Kind::erf},
                     {"tanh", Kind::tanh},
                     {"sigmoid", Kind::sigmoid},
                     {"softplus", Kind::softplus},
                     {"gelu", Kind::gelu},
                     {"piecewise_linear", Kind::piecewise_linear},
                     {"polynomial", Kind::polynomial},
                     {"hermite", Kind::hermite}};
                 const auto found = kinds.find(kind);
                 require(found != kinds.end(), "kind", "must name an activation", kind);
                 return Activation{found->second,    offset,           left_slope,
                                   std::move(knots), std::move(jumps), std::move(coefficients)};
             }),
             py::arg("kind"), py::kw_only(), py::arg("offset") = 0.0, py::arg("left_slope") = 0.0,
             py::arg("knots") = std::vector<double>{}, py::arg("jumps") = std::vector<double>{},
             py::arg("coefficients") = std::vector<double>{});
}

}  // namespace mfcore::bindings
