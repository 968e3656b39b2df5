#pragma once
// Memory for the intermediate results of kernels, kept from one call to the next. The C library gives large
// blocks back to the system when they are freed, and the system hands out each of their pages anew, at
// microseconds a page: a kernel that allocates megabytes per call spends most of its time on that.
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Keeps blocks of memory that were given back, up to `most` bytes, for those who take as much again. Of too
/// many it frees those that have waited longest. One thread at a time. Inside of a Scope a
/// store that lacks a block takes that of the thread, and when it ends it leaves all to the thread: short
/// runs, one after the other, use the same pages.
class ScratchStore {
public:
    /// Most bytes that the store of a thread keeps until the thread ends.
    static constexpr std::size_t kPerThread = std::size_t{32} << 20;

    constexpr explicit ScratchStore(std::size_t most) : most_(most) {}
    ~ScratchStore();
    ScratchStore(const ScratchStore&) = delete;
    ScratchStore& operator=(const ScratchStore&) = delete;

    /// At least so many bytes, not filled, beginning at a cache line.
    void* take(std::size_t bytes);
    /// Give back what any store took for as many bytes.
    void give(void* block, std::size_t bytes) noexcept;
    std::size_t kept() const { return sum_; }

    /// The store that the calling thread uses: that of the innermost Scope, or its own.
    static ScratchStore& mine();

    /// Lets the calling thread use another store while it lives: that of a run in progress, which keeps all
    /// that its steps need and frees it with the run.
    class Scope {
    public:
        explicit Scope(ScratchStore& store);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        ScratchStore* outer_;
    };

private:
    struct Block {
        void* data;
        std::size_t bytes;
    };
    static constexpr int kBlocks = 64;

    Block remove(int at);
    void* find(std::size_t size);
    void give_rounded(void* block, std::size_t size) noexcept;

    std::size_t most_, sum_ = 0;
    int count_ = 0;
    ScratchStore* reserve_ = nullptr;  // inside of a Scope: the store of the thread
    Block blocks_[kBlocks] = {};       // the first has waited longest
};

/// Takes memory from the store of the thread. Numbers that are given no value are not filled with zeros.
template <class T>
struct ScratchAllocator {
    using value_type = T;

    ScratchAllocator() = default;
    template <class U>
    ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as std wants

    T* allocate(std::size_t n) { return static_cast<T*>(ScratchStore::mine().take(n * sizeof(T))); }
    void deallocate(T* p, std::size_t n) noexcept { ScratchStore::mine().give(p, n * sizeof(T)); }
    template <class U>
    void construct(U* p) noexcept {
        ::new (static_cast<void*>(p)) U;
    }
    template <class U, class... Arguments>
    void construct(U* p, Arguments&&... arguments) {
        ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
    }

    bool operator==(const ScratchAllocator&) const = default;
};

/// A vector for the time of a call: Scratch<double> v(n) is not filled, Scratch<double> v(n, 0.0) is.
template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

/// Takes memory from the store of the thread for a vector that is filled with zeros, as those of the standard
/// library are.
template <class T>
struct FilledScratchAllocator : ScratchAllocator<T> {
    FilledScratchAllocator() = default;
    template <class U>
    FilledScratchAllocator(const FilledScratchAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

    template <class U, class... Arguments>
    void construct(U* p, Arguments&&... arguments) {
        ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
    }
};
template <class T>
using FilledScratch = std::vector<T, FilledScratchAllocator<T>>;

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
