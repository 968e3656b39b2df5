#pragma once
// Exchange of numbers between the threads of a team that meet every microsecond: each hands its numbers to
// all others at a barrier. Members spin; after a while they yield, so that more threads than cores are slow
// but not stuck.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "mfcore/base/views.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mfcore::inline MFCORE_LEVEL::inline base {

template <class T>
class Exchange {
public:
    /// For at most `members` threads, each handing over up to `capacity` numbers per meeting.
    Exchange(int members, Index capacity)
        : lines_(1 + static_cast<Index>(sizeof(std::uint64_t) + capacity * sizeof(T)) / kLine),
          met_(members),
          memory_(2 * lines_ * members) {}

    /// The numbers of member `rank` for the next meeting. Two meetings alternate between two
    /// buffers: a member may be at most one meeting ahead of the slowest reader.
    T* mine(int rank) { return numbers(rank, met_[rank].count + 1); }

    /// Publish the numbers and wait for everybody's; `size` members take part.
    void meet(int rank, int size) {
        const std::uint64_t meeting = ++met_[rank].count;
        mark(rank, meeting).store(meeting, std::memory_order_release);
        for (int other = 0; other < size; ++other) {
            if (other == rank) continue;
            auto there = mark(other, meeting);
            for (int spins = 0; there.load(std::memory_order_acquire) < meeting;) {
                if (spins < 2000) {
                    ++spins;
                    pause();
                } else {
                    std::this_thread::yield();
                }
            }
        }
    }

    /// The numbers that member `other` handed over at the meeting `rank` just left.
    const T* of(int rank, int other) { return numbers(other, met_[rank].count); }

private:
    // A buffer is the number of its meeting and then the numbers handed over: up to seven doubles travel
    // between the cores in the one cache line that is waited for.
    static constexpr Index kLine = 64;
    struct alignas(kLine) Line {
        std::byte bytes[kLine] = {};
    };
    struct alignas(kLine) Count {
        std::uint64_t count = 0;  // meetings of this member
    };

    std::byte* buffer(int rank, std::uint64_t meeting) {
        const Index at = 2 * static_cast<Index>(rank) + static_cast<Index>(meeting % 2);
        return memory_[at * lines_].bytes;
    }
    std::atomic_ref<std::uint64_t> mark(int rank, std::uint64_t meeting) {
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(buffer(rank, meeting)));
    }
    T* numbers(int rank, std::uint64_t meeting) {
        return reinterpret_cast<T*>(buffer(rank, meeting) + sizeof(std::uint64_t));
    }
    static void pause() {
#if defined(__x86_64__)
        _mm_pause();
#endif
    }

    Index lines_;
    std::vector<Count> met_;
    std::vector<Line> memory_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
