// Runs of SGD in double precision.
#include "sgd/in_place.hpp"
#include "sgd/make.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template std::unique_ptr<Sgd> make_sgd<double>(const Network&, ConstMat, SamplerPtr, std::uint64_t,
                                               SgdParams);
template std::unique_ptr<Sgd> make_sgd<double>(const Network&, Index, StartRows, SamplerPtr, std::uint64_t,
                                               SgdParams);

StepsInPlace run_in_place(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                          const SgdParams& params, const StopPredicate& wants_stop) {
    return with_tile_width<double, 2>(theta.rows, [&](auto width) {
        return InPlace<width()>(network, theta, x, y, h, params).run(wants_stop);
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
