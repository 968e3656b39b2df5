// Finite volumes without noise: the step, and a flow that chooses the size of steps (eqs. (7.1) to (7.6)).
#include "mfcore/density/finite_volume.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/parallel.hpp"
#include "density/finite_volume_cells.hpp"
#include "flow/vectors.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

using cells::kMargin;

FiniteVolume::FiniteVolume(GridPotential potential, std::vector<GridAxis> axes, Reconstruction reconstruction)
    : potential_(std::move(potential)), axes_(std::move(axes)), reconstruction_(reconstruction) {
    const bool flat = potential_.flat();
    const Index stride = potential_.stride(), rows = potential_.rows();
    require(axes_.size() == (flat ? 1u : 2u), "axes", "must be as many as the potential has", axes_.size());
    front_ = kMargin + (flat ? 0 : stride);
    room_ = potential_.size() + 2 * front_;
    for (std::size_t c = 0; c < axes_.size(); ++c) {
        const GridAxis& axis = axes_[c];
        const Index n = c == 0 && !flat ? rows : potential_.cols();
        require_count(axis.width.size(), n, "width", "entries");
        require_count(axis.conductance.size(), n - 1, "conductance", "entries");
        for (const Index i : axis.watched) require(i >= 0 && i < n, "watched", "must be cells", i);
        // Around the cells and in the padding everything is closed.
        const Index size = (c == 0 && !flat ? rows : stride) + 2 * kMargin;
        conductance_[c].assign(size, 0.0);
        inverse_[c].assign(size, 0.0);
        std::copy(axis.conductance.begin(), axis.conductance.end(), conductance_[c].begin() + kMargin);
        for (Index i = 0; i < n; ++i) {
            require(axis.width[i] > 0, "width", "must be > 0", axis.width[i]);
            inverse_[c][kMargin + i] = 1 / axis.width[i];
        }
    }
    psi_.resize(room_);
    if (flat) {
        transfers_.resize(2 * (stride + 2 * kMargin));
        sums_.resize(potential_.rank() * cells::kWidth);
    } else {
        // About 4 cells a nanosecond beside the products.
        threads_ = std::max(potential_.threads(), threads_for(potential_.size() / 4, potential_.requested()));
        transfers_.resize(3 * 4 * (stride + 2 * kMargin) * threads_);
        sums_.resize(2 * ((rows + GridPotential::kRows - 1) / GridPotential::kRows));
    }
    if (reconstruction_ == Reconstruction::muscl) {
        half_ = std::make_unique<PaddedMasses>(*this);
        half_m_.resize(potential_.rank());
    }
}

FiniteVolume::Report FiniteVolume::stage(const Stage& s, const double* m, double* next_m) {
    potential_.prepare(m);
    const bool muscl = reconstruction_ == Reconstruction::muscl;
    if (potential_.flat()) return muscl ? line<true>(s, next_m) : line<false>(s, next_m);
    return muscl ? plane<true>(s, next_m) : plane<false>(s, next_m);
}

FiniteVolume::Report FiniteVolume::step(const PaddedMasses& mass, const double* m, double dt,
                                        PaddedMasses& next, double* next_m) {
    if (reconstruction_ == Reconstruction::upwind)
        return stage({mass.data(), nullptr, dt, next.data()}, m, next_m);
    // u1 = u + dt L(u), next = (u + u1 + dt L(u1)) / 2: means of positive masses are positive.
    const Report report = stage({mass.data(), nullptr, dt, half_->data()}, m, half_m_.data());
    stage({half_->data(), mass.data(), dt, next.data()}, half_m_.data(), next_m);
    return report;
}

FiniteVolumeSteps::FiniteVolumeSteps(FiniteVolume scheme)
    : scheme_(std::move(scheme)),
      mass_(scheme_),
      next_(scheme_),
      m_(scheme_.potential().rank()),
      next_m_(m_.size()) {}

FiniteVolumeSteps::Done FiniteVolumeSteps::run(double* cells, double dt, Index steps,
                                               const StopPredicate& wants_stop) {
    GridPotential& potential = scheme_.potential();
    potential.spread(cells, mass_.data());
    potential.moments(mass_.data(), m_.data());
    StopPoll stop(wants_stop);
    Done done{0, INFINITY};
    while (done.steps < steps) {
        const FiniteVolume::Report report = scheme_.step(mass_, m_.data(), dt, next_, next_m_.data());
        double sum = report.descent;
        for (const double value : next_m_) sum += value;
        done.bound = !std::isfinite(sum)  ? NAN
                     : report.outflow > 0 ? scheme_.courant() / report.outflow
                                          : INFINITY;
        if (!(dt <= done.bound)) break;
        std::swap(mass_, next_);
        std::swap(m_, next_m_);
        if (++done.steps < steps && stop()) break;
    }
    if (done.steps > 0) potential.gather(mass_.data(), cells);
    return done;
}

