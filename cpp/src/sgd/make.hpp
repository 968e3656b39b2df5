#pragma once
// Runs of SGD made from what is checked: compiled once for each precision, each in a file of its own, which
// are the longest of the build.
#include <utility>

#include "base/parallel.hpp"
#include "sgd/run.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template <class T>
std::unique_ptr<Sgd> make_checked(const Network& network, Index neurons, Start start, SamplerPtr sampler,
                                  std::uint64_t seed, SgdParams params) {
    require(params.batch > 0, "batch", "must be > 0", params.batch);
    require(params.threads >= 0, "threads", "must be >= 0", params.threads);
    require(params.ridge >= 0, "ridge", "must be >= 0", params.ridge);
    require(params.temperature >= 0, "temperature", "must be >= 0", params.temperature);
    const Rates& rates = params.rates;
    for (const double rate : {rates.a, rates.b, rates.w}) require(rate >= 0, "rates", "must be >= 0", rate);
    require(static_cast<bool>(params.steps), "steps", "must be a function", "none");
    // Never tiles of one vector: only networks of so few neurons would take them, and most of those are direct.
    return with_tile_width<T, 2>(neurons, [&](auto width) -> std::unique_ptr<Sgd> {
        return std::make_unique<SgdRun<T, width()>>(network, std::move(start), std::move(sampler), seed,
                                                    std::move(params));
    });
}

template <class T>
std::unique_ptr<Sgd> make_sgd(const Network& network, ConstMat start, SamplerPtr sampler, std::uint64_t seed,
                              SgdParams params) {
    require(sampler != nullptr, "sampler", "must not be null", "null");
    require_rows(network, start, sampler->dimension(), "start");
    require_matrix(start, "start");
    return make_checked<T>(network, start.rows, Start(start), std::move(sampler), seed, std::move(params));
}

template <class T>
std::unique_ptr<Sgd> make_sgd(const Network& network, Index neurons, StartRows start, SamplerPtr sampler,
                              std::uint64_t seed, SgdParams params) {
    require(sampler != nullptr, "sampler", "must not be null", "null");
    require(neurons > 0, "neurons", "must be > 0", neurons);
    require(static_cast<bool>(start), "start", "must be a function", "none");
    return make_checked<T>(network, neurons, Start(neurons, std::move(start)), std::move(sampler), seed,
                           std::move(params));
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
