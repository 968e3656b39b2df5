#pragma once
// Population dynamics of neurons (eq. (1.7)), the mean over the data taken at every step:
//   d theta_i = -rates grad Psi_lambda(theta_i; rho_N) dt + sqrt(2 rates / beta) dB_i,
// and the integrators for it, which know of the problem only its velocity.
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "mfcore/base/run.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/network/network.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {

/// The points of a row's space where the potential is a cone, as a kink of sigma meets w = 0: those where all
/// `columns` are 0 and the column `bias`, if there is one, is one of `knots`.
struct Apex {
    std::vector<Index> columns;  ///< empty: there are none
    Index bias = -1;             ///< -1: no bias
    std::vector<double> knots;
    Index row = 0;  ///< entries of a row, where not all entries are those of rows; 0: one for each speed
};
/// The apex of rows with w in these columns and, unless `bias` is -1, a bias: every kink of sigma if there is a
/// bias, else one at 0. None if a column does not move, or all is one column, in which nothing can turn.
Apex apex_of(const Activation& sigma, std::vector<Index> columns, Index bias,
             const std::vector<double>& speed);

/// The system that is integrated: dy/dt = velocity(y), plus noise of variance 2 temperature speed per unit of time.
struct System {
    Index size = 0;
    /// Writes dy/dt; returns false if somebody wants to stop, and `velocity` is not complete.
    std::function<bool(const double* y, double* velocity)> velocity;
    std::function<void(double* y)> project;  ///< back to the constraint, after every step; may be empty
    /// Takes the part across the constraint out of a velocity at y, in place; may be empty. Euler's scheme takes
    /// its step without, and goes back to the constraint from there.
    std::function<void(const double* y, double* velocity)> tangent;
    /// The velocity of entry k is -speed[k % speed.size()] times a gradient; 0: the entry never moves. What
    /// follows may be empty, and goes by columns k % speed.size() or rows of so many entries, too.
    std::vector<double> speed;
    /// Columns with a wall at 0: entries stay >= 0. A velocity at 0 must not point through the wall; inside a
    /// step the integrators ask below 0 for the velocity at 0, whatever its sign, and clamp at the end.
    std::vector<bool> nonnegative;
    /// Exponents e > 0 of the columns whose entry is the norm of a point in R^{e+1}. Matters with noise only.
    std::vector<double> volume;
    std::vector<double> masses;  ///< of the rows, which the mean square of the gradient is weighted with
    /// Asked after every adaptive step, before entries are clamped to walls: whether the rows still represent
    /// the measure they started from. If not, the step is refused.
    std::function<bool(const double* y)> resolved;
    /// The points at which rows can come to rest. Adaptive integrators hold them there.
    Apex apex;
    /// Between the rows that are given and shown and those that are integrated; empty where they are the same.
    std::function<void(double* y)> fold, unfold;

    /// The velocity along the constraint, if there is one; false as `velocity`.
    bool velocity_along(const double* y, double* to) const {
        if (!velocity(y, to)) return false;
        if (tangent) tangent(y, to);
        return true;
    }
};

/// Computes grad Psi(theta_i; rho_N), without decay, of neurons in their own field. False as in System.
using Gradient = std::function<bool(ConstMat theta, Mat gradient)>;

/// The gradient function by averages over samples 0 .. samples - 1 of the sampler, the same ones at every
/// call. `masses` of the neurons if they are not equal: one without mass moves in the field of the others.
Gradient node_gradient(Network network, SamplerPtr sampler, std::uint64_t seed, Index samples,
                       RunOptions options = {}, std::vector<double> masses = {});

/// The system of `neurons` rows of the network's layout for inputs in R^d: decay on trained blocks, a fixed
/// output weight at rest, and on the sphere the tangent of eq. (6.8).
System neuron_system(const Network& network, Index neurons, Index d, double ridge, const Rates& rates,
                     Gradient gradient, int threads = 0);

