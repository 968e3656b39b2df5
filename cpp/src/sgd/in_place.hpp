#pragma once
// Blocks of steps on rows in the caller's memory. Tiles of them are packed while they are in the cache, once a
// block: of a wide network there is no second copy, which would cost as much as many steps.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <optional>

#include "base/crowding.hpp"
#include "base/parallel.hpp"
#include "sgd/block.hpp"
#include "sgd/plan.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// The result of run_in_place(): the steps done, all of whole blocks but the last block of all.
struct StepsInPlace {
    Index steps;
    bool stopped;  ///< somebody wanted that; otherwise what is left has to be done step by step
};

/// One step per row of x, of size h, as a run of SGD does them: the same blocks, the same bits. Blocks that
/// could leave the finite numbers are not done, nor those after them. Not for noise, spheres or few rows of
/// direct steps; the rows must be finite, and 1 - h rate ridge at most 1 in size.
StepsInPlace run_in_place(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
                          const SgdParams& params, const StopPredicate& wants_stop);

template <int R>
class InPlace {
public:
    InPlace(const Network& network, Mat theta, ConstMat x, const double* y, const double* h,
            const SgdParams& params)
        : network_(network),
          params_(params),
          theta_(theta),
          x_(x),
          y_(y),
          h_(h),
          state_(Tiles::of_rows(network, theta, params.threads)),
          steps_(choose_steps(network, params, x.cols)),
          blocks_((x.rows + steps_ - 1) / steps_) {}

    StepsInPlace run(const StopPredicate& wants_stop) {
        const Index cost = step_cost(1, state_.count(), x_.cols);
        StopPoll stop(wants_stop);
        bool stopped = false;
        crowding_.expect(4e-9 * static_cast<double>(cost * steps_));
        try {
            while (done_ < blocks_ && !doubtful_ && !(stopped = stop())) {
                const int most = team_of(cost, groups_of(state_.tiles()), params_.threads),
                          team = crowding_.team(most);
                const Index before = done_;
                const auto begin = Clock::now();
                advance(team, team < most ? std::min(blocks_, done_ + kAlone) : blocks_, stop);
                const std::chrono::duration<double> took = Clock::now() - begin;
                crowding_.took(team, took.count() / static_cast<double>(std::max<Index>(done_ - before, 1)));
            }
        } catch (const Interrupted&) {
            stopped = true;
        } catch (const std::bad_alloc&) {  // single steps take less memory
        } catch (...) {
            finish();
            throw;
        }
        finish();
        return {std::min(done_ * steps_, x_.rows), stopped};
    }

private:
    using Tiles = NeuronTiles<double, R>;
    using Clock = std::chrono::steady_clock;
    static constexpr Index kAlone = 4;  // blocks that are done alone before a team is tried again

    /// Go to block `last`, unless somebody wants to stop, the team gives up or a block is not done.
    void advance(int team, Index last, StopPoll& stop) {
        Shared<double> shared(team, groups_of(state_.tiles()), steps_, 1, x_.cols, false);
        const auto begin = Clock::now();
        const Index first = done_;
        std::atomic<Index> end{last - 1};
        ErrorKeeper starting;
        run_team(team, [&](int rank, int size) {
            std::optional<Worker<double, R>> worker;  // all that it needs is allocated here
            starting.guard([&] { worker.emplace(network_, params_, 0, state_, shared, rank, size); });
            shared.exchange.meet(rank, size);
            if (starting.failed()) return;
            for (Index b = first; b < last; ++b) {
                // Seen by all of them after this block, in which they meet.
                if (rank == 0)
                    shared.keeper.guard([&] {
                        if (stop() || (size > 1 && gives_up(begin, b - first)))
                            end.store(b, std::memory_order_relaxed);
                    });
                const bool made = worker->advance(block(b), state_, [] {}) < 0;
                if (rank == 0) (made ? done_ : doubtful_) += 1;
                if (!made || b >= end.load(std::memory_order_relaxed)) break;
            }
        });
        starting.rethrow();
        shared.keeper.rethrow();
    }

    /// The rows have their w already.
    void finish() {
        const StopScope whole{StopPredicate{}};
        state_.unpack_scalars(network_, theta_, params_.threads);
    }

    bool gives_up(Clock::time_point begin, Index blocks) const {
        const std::chrono::duration<double> took = Clock::now() - begin;
        return crowding_.hopeless(took.count(), static_cast<double>(blocks));
    }

    StepBlock<double> block(Index b) const {
        const Index first = b * steps_, end = std::min(first + steps_, x_.rows),
                    next = std::min(end + steps_, x_.rows);
        return {x_.middle_rows(first, end - first), y_ + first, h_ + first, end - first, end - first, first,
                x_.middle_rows(end, next - end)};
    }

    const Network& network_;
    const SgdParams& params_;
    Mat theta_;
    ConstMat x_;
    const double *y_, *h_;
    Tiles state_;
    Index steps_, blocks_, done_ = 0;
    Index doubtful_ = 0;  // blocks that were not done
    Crowding crowding_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
