#pragma once
// Data that the threads of a team share while they do a block of steps (block.hpp, batch.hpp).
#include <atomic>
#include <vector>

#include "base/barrier.hpp"
#include "base/parallel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

/// The samples and step sizes of one block, of which the first `steps` steps are to be done.
template <class T>
struct StepBlock {
    MatView<const T> x;  // block_steps * batch rows
    const T* y;
    const double* h;  // one per step
    Index block_steps;
    Index steps;
    Index first;                 // number of the first step
    MatView<const T> next = {};  // samples of the following block, if they are there already
};

/// Memory that the threads of a team share.
template <class T>
struct Shared {
    Shared(int members, Index groups_, Index rows_, Index batch, Index d, bool noisy)
        : exchange(members, groups_ * batch),
          groups(groups_),
          rows(rows_),
          gram(rows_ > batch ? rows_ * rows_ : 0),
          mix(gram.size()),
          q(noisy && rows_ > batch ? rows_ * d : 0) {}

    /// Ask, on the calling thread, whether to stop. Then all of them go through what is left of the block,
    /// and meet, without computing anything: the caller throws the result away.
    void poll(int rank) {
        if (rank == 0) keeper.guard([] { check_stop(); });
    }
    bool idle() const { return keeper.failed().load(std::memory_order_relaxed); }

    ErrorKeeper keeper;
    Exchange<T> exchange;
    Index groups;         // predictions are summed by groups of tiles that do not depend on the team
    Index rows;           // most samples of a block; if of one step only, the following are not needed
    std::vector<T> gram;  // G[k, l], upper triangle
    std::vector<T> mix;   // (P_l / P_{k+1}) G[k, l] for samples k of earlier steps than l
    std::vector<T> q;     // orthonormal basis of the samples, for the noise
    std::atomic<bool> doubtful{false};  // whether a member could leave the finite numbers
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
