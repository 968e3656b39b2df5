// Explicit schemes with fixed steps: Euler, Heun, Runge-Kutta, noise and radii (eqs. (6.9) to (6.11)).
#include "mfcore/flow/flow.hpp"

#include <cmath>
#include <cstdint>

#include "base/parallel.hpp"
#include "base/scratch.hpp"
#include "flow/vectors.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/base/random.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {
namespace {

using flow::all_finite;
using flow::gradient_size;
using flow::Vector;

constexpr Index kBlock = 4096;  // entries of a parallel loop over random numbers

class FixedSteps final : public Flow {
public:
    FixedSteps(System system, const double* start, const FixedParams& params)
        : system_(std::move(system)),
          params_(params),
          y_(start, start + system_.size),
          next_(system_.size),
          noise_(params.temperature > 0 ? system_.size : 0),
          across_(params.temperature > 0 && !system_.nonnegative.empty() ? system_.size : 0),
          ambient_(params.scheme == Scheme::euler && system_.tangent ? system_.size : 0),
          measured_(params.temperature == 0 && !system_.masses.empty()) {
        for (int s = 0; s < 5; ++s)
            if (needs(s)) slopes_[s].resize(system_.size);
    }

    End run(double t, const StopPredicate& wants_stop) override {
        const auto target = before_ + static_cast<Index>(std::nearbyint((t - since_) / params_.step));
        require(target >= counts_.steps, "t", "must not be before the present time", t);
        const ScratchStore::Scope scope(memory_);
        StopPoll stop(wants_stop);
        while (counts_.steps < target) {
            const End end = flow::unless_interrupted([&] { return advance(); });
            if (end != End::reached) return end;
            if (counts_.steps < target && stop()) return End::out_of_time;
        }
        return End::reached;
    }

    End finish(double t) override {
        const double left = t - this->t();
        require(left > 0 && left < params_.step, "t", "must be less than a step ahead", t);
        h_ = left;
        const End end = flow::unless_interrupted([&] { return advance(); });
        h_ = params_.step;
        if (end != End::reached) return end;
        since_ = t;
        before_ = counts_.steps;
        return end;
    }

    Index size() const override { return system_.size; }
    double t() const override { return since_ + static_cast<double>(counts_.steps - before_) * params_.step; }
    double step_size() const override { return params_.step; }
    void get(double* y) const override { std::copy(y_.begin(), y_.end(), y); }

    FlowState save() const override {
        return {{static_cast<double>(counts_.steps), static_cast<double>(counts_.evaluations),
                 counts_.risk_error, known_ ? 1.0 : 0.0, since_, static_cast<double>(before_)},
                {y_.begin(), y_.end()}};
    }
    void restore(const FlowState& state) override {
        require_count(state.numbers.size(), 6, "numbers", "entries");
        require_count(state.vectors.size(), y_.size(), "vectors", "entries");
        counts_.steps = static_cast<Index>(state.numbers[0]);
        counts_.risk_error = state.numbers[2];
        since_ = state.numbers[4];
        before_ = static_cast<Index>(state.numbers[5]);
        y_.assign(state.vectors.begin(), state.vectors.end());
        known_ = state.numbers[3] != 0 && velocity(y_, 0);
        counts_.evaluations = static_cast<Index>(state.numbers[1]);
    }

private:
    /// True if slope s is used: one of the stages, that at the end of a step, or a scratch.
    bool needs(int s) const {
        const int stages = params_.scheme == Scheme::euler ? 1 : params_.scheme == Scheme::heun ? 2 : 4;
        return s < stages || (s == 2 && params_.scheme == Scheme::heun) || (s == 4 && measured_);
    }

    /// One step. Anything but `reached` leaves the state as it was.
    End advance() {
        if (!known_ && !velocity(y_, 0)) return End::interrupted;
        known_ = true;
        if (params_.tolerance > 0 && gradient_size(system_, slopes_[0]) < params_.tolerance)
            return End::stationary;
        if (!propose()) return End::interrupted;
        if (!all_finite(next_)) return End::diverged;
        return accept() ? End::reached : End::interrupted;
    }

