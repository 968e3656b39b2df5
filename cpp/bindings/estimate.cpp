#include "arrays.hpp"

namespace mfcore::bindings {

void bind_estimate(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
