// Runs of one-pass SGD: blocks, teams of threads, stops inside blocks, divergence.
#include "mfcore/sgd/sgd.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <type_traits>

#include "base/crowding.hpp"
#include "base/parallel.hpp"
#include "data/chunks.hpp"
#include "sgd/block.hpp"
#include "sgd/direct.hpp"

namespace mfcore::inline sgd {
namespace {

/// Whether steps are done one after the other on neurons that never leave the cache.
bool is_direct(const Network& network, const SgdParams& params, Index d, Index tiles) {
    return tiles == 1 && d <= sgd::kDirectDimension && params.batch == 1 && params.block == 0 &&
           params.temperature == 0 && !network.sphere;
}

/// Choose the number of steps per block. More samples amortise the loads and stores of W, but each costs O(N)
/// for every earlier one; in few dimensions there is little to amortise.
Index choose_steps(const Network& network, const SgdParams& params, Index d) {
    if (network.sphere) return 1;  // the projection needs every |w|
    Index samples = params.block > 0 ? params.block : d > 32 ? 32 : d > 4 ? 8 : 4;
    if (params.temperature > 0) {
        // Draws per neuron and step: samples + d / samples, least at sqrt(d); directly: d. And the basis of
        // the samples needs at most d of them.
        if (d < 12) return 1;
        if (params.block == 0) samples = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(d))));
        samples = std::min({samples, d, Index{24}});
    }
    return std::max<Index>(1, std::min<Index>(samples, 64) / params.batch);
}

template <class T, int R>
class SgdRun final : public Sgd {
public:
    using Tiles = NeuronTiles<T, R>;

    SgdRun(const Network& network, ConstMat start, SamplerPtr sampler, std::uint64_t seed, SgdParams params)
        : network_(network),
          params_(std::move(params)),
          sampler_(std::move(sampler)),
          seed_(seed),
          d_(sampler_->dimension()),
          state_(network_, start),
          direct_(is_direct(network_, params_, d_, state_.tiles())),
          steps_(direct_ ? 1 : choose_steps(network_, params_, d_)) {
        require(state_.finite(), "start", "must be finite in the precision of the run", "infinity");
    }

    End run(Index target, int threads, const StopPredicate& wants_stop) override {
        require(target >= step_, "target", "must not be before the current step", target);
        // One parallel region per segment of a few milliseconds, so that stops are answered soon.
        const Index segment =
            std::max<Index>(1, std::min<Index>(4096, (1 << 19) / std::max<Index>(d_, 1)) / rows_of(1));
        StopPoll stop(wants_stop);
        try {
            while (diverged_at_ < 0 && anchor_ + steps_ <= target && !stop()) {
                const Index blocks = crowding_.learning() ? std::min(segment, kLearn) : segment;
                advance_blocks(std::min(blocks, (target - anchor_) / steps_), threads);
            }
            if (diverged_at_ < 0 && anchor_ + steps_ > target && step_ < target)
                advance_inside(target, threads);
        } catch (const Interrupted&) {  // in the midst of a block, which is as if it had not begun
        }
        if (diverged_at_ >= 0) return End::diverged;
        return step_ < target ? End::out_of_time : End::reached;
    }

    Index step() const override { return step_; }
    Index diverged_at() const override { return diverged_at_; }
    void theta(Mat out) const override { (inside_ ? *inside_ : state_).unpack(network_, out); }
    SgdState save() const override {
        SgdState saved{anchor_, step_, std::vector<double>(static_cast<std::size_t>(count() * row()))};
        state_.unpack(network_, {saved.neurons.data(), count(), row()});
        return saved;
    }
    void restore(const SgdState& saved) override {
        require(saved.anchor >= 0 && saved.anchor % steps_ == 0, "anchor", "must be the start of a block",
                saved.anchor);
        require(static_cast<Index>(saved.neurons.size()) == count() * row(), "neurons", "has the wrong size",
                saved.neurons.size());
        state_ = Tiles(network_, {saved.neurons.data(), count(), row()});
        inside_.reset();
        anchor_ = step_ = saved.anchor;
        held_ = 0;
        diverged_at_ = -1;
    }
    Index block_steps() const override { return steps_; }
    Index count() const override { return state_.count(); }
    Index row() const override { return network_.row(d_); }

private:
    static constexpr Index kLearn = 4;  // blocks that tell whether a team is worth it

    Index rows_of(Index blocks) const { return blocks * steps_ * params_.batch; }