/// All that a checkpoint needs, opaque but for the sizes.
struct FlowState {
    std::vector<double> numbers;
    std::vector<double> vectors;  // several states, one after the other
};

/// The record of a flow so far.
struct FlowCounts {
    Index steps = 0, rejected = 0, evaluations = 0;
    /// Error of the risk by the steps, eq. (6.13): sum over the steps of
    /// |2 int grad Psi_lambda . error d rho|. Only with masses and without noise.
    double risk_error = 0;
};

/// A run in progress from t = 0. Its state is a function of the arguments and t alone: where it is looked at
/// or stopped changes no bit.
class Flow {
public:
    virtual ~Flow() = default;
    /// Go to time t, not before the present one. The predicate is asked after steps, so that each call makes
    /// progress.
    virtual End run(double t, const StopPredicate& wants_stop) = 0;
    /// With fixed steps: one step of the length that is left to t, no longer than the others.
    virtual End finish(double t) {
        throw std::invalid_argument("t must be reached by run: steps are not fixed, got " +
                                    std::to_string(t));
    }
    virtual Index size() const = 0;         ///< entries of a state
    virtual double t() const = 0;           ///< the present time
    virtual void get(double* y) const = 0;  ///< the state at it
    virtual double step_size() const = 0;   ///< of the next step
    /// The row with the largest error in the last attempt at a step; -1 where steps are fixed.
    virtual Index limiting_row() const { return -1; }
    /// The end of the step that System::resolved refused.
    virtual void refused(double* y) const { get(y); }
    virtual FlowState save() const = 0;
    virtual void restore(const FlowState& state) = 0;
    const FlowCounts& counts() const { return counts_; }

protected:
    FlowCounts counts_;
};

/// Explicit schemes with fixed steps h (eq. (6.9)); t is a multiple of h, the one nearest to what is asked
/// for.
enum class Scheme {
    euler,  ///< order 1; Euler-Maruyama with noise; of neurons, gradient descent (eq. (6.1) with all samples)
    heun,   ///< order 2, with (additive) noise in law: both slopes see the same increment
    rk4,    ///< order 4, without noise
};

/// Parameters of fixed_steps().
struct FixedParams {
    Scheme scheme = Scheme::euler;
    double step = 0;         ///< h > 0
    double temperature = 0;  ///< 1/beta >= 0
    /// The increment of entry j of step k is number j of the stream (seed, langevin, k), shared by all rungs;
    /// of a radius, its component along the point. What is across comes from (seed, langevin_radius, k).
    std::uint64_t seed = 0;
    double tolerance = 0;  ///< stop where the gradient is smaller; 0: never
    int threads = 0;       ///< of the noise
};

/// Begin a flow from `start`, which is copied, with an explicit scheme and fixed steps.
std::unique_ptr<Flow> fixed_steps(System system, const double* start, const FixedParams& params);

/// Parameters of dopri5().
struct AdaptiveParams {
    double rtol = 0, atol = 0;  ///< > 0: error per step, root mean square over the entries that move
    double tolerance = 0;       ///< stop where the gradient is smaller; 0: never
    double first_step = 0;      ///< 0: chosen
};

/// Half the distance from an apex below which rows are held in coordinates in which they can rest: delta =
/// max(4 sqrt(rtol), 0.003) times the root mean square of the distances at the start, as what is left out is of
/// order delta^2. 0 if the system has no apex.
double resting_radius(const System& system, const double* start, double rtol);

/// The system in those coordinates (eqs. (6.18) to (6.20)), with `fold` and `unfold`; itself for delta = 0.
System folded(System system, double delta);

/// A flow by Dormand and Prince's pair of orders 5(4) with a PI controller (eq. (6.12)). States between steps
/// come from its continuous extension of order 4: the times asked for do not change the steps.
std::unique_ptr<Flow> dopri5(System system, const double* start, const AdaptiveParams& params);

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
