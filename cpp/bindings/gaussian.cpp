#include "arrays.hpp"

namespace mfcore::bindings {

void bind_gaussian(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
