#pragma once
// One-pass stochastic gradient descent on fresh samples (eq. (1.6)),
//   theta_i <- theta_i + h_k [(y_k - f_N(x_k)) grad sigma*(x_k; theta_i) - lambda theta_i]
//                     + sqrt(2 h_k / beta) g,
// run in blocks of samples that are equal, up to rounding, to the sequential algorithm (eq. (6.2)).
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mfcore/base/run.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Parameters of make_sgd().
struct SgdParams {
    /// steps(first, count, h): step sizes h_k > 0 of steps first .. first + count - 1.
    std::function<void(Index, Index, double*)> steps;
    Index batch = 1;         ///< samples per step; their gradients are averaged
    double ridge = 0;        ///< lambda >= 0, on trained blocks
    double temperature = 0;  ///< 1/beta >= 0
    Rates rates;
    Index block = 0;  ///< samples per block; 0: chosen, 1 step: the plain sequential algorithm
    Index total =
        0;  ///< > 0: there are so many steps and no more; the last block of a run without noise ends there
    bool start_stays = false;  ///< the caller leaves its rows as they are until the first run() returns
    int threads = 1;           ///< that copy neurons outside of run()
};

/// All that a checkpoint needs: the neurons at the start of the current block, whose step is `anchor`. The
/// step reached is inside of the block; going there again gives the same bits.
struct SgdState {
    Index anchor = 0, step = 0;
    std::vector<double> neurons;  ///< N x D
};

/// start(first, count): rows first .. first + count - 1 of the neurons at step 0, which stay where they are
/// until the next call. A run that has to begin again asks for them again.
using StartRows = std::function<ConstMat(Index first, Index count)>;

/// A run in progress. Its state is a function of (parameters, seed, step) alone: blocks start at fixed steps,
/// and a step inside a block is reached from the block's start each time it is asked for, so that stopping,
/// saving and resuming change no bit.
class Sgd {
public:
    virtual ~Sgd() = default;
    /// Advance to step `target` (not before the current one). Where the stop predicate said so it ends after
    /// whole blocks.
    virtual End run(Index target, int threads, const StopPredicate& wants_stop) = 0;
    virtual Index step() const = 0;
    /// The first step whose prediction was not finite, or by whose end neurons were not; or -1.
    virtual Index diverged_at() const = 0;
    /// Neurons at step(), rows as in the network's layout.
    virtual void theta(Mat out) const = 0;
    /// f_N at step() on the rows of x, without a copy of the neurons.
    virtual void predict(ConstMat x, double* f, int threads) const = 0;
    virtual SgdState save() const = 0;
    /// Back to the start of the block of a state; `run` to its step does the rest.
    virtual void restore(const SgdState& state) = 0;
    virtual Index block_steps() const = 0;
    virtual Index count() const = 0;  ///< N
    virtual Index row() const = 0;    ///< D
};

/// Advance several independent runs to step `target`, in parallel over the runs if there are as many as
/// threads, and inside each otherwise. When the stop predicate says so they stop at a common earlier step;
/// when one diverges, soon after it.
End run_together(const std::vector<Sgd*>& runs, Index target, int threads, const StopPredicate& wants_stop);

/// Begin a run from the neurons `start` at step 0, computed in T, double or float.
template <class T>
std::unique_ptr<Sgd> make_sgd(const Network& network, ConstMat start, SamplerPtr sampler, std::uint64_t seed,
                              SgdParams params);

/// The same, of `neurons` neurons that are handed out a piece at a time, so that they are in memory once.
template <class T>
std::unique_ptr<Sgd> make_sgd(const Network& network, Index neurons, StartRows start, SamplerPtr sampler,
                              std::uint64_t seed, SgdParams params);

extern template std::unique_ptr<Sgd> make_sgd<double>(const Network&, ConstMat, SamplerPtr, std::uint64_t,
                                                      SgdParams);
extern template std::unique_ptr<Sgd> make_sgd<float>(const Network&, ConstMat, SamplerPtr, std::uint64_t,
                                                     SgdParams);
extern template std::unique_ptr<Sgd> make_sgd<double>(const Network&, Index, StartRows, SamplerPtr,
                                                      std::uint64_t, SgdParams);
extern template std::unique_ptr<Sgd> make_sgd<float>(const Network&, Index, StartRows, SamplerPtr,
                                                     std::uint64_t, SgdParams);

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