    /// Draw the samples and step sizes of the next `blocks` blocks. What is held already is not drawn again.
    void draw(Index blocks, int threads) {
        h_.resize(blocks * steps_);
        params_.steps(anchor_, blocks * steps_, h_.data());
        const Index have = rows_of(held_), want = rows_of(blocks);
        if (have >= want) return;
        const Index count = want - have, first = anchor_ * params_.batch + have;
        x_.resize(want * d_);
        y_.resize(want);
        if constexpr (std::is_same_v<T, double>) {
            draw_samples(*sampler_, seed_, first, {&x_[have * d_], count, d_}, &y_[have], team_size(threads));
        } else {
            drawn_x_.resize(count * d_);
            drawn_y_.resize(count);
            draw_samples(*sampler_, seed_, first, {drawn_x_.data(), count, d_}, drawn_y_.data(),
                         team_size(threads));
            std::copy(drawn_x_.begin(), drawn_x_.end(), &x_[have * d_]);
            std::copy(drawn_y_.begin(), drawn_y_.end(), &y_[have]);
        }
        held_ = blocks;
    }

    /// The number of groups of tiles by which predictions are summed, whatever the team. Few of them: what a
    /// thread hands over at every step should fit in a cache line. Wide networks have time for more, and use
    /// for more threads.
    Index groups() const { return std::min<Index>(state_.tiles(), state_.tiles() > 128 ? 32 : 8); }

    /// The number of threads for the steps. A step is about 4 d operations and an activation per neuron and
    /// sample; a share below a microsecond is not worth the meetings at every step.
    int team_size(int threads) const {
        const Index nanoseconds = params_.batch * state_.count() * (d_ + 40) / 25;
        const Index most = std::min<Index>(resolve_threads(threads), groups());
        return static_cast<int>(std::clamp<Index>(nanoseconds / 800, 1, most));
    }

    /// Advance by whole blocks. step_ and the neurons shown stay those of the last finite state.
    void advance_blocks(Index blocks, int threads) {
        draw(blocks, threads);
        backup_ = state_;
        const int team = direct_ ? 1 : crowding_.team(team_size(threads));
        const auto begin = std::chrono::steady_clock::now();
        Index done = 0;
        try {
            done = advance(state_, blocks, steps_, team);
        } catch (...) {
            state_ = *backup_;
            throw;
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        crowding_.took(team, seconds.count() / static_cast<double>(std::max<Index>(done, 1)));
        held_ = 0;
        if (!state_.finite()) {  // the neurons were the first to overflow
            if (diverged_at_ < 0) diverged_at_ = anchor_ + done * steps_ - 1;
            state_ = *backup_;
            return;
        }
        anchor_ += done * steps_;
        if (anchor_ < step_) return;
        step_ = anchor_;
        inside_.reset();
    }

    /// Advance to a step inside a block, from the block's start, on a copy.
    void advance_inside(Index target, int threads) {
        if (target > anchor_) {
            draw(1, threads);
            backup_ = state_;
            advance(*backup_, 1, target - anchor_, crowding_.team(team_size(threads)));
            if (diverged_at_ < 0 && !backup_->finite()) diverged_at_ = target - 1;
            if (diverged_at_ >= 0) return;
            inside_.swap(backup_);
        }
        step_ = target;
    }

    /// Run `blocks` blocks on `state`, the last one for `steps` steps only. Returns the blocks done: fewer
    /// if neurons diverge, or if the team is kept from working together.
    Index advance(Tiles& state, Index blocks, Index steps, int team) {
        if (direct_) return advance_directly(state, blocks);
        sgd::Shared<T> shared(team, groups(), rows_of(1), params_.batch, d_, params_.temperature > 0);
        Index bad = -1, done = 0;
        std::atomic<Index> last{blocks - 1};
        const auto begin = std::chrono::steady_clock::now();
        ErrorKeeper starting;
        run_team(team, [&](int rank, int size) {
            std::optional<sgd::Worker<T, R>> worker;  // all that it needs is allocated here
            starting.guard([&] { worker.emplace(network_, params_, seed_, state, shared, rank, size); });
            shared.exchange.meet(rank, size);
            if (starting.failed()) return;
            for (Index b = 0; b < blocks; ++b) {
                // Seen by all of them after this block, in which they meet.
                if (rank == 0 && (shared.idle() || (size > 1 && gives_up(begin, b))))
                    last.store(b, std::memory_order_relaxed);
                const sgd::StepBlock<T> block{{x_.data() + rows_of(b) * d_, rows_of(1), d_},
                                              y_.data() + rows_of(b),
                                              h_.data() + b * steps_,
                                              steps_,
                                              b + 1 < blocks ? steps_ : steps,
                                              anchor_ + b * steps_};
                const Index at = worker->advance(block, state);
                if (rank == 0) (at >= 0 ? bad : done) = at >= 0 ? at : b + 1;
                if (at >= 0 || b >= last.load(std::memory_order_relaxed)) break;
            }
        });
        starting.rethrow();
        shared.keeper.rethrow();
        diverged_at_ = bad;
        return done;
    }

    bool gives_up(std::chrono::steady_clock::time_point begin, Index blocks) const {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        return crowding_.hopeless(seconds.count(), static_cast<double>(blocks));
    }

    Index advance_directly(Tiles& state, Index steps) {
        const sgd::StepBlock<T> all{{x_.data(), steps, d_}, y_.data(), h_.data(), steps, steps, anchor_};
        const Index done = kinds::with_kernel<T>(network_.activation, [&](const auto& kernel) {
            return sgd::direct_steps<T, R>(kernel, network_, params_, state, all);
        });
        diverged_at_ = done < steps ? anchor_ + done : -1;
        return done;
    }

    Network network_;
    SgdParams params_;
    SamplerPtr sampler_;
    std::uint64_t seed_;
    Index d_;
    Tiles state_;  // at step anchor_, the start of a block
    bool direct_;
    Index steps_;
    Index anchor_ = 0, step_ = 0, held_ = 0, diverged_at_ = -1;
    Crowding crowding_;
    std::optional<Tiles> inside_;  // at step_, if that is inside a block
    std::optional<Tiles> backup_;  // memory for a copy
    std::vector<T> x_, y_;
    std::vector<double> h_, drawn_x_, drawn_y_;
};

}  // namespace

