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
constexpr int kIterations = 100;     // at most, for the fixed point of an implicit step

/// Masses and what follows from them.
struct State {
    explicit State(Index size, Index rank) : mass(size), psi(size), log_density(size), moments(rank) {}
    Vector mass, psi, log_density, moments;
    double risk = 0, free_energy = 0, scale = 0;  // scale: of the terms of the free energy
};

/// What the choice of steps remembers.
struct Control {
    double t = 0, h = 0, first_h = 0;
    double limit = std::numeric_limits<double>::infinity();  // longer steps are implicit
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
            {c.t, c.h, c.first_h, c.limit, c.rise, static_cast<double>(c.counts.steps),
             static_cast<double>(c.counts.rejected), static_cast<double>(c.counts.evaluations), shown_},
            Vector(size())};
        potential_.gather(now_.mass.data(), state.vectors.data());
        return state;
    }

    void restore(const FlowState& state) override {
        require(state.numbers.size() == 9, "numbers", "has the wrong length", state.numbers.size());
        require(state.vectors.size() == static_cast<std::size_t>(size()), "vectors", "has the wrong length",
                state.vectors.size());
        const double* number = state.numbers.data();
        Control& c = control_;
        for (double* to : {&c.t, &c.h, &c.first_h, &c.limit, &c.rise}) *to = *number++;
        for (Index* to : {&c.counts.steps, &c.counts.rejected, &c.counts.evaluations})
            *to = static_cast<Index>(*number++);
        shown_ = *number;
        counts_ = c.counts;
        ahead_known_ = false;
        potential_.spread(state.vectors.data(), now_.mass.data());
        evaluate(now_);
        if (shown_ > c.t) step_aside();
    }

private:
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
        while (true) {
            if (adaptive && c.h < 1e-15 * std::max(std::abs(c.t), c.first_h)) return End::stuck;
            double error = 0;
            const Verdict verdict = propose(c.h, adaptive, c, ahead_, error);
            if (verdict == Verdict::accepted) {
                c.rise = std::max(c.rise, ahead_.free_energy - now_.free_energy);
                ++c.counts.steps;
                c.counts.evaluations = evaluations_;
                c.t = adaptive ? c.t + c.h : params_.t + static_cast<double>(c.counts.steps) * params_.step;
                // The error of what is kept is smaller: that of the estimate is of order h^2.
                if (adaptive) c.h *= std::min(5.0, 0.9 / std::sqrt(std::max(error, 1e-6)));
                ahead_known_ = true;
                return End::reached;
            }
            if (!adaptive) return End::stuck;
            ++c.counts.rejected;
            const bool blind = verdict == Verdict::unsolved || !std::isfinite(error);
            c.h *= blind ? 0.25 : std::max(0.2, 0.9 / std::sqrt(error));
        }
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
        Control scrap = control_;
        const double h = shown_ - control_.t;
        double error = 0;
        if (propose(h, false, scrap, side_, error) != Verdict::accepted)
            attempt(h, false, false, side_, error);
    }

    enum class Verdict { accepted, inaccurate, unsolved };

    /// One step h from now_, with the coupling that it needs. `error` is in units of what is tolerated, which
    /// matters if `checked`.
    Verdict propose(double h, bool checked, Control& c, State& to, double& error) {
        const bool free = params_.coupling == Coupling::automatic;
        if (params_.coupling == Coupling::lagged || (free && h <= c.limit)) {
            const Verdict verdict = attempt(h, checked, false, to, error);
            if (verdict != Verdict::accepted || falls(to)) return verdict;
            if (!free) return checked ? Verdict::unsolved : verdict;
            c.limit = h / 2;
        }
        const Verdict verdict = attempt(h, checked, true, to, error);
        if (verdict == Verdict::accepted) c.limit *= 1.05;  // lagged steps are tried again in a while
        if (verdict != Verdict::unsolved || checked || !free) return verdict;
        return attempt(h, false, false, to, error);
    }

    Verdict attempt(double h, bool checked, bool implicit, State& to, double& error) {
        if (params_.order == 1 && !checked) {
            fixed_ = now_.moments;
            if (!(implicit ? implicit_step(now_.mass, h, to.mass) : lagged_step(now_, h, to.mass)))
                return Verdict::unsolved;
            evaluate(to);
            return Verdict::accepted;
        }
        if (!(implicit ? implicit_steps(h) : lagged_steps(h))) return Verdict::unsolved;
        const BlockSums::Sums sum = extrapolate(sums_, full_.data(), half_.data(), to.mass.data());
        error = sum.a / params_.rtol;
        if (checked && !(error <= 1)) return Verdict::inaccurate;
        if (params_.order == 2) {
            for (double& mass : to.mass) mass *= total_ / sum.b;
            evaluate(to);
            if (falls(to)) return Verdict::accepted;
        }
        to.mass.swap(half_);
        evaluate(to);
        return Verdict::accepted;
    }

    bool falls(const State& to) const { return to.free_energy <= now_.free_energy + kRounding * now_.scale; }

    bool lagged_step(const State& from, double h, Vector& to) {
        set_potential(from.psi);
        fluxes_.step(h, from.mass.data(), to.data());
        return true;
    }

    /// full_ after one step, half_ after two of half its size.
    bool lagged_steps(double h) {
        set_potential(now_.psi);
        fluxes_.two_steps(now_.mass.data(), h, full_.data(), h / 2, half_.data());
        if (potential_.rank() > 0) {
            potential_.moments(half_.data(), image_.data());
            set_potential_of(image_);
        }
        fluxes_.step(h / 2, half_.data(), half_.data());
        return true;
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
    /// there.
    bool implicit_step(const Vector& from, double h, Vector& to) {
        anderson_.restart();
        for (int k = 0; k < kIterations; ++k) {
            set_potential_of(fixed_);
            fluxes_.step(h, from.data(), to.data());
            potential_.moments(to.data(), image_.data());
            double moved = 0, size = 0;
            for (std::size_t i = 0; i < fixed_.size(); ++i) {
                const double change = image_[i] - now_.moments[i];
                moved += change * change;
                size += image_[i] * image_[i];
            }
            const double residual = anderson_.advance(fixed_.data(), image_.data());
            if (!std::isfinite(residual)) return false;
            if (residual <= 1e-10 * std::sqrt(moved) + 1e-15 * std::sqrt(size)) return true;
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
    State now_, ahead_, side_;
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
