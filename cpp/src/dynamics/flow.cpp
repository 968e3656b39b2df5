#include "mfcore/dynamics/flow.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"
#include "dynamics/flow_vectors.hpp"
#include "mfcore/errors.hpp"
#include "mfcore/random.hpp"

namespace mfcore {
namespace {

using flow::all_finite;
using flow::gradient_size;
using flow::Vector;

class FixedSteps final : public Flow {
public:
    FixedSteps(System system, const double* start, const FixedParams& params)
        : system_(std::move(system)),
          params_(params),
          y_(start, start + system_.size),
          next_(system_.size),
          noise_(params.temperature > 0 ? system_.size : 0) {
        for (Vector& k : slopes_) k.resize(system_.size);
    }

    End run(double t, const StopPredicate& wants_stop) override {
        const auto target = static_cast<Index>(std::nearbyint(t / params_.step));
        require(target >= counts_.steps, "t", "must not be before the present time", t);
        StopPoll stop(wants_stop);
        while (counts_.steps < target) {
            if (!velocity(y_, 0)) return End::interrupted;
            if (params_.tolerance > 0 && gradient_size(system_, slopes_[0]) < params_.tolerance)
                return End::stationary;
            if (!propose()) return End::interrupted;
            if (!all_finite(next_)) return End::diverged;
            if (system_.project) system_.project(next_.data());
            y_.swap(next_);
            ++counts_.steps;
            if (counts_.steps < target && stop()) return End::stopped;
        }
        return End::reached;
    }

    Index size() const override { return system_.size; }
    double t() const override { return static_cast<double>(counts_.steps) * params_.step; }
    double step_size() const override { return params_.step; }
    void get(double* y) const override { std::copy(y_.begin(), y_.end(), y); }

    FlowState save() const override {
        return {{static_cast<double>(counts_.steps), static_cast<double>(counts_.evaluations)}, y_};
    }
    void restore(const FlowState& state) override {
        require(state.numbers.size() == 2, "numbers", "has the wrong length", state.numbers.size());
        require(state.vectors.size() == y_.size(), "vectors", "has the wrong length", state.vectors.size());
        counts_.steps = static_cast<Index>(state.numbers[0]);
        counts_.evaluations = static_cast<Index>(state.numbers[1]);
        y_ = state.vectors;
    }

private:
    bool velocity(const Vector& y, int slope) {
        ++counts_.evaluations;
        return system_.velocity(y.data(), slopes_[slope].data());
    }

    /// next_ = what the scheme makes of y_, whose velocity is slope 0. False: interrupted.
    bool propose() {
        const double h = params_.step;
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
        for (std::size_t i = 0; i < n; ++i) next_[i] = y_[i] + h * k[0][i];
        add_noise();
        if (params_.scheme == Scheme::euler) return true;
        // Heun; with additive noise Platen's scheme of weak order 2 reduces to the same increment in both
        // stages.
        if (!velocity(next_, 1)) return false;
        for (std::size_t i = 0; i < n; ++i) next_[i] = y_[i] + h / 2 * (k[0][i] + k[1][i]);
        add_noise();
        return true;
    }

    void draw_noise() {
        if (noise_.empty()) return;
        constexpr Index kBlock = 4096;
        const random::Stream stream{params_.seed, random::Purpose::langevin,
                                    static_cast<std::uint64_t>(counts_.steps)};
        const auto columns = static_cast<Index>(system_.speed.size());
        const double amplitude = std::sqrt(2 * params_.step * params_.temperature);
        std::vector<double> scale(columns);
        for (Index j = 0; j < columns; ++j) scale[j] = amplitude * std::sqrt(system_.speed[j]);
        const int threads = threads_for(4 * system_.size, params_.threads);
        for_blocks(system_.size, kBlock, threads, [&](Index, Index begin, Index end) {
            random::normals(stream, static_cast<std::uint64_t>(begin), end - begin, &noise_[begin]);
            for (Index i = begin; i < end; ++i) noise_[i] *= scale[i % columns];
        });
    }

    void add_noise() {
        for (std::size_t i = 0; i < noise_.size(); ++i) next_[i] += noise_[i];
    }

    System system_;
    FixedParams params_;
    Vector y_, next_, noise_;
    Vector slopes_[4];
};

}  // namespace

std::function<void(double*)> keep_above(std::vector<double> lower) {
    return [lower = std::move(lower)](double* y) {
        for (std::size_t k = 0; k < lower.size(); ++k) y[k] = std::max(y[k], lower[k]);
    };
}

std::unique_ptr<Flow> fixed_steps(System system, const double* start, const FixedParams& params) {
    require(params.step > 0, "step", "must be > 0", params.step);
    require(params.temperature >= 0, "temperature", "must be >= 0", params.temperature);
    require(params.temperature == 0 || params.scheme != Scheme::rk4, "temperature", "must be 0 for rk4",
            params.temperature);
    return std::make_unique<FixedSteps>(std::move(system), start, params);
}

}  // namespace mfcore
