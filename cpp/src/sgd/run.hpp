#pragma once
// A run of one-pass SGD: blocks, teams of threads, stops inside blocks, divergence.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/crowding.hpp"
#include "base/parallel.hpp"
#include "mfcore/sgd/sgd.hpp"
#include "sgd/batch.hpp"
#include "sgd/block.hpp"
#include "sgd/direct.hpp"
#include "sgd/plan.hpp"
#include "sgd/samples.hpp"
#include "sgd/start.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

template <class T, int R>
class SgdRun final : public Sgd {
public:
    using Tiles = NeuronTiles<T, R>;

    SgdRun(const Network& network, Start start, SamplerPtr sampler, std::uint64_t seed, SgdParams params)
        : network_(network),
          params_(std::move(params)),
          seed_(seed),
          d_(sampler->dimension()),
          start_(std::move(start)),
          state_(start_.tiles<T, R>(network_, d_, params_.threads)),
          direct_(is_direct(network_, params_, d_, count(), state_.tiles())),
          steps_(direct_ ? kDirectSteps : choose_steps(network_, params_, d_)),
          samples_(std::move(sampler), seed) {
        if (!params_.start_stays) start_.forget_rows();
    }

    End run(Index target, int threads, const StopPredicate& wants_stop) override {
        require(target >= step_, "target", "must not be before the current step", target);
        // One parallel region per segment of some milliseconds, so that stops are answered soon.
        const Index most = samples_.in_pieces() ? 4 : 1;
        const Index segment =
            std::max<Index>(1, most * std::min<Index>(4096, (1 << 19) / std::max<Index>(d_, 1)) / rows_of(1));
        StopPoll stop(wants_stop);
        try {
            while (diverged_at_ < 0 && anchor_ + steps_ <= target && !stop()) {
                const Index blocks = crowding_.learning() ? std::min(segment, kLearn) : segment;
                advance_blocks(std::min(blocks, (target - anchor_) / steps_), steps_, threads);
            }
            if (diverged_at_ < 0 && anchor_ + steps_ > target && step_ < target && !stop()) {
                if (target == params_.total)
                    advance_blocks(1, target - anchor_, threads);
                else
                    advance_inside(target, threads);
            }
        } catch (const Interrupted&) {  // in the midst of a block, which is as if it had not begun
        }
        start_.forget_rows();
        if (diverged_at_ >= 0) return End::diverged;
        return step_ < target ? End::out_of_time : End::reached;
    }

    Index step() const override { return step_; }
    Index diverged_at() const override { return diverged_at_; }
    void theta(Mat out) const override {
        const StopScope whole{StopPredicate{}};
        shown().unpack(network_, out, params_.threads);
    }
    void predict(ConstMat x, double* f, int threads) const override {
        require_count(x.cols, d_, "x", "columns");
        predict_by_tiles(network_, shown(), x, f, threads);
    }
    SgdState save() const override {
        SgdState saved{anchor_, step_, std::vector<double>(static_cast<std::size_t>(count() * row()))};
        state_.unpack(network_, {saved.neurons.data(), count(), row()}, params_.threads);
        return saved;
    }
    void restore(const SgdState& saved) override {
        require(saved.anchor >= 0 && saved.anchor % steps_ == 0, "anchor", "must be the start of a block",
                saved.anchor);
        require_count(saved.neurons.size(), count() * row(), "neurons", "entries");
        state_ = Tiles(network_, {saved.neurons.data(), count(), row()}, params_.threads);
        inside_.reset();
        start_ = {};  // the state may be one that did not begin there
        anchor_ = step_ = saved.anchor;
        diverged_at_ = -1;
    }
    Index block_steps() const override { return steps_; }
    Index count() const override { return state_.count(); }
    Index row() const override { return network_.row(d_); }

private:
    static constexpr Index kLearn = 4;  // blocks that tell whether a team is worth it

