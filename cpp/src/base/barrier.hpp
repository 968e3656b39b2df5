#pragma once
// A barrier for teams that meet every microsecond, at which every member hands numbers to all others. Members
// spin; after a while they yield, so that more threads than cores are slow but not stuck.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "mfcore/views.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mfcore {

template <class T>
class Exchange {
public:
    /// Each of at most `members` hands over up to `capacity` numbers per meeting.
    Exchange(int members, Index capacity)
        : capacity_((capacity + 2 * kPad - 1) / kPad * kPad),
          slots_(members),
          values_(2 * capacity_ * members) {}

    /// Where member `rank` writes its numbers of the next meeting. Two meetings alternate between two
    /// buffers: a member may be at most one meeting ahead of the slowest reader.
    T* mine(int rank) { return buffer(rank, slots_[rank].count.load(std::memory_order_relaxed) + 1); }

    /// Publish them and wait for everybody's; `size` members take part.
    void meet(int rank, int size) {
        const std::uint64_t meeting = slots_[rank].count.load(std::memory_order_relaxed) + 1;
        slots_[rank].count.store(meeting, std::memory_order_release);
        for (int other = 0; other < size; ++other) {
            for (int spins = 0; slots_[other].count.load(std::memory_order_acquire) < meeting;) {
                if (spins < 2000) {
                    ++spins;
                    pause();
                } else {
                    std::this_thread::yield();
                }
            }
        }
    }

    /// What member `other` handed over at the meeting `rank` just left.
    const T* of(int rank, int other) {
        return buffer(other, slots_[rank].count.load(std::memory_order_relaxed));
    }

private:
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> count{0};
    };
    T* buffer(int rank, std::uint64_t meeting) {
        return values_.data() + (2 * static_cast<Index>(rank) + static_cast<Index>(meeting % 2)) * capacity_;
    }
    static void pause() {
#if defined(__x86_64__)
        _mm_pause();
#endif
    }

    static constexpr Index kPad = 128 / sizeof(T);  // at least as much is left free between buffers: nobody
                                                    // writes to a cache line that others read
    Index capacity_;
    std::vector<Slot> slots_;
    std::vector<T> values_;
};

}  // namespace mfcore
