// Densities with noise: the sizes and couplings of implicit Euler steps (eqs. (7.14), (7.15)).
#include "mfcore/density/fokker_planck.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "density/label_masses.hpp"
#include "density/noisy_steps.hpp"
#include "flow/vectors.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {
namespace {

using State = NoisyState;

constexpr Index kTrial = 20;  // steps from one comparison of the couplings to the next

/// The variables that choose the next step and the coupling.
struct Control {
    double t = 0, h = 0, first_h = 0;
    bool implicit = false;  // the coupling that was better when both were last tried
    Index countdown = 0;    // steps until both are tried again
    double compared_h = 0;  // the step that was tried
    double rise = -std::numeric_limits<double>::infinity();
    FlowCounts counts;
};

class Run final : public FokkerPlanck {
public:
    Run(GridPotential potential, const std::vector<DiffusionAxis>& axes, const double* start,
        const FokkerPlanckParams& params)
        : params_(params),
          steps_(std::move(potential), axes, params.temperature, params.threads),
          grid_(steps_.potential()),
          labels_(axes, grid_),
          now_(grid_.size(), grid_.rank()),
          ahead_(now_),
          rival_(now_),
          side_(now_),
          full_(grid_.size()),
          half_(grid_.size()) {
        watch(axes);
        control_.t = shown_ = begun_ = params.t;
        // Part of the state: it may be saved before the first step is taken.
        if (params.step == 0) control_.first_h = control_.h = params.first;
        grid_.spread(start, now_.mass.data());
        labels_.count(now_.mass);
        steps_.evaluate(now_);
        ahead_control_ = control_;
    }

    End run(double t, const StopPredicate& wants_stop) override {
        require(t >= shown_, "t", "must not be before the present time", t);
        StopPoll stop(wants_stop);
        while (control_.t < t) {
            if (!ahead_known_) {
                const End end = flow::unless_interrupted([&] { return advance(); });
                if (end != End::reached) {
                    shown_ = std::max(shown_, control_.t);
                    return end;
                }
            }
            if (ahead_control_.t > t) break;
            std::swap(now_, ahead_);
            control_ = ahead_control_;
            counts_ = control_.counts;
            ahead_known_ = false;
            shown_ = control_.t;
            if (params_.most_watched > 0 && watched_mass() > params_.most_watched) return End::open_end;
            if (control_.t < t && stop()) return End::out_of_time;
        }
        const End end =
            t > control_.t ? flow::unless_interrupted([&] { return step_aside(t); }) : End::reached;
        shown_ = end == End::reached ? t : std::max(shown_, control_.t);
        return end;
    }

    Index size() const override { return grid_.rows() * grid_.cols(); }
    double t() const override { return shown_; }
    double step_size() const override { return control_.h; }
    void get(double* mass) const override { grid_.gather(shown().mass.data(), mass); }

    double free_energy() const override { return shown().free_energy; }
    double risk() const override { return shown().risk; }
    double largest_rise() const override { return control_.rise; }
    double dissipation() const override { return steps_.dissipation(shown()); }

    FlowState save() const override {
        const Control& c = control_;
        FlowState state{{c.t, c.h, c.first_h, c.rise, c.compared_h, c.implicit ? 1.0 : 0.0,
                         static_cast<double>(c.countdown), static_cast<double>(c.counts.steps),
                         static_cast<double>(c.counts.rejected), static_cast<double>(c.counts.evaluations),
                         shown_, begun_},
                        std::vector<double>(size())};
        grid_.gather(now_.mass.data(), state.vectors.data());
        state.vectors.insert(state.vectors.end(), labels_.totals().begin(), labels_.totals().end());
        return state;
    }

    void restore(const FlowState& state) override {
        require_count(state.numbers.size(), 12, "numbers", "entries");
        const std::size_t expected = static_cast<std::size_t>(size()) + labels_.totals().size();
        require_count(state.vectors.size(), expected, "vectors", "entries");
        const double* number = state.numbers.data();
        Control& c = control_;
        for (double* to : {&c.t, &c.h, &c.first_h, &c.rise, &c.compared_h}) *to = *number++;
        c.implicit = *number++ != 0;
        for (Index* to : {&c.countdown, &c.counts.steps, &c.counts.rejected, &c.counts.evaluations})
            *to = static_cast<Index>(*number++);
        shown_ = *number++;
        begun_ = *number;
        counts_ = c.counts;
        ahead_known_ = false;
        grid_.spread(state.vectors.data(), now_.mass.data());
        labels_.restore(state.vectors.data() + size());
        steps_.evaluate(now_);
        if (shown_ > c.t) step_aside(shown_);
    }

private:
    struct Trial {
        bool fine = false;        // accurate enough, and the free energy falls or the coupling is implicit
        double error = INFINITY;  // in units of what is tolerated
        Index work = 0;           // potentials evaluated
        double clipped() const { return std::max(error, 1e-6); }
        double price() const { return static_cast<double>(work) * std::sqrt(clipped()); }
    };

