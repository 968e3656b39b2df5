// Runs of SGD in single precision.
#include "sgd/make.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template std::unique_ptr<Sgd> make_sgd<float>(const Network&, ConstMat, SamplerPtr, std::uint64_t, SgdParams);
template std::unique_ptr<Sgd> make_sgd<float>(const Network&, Index, StartRows, SamplerPtr, std::uint64_t,
                                              SgdParams);

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
