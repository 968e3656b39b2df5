#pragma once
// Vectors whose memory begins at a cache line, so that a vector register as wide as a line loads from one
// line.
#include <cstddef>
#include <new>
#include <vector>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Allocates memory that begins at a cache line.
template <class T>
struct CacheLineAllocator {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};

    CacheLineAllocator() = default;
    template <class U>
    CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as std wants

    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, kLine); }

    bool operator==(const CacheLineAllocator&) const = default;
};

/// Numbers that begin at a cache line.
using AlignedVector = std::vector<double, CacheLineAllocator<double>>;

/// Allocates without setting the entries to zero, which takes long for gigabytes.
template <class T>
struct UnfilledAllocator : CacheLineAllocator<T> {
    UnfilledAllocator() = default;
    template <class U>
    UnfilledAllocator(const UnfilledAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as std wants

    template <class U>
    void construct(U* p) noexcept {
        ::new (static_cast<void*>(p)) U;
    }
};

/// The same, not set to zero when it is made.
using UnfilledVector = std::vector<double, UnfilledAllocator<double>>;

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