    const State& shown() const { return shown_ > control_.t ? side_ : now_; }

    /// Find the watched cells of all axes in an array over the grid, each once.
    void watch(const std::vector<DiffusionAxis>& axes) {
        for (Index cell = 0; cell < size(); ++cell) {
            bool found = false;
            Index rest = cell;
            for (std::size_t c = axes.size(); c-- > 0;) {
                const Index n = static_cast<Index>(axes[c].edges.size()) - 1;
                const std::vector<Index>& watched = axes[c].watched;
                found |= std::find(watched.begin(), watched.end(), rest % n) != watched.end();
                rest /= n;
            }
            const Index cols = grid_.cols();
            if (found) watched_.push_back(cell / cols * grid_.stride() + cell % cols);
        }
    }

    /// Compute the next step of the main sequence into `ahead_`. Anything but `reached` leaves the state as
    /// it was.
    End advance() {
        Control& c = ahead_control_;
        c = control_;
        if (!std::isfinite(now_.free_energy)) return End::diverged;
        if (params_.tolerance > 0 && std::sqrt(steps_.dissipation(now_)) < params_.tolerance)
            return End::stationary;
        if (c.first_h == 0) c.first_h = c.h = first_step();
        const bool adaptive = params_.step == 0;
        steps_.evaluations = c.counts.evaluations;
        const bool free = params_.coupling == Coupling::automatic;
        if (!free) c.implicit = params_.coupling == Coupling::implicit;
        if (!adaptive) {
            if (!settle(c.h, c.implicit, ahead_)) return End::stuck;
            accept();
            return End::reached;
        }
        while (true) {
            if (c.h < 1e-15 * std::max(std::abs(c.t), c.first_h)) return End::stuck;
            Trial trial = attempt(c.h, true, c.implicit, ahead_);
            if (free && (c.countdown == 0 || !trial.fine)) {
                const Trial other = attempt(c.h, true, !c.implicit, rival_);
                if (prefers(trial, other)) {
                    std::swap(ahead_, rival_);
                    trial = other;
                    c.implicit = !c.implicit;
                }
                c.compared_h = c.h;
            }
            if (trial.fine) {
                accept();
                // The kept result is more accurate than the estimate, which is of order h^2.
                c.h *= std::min(5.0, 0.9 / std::sqrt(trial.clipped()));
                return End::reached;
            }
            ++c.counts.rejected;
            c.h *= trial.error > 1 && std::isfinite(trial.error) ? std::max(0.2, 0.9 / std::sqrt(trial.error))
                                                                 : 0.25;
        }
    }

    /// True to change the coupling to that of `other`. The criterion is the time covered for its work: a step
    /// of the same error would be 1/sqrt(error) as long. But lagged steps at the limit of their stability
    /// keep stiff modes alive, which the other coupling has to damp first: it gets a chance where the size of
    /// steps stagnates, and soon has to show that they have grown.
    bool prefers(const Trial& trial, const Trial& other) {
        Control& c = ahead_control_;
        const bool stagnant = !c.implicit && std::abs(c.h - c.compared_h) < 0.1 * c.h;
        const double bound = trial.price() * (c.implicit ? 0.5 : stagnant ? 16 : 2);
        const bool change =
            other.fine ? !trial.fine || other.price() < bound : !trial.fine && other.error < trial.error;
        c.countdown = !change ? kTrial : c.implicit ? 4 * kTrial : stagnant ? kTrial / 4 : kTrial;
        return change;
    }

    void accept() {
        Control& c = ahead_control_;
        c.rise = std::max(c.rise, ahead_.free_energy - now_.free_energy);
        ++c.counts.steps;
        if (c.countdown > 0) --c.countdown;
        c.counts.evaluations = steps_.evaluations;
        c.t = params_.step == 0 ? c.t + c.h : begun_ + static_cast<double>(c.counts.steps) * params_.step;
        ahead_known_ = true;
    }

