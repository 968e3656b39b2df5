// The extension module: one init function per concept. Classes come before the functions that mention them,
// so that signatures in docstrings print right.
#include "arrays.hpp"

namespace mb = mfcore::bindings;

PYBIND11_MODULE(MFCORE_MODULE, m, mb::py::mod_gil_not_used()) {
    m.doc() = "Compiled core of mfcore for one instruction-set level.";
    mb::bind_deadline(m);
    mb::bind_run(m);
    mb::bind_random(m);
    mb::bind_activation(m);
    mb::bind_network(m);
    mb::bind_data(m);
    mb::bind_gaussian(m);
    mb::bind_reduction(m);
    mb::bind_separable(m);
    mb::bind_estimate(m);
    mb::bind_sgd(m);
    mb::bind_layer_wise(m);
    mb::bind_step(m);
    mb::bind_grid(m);
    mb::bind_flow(m);
    mb::bind_fokker_planck(m);
}