    bool velocity(const Vector& y, int slope) {
        double* const v = slopes_[slope].data();
        if (!system_.velocity(y.data(), v)) return false;
        if (!ambient_.empty() && slope == 0) std::copy_n(v, y.size(), ambient_.begin());
        if (system_.tangent) system_.tangent(y.data(), v);
        ++counts_.evaluations;
        return true;
    }

    /// next_ = what the scheme makes of y_, whose velocity is slope 0: eqs. (6.9) to (6.11). False:
    /// interrupted.
    bool propose() {
        const double h = h_;
        const auto& k = slopes_;
        const std::size_t n = y_.size();
        draw_noise();
        if (params_.scheme == Scheme::rk4) {
            const double part[] = {0.5, 0.5, 1.0};
            for (int s = 0; s < 3; ++s) {
                for (std::size_t i = 0; i < n; ++i) next_[i] = y_[i] + part[s] * h * k[s][i];
                if (!velocity(next_, s + 1)) return false;
            }
            for (std::size_t i = 0; i < n; ++i)
                next_[i] = y_[i] + h / 6 * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[3][i]);
            return true;
        }
        const Vector& first = ambient_.empty() ? k[0] : ambient_;
        for (std::size_t i = 0; i < n; ++i) next_[i] = y_[i] + h * first[i];
        add_noise();
        each_radius([&](std::size_t i) { next_[i] = std::hypot(next_[i], across_[i]); });
        if (params_.scheme == Scheme::euler) return true;
        // Heun; with additive noise Platen's scheme of weak order 2 reduces to the same increment in both
        // stages. A radius had the components p along the old point and q across it, where the velocity is
        // that at r = |(p, q)| in the direction (p, q) / r.
        if (!velocity(next_, 1)) return false;
        for (std::size_t i = 0; i < n; ++i) scratch(i) = next_[i];
        for (std::size_t i = 0; i < n; ++i) next_[i] = y_[i] + h / 2 * (k[0][i] + k[1][i]);
        add_noise();
        each_radius([&](std::size_t i) {
            const double r = scratch(i), p = y_[i] + h * k[0][i] + noise_[i];
            const double turn = r > 0 ? h / 2 * k[1][i] / r : 0;
            const double along = y_[i] + h / 2 * k[0][i] + noise_[i] + turn * p;
            next_[i] = std::hypot(along, across_[i] + turn * across_[i]);
        });
        return true;
    }

    double& scratch(std::size_t i) { return slopes_[2][i]; }

    /// y_ = next_. False: interrupted, nothing changed but evaluations.
    bool accept() {
        flow::project(system_, next_);
        if (measured_) {
            // The velocity at the end shows what the scheme did not know of it: Euler and Heun against the
            // trapezoidal rule, of order 2 and exact to the same order, the last stage of Runge and Kutta
            // against what it stands for.
            const int last = params_.scheme == Scheme::euler ? 0 : params_.scheme == Scheme::heun ? 1 : 3;
            const double part = params_.scheme == Scheme::rk4 ? h_ / 6 : h_ / 2;
            if (!velocity(next_, 4)) return false;
            counts_.risk_error += flow::risk_change(system_, slopes_[4], [&](Index i) {
                return flow::has_wall(system_, i) && next_[i] == 0
                           ? 0.0
                           : part * (slopes_[4][i] - slopes_[last][i]);
            });
            slopes_[0].swap(slopes_[4]);
        }
        known_ = measured_ && ambient_.empty();
        y_.swap(next_);
        ++counts_.steps;
        return true;
    }