    /// The first step, with an error estimate of a hundredth of the tolerance, as the error is at most h^2
    /// times the largest rate squared.
    double first_step() {
        if (params_.step > 0) return params_.step;
        const double rate = steps_.fastest(now_);
        return 0.1 * std::sqrt(params_.rtol) / (rate > 0 ? rate : 1);
    }

    /// Compute the state to be shown at t, by a step of its own from the last one of the main sequence. It is
    /// shorter than the one that follows there, and so at least as accurate.
    End step_aside(double t) {
        const Index before = steps_.evaluations;
        const double h = t - control_.t;
        if (!settle(h, control_.implicit, rival_)) attempt(h, false, false, rival_);
        steps_.evaluations = before;
        std::swap(side_, rival_);
        return End::reached;
    }

    /// Do a step whose size is fixed, choosing the coupling; false if there is no fixed point.
    bool settle(double h, bool implicit, State& to) {
        const bool free = params_.coupling == Coupling::automatic;
        if (!implicit && (attempt(h, false, false, to).fine || !free)) return true;
        if (attempt(h, false, true, to).fine) return true;
        if (free) attempt(h, false, false, to);  // better a rise than no step
        return free;
    }

    /// Try one step h from now_ and its error. Without `checked`, any error will do.
    Trial attempt(double h, bool checked, bool implicit, State& to) {
        Trial trial;
        const Index before = steps_.evaluations;
        const bool thorough = params_.step > 0;  // else a smaller step is cheaper
        if (params_.order == 1 && !checked) {
            if (!implicit)
                steps_.lagged(now_, h, to.mass);
            else if (!steps_.implicit(now_, h, thorough, to.mass))
                return trial;
            steps_.evaluate(to);
        } else {
            if (!implicit)
                steps_.lagged_pair(now_, h, full_, half_);
            else if (!steps_.implicit_pair(now_, h, thorough, full_, half_))
                return trial;
            const BlockSums::Sums sum =
                extrapolate(steps_.sums(), full_.data(), half_.data(), to.mass.data());
            trial.error = sum.a / params_.rtol;
            if (checked && !(trial.error <= 1)) return trial;
            if (params_.order == 2) {
                labels_.conserve(to.mass, sum.b);
                steps_.evaluate(to);
            }
            if (params_.order == 1 || !falls(to)) {
                to.mass.swap(half_);
                steps_.evaluate(to);
            }
        }
        trial.work = steps_.evaluations - before;
        trial.fine = implicit || falls(to);
        return trial;
    }

    bool falls(const State& to) const {
        return to.free_energy <= now_.free_energy + kEnergyRounding * now_.scale;
    }

    double watched_mass() const {
        double sum = 0;
        for (const Index cell : watched_) sum += now_.mass[static_cast<std::size_t>(cell)];
        return sum;
    }

    FokkerPlanckParams params_;
    mutable NoisySteps steps_;  // its scratch
    const GridPotential& grid_;
    LabelMasses labels_;
    std::vector<Index> watched_;  // cells at the open ends
    // The main sequence is at now_; ahead_ follows, if known, and side_ is between them, at shown_.
    State now_, ahead_, rival_, side_;
    Control control_, ahead_control_;
    bool ahead_known_ = false;
    double shown_ = 0, begun_ = 0;
    std::vector<double> full_, half_;
};

}  // namespace

std::unique_ptr<FokkerPlanck> fokker_planck(GridPotential potential, const std::vector<DiffusionAxis>& axes,
                                            const double* start, const FokkerPlanckParams& params) {
    require(params.rtol > 0, "rtol", "must be > 0", params.rtol);
    require(params.threads >= 0, "threads", "must be >= 0", params.threads);
    require(params.step >= 0, "step", "must be >= 0", params.step);
    require(params.order == 1 || params.order == 2, "order", "must be 1 or 2", params.order);
    require(start != nullptr, "start", "must not be null", "null");
    Index cells = 1;  // a line may hold several axes, such as labels at rest and a radius
    for (const DiffusionAxis& axis : axes) {
        const Index own = static_cast<Index>(axis.edges.size()) - 1;
        for (const Index cell : axis.watched)
            require(cell >= 0 && cell < own, "watched", "must be numbers of cells", cell);
        cells *= own;
    }
    require(axes.empty() || cells == potential.rows() * potential.cols(), "axes",
            "must have the cells of the potential", cells);
    for (Index i = 0; i < cells; ++i) require(start[i] >= 0, "start", "must be >= 0", start[i]);
    return std::make_unique<Run>(std::move(potential), axes, start, params);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
