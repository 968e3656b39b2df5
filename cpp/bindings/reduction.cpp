#include "arrays.hpp"

namespace mfcore::bindings {

void bind_reduction(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