    Index rows_of(Index blocks) const { return blocks * steps_ * params_.batch; }
    /// Steps of the block that begins at step `first`.
    Index steps_from(Index first) const {
        return params_.total > first ? std::min(steps_, params_.total - first) : steps_;
    }

    /// Begin a segment of so many blocks: its step sizes and samples. A team draws for a microsecond at a time.
    void open(Index blocks, int team) {
        const Index steps = (blocks - 1) * steps_ + steps_from(anchor_ + (blocks - 1) * steps_);
        h_.resize(steps);
        params_.steps(anchor_, steps, h_.data());
        const Index rows = steps * params_.batch;
        samples_.open(anchor_ * params_.batch, rows, rows_of(1),
                      team > 1 ? std::max<Index>(1, 1280 / d_) : rows);
    }

    Index groups() const { return groups_of(state_.tiles()); }
    Index step_cost() const { return sgd::step_cost(params_.batch, state_.count(), d_); }
    int team_size(int threads) const { return team_of(step_cost(), groups(), threads); }

    bool starts() const { return anchor_ == 0 && start_.there(); }  // and can start again
    const Tiles& shown() const { return inside_ ? *inside_ : state_; }
    void back_up(int threads) {
        if (backup_)
            backup_->assign(state_, threads);
        else
            backup_.emplace(state_.copy(threads));
    }
    void go_back(int threads) {
        const StopScope whole{StopPredicate{}};
        if (starts())
            state_ = start_.tiles<T, R>(network_, d_, threads);
        else
            state_.assign(*backup_, threads);
    }
    bool is_finite(const Tiles& tiles, int threads) const {
        const StopScope whole{StopPredicate{}};
        return tiles.finite(threads);
    }

