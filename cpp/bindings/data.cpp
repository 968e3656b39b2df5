#include "arrays.hpp"

namespace mfcore::bindings {

void bind_data(py::module_& /*m*/) {}

}  // namespace mfcore::bindings
