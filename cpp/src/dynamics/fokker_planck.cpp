#include "mfcore/dynamics/fokker_planck.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "dynamics/fixed_point.hpp"
#include "dynamics/mass_sums.hpp"
#include "dynamics/scharfetter_gummel.hpp"
#include "mfcore/errors.hpp"

namespace mfcore {
namespace {

using Vector = std::vector<double>;

constexpr double kRounding = 1e-13;  // of the free energy, relative to the sum of the sizes of its terms
constexpr int kIterations = 60;      // at most, for the fixed point of an implicit step
constexpr Index kTrial = 20;         // steps from one comparison of the couplings to the next

/// Masses and what follows from them.
struct State {
    explicit State(Index size, Index rank) : mass(size), psi(size), log_density(size), moments(rank) {}
    Vector mass, psi, log_density, moments;
    double risk = 0, free_energy = 0, scale = 0;  // scale: of the terms of the free energy
};

/// What the choice of steps remembers.
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
          potential_(std::move(potential)),
          fluxes_(axes, params.temperature, params.threads, potential_.stride()),
          sums_(potential_.size(), params.threads),
          anderson_(potential_.rank()),
          now_(potential_.size(), potential_.rank()),
          ahead_(now_),
          rival_(now_),
          side_(now_),
          full_(potential_.size()),
          half_(potential_.size()),
          psi_(potential_.size()),
          fixed_(potential_.rank()),
          image_(potential_.rank()) {
        require(fluxes_.size() == potential_.size(), "axes", "must have the cells of the potential",
                fluxes_.size());
        watch(axes);
        control_.t = shown_ = params.t;
        potential_.spread(start, now_.mass.data());
        total_ = std::accumulate(now_.mass.begin(), now_.mass.end(), 0.0);
        evaluate(now_);
        ahead_control_ = control_;
    }

    End run(double t, const StopPredicate& wants_stop) override {
        require(t >= shown_, "t", "must not be before the present time", t);
        StopPoll stop(wants_stop);
        while (control_.t < t) {
            if (!ahead_known_) {
                const End end = advance();
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
            if (params_.wall > 0 && mass_at_walls() > params_.wall) return End::wall;
            if (control_.t < t && stop()) return End::stopped;
        }
        shown_ = t;
        if (shown_ > control_.t) step_aside();
        return End::reached;
    }

    Index size() const override { return potential_.rows() * potential_.cols(); }
    double t() const override { return shown_; }
    double step_size() const override { return control_.h; }
    void get(double* mass) const override { potential_.gather(shown().mass.data(), mass); }

    double free_energy() const override { return shown().free_energy; }
    double risk() const override { return shown().risk; }
    double largest_rise() const override { return control_.rise; }
    double dissipation() const override { return dissipation_of(shown()); }

    FlowState save() const override {
        const Control& c = control_;
        FlowState state{
            {c.t, c.h, c.first_h, c.rise, c.compared_h, c.implicit ? 1.0 : 0.0,
             static_cast<double>(c.countdown), static_cast<double>(c.counts.steps),
             static_cast<double>(c.counts.rejected), static_cast<double>(c.counts.evaluations), shown_},
            Vector(size())};
        potential_.gather(now_.mass.data(), state.vectors.data());
        return state;
    }

    void restore(const FlowState& state) override {
        require(state.numbers.size() == 11, "numbers", "has the wrong length", state.numbers.size());
        require(state.vectors.size() == static_cast<std::size_t>(size()), "vectors", "has the wrong length",
                state.vectors.size());
        const double* number = state.numbers.data();
        Control& c = control_;
        for (double* to : {&c.t, &c.h, &c.first_h, &c.rise, &c.compared_h}) *to = *number++;
        c.implicit = *number++ != 0;
        for (Index* to : {&c.countdown, &c.counts.steps, &c.counts.rejected, &c.counts.evaluations})
            *to = static_cast<Index>(*number++);
        shown_ = *number;
        counts_ = c.counts;
        ahead_known_ = false;
        potential_.spread(state.vectors.data(), now_.mass.data());
        evaluate(now_);
        if (shown_ > c.t) step_aside();
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

    /// Where the watched cells of either axis are in an array over the grid, each once.
    void watch(const std::vector<DiffusionAxis>& axes) {
        for (Index i = 0; i < potential_.rows(); ++i)
            for (Index j = 0; j < potential_.cols(); ++j) {
                const auto has = [](const DiffusionAxis& axis, Index cell) {
                    return std::find(axis.watched.begin(), axis.watched.end(), cell) != axis.watched.end();
                };
                if ((axes.size() > 1 && has(axes[0], i)) || has(axes.back(), j))
                    watched_.push_back(i * potential_.stride() + j);
            }
    }

    /// Moments, risk, potential and free energy of the masses of a state.
    void evaluate(State& state) {
        potential_.moments(state.mass.data(), state.moments.data());
        potential_.potential(state.moments.data(), state.psi.data());
        ++evaluations_;
        const BlockSums::Sums sum = entropy(sums_, state.mass.data(), fluxes_.log_volume().data(),
                                            potential_.decay(), state.log_density.data());
        state.risk = potential_.risk(state.moments.data());
        state.free_energy = state.risk / 2 + sum.c + params_.temperature * sum.a;
        state.scale = state.risk / 2 + std::abs(sum.c) + params_.temperature * sum.b;
    }

    void set_potential(const Vector& psi) const {
        if (potential_.rank() == 0 && constant_set_) return;  // the masses do not enter
        fluxes_.set_potential(psi.data());
        constant_set_ = true;
    }

    double dissipation_of(const State& state) const {
        set_potential(state.psi);
        mu_.resize(state.psi.size());
        for (std::size_t i = 0; i < mu_.size(); ++i)
            mu_[i] = state.psi[i] + params_.temperature * state.log_density[i];
        return fluxes_.dissipation(state.mass.data(), mu_.data());
    }

    /// The next step of the main sequence, to `ahead_`. Anything but `reached` leaves the state as it was.
    End advance() {
        Control& c = ahead_control_;
        c = control_;
        if (!std::isfinite(now_.free_energy)) return End::diverged;
        if (params_.tolerance > 0 && std::sqrt(dissipation_of(now_)) < params_.tolerance)
            return End::stationary;
        if (c.first_h == 0) c.first_h = c.h = first_step();
        const bool adaptive = params_.step == 0;
        evaluations_ = c.counts.evaluations;
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
                // What is kept is more accurate than the estimate, which is of order h^2.
                c.h *= std::min(5.0, 0.9 / std::sqrt(trial.clipped()));
                return End::reached;
            }
            ++c.counts.rejected;
            c.h *= trial.error > 1 && std::isfinite(trial.error) ? std::max(0.2, 0.9 / std::sqrt(trial.error))
                                                                 : 0.25;
        }
    }

