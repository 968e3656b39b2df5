// Layer-wise training: a run of the first layer. Neurons are in tiles; a step predicts on its samples, tile by
// tile, then moves all tiles into other memory, so that a step that is stopped or not finite has not begun.
#include "mfcore/sgd/layer_wise.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/parallel.hpp"
#include "base/products.hpp"
#include "data/chunks.hpp"
#include "sgd/sphere_step.hpp"
#include "sgd/tile_steps.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {
namespace {

template <int R>
class LayerWiseRun final : public LayerWise {
    using Tiles = NeuronTiles<double, R>;
    static constexpr Index kWidth = Tiles::kWidth, kLanes = simd::kLanes<double>;
    static constexpr Index kChunk = 64,  // samples whose activations of a tile are made at once
        kGroups = 64;                    // of tiles, by which predictions are summed

public:
    LayerWiseRun(const Network& network, ConstMat start, SamplerPtr sampler, std::uint64_t seed,
                 LayerWiseParams params)
        : network_(network),
          params_(std::move(params)),
          sampler_(std::move(sampler)),
          seed_(seed),
          d_(sampler_->dimension()),
          now_(network_, start),
          next_(now_.copy(1)),
          small_(now_.tiles(), d_),
          norms_(now_.tiles() * kWidth, 0.0),
          groups_(std::min(now_.tiles(), kGroups)),
          slope_(now_.tiles() * kWidth * params_.batch),
          partial_(groups_ * params_.batch),
          error_(params_.batch),
          moved_(now_.tiles()) {
        require(now_.finite(), "start", "must be finite", "infinity");
        for (Index i = 0; i < start.rows; ++i) {
            const double* const w = start.row(i) + network_.w_at();
            norms_[i] = std::sqrt(dot(w, w, d_));
            for (Index j = 0; j < d_; ++j) small_.set(i, j, std::abs(w[j]) < params_.reach);
        }
    }

    End run(Index target, int threads, const StopPredicate& wants_stop) override {
        require(target >= step_, "target", "must not be before the current step", target);
        const Index cost = params_.batch * now_.count() * (d_ + 40) / 12 + now_.count() * d_ / 3;
        const int team = threads_for(cost, threads);
        StopPoll stop(wants_stop);
        try {
            while (step_ < target && !stop()) {
                draw(target, threads);
                if (!do_step(team)) return End::diverged;
                ++step_;
            }
        } catch (const Interrupted&) {  // in the midst of a step, which is as if it had not begun
        }
        return step_ < target ? End::out_of_time : End::reached;
    }

    Index step() const override { return step_; }
    void theta(Mat out) const override {
        const StopScope whole{StopPredicate{}};
        now_.unpack(network_, out);
    }
    Index found() const override {
        Index found = 0;
        each_weight([&](Index i, Index j) { found += small_.is_small(i, j) ? 0 : 1; });
        return found;
    }
    LayerWiseState save() const override {
        LayerWiseState saved;
        saved.step = step_;
        saved.neurons.resize(static_cast<std::size_t>(count() * row()));
        theta({saved.neurons.data(), count(), row()});
        saved.norms.assign(norms_.begin(), norms_.begin() + count());
        saved.small.reserve(static_cast<std::size_t>(count() * d_));
        each_weight([&](Index i, Index j) { saved.small.push_back(small_.is_small(i, j) ? 1 : 0); });
        return saved;
    }
    void restore(const LayerWiseState& saved) override {
        require(saved.step >= 0, "step", "must be >= 0", saved.step);
        require_count(saved.neurons.size(), count() * row(), "neurons", "entries");
        require_count(saved.norms.size(), count(), "norms", "entries");
        require_count(saved.small.size(), count() * d_, "small", "entries");
        const StopScope whole{StopPredicate{}};
        now_.assign(Tiles(network_, {saved.neurons.data(), count(), row()}), 1);
        std::copy(saved.norms.begin(), saved.norms.end(), norms_.begin());
        each_weight([&](Index i, Index j) {
            small_.set(i, j, saved.small[static_cast<std::size_t>(i * d_ + j)] != 0);
        });
        step_ = saved.step;
        drawn_first_ = drawn_steps_ = 0;
    }
    Index count() const override { return now_.count(); }
    Index row() const override { return network_.row(d_); }

private:
    template <class Body>
    void each_weight(Body&& body) const {
        for (Index i = 0; i < count(); ++i)
            for (Index j = 0; j < d_; ++j) body(i, j);
    }

    /// Draw the samples of this step and of those after it, as many as are in memory at a time.
    void draw(Index target, int threads) {
        if (step_ >= drawn_first_ && step_ < drawn_first_ + drawn_steps_) return;
        const Index most = std::max<Index>(1, kDrawn / (params_.batch * (d_ + 1)));
        const Index steps = std::min(most, target - step_), rows = steps * params_.batch;
        drawn_steps_ = 0;
        h_.resize(static_cast<std::size_t>(steps));
        x_.resize(static_cast<std::size_t>(rows * d_));
        y_.resize(static_cast<std::size_t>(rows));
        params_.steps(step_, steps, h_.data());
        draw_samples(*sampler_, seed_, step_ * params_.batch, {x_.data(), rows, d_}, y_.data(), threads);
        drawn_first_ = step_;
        drawn_steps_ = steps;
    }

