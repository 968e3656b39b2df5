#include "arrays.hpp"

namespace mfcore::bindings {

void bind_activation(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
