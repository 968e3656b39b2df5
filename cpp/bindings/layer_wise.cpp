// Python bindings of runs of layer-wise training.
#include "mfcore/sgd/layer_wise.hpp"

#include "step_sizes.hpp"

namespace mfcore::bindings {
namespace {

py::dict state_of_layers(const LayerWise& self) {
    const LayerWiseState state = self.save();
    const Index d = static_cast<Index>(state.small.size()) / self.count();
    auto theta = make({self.count(), self.row()});
    std::copy(state.neurons.begin(), state.neurons.end(), theta.mutable_data());
    auto small = make<bool>({self.count(), d});
    std::copy(state.small.begin(), state.small.end(), small.mutable_data());
    py::dict arrays;
    arrays["theta"] = theta;
    arrays["small"] = small;
    arrays["norms"] = array_of(state.norms);
    arrays["step"] = array_of(std::vector<Index>{state.step});
    return arrays;
}

void restore_layers(LayerWise& self, const py::dict& arrays) {
    const auto steps = entry_of<Index>(arrays, "step");
    require(steps.size() == 1, "step", "must be one number", steps.size());
    const auto small = arrays["small"].cast<Array<bool>>();
    self.restore({steps[0],
                  entry_of<double>(arrays, "theta"),
                  entry_of<double>(arrays, "norms"),
                  {small.data(), small.data() + small.size()}});
}

}  // namespace

void bind_layer_wise(py::module_& m) {
    py::class_<LayerWise>(m, "LayerWise", "A run of SGD of the first layer alone, on spheres and in boxes.")
        .def(py::init([](const Network& network, const In& start, const SamplerPtr& sampler,
                         std::uint64_t seed, const py::object& step, Index batch, double reach, double clip,
                         double rate) {
                 return make_layer_wise(network, matrix(start, "start"), sampler, seed,
                                        {sizes_of(step), batch, reach, clip, rate});
             }),
             py::arg("network"), py::arg("start"), py::arg("sampler"), py::arg("seed"), py::arg("step"),
             py::kw_only(), py::arg("batch") = 1, py::arg("reach") = 0.5, py::arg("clip") = 1.0,
             py::arg("rate") = 1.0)
        .def(
            "advance",
            [](LayerWise& self, Index step, double seconds, int threads) {
                Released nogil(seconds);
                return nogil.because(self.run(step, threads, [&] { return nogil.wants_end(); }));
            },
            py::arg("step"), py::arg("seconds") = INFINITY, py::arg("threads") = 0)
        .def("state", &state_of_layers)
        .def("restore", &restore_layers, py::arg("state"))
        .def_property_readonly("step", &LayerWise::step)
        .def_property_readonly("found", &LayerWise::found)
        .def("theta", [](const LayerWise& self) {
            auto theta = make({self.count(), self.row()});
            self.theta(writable(theta));
            return theta;
        });
}

}  // namespace mfcore::bindings