    /// One step; false, nothing done, if it would leave the finite numbers.
    bool do_step(int threads) {
        const Index k = step_ - drawn_first_, batch = params_.batch;
        const ConstMat x(x_.data() + k * batch * d_, batch, d_);
        if (!predict(x, y_.data() + k * batch, threads)) return false;
        const double speed = h_[static_cast<std::size_t>(k)] * params_.rate / static_cast<double>(batch);
        for_blocks(now_.tiles(), 1, threads, [&](Index t, Index, Index) { move(t, speed, x); });
        bool finite = true;
        for (const TileMoved& tile : moved_) finite = finite && tile.finite;
        if (!finite) return false;
        std::swap(now_, next_);
        for (Index t = 0; t < now_.tiles(); ++t)
            if (moved_[static_cast<std::size_t>(t)].reached) forget_large(t);
        return true;
    }

    double* slopes(Index t) { return slope_.data() + t * kWidth * params_.batch; }

    /// Slopes of all neurons, and the errors; false if one is not finite.
    bool predict(ConstMat x, const double* y, int threads) {
        for_blocks(groups_, 1, threads, [&](Index g, Index, Index) {
            Scratch<double> value(kChunk * kWidth), f(kChunk * kLanes);
            const Index first = g * now_.tiles() / groups_, last = (g + 1) * now_.tiles() / groups_;
            for (Index q = 0; q < x.rows; q += kChunk) {
                check_stop();
                const Index rows = std::min(kChunk, x.rows - q);
                std::fill(f.begin(), f.end(), 0.0);
                for (Index t = first; t < last; ++t) {
                    now_.activate(network_.activation, t, x.middle_rows(q, rows), value.data(),
                                  slopes(t) + q * kWidth);
                    add_shares<double, R>(now_.a(t), rows, value.data(), f.data());
                }
                for (Index s = 0; s < rows; ++s)
                    partial_[g * x.rows + q + s] = simd::sum<double>(simd::load(f.data() + s * kLanes));
            }
        });
        bool finite = true;
        for (Index q = 0; q < x.rows; ++q) {
            double f = 0;
            for (Index g = 0; g < groups_; ++g) f += partial_[g * x.rows + q];
            error_[q] = y[q] - f / static_cast<double>(count());
            finite = finite && std::isfinite(error_[q]);
        }
        return finite;
    }

    /// Tile t after a step, in next_.
    void move(Index t, double speed, ConstMat x) {
        double* const c = slopes(t);
        for (int r = 0; r < R; ++r) {
            const auto weight = speed * simd::load(now_.a(t) + r * kLanes);
            for (Index q = 0; q < x.rows; ++q) {
                double* const at = c + q * kWidth + r * kLanes;
                simd::store(at, simd::fill(error_[q]) * weight * simd::load(at));
            }
        }
        Scratch<double> move(d_ * kWidth);
        tiles::backward<double, R>(x, c, kWidth, 0.0, move.data());
        moved_[static_cast<std::size_t>(t)] =
            move_on_spheres<R>(now_.w(t), move.data(), small_.of(t), norms_.data() + t * kWidth, d_,
                               params_.reach, params_.clip, next_.w(t));
    }

    /// The weights of tile t that have become as large as `reach` are no longer small.
    void forget_large(Index t) {
        for (Index i = 0; i < now_.filled(t); ++i)
            for (Index j = 0; j < d_; ++j)
                if (!(std::abs(now_.w(t)[j * kWidth + i]) < params_.reach))
                    small_.set(t * kWidth + i, j, false);
    }

    Network network_;
    LayerWiseParams params_;
    SamplerPtr sampler_;
    std::uint64_t seed_;
    Index d_;
    Tiles now_, next_;  // at step_, and room for the step after it
    SmallWeights<R> small_;
    FilledScratch<double> norms_;
    Index groups_;
    Scratch<double> slope_, partial_, error_;
    std::vector<TileMoved> moved_;  // of each tile in the last step
    Index step_ = 0, drawn_first_ = 0, drawn_steps_ = 0;
    std::vector<double> x_, y_, h_;  // of steps from drawn_first_ on
};

}  // namespace

std::unique_ptr<LayerWise> make_layer_wise(const Network& network, ConstMat start, SamplerPtr sampler,
                                           std::uint64_t seed, LayerWiseParams params) {
    require(sampler != nullptr, "sampler", "must not be null", "null");
    require_rows(network, start, sampler->dimension(), "start");
    require_matrix(start, "start");
    require(params.batch > 0, "batch", "must be > 0", params.batch);
    require(params.reach > 0, "reach", "must be > 0", params.reach);
    require(params.clip >= params.reach, "clip", "must be >= reach", params.clip);
    require(params.rate >= 0, "rate", "must be >= 0", params.rate);
    require(static_cast<bool>(params.steps), "steps", "must be a function", "none");
    return with_tile_width<double>(start.rows, [&](auto width) -> std::unique_ptr<LayerWise> {
        return std::make_unique<LayerWiseRun<width()>>(network, start, std::move(sampler), seed,
                                                       std::move(params));
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