    /// Should the coupling change, to that of `other`? What counts is how far it goes for its work: a step of
    /// the same error would be 1/sqrt(error) as long. But lagged steps at the limit of their stability keep
    /// stiff modes alive, which the other coupling has to damp first: it gets a chance where the size of
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
        c.counts.evaluations = evaluations_;
        c.t = params_.step == 0 ? c.t + c.h : params_.t + static_cast<double>(c.counts.steps) * params_.step;
        ahead_known_ = true;
    }

    /// An error estimate of a hundredth of the tolerance: it is at most h^2 times the largest rate squared.
    double first_step() {
        if (params_.step > 0) return params_.step;
        set_potential(now_.psi);
        const double rate = fluxes_.fastest();
        return 0.1 * std::sqrt(params_.rtol) / (rate > 0 ? rate : 1);
    }

    /// The state at shown_, by a step of its own from the last one of the main sequence. It is shorter than
    /// the one that follows there, and so at least as accurate.
    void step_aside() {
        const Index before = evaluations_;
        const double h = shown_ - control_.t;
        if (!settle(h, control_.implicit, side_)) attempt(h, false, false, side_);
        evaluations_ = before;
    }

    /// A step whose size is not in question. False: there is no fixed point.
    bool settle(double h, bool implicit, State& to) {
        const bool free = params_.coupling == Coupling::automatic;
        if (!implicit && (attempt(h, false, false, to).fine || !free)) return true;
        if (attempt(h, false, true, to).fine) return true;
        if (free) attempt(h, false, false, to);  // better a rise than no step
        return free;
    }

    /// One step h from now_. Without `checked`, any error will do.
    Trial attempt(double h, bool checked, bool implicit, State& to) {
        Trial trial;
        const Index before = evaluations_;
        if (params_.order == 1 && !checked) {
            fixed_ = now_.moments;
            if (!implicit)
                lagged_step(h, to.mass);
            else if (!implicit_step(now_.mass, h, to.mass))
                return trial;
            evaluate(to);
        } else {
            if (!implicit)
                lagged_steps(h);
            else if (!implicit_steps(h))
                return trial;
            const BlockSums::Sums sum = extrapolate(sums_, full_.data(), half_.data(), to.mass.data());
            trial.error = sum.a / params_.rtol;
            if (checked && !(trial.error <= 1)) return trial;
            if (params_.order == 2) {
                for (double& mass : to.mass) mass *= total_ / sum.b;
                evaluate(to);
            }
            if (params_.order == 1 || !falls(to)) {
                to.mass.swap(half_);
                evaluate(to);
            }
        }
        trial.work = evaluations_ - before;
        trial.fine = implicit || falls(to);
        return trial;
    }