    void draw_noise() {
        if (noise_.empty()) return;
        const random::Stream stream{params_.seed, random::Purpose::langevin,
                                    static_cast<std::uint64_t>(counts_.steps)};
        const auto columns = static_cast<Index>(system_.speed.size());
        const double amplitude = std::sqrt(2 * h_ * params_.temperature);
        std::vector<double> scale(columns);
        for (Index j = 0; j < columns; ++j) scale[j] = amplitude * std::sqrt(system_.speed[j]);
        const int threads = threads_for(4 * system_.size, params_.threads);
        for_blocks(system_.size, kBlock, threads, [&](Index, Index begin, Index end) {
            random::normals(stream, static_cast<std::uint64_t>(begin), end - begin, &noise_[begin]);
            for (Index i = begin; i < end; ++i) noise_[i] *= scale[i % columns];
        });
        for (Index j = 0; j < columns && !across_.empty() && !system_.volume.empty(); ++j)
            if (scale[j] > 0 && system_.volume[j] > 0) draw_across(j, columns, scale[j]);
    }

    /// Draw how far radii move across their points (eq. (6.10)): that of row i is number j 2^32 + i of its
    /// streams.
    void draw_across(Index j, Index columns, double scale) {
        const auto step = static_cast<std::uint64_t>(counts_.steps);
        const random::Stream normals{params_.seed, random::Purpose::langevin_radius, step},
            uniforms{params_.seed, random::Purpose::langevin_accept, step};
        const Index rows = system_.size / columns;
        for_blocks(rows, kBlock, threads_for(20 * rows, params_.threads), [&](Index, Index begin, Index end) {
            std::vector<double> squares(static_cast<std::size_t>(end - begin));
            random::chi_squares(normals, uniforms, system_.volume[j],
                                (static_cast<std::uint64_t>(j) << 32) + static_cast<std::uint64_t>(begin),
                                end - begin, squares.data());
            for (Index i = begin; i < end; ++i)
                across_[i * columns + j] = scale * std::sqrt(squares[i - begin]);
        });
    }

    void add_noise() {
        for (std::size_t i = 0; i < noise_.size(); ++i) next_[i] += noise_[i];
    }

    /// Call body for every radius that noise reflects at 0 instead of clamping it.
    template <class Body>
    void each_radius(Body&& body) {
        for (std::size_t i = 0; i < across_.size(); ++i)
            if (flow::has_wall(system_, static_cast<Index>(i))) body(i);
    }

    System system_;
    FixedParams params_;
    double h_ = params_.step;  // of the present step
    double since_ = 0;         // the time after `before_` steps, up to which one was shortened
    Index before_ = 0;
    ScratchStore memory_{SIZE_MAX};  // all that a step needs
    Vector y_, next_, noise_, across_;
    Vector ambient_;      // of Euler's scheme on a constraint: the velocity at y_ with its part across
    bool measured_;       // steps are judged by the velocity at their end
    bool known_ = false;  // slope 0 is the velocity at y_
    Vector slopes_[5];
};

}  // namespace

std::unique_ptr<Flow> fixed_steps(System system, const double* start, const FixedParams& params) {
    require(system.size > 0, "size", "must be > 0", system.size);
    require(system.velocity != nullptr, "velocity", "must be a function", "none");
    require(start != nullptr, "start", "must not be null", "null");
    require(params.step > 0, "step", "must be > 0", params.step);
    require(params.threads >= 0, "threads", "must be >= 0", params.threads);
    require(params.temperature >= 0, "temperature", "must be >= 0", params.temperature);
    require(params.temperature == 0 || params.scheme != Scheme::rk4, "temperature", "must be 0 for rk4",
            params.temperature);
    for (std::size_t j = 0; j < system.volume.size() && params.temperature > 0; ++j) {
        const bool radius = !system.nonnegative.empty() && system.nonnegative[j];
        require(system.volume[j] == 0 || (radius && system.volume[j] > 0), "volume",
                "must be 0, or > 0 for a coordinate >= 0", system.volume[j]);
    }
    return std::make_unique<FixedSteps>(std::move(system), start, params);
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
