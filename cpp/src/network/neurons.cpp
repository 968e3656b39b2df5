// Checks of networks and the shape of their rows of parameters.
#include "network/neurons.hpp"

#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {

void require_rows(const Network& network, ConstMat rows, Index d, const char* name) {
    network.activation.validate();
    require_matrix(rows, name, 0);
    require_count(rows.cols, network.row(d), name, "columns for this network and law");
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
