#pragma once
// Memory of large results that is kept from one call to the next, as that of kernels is (base/scratch.hpp).
#include <cstddef>

#include "mfcore/base/level.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline base {

/// Memory that returns to the store of the thread that drops it: results of calls in a loop use the same pages.
/// Beginning at a cache line, not filled.
class KeptMemory {
public:
    /// True if so many bytes are worth it: the C library takes less from its own heap, and more is not kept.
    static bool suits(std::size_t bytes);

    explicit KeptMemory(std::size_t bytes);
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;
    void* data() const { return data_; }

private:
    std::size_t bytes_;
    void* data_;
};

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
