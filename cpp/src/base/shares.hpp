#pragma once
// Parallel loops whose members come back to the same tasks.
#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "base/parallel.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Call body(task) for tasks 0 .. n-1 of about equal cost, as for_tasks does. A member first does a share of its
/// own, the same one in every loop over as many tasks, and then what others have not begun of theirs: what it
/// wrote in one loop it finds near its core in the next.
template <class Body>
void for_shares(Index n, int threads, Body&& body) {
    const int team = static_cast<int>(std::min<Index>(resolve_threads(threads), n));
    if (team <= 1) return for_tasks(n, 1, body);
    struct alignas(64) Share {
        std::atomic<Index> next{0};
        Index end = 0;
    };
    std::vector<Share> shares(static_cast<std::size_t>(team));
    for (int s = 0; s < team; ++s) {
        shares[static_cast<std::size_t>(s)].next = n * s / team;
        shares[static_cast<std::size_t>(s)].end = n * (s + 1) / team;
    }
    ErrorKeeper keeper;
    run_helpers(team, [&](int rank, int) {
        std::optional<StopScope> told;  // the others see that the first one was
        if (rank > 0) told.emplace(keeper.failed());
        for (int turn = 0; turn < team; ++turn) {
            Share& share = shares[static_cast<std::size_t>((rank + turn) % team)];
            for (Index k = share.next++; k < share.end && !keeper.failed(); k = share.next++)
                keeper.guard([&] {
                    check_stop();
                    body(k);
                });
        }
    });
    keeper.rethrow();
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
