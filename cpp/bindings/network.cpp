// Python bindings of the layout of a neuron's row.
#include "mfcore/network/network.hpp"

#include <string>

#include "arrays.hpp"

namespace mfcore::bindings {

void bind_network(py::module_& m) {
    py::class_<Network>(m, "Network")
        .def(py::init([](const Activation& activation, const std::string& output, const std::string& bias,
                         bool sphere) {
                 require(output == "one" || output == "fixed" || output == "trained", "output",
                         "must be one, fixed or trained", output);
                 require(bias == "none" || bias == "fixed" || bias == "trained", "bias",
                         "must be none, fixed or trained", bias);
                 Network net{activation};
                 net.output = output == "one"     ? Output::one
                              : output == "fixed" ? Output::fixed
                                                  : Output::trained;
                 net.bias = bias == "none" ? Bias::none : bias == "fixed" ? Bias::fixed : Bias::trained;
                 net.sphere = sphere;
                 return net;
             }),
             py::arg("activation"), py::kw_only(), py::arg("output") = "one", py::arg("bias") = "none",
             py::arg("sphere") = false)
        .def("row", &Network::row, py::arg("d"));
}

}  // namespace mfcore::bindings
