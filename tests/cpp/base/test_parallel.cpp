// Blocks, errors and forks: what Python cannot reach of base/parallel.hpp.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.hpp"

using mfcore::for_blocks;
using mfcore::Index;

namespace {

// How often each of n items is visited, each by the block it belongs to.
std::vector<int> visits(Index n, Index block_size, int threads) {
    std::vector<int> count(static_cast<std::size_t>(n), 0);
    for_blocks(n, block_size, threads, [&](Index block, Index begin, Index end) {
        REQUIRE(begin == block * block_size);
        REQUIRE(end <= n);
        for (Index i = begin; i < end; ++i) ++count[static_cast<std::size_t>(i)];
    });
    return count;
}

}  // namespace

TEST_CASE("every item belongs to exactly one block, whatever the number of threads") {
    for (const Index n : {0, 1, 6, 7, 8, 100})
        for (const int threads : {1, 2, 5})
            CHECK(visits(n, 7, threads) == std::vector<int>(static_cast<std::size_t>(n), 1));
}

TEST_CASE("one of the errors thrown inside a parallel loop reaches the caller") {
    const auto fail = [](Index block, Index, Index) { throw std::runtime_error(std::to_string(block)); };
    for (const int threads : {1, 4}) CHECK_THROWS_AS(for_blocks(50, 1, threads, fail), std::runtime_error);
    CHECK(visits(50, 1, 4) == std::vector<int>(50, 1));  // and the next loop works
}

TEST_CASE("a stop that somebody wants ends a loop on any number of threads, and only within its scope") {
    for (const int threads : {1, 4}) {
        Index asked = 0;
        std::atomic<Index> done{0};
        const auto slow = [&](Index, Index, Index) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            ++done;
        };
        {
            const mfcore::StopScope scope([&] { return ++asked == 2; });  // asked every 50 ms
            CHECK_THROWS_AS(for_blocks(100'000, 1, threads, slow), mfcore::Interrupted);
            CHECK(asked == 2);
            const mfcore::StopScope none{mfcore::StopPredicate{}};
            CHECK(visits(50, 1, threads) == std::vector<int>(50, 1));
        }
        CHECK(done < 100'000);
        CHECK(visits(50, 1, threads) == std::vector<int>(50, 1));
    }
}

TEST_CASE("the members of a team see within their blocks that the first one was told to stop") {
    const mfcore::StopScope scope([] { return true; });
    const auto endless = [](Index, Index, Index) {
        while (true) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            mfcore::check_stop();
        }
    };
    CHECK_THROWS_AS(for_blocks(4, 1, 4, endless), mfcore::Interrupted);
}

TEST_CASE("small work is not shared") {
    CHECK(mfcore::threads_for(mfcore::kWorkPerThread - 1, 8) == 1);
    CHECK(mfcore::threads_for(3 * mfcore::kWorkPerThread, 8) == 3);
    CHECK(mfcore::threads_for(1'000 * mfcore::kWorkPerThread, 8) == 8);
}

TEST_CASE("a child forked after a parallel loop runs one too, on one thread") {
    const std::vector<int> once(64, 1);
    REQUIRE(visits(64, 1, 4) == once);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(20);  // a loop that hangs ends the child by a signal
        _exit(visits(64, 1, 4) == once && mfcore::resolve_threads(4) == 1 ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