    /// Advance by blocks, all whole but the last, of `last` steps. step_ and the neurons shown stay those of the
    /// last finite state.
    void advance_blocks(Index blocks, Index last, int threads) {
        if (!starts()) back_up(threads);
        // Members of a team with long steps wait for the scheduler hardly longer than they work, and
        // learning alone would take long.
        if (crowding_.learning() && step_cost() >= 200'000)
            crowding_.expect(4e-9 * static_cast<double>(step_cost() * steps_));
        const int team = direct_ ? 1 : crowding_.team(team_size(threads));
        const auto begin = std::chrono::steady_clock::now();
        Index done = 0;
        try {
            done = advance(state_, blocks, last, team);
        } catch (...) {
            go_back(threads);
            throw;
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        crowding_.took(team, seconds.count() / static_cast<double>(std::max<Index>(done, 1)));
        const Index reached = anchor_ + (done < blocks ? done * steps_ : (blocks - 1) * steps_ + last);
        if (!is_finite(state_, threads)) {  // the neurons were the first to overflow
            if (diverged_at_ < 0) diverged_at_ = reached - 1;
            go_back(threads);
            return;
        }
        anchor_ = reached;
        if (anchor_ < step_) return;
        step_ = anchor_;
        inside_.reset();
    }

    /// Advance to a step inside a block, from the block's start, on a copy.
    void advance_inside(Index target, int threads) {
        if (target > anchor_) {
            back_up(threads);
            advance(*backup_, 1, target - anchor_, crowding_.team(team_size(threads)));
            if (diverged_at_ < 0 && !is_finite(*backup_, threads)) diverged_at_ = target - 1;
            if (diverged_at_ >= 0) return;
            inside_.swap(backup_);
        }
        step_ = target;
    }

    /// Run `blocks` blocks on `state`, the last one for `steps` steps only. Returns the blocks done: fewer
    /// if neurons diverge, or if the team is kept from working together.
    Index advance(Tiles& state, Index blocks, Index steps, int team) {
        open(blocks, team);
        if (direct_) return advance_directly(state, blocks, steps);
        using Batches = BatchWorker<T, R>;
        if (steps_ == 1 && params_.batch >= Batches::kLeast)
            return advance_by<Batches>(state, blocks, steps, team);
        return advance_by<Worker<T, R>>(state, blocks, steps, team);
    }

    template <class Member>
    Index advance_by(Tiles& state, Index blocks, Index steps, int team) {
        Shared<T> shared(team, groups(), rows_of(1), params_.batch, d_, params_.temperature > 0);
        Index bad = -1, done = 0;
        std::atomic<Index> last{blocks - 1};
        const auto begin = std::chrono::steady_clock::now();
        ErrorKeeper starting;
        run_team(team, [&](int rank, int size) {
            std::optional<Member> worker;  // all that it needs is allocated here
            starting.guard([&] { worker.emplace(network_, params_, seed_, state, shared, rank, size); });
            const auto draw = [&](Index piece) { shared.keeper.guard([&] { samples_.draw(piece); }); };
            for (Index piece = 0; piece < Member::kAhead; ++piece) draw(piece);
            shared.exchange.meet(rank, size);
            if (starting.failed()) return;
            for (Index b = 0; b < blocks; ++b) {
                // Seen by all of them after this block, in which they meet.
                if (rank == 0 && (shared.idle() || (size > 1 && gives_up(begin, b))))
                    last.store(b, std::memory_order_relaxed);
                const Index first = anchor_ + b * steps_, whole = steps_from(first);
                const StepBlock<T> block{samples_of(b, b + 1),
                                         samples_.y(rows_of(b)),
                                         h_.data() + b * steps_,
                                         whole,
                                         b + 1 < blocks ? steps_ : steps,
                                         first,
                                         samples_of(b + 1, b + 2)};
                const Index at = worker->advance(
                    block, state, [&] { draw(samples_.piece_of(rows_of(b)) + Member::kAhead); });
                if (rank == 0) (at >= 0 ? bad : done) = at >= 0 ? at : b + 1;
                if (at >= 0 || b >= last.load(std::memory_order_relaxed)) break;
            }
        });
        starting.rethrow();
        shared.keeper.rethrow();
        diverged_at_ = bad;
        return done;
    }

    /// Samples of blocks `begin` to `end` - 1, as far as the segment goes.
    MatView<const T> samples_of(Index begin, Index end) const {
        const Index last = std::min(rows_of(end), samples_.rows());
        return samples_.x(std::min(rows_of(begin), last), last);
    }

    bool gives_up(std::chrono::steady_clock::time_point begin, Index blocks) const {
        const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin);
        return crowding_.hopeless(took.count(), static_cast<double>(blocks));
    }

    Index advance_directly(Tiles& state, Index blocks, Index steps) {
        const auto at = [&](Index b) {
            const Index count = b + 1 < blocks ? steps_ : steps, first = b * steps_;
            samples_.draw(samples_.piece_of(first));
            return StepBlock<T>{samples_.x(first, first + count),
                                samples_.y(first),
                                &h_[first],
                                count,
                                count,
                                anchor_ + first};
        };
        Index made = 0;
        const Index done = direct_blocks<T, R>(network_, params_, state, blocks, at, made);
        if (done == blocks) return done;
        diverged_at_ = anchor_ + done * steps_ + made;
        if (&state != &state_) return done;  // nobody will look at a copy
        go_back(1);
        open(blocks, 1);
        return direct_blocks<T, R>(network_, params_, state, done, at, made);
    }

    Network network_;
    SgdParams params_;
    std::uint64_t seed_;
    Index d_;
    Start start_;  // if it is still there: the neurons at step 0
    Tiles state_;  // at step anchor_, the start of a block
    bool direct_;
    Index steps_;
    Index anchor_ = 0, step_ = 0, diverged_at_ = -1;
    Crowding crowding_;
    std::optional<Tiles> inside_;  // at step_, if that is inside a block
    std::optional<Tiles> backup_;  // memory for a copy
    Samples<T> samples_;
    std::vector<double> h_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
