#include "arrays.hpp"

namespace mfcore::bindings {

void bind_random(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