End run_together(const std::vector<Sgd*>& runs, Index target, int threads, const StopPredicate& wants_stop) {
    if (runs.size() == 1 && runs[0]->step() < target) return runs[0]->run(target, threads, wants_stop);
    // Only the calling thread may ask whether to stop: the runs advance together by slices of whole blocks.
    const int team = resolve_threads(threads);
    const bool across = static_cast<int>(runs.size()) >= team;
    const auto step = [](const Sgd* one, const Sgd* other) { return one->step() < other->step(); };
    const auto diverged = [](const Sgd* run) { return run->diverged_at() >= 0; };
    StopPoll stop(wants_stop);
    const StopScope whole_slices{StopPredicate{}};  // else replicas would be left at different steps
    const Index block = runs.front()->block_steps();
    Index at = (*std::min_element(runs.begin(), runs.end(), step))->step(), slice = block;
    while (at < target && !stop() && std::none_of(runs.begin(), runs.end(), diverged)) {
        const auto begin = std::chrono::steady_clock::now();
        at = std::min(target, (at + slice) / block * block);
        for_blocks(static_cast<Index>(runs.size()), 1, across ? team : 1, [&](Index r, Index, Index) {
            // An error in the midst of a slice may have left some runs ahead of others.
            if (runs[r]->step() < at) runs[r]->run(at, across ? 1 : threads, {});
        });
        if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20)) slice *= 2;
    }
    return std::any_of(runs.begin(), runs.end(), diverged) ? End::diverged
           : at < target                                   ? End::out_of_time
                                                           : End::reached;
}

template <class T>
std::unique_ptr<Sgd> make_sgd(const Network& network, ConstMat start, SamplerPtr sampler, std::uint64_t seed,
                              SgdParams params) {
    require(params.batch > 0, "batch", "must be > 0", params.batch);
    require(params.ridge >= 0, "ridge", "must be >= 0", params.ridge);
    require(params.temperature >= 0, "temperature", "must be >= 0", params.temperature);
    require_rows(network, start, sampler->dimension(), "start");
    return with_tile_width<T>(start.rows, [&](auto width) -> std::unique_ptr<Sgd> {
        return std::make_unique<SgdRun<T, width()>>(network, start, std::move(sampler), seed,
                                                    std::move(params));
    });
}

template std::unique_ptr<Sgd> make_sgd<double>(const Network&, ConstMat, SamplerPtr, std::uint64_t,
                                               SgdParams);
template std::unique_ptr<Sgd> make_sgd<float>(const Network&, ConstMat, SamplerPtr, std::uint64_t, SgdParams);

}  // namespace mfcore::inline sgd