    bool falls(const State& to) const { return to.free_energy <= now_.free_energy + kRounding * now_.scale; }

    void lagged_step(double h, Vector& to) {
        set_potential(now_.psi);
        fluxes_.step(h, now_.mass.data(), to.data());
    }

    /// full_ after one step, half_ after two of half its size.
    void lagged_steps(double h) {
        set_potential(now_.psi);
        fluxes_.two_steps(now_.mass.data(), h, full_.data(), h / 2, half_.data());
        if (potential_.rank() > 0) {
            potential_.moments(half_.data(), image_.data());
            set_potential_of(image_);
        }
        fluxes_.step(h / 2, half_.data(), half_.data());
    }

    bool implicit_steps(double h) {
        fixed_ = now_.moments;
        if (!implicit_step(now_.mass, h, full_)) return false;
        const Vector after = fixed_;
        for (std::size_t k = 0; k < fixed_.size(); ++k) fixed_[k] = (now_.moments[k] + after[k]) / 2;
        if (!implicit_step(now_.mass, h / 2, half_)) return false;
        middle_ = half_;
        fixed_ = after;
        return implicit_step(middle_, h / 2, half_);
    }

    /// The step in the potential of its own result, from the guess fixed_ of its moments, which are left
    /// there. A residual r of the moments can make the free energy rise by r^2/2 at most: where rounding lets
    /// r fall no further, it has to be so small that this does not show.
    bool implicit_step(const Vector& from, double h, Vector& to) {
        const double enough = 0.1 * std::sqrt(kRounding * now_.scale);
        double best = INFINITY;
        int since = 0;  // iterations since the residual was halved
        anderson_.restart();
        for (int k = 0; k < kIterations && since < 8; ++k) {
            set_potential_of(fixed_);
            fluxes_.step(h, from.data(), to.data());
            potential_.moments(to.data(), image_.data());
            double moved = 0, size = 0;
            for (std::size_t i = 0; i < fixed_.size(); ++i) {
                const double change = image_[i] - now_.moments[i];
                moved += change * change;
                size += image_[i] * image_[i] + potential_.shift()[i] * potential_.shift()[i];
            }
            const double residual = anderson_.advance(fixed_.data(), image_.data());
            if (!std::isfinite(residual)) return false;
            if (residual <= 1e-8 * std::sqrt(moved) + 1e-15 * std::sqrt(size)) return true;
            if (since > 2 && residual <= enough) return true;
            since = residual < best / 2 ? 0 : since + 1;
            best = std::min(best, residual);
        }
        return false;
    }

    void set_potential_of(const Vector& moments) {
        potential_.potential(moments.data(), psi_.data());
        ++evaluations_;
        set_potential(psi_);
    }

    double mass_at_walls() const {
        double sum = 0;
        for (const Index cell : watched_) sum += now_.mass[static_cast<std::size_t>(cell)];
        return sum;
    }

    FokkerPlanckParams params_;
    GridPotential potential_;
    mutable ScharfetterGummel fluxes_;
    mutable bool constant_set_ = false;
    mutable Vector mu_;
    BlockSums sums_;
    Anderson anderson_;
    double total_ = 1;
    std::vector<Index> watched_;  // cells at the walls
    // The main sequence is at now_; ahead_ follows, if known, and side_ is between them, at shown_.
    State now_, ahead_, rival_, side_;
    Control control_, ahead_control_;
    bool ahead_known_ = false;
    double shown_ = 0;
    Index evaluations_ = 0;
    Vector full_, half_, middle_, psi_, fixed_, image_;
};

}  // namespace

std::unique_ptr<FokkerPlanck> fokker_planck(GridPotential potential, const std::vector<DiffusionAxis>& axes,
                                            const double* start, const FokkerPlanckParams& params) {
    require(params.rtol > 0, "rtol", "must be > 0", params.rtol);
    require(params.step >= 0, "step", "must be >= 0", params.step);
    require(params.order == 1 || params.order == 2, "order", "must be 1 or 2", params.order);
    return std::make_unique<Run>(std::move(potential), axes, start, params);
}

}  // namespace mfcore
