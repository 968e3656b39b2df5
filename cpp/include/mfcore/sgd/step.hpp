#pragma once
// Stochastic gradient steps for loops of the user's own: neurons and samples are the caller's, updated in
// place.
#include <cstdint>
#include <memory>

#include "mfcore/sgd/sgd.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Parameters of sgd_step(), sgd_run() and SplitStep.
struct StepParams {
    double ridge = 0;        ///< lambda >= 0, on trained blocks
    double temperature = 0;  ///< 1/beta >= 0
    Rates rates;
    /// The increment of entry j of neuron i at step k is number (first_neuron + i) D + j of the stream (seed,
    /// langevin, k).
    std::uint64_t seed = 0;
    int threads = 0;
    Index first_neuron = 0;  ///< number of the first of these neurons in the network that they are a part of
};

/// One step of size h, number `step`, with the gradient averaged over the rows of x. False, theta untouched,
/// if a prediction or the state after the step is not finite.
bool sgd_step(const Network& network, Mat theta, ConstMat x, const double* y, double h, Index step,
              const StepParams& params);

/// A step in two halves, for a network whose neurons have several owners, such as processes: each gives the share of its
/// neurons in the predictions, the owners add up their shares, and each moves its own neurons. So the network moves as by
/// sgd_step(), up to rounding. Activations of a small network are kept for the second half.
class SplitStep {
public:
    /// The next step of these neurons, some of `total`, on the rows of x. Neither theta nor x is copied.
    SplitStep(const Network& network, Mat theta, ConstMat x, Index total, const StepParams& params);
    ~SplitStep();
    SplitStep(SplitStep&&) noexcept;
    SplitStep& operator=(SplitStep&&) noexcept;

    /// f[q] = (1/total) sum_i sigma*(x_q; theta_i), over these neurons.
    void forward(double* f);

    /// Move by the residuals y - f_N of the whole network, with step size h, as step number `step`; after forward(). False,
    /// theta untouched, if a residual or the state after the step is not finite.
    bool backward(const double* residual, double h, Index step);

private:
    struct Halves;
    template <class Kind>
    struct HalvesOf;
    std::unique_ptr<Halves> halves_;
};

/// The result of sgd_run(): how many steps were done.
struct StepsDone {
    Index steps;
    bool finite;  ///< false: the next step's prediction, or what it would leave, is not
};

/// One step per row of x, row k with step size h[k] and number first + k. Long noiseless runs are done in
/// blocks (sgd/sgd.hpp), equal up to rounding, those of wide networks without a copy of theta. Throws
/// std::invalid_argument if theta of a run in blocks is not finite.
StepsDone sgd_run(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                  Index first, const StepParams& params, const StopPredicate& wants_stop = {});

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
