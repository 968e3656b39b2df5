// Runs of one-pass SGD, one or several on one clock.
#include "mfcore/sgd/sgd.hpp"

#include <algorithm>
#include <chrono>

#include "base/parallel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline sgd {

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

}  // namespace mfcore::inline MFCORE_LEVEL::inline sgd
