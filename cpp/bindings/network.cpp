#include "arrays.hpp"

namespace mfcore::bindings {

void bind_network(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