double FiniteVolumeSteps::bound(const double* cells) {
    std::vector<double> copy(cells, cells + this->cells());
    return run(copy.data(), 0.0, 1, {}).bound;
}

namespace {

constexpr double kSafety = 0.9;      // of the stability bound: velocities change from step to step
constexpr double kGrowth = 1.5;      // of the step, at most
constexpr double kRejected = 2.0;    // times the tolerated change: the step is done again
constexpr double kRounding = 1e-13;  // relative change of the moments that may be rounding

class FiniteVolumeFlow final : public Flow {
public:
    FiniteVolumeFlow(FiniteVolume scheme, const double* start, const FiniteVolumeParams& params)
        : scheme_(std::move(scheme)),
          params_(params),
          mass_(scheme_),
          next_(scheme_),
          side_(scheme_),
          m_(scheme_.potential().rank()),
          next_m_(m_.size()),
          t_(params.t),
          shown_(params.t),
          h_(params.first) {
        GridPotential& potential = scheme_.potential();
        potential.spread(start, mass_.data());
        potential.moments(mass_.data(), m_.data());
    }

    End run(double t, const StopPredicate& wants_stop) override {
        require(t >= shown_, "t", "must not be before the present time", t);
        StopPoll stop(wants_stop);
        if (h_ == 0 && flow::unless_interrupted([&] { return first_step(); }) != End::reached) {
            h_ = 0;  // to be found from the beginning
            return End::out_of_time;
        }
        while (t_ + h_ <= t) {
            const End end = flow::unless_interrupted([&] { return advance(); });
            if (end == End::reached && (t_ + h_ > t || !stop())) continue;
            shown_ = std::max(shown_, t_);
            return end == End::reached ? End::out_of_time : end;
        }
        const End end = t > t_ ? flow::unless_interrupted([&] { return step_aside(t); }) : End::reached;
        if (end != End::reached) {
            shown_ = std::max(shown_, t_);
            return end;
        }
        shown_ = t;
        return End::reached;
    }

    Index size() const override { return scheme_.potential().rows() * scheme_.potential().cols(); }
    double t() const override { return shown_; }
    double step_size() const override { return h_; }

    void get(double* y) const override {
        scheme_.potential().gather((shown_ > t_ ? side_ : mass_).data(), y);
    }

    FlowState save() const override {
        FlowState state{{t_, shown_, h_, static_cast<double>(counts_.steps),
                         static_cast<double>(counts_.rejected), static_cast<double>(counts_.evaluations)},
                        std::vector<double>(size())};
        scheme_.potential().gather(mass_.data(), state.vectors.data());
        // The sums of a step run in another order than those of a fresh start.
        state.vectors.insert(state.vectors.end(), m_.begin(), m_.end());
        return state;
    }

    void restore(const FlowState& state) override {
        require_count(state.numbers.size(), 6, "numbers", "entries");
        require_count(state.vectors.size(), size() + m_.size(), "vectors", "entries");
        const double* number = state.numbers.data();
        for (double* to : {&t_, &shown_, &h_}) *to = *number++;
        for (Index* to : {&counts_.steps, &counts_.rejected, &counts_.evaluations})
            *to = static_cast<Index>(*number++);
        scheme_.potential().spread(state.vectors.data(), mass_.data());
        std::copy_n(state.vectors.data() + size(), m_.size(), m_.data());
        if (shown_ > t_) step_aside(shown_);
    }

private:
    /// Compute the state between two steps, by a step of its own from the last one, so that the sequence of
    /// steps does not depend on where one looks. Where it is not reached, what was there stays.
    End step_aside(double t) {
        scheme_.step(mass_, m_.data(), t - t_, next_, next_m_.data());
        if (!finite(next_m_)) return End::diverged;
        std::swap(side_, next_);
        return End::reached;
    }

    static bool finite(const std::vector<double>& m) {  // the sum checks all numbers
        return std::isfinite(std::accumulate(m.begin(), m.end(), 0.0));
    }

