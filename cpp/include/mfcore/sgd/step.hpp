#pragma once
// Stochastic gradient steps for loops of the user's own: neurons and samples are the caller's, updated in
// place.
#include <cstdint>

#include "mfcore/sgd/sgd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Parameters of sgd_step() and sgd_run().
struct StepParams {
    double ridge = 0;        ///< lambda >= 0, on trained blocks
    double temperature = 0;  ///< 1/beta >= 0
    Rates rates;
    /// The increment of entry j of neuron i at step k is number i D + j of the stream (seed, langevin, k).
    std::uint64_t seed = 0;
    int threads = 0;
};

/// One step of size h, number `step`, with the gradient averaged over the rows of x. False, theta untouched,
/// if a prediction or the state after the step is not finite.
bool sgd_step(const Network& network, Mat theta, ConstMat x, const double* y, double h, Index step,
              const StepParams& params);

/// The result of sgd_run(): how many steps were done.
struct StepsDone {
    Index steps;
    bool finite;  ///< false: the next step's prediction, or what it would leave, is not
};

/// One step per row of x, row k with step size h[k] and number first + k. Long noiseless runs are done in
/// blocks (sgd/sgd.hpp), equal up to rounding.
StepsDone sgd_run(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                  Index first, const StepParams& params, const StopPredicate& wants_stop = {});

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
