#pragma once
// SGD of the first layer alone that keeps small weights on a sphere and clips large ones (eqs. (12.8), (12.9)).
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mfcore/base/run.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// Parameters of make_layer_wise().
struct LayerWiseParams {
    /// steps(first, count, h): step sizes h_k > 0 of steps first .. first + count - 1.
    std::function<void(Index, Index, double*)> steps;
    Index batch = 1;     ///< samples per step; their gradients are averaged
    double reach = 0.5;  ///< > 0: a weight that has been as large is no longer small
    double clip = 1;     ///< >= reach: the largest size of a weight that is not small
    double rate = 1;     ///< factor of the step sizes
};

/// All that a checkpoint needs.
struct LayerWiseState {
    Index step = 0;
    std::vector<double> neurons;      ///< N x D
    std::vector<double> norms;        ///< N: |w_i| at step 0
    std::vector<std::uint8_t> small;  ///< N x d: 1 for the weights that have never been as large as reach
};

/// A run in progress. Its state is a function of (parameters, seed, step) alone.
class LayerWise {
public:
    virtual ~LayerWise() = default;
    /// Advance to step `target` (not before the current one). Where the stop predicate or the StopScope of this
    /// thread said so it ends after whole steps.
    virtual End run(Index target, int threads, const StopPredicate& wants_stop) = 0;
    virtual Index step() const = 0;
    /// Neurons at step(), rows as in the network's layout.
    virtual void theta(Mat out) const = 0;
    /// How many weights are not small.
    virtual Index found() const = 0;
    virtual LayerWiseState save() const = 0;
    virtual void restore(const LayerWiseState& state) = 0;
    virtual Index count() const = 0;  ///< N
    virtual Index row() const = 0;    ///< D
};

/// Begin a run from the neurons `start` at step 0. Output weights and biases are at rest.
std::unique_ptr<LayerWise> make_layer_wise(const Network& network, ConstMat start, SamplerPtr sampler,
                                           std::uint64_t seed, LayerWiseParams params);

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
