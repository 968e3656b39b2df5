// The embedded Runge-Kutta pair 5(4) of Dormand and Prince (1980), with the step control and the continuous
// extension of Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, sections II.4 to II.6: eq.
// (6.12).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/scratch.hpp"
#include "flow/vectors.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {
namespace {

using flow::all_finite;
using flow::gradient_size;
using flow::root_mean_square;
using flow::Vector;

constexpr int kStages = 7;
constexpr double kA[kStages][kStages - 1] = {
    {},
    {1.0 / 5},
    {3.0 / 40, 9.0 / 40},
    {44.0 / 45, -56.0 / 15, 32.0 / 9},
    {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
    {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
    {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
/// Difference of the two orders.
constexpr double kError[kStages] = {71.0 / 57600,      0,          -71.0 / 16695, 71.0 / 1920,
                                    -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
/// Steps have collapsed after so many in a row that are shorter than this fraction of the longest one.
constexpr Index kMostShort = 2000;
constexpr double kShort = 1e-5;
/// The fifth coefficient of the continuous extension.
constexpr double kDense[kStages] = {-12715105075.0 / 11282082432,  0,
                                    87487479700.0 / 32700410799,   -10690763975.0 / 1880347072,
                                    701980252875.0 / 199316789632, -1453857185.0 / 822651844,
                                    69997945.0 / 29380423};

/// out = y + h sum_r a[r] k[r]; the number of terms is a constant so that the loop over entries is
/// vectorised.
template <int Terms>
void combine(const Vector& y, double h, const double* a, const Vector* k, Vector& out) {
    const double* from[Terms];
    for (int r = 0; r < Terms; ++r) from[r] = k[r].data();
    for (std::size_t i = 0; i < y.size(); ++i) {
        double sum = 0;
        for (int r = 0; r < Terms; ++r) sum += a[r] * from[r][i];
        out[i] = y[i] + h * sum;
    }
}

class Dopri5 final : public Flow {
public:
    Dopri5(System system, const double* start, const AdaptiveParams& params)
        : plain_(std::move(system)),
          delta_(resting_radius(plain_, start, params.rtol)),
          system_(folded(plain_, delta_)),
          params_(params),
          y_(start, start + system_.size) {
        if (system_.fold) system_.fold(y_.data());
        for (Vector* v : {&next_, &scratch_}) v->resize(system_.size);
        for (Vector& v : slopes_) v.resize(system_.size);
        for (Vector& v : dense_) v.resize(system_.size);
        h_ = first_h_ = params.first_step;
    }

    End run(double t, const StopPredicate& wants_stop) override {
        require(t >= shown_, "t", "must not be before the present time", t);
        const ScratchStore::Scope scope(memory_);
        StopPoll stop(wants_stop);
        while (t_ < t) {
            const End end = flow::unless_interrupted([&] { return advance(); });
            if (end == End::reached && (t_ >= t || !stop())) continue;
            shown_ = std::max(shown_, t_);
            return end == End::reached ? End::out_of_time : end;
        }
        shown_ = t;
        return End::reached;
    }

    Index size() const override { return system_.size; }
    double t() const override { return shown_; }
    double step_size() const override { return h_; }

    Index limiting_row() const override {
        const auto size = [&](Index i) {
            return std::abs(error_of(i)) / tolerance(static_cast<std::size_t>(i), next_[i]);
        };
        Index worst = 0;
        double most = 0;
        for (Index i = 0; i < system_.size; ++i) {
            if (system_.speed[i % system_.speed.size()] == 0 || !(size(i) > most)) continue;
            most = size(i);
            worst = i;
        }
        return worst / static_cast<Index>(system_.speed.size());
    }

    void refused(double* y) const override { show(next_, y); }

    void get(double* out) const override {
        if (shown_ == t_) {
            show(y_, out);
            return;
        }
        Vector y(y_.size());
        const double s = (shown_ - dense_t_) / dense_h_;
        for (std::size_t i = 0; i < y_.size(); ++i) {
            double p = dense_[3][i] + (1 - s) * dense_[4][i];
            p = dense_[2][i] + s * p;
            p = dense_[1][i] + (1 - s) * p;
            y[i] = dense_[0][i] + s * p;
        }
        flow::project(system_, y);
        show(y, out);
    }

    FlowState save() const override {
        FlowState state;
        state.numbers = {t_,
                         shown_,
                         h_,
                         first_h_,
                         last_error_,
                         rejected_ ? 1.0 : 0.0,
                         known_ ? 1.0 : 0.0,
                         dense_t_,
                         dense_h_,
                         static_cast<double>(counts_.steps),
                         static_cast<double>(counts_.rejected),
                         static_cast<double>(counts_.evaluations),
                         counts_.risk_error,
                         delta_,
                         longest_,
                         static_cast<double>(short_steps_)};
        each_vector(*this,
                    [&](const Vector& v) { state.vectors.insert(state.vectors.end(), v.begin(), v.end()); });
        return state;
    }

    void restore(const FlowState& state) override {
        const bool old = state.numbers.size() == 13;  // before rows could rest at an apex
        require_count(state.numbers.size(), old ? 13 : 16, "numbers", "entries");
        require_count(state.vectors.size(), 7 * y_.size(), "vectors", "entries");
        const double* number = state.numbers.data();
        for (double* to : {&t_, &shown_, &h_, &first_h_, &last_error_}) *to = *number++;
        rejected_ = *number++ != 0;
        known_ = *number++ != 0;
        for (double* to : {&dense_t_, &dense_h_}) *to = *number++;
        for (Index* to : {&counts_.steps, &counts_.rejected, &counts_.evaluations})
            *to = static_cast<Index>(*number++);
        counts_.risk_error = *number++;
        delta_ = old ? 0 : *number++;
        longest_ = old ? 0 : *number++;
        short_steps_ = old ? 0 : static_cast<Index>(*number);
        system_ = folded(plain_, delta_);
        const double* from = state.vectors.data();
        each_vector(*this, [&](Vector& v) {
            std::copy_n(from, v.size(), v.data());
            from += v.size();
        });
    }

private:
    void show(const Vector& y, double* out) const {
        std::copy(y.begin(), y.end(), out);
        if (system_.unfold) system_.unfold(out);
    }

    /// Call body for each of the vectors that are part of the state of the flow.
    template <class Self, class Body>
    static void each_vector(Self& self, Body&& body) {
        body(self.y_);
        body(self.slopes_[0]);
        for (auto& v : self.dense_) body(v);
    }

    bool velocity(const Vector& y, int slope) {
        if (!system_.velocity_along(y.data(), slopes_[slope].data())) return false;
        ++counts_.evaluations;
        return true;
    }

    double tolerance(std::size_t i, double other) const {
        return params_.atol + params_.rtol * std::max(std::abs(y_[i]), std::abs(other));
    }

    /// One accepted step. Anything but `reached` leaves the state as it was.
    End advance() {
        if (!known_) {
            if (!velocity(y_, 0)) return End::interrupted;
            if (!all_finite(slopes_[0])) return End::diverged;
            known_ = true;
        }
        if (params_.tolerance > 0 && gradient_size(system_, slopes_[0]) < params_.tolerance)
            return End::stationary;
        if (h_ == 0 && !guess_step()) return End::interrupted;
        while (true) {
            // At t = 0 the first guess stands for the scale of time.
            if (h_ < 1e-15 * std::max(t_, first_h_) || short_steps_ >= kMostShort) return End::stuck;
            if (!stages()) return End::interrupted;
            const double error = error_of_step();
            if (error <= 1) {
                if (system_.resolved && !system_.resolved(next_.data())) return End::unresolved;
                accept(error);
                return End::reached;
            }
            ++counts_.rejected;
            rejected_ = true;
            h_ *= std::isfinite(error) ? std::max(0.2, 0.9 / std::pow(error, 0.17)) : 0.2;
        }
    }

    /// A first step whose Euler error would be about a hundredth of the tolerance.
    bool guess_step() {
        const auto& k = slopes_;
        const auto size = [&](auto&& value) {
            return root_mean_square(system_, [&](Index i, double) { return value(i) / tolerance(i, 0); });
        };
        const double state = size([&](Index i) { return y_[i]; });
        const double slope = size([&](Index i) { return k[0][i]; });
        const double h = state < 1e-5 || slope < 1e-5 ? 1e-6 : 0.01 * state / slope;
        for (std::size_t i = 0; i < y_.size(); ++i) scratch_[i] = y_[i] + h * k[0][i];
        if (!velocity(scratch_, 1)) return false;
        const double change = size([&](Index i) { return k[1][i] - k[0][i]; }) / h;
        const double rate = std::max(slope, change);
        const double second = rate > 1e-15 ? std::pow(0.01 / rate, 0.2) : std::max(1e-6, 1e-3 * h);
        first_h_ = h_ = std::isfinite(second) ? std::min(100 * h, second) : h;
        return true;
    }

    /// Slopes 1 to 6 and next_, the state of order 5, whose velocity is slope 6. False: interrupted.
    bool stages() {
        const auto stage = [&](auto number) {
            constexpr int s = number();
            Vector& to = s + 1 < kStages ? scratch_ : next_;
            combine<s>(y_, h_, kA[s], slopes_, to);
            return velocity(to, s);
        };
        return [&]<int... S>(std::integer_sequence<int, S...>) {
            return (stage(std::integral_constant<int, S + 1>{}) && ...);
        }(std::make_integer_sequence<int, kStages - 1>{});
    }

    /// Difference of the two orders in entry i.
    double difference(Index i) const {
        double sum = 0;
        for (int s = 0; s < kStages; ++s) sum += kError[s] * slopes_[s][i];
        return h_ * sum;
    }

    /// The error of entry i. Below a wall both orders are clamped to it: however they got there, they agree.
    /// But an entry that was turned around there would have stayed longer at the wall.
    double error_of(Index i) const {
        const double error = difference(i), end = next_[i];
        if (!flow::has_wall(system_, i) || !std::isfinite(end) || !std::isfinite(error)) return error;
        const double clamped = std::max(end, 0.0) - std::max(end - error, 0.0);
        return std::max(std::abs(clamped), depth(i));
    }

    /// How far below the wall entry i turned around.
    double depth(Index i) const {
        const double in = slopes_[0][i], out = slopes_[6][i];
        if (!(in < 0 && out > 0)) return 0;
        // Lowest point of the cubic polynomial through both ends, where a velocity linear in time vanishes.
        const double s = in / (in - out), r = 1 - s;
        const double low =
            r * r * (1 + 2 * s) * y_[i] + s * s * (1 + 2 * r) * next_[i] + h_ * s * r * (r * in - s * out);
        return std::max({-low, -next_[i], 0.0});
    }

    /// The error of the step in units of the tolerance (eq. (6.12)); not a number if the step left the finite
    /// numbers.
    double error_of_step() const {
        return root_mean_square(system_, [&](Index i, double) {
            return error_of(i) / tolerance(static_cast<std::size_t>(i), next_[i]);
        });
    }

    void accept(double error) {
        const auto& k = slopes_;
        for (std::size_t i = 0; i < y_.size(); ++i) {
            const double change = next_[i] - y_[i], bend = h_ * k[0][i] - change;
            double fifth = 0;
            for (int s = 0; s < kStages; ++s) fifth += kDense[s] * k[s][i];
            dense_[0][i] = y_[i];
            dense_[1][i] = change;
            dense_[2][i] = bend;
            dense_[3][i] = change - h_ * k[6][i] - bend;
            dense_[4][i] = h_ * fifth;
        }
        counts_.risk_error += flow::risk_change(system_, k[6], [&](Index i) { return error_of(i); });
        dense_t_ = t_;
        dense_h_ = h_;
        t_ += h_;
        longest_ = std::max(longest_, h_);
        short_steps_ = h_ < kShort * longest_ ? short_steps_ + 1 : 0;
        y_.swap(next_);
        slopes_[0].swap(slopes_[6]);
        if (flow::project(system_, y_)) known_ = false;  // the velocity at the projected state is another one
        ++counts_.steps;
        // PI control with exponents 0.2 - 0.75 beta and beta = 0.04; no growth right after a rejection.
        const double factor = 0.9 * std::pow(last_error_, 0.04) / std::pow(error, 0.17);
        h_ *= std::clamp(factor, 0.2, rejected_ ? 1.0 : 10.0);
        last_error_ = std::max(error, 1e-4);
        rejected_ = false;
    }

    System plain_;
    double delta_;   // distance from an apex within which rows can rest
    System system_;  // folded
    AdaptiveParams params_;
    ScratchStore memory_{SIZE_MAX};  // all that a step needs
    double t_ = 0, shown_ = 0, h_ = 0, first_h_ = 0, last_error_ = 1e-4;
    double longest_ = 0;     // step so far
    Index short_steps_ = 0;  // in a row
    bool rejected_ = false;  // the last attempt
    bool known_ = false;     // slope 0 is the velocity at y_
    double dense_t_ = 0, dense_h_ = 1;
    Vector y_, next_, scratch_;
    Vector slopes_[kStages], dense_[5];
};

}  // namespace

std::unique_ptr<Flow> dopri5(System system, const double* start, const AdaptiveParams& params) {
    require(system.size > 0, "size", "must be > 0", system.size);
    require(system.velocity != nullptr, "velocity", "must be a function", "none");
    require(start != nullptr, "start", "must not be null", "null");
    require(params.rtol > 0, "rtol", "must be > 0", params.rtol);
    require(params.atol > 0, "atol", "must be > 0", params.atol);
    require(params.first_step >= 0, "first_step", "must be >= 0", params.first_step);
    return std::make_unique<Dopri5>(std::move(system), start, params);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