    double bound(double outflow) const {
        const double stable = outflow > 0 ? kSafety * scheme_.courant() / outflow : INFINITY;
        return params_.step > 0 ? std::min(stable, params_.step) : stable;
    }

    End first_step() {
        const auto report = scheme_.step(mass_, m_.data(), 0.0, next_, next_m_.data());
        ++counts_.evaluations;
        h_ = bound(report.outflow);
        if (!std::isfinite(h_)) h_ = 1;  // nothing moves
        // The first step must be accepted before anything is shown: errors seen before its end are part of
        // it.
        while (shorter(scheme_.step(mass_, m_.data(), h_, next_, next_m_.data()))) {
        }
        return End::reached;
    }

    /// The stiffness of the step just tried, eq. (7.6): (R/2 + decay) falls by h descent - |dm|^2/2. For one
    /// mode of rate mu the second part over the first is mu h / 2 in the explicit stage; two stages together
    /// leave the mode where it was if mu h is 2. At rest both are rounding, and say nothing about the step.
    double stiffness(const FiniteVolume::Report& report) const {
        const double* stage = scheme_.first_stage(next_m_.data());
        double change = 0, size = 0;
        for (std::size_t k = 0; k < m_.size(); ++k) {
            change += (stage[k] - m_[k]) * (stage[k] - m_[k]);
            size += m_[k] * m_[k];
        }
        const bool moved = change > kRounding * kRounding * size;
        return moved && h_ * report.descent > 0 ? change / (h_ * report.descent) : 0;
    }

    /// True if the step just tried was too long; then the next one is shorter.
    bool shorter(const FiniteVolume::Report& report) {
        ++counts_.evaluations;
        const double stiff = stiffness(report);
        if (params_.accuracy == 0 || !(stiff > kRejected * params_.accuracy)) return false;
        ++counts_.rejected;
        h_ *= std::max(0.1, params_.accuracy / stiff);
        return true;
    }

    /// One step of the sequence. Anything but `reached` leaves the state as it was, but for `open_end`.
    End advance() {
        while (true) {
            if (h_ < 1e-15 * t_) return End::stuck;
            const auto report = scheme_.step(mass_, m_.data(), h_, next_, next_m_.data());
            if (!finite(next_m_) || !std::isfinite(report.descent)) return End::diverged;
            if (std::sqrt(report.descent) < params_.tolerance) return End::stationary;
            if (shorter(report)) continue;
            accept(report, stiffness(report));
            return watched_mass() > params_.most_watched && params_.most_watched > 0 ? End::open_end
                                                                                     : End::reached;
        }
    }

    void accept(const FiniteVolume::Report& report, double stiff) {
        std::swap(mass_, next_);
        m_.swap(next_m_);
        t_ += h_;
        ++counts_.steps;
        double h = std::min(kGrowth * h_, bound(report.outflow));
        if (params_.accuracy > 0 && stiff > 0) h = std::min(h, h_ * params_.accuracy / stiff);
        h_ = h;
    }

    double watched_mass() const {
        const GridPotential& potential = scheme_.potential();
        const auto& axes = scheme_.axes();
        const Index rows = potential.rows(), cols = potential.cols(), stride = potential.stride();
        double sum = 0;
        for (const Index j : axes.back().watched)
            for (Index i = 0; i < rows; ++i) sum += mass_.data()[i * stride + j];
        if (potential.flat()) return sum;
        for (const Index i : axes.front().watched)
            for (Index j = 0; j < cols; ++j) sum += mass_.data()[i * stride + j];
        return sum;
    }

    FiniteVolume scheme_;
    FiniteVolumeParams params_;
    FiniteVolume::PaddedMasses mass_, next_, side_;  // the last one at shown_, if that is between two steps
    std::vector<double> m_, next_m_;
    double t_, shown_, h_;
};

}  // namespace

std::unique_ptr<Flow> finite_volume(FiniteVolume scheme, const double* start,
                                    const FiniteVolumeParams& params) {
    for (const auto& [name, value] :
         {std::pair{"first", params.first}, {"step", params.step}, {"accuracy", params.accuracy}})
        require(value >= 0 && std::isfinite(value), name, "must be >= 0", value);
    require(start != nullptr, "start", "must not be null", "null");
    const Index cells = scheme.potential().rows() * scheme.potential().cols();
    for (Index i = 0; i < cells; ++i) require(start[i] >= 0, "start", "must be >= 0", start[i]);
    return std::make_unique<FiniteVolumeFlow>(std::move(scheme), start, params);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
