// Blocks of memory that wait for their next use.
#include "base/scratch.hpp"

#include <algorithm>
#include <bit>

#include "mfcore/base/kept.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace mfcore::inline MFCORE_LEVEL::inline base {
namespace {

constexpr std::align_val_t kLine{64}, kHugePage{std::size_t{1} << 21};
constexpr std::size_t kSmall = 4096;                  // below, the C library is as good
constexpr std::size_t kLarge = std::size_t{1} << 22;  // above, worth huge pages

constinit thread_local ScratchStore* innermost_store = nullptr;

/// The size of the block for so many bytes, one of eight per power of two: those who come back with slightly
/// more or less find their block again.
std::size_t rounded(std::size_t bytes) {
    const std::size_t step = std::max<std::size_t>(64, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
}

std::align_val_t alignment(std::size_t bytes) { return bytes >= kLarge ? kHugePage : kLine; }

void* allocate(std::size_t bytes) {
    void* const block = ::operator new(bytes, alignment(bytes));
#ifdef __linux__
    if (bytes >= kLarge) madvise(block, bytes, MADV_HUGEPAGE);  // where the system has none, it says no
#endif
    return block;
}

void release(void* block, std::size_t bytes) noexcept { ::operator delete(block, alignment(bytes)); }

/// The store of the calling thread outside of every Scope.
ScratchStore& own_store() {
    static constinit thread_local ScratchStore own(ScratchStore::kPerThread);
    return own;
}

}  // namespace

ScratchStore::~ScratchStore() {
    most_ = 0;                         // who gives back later than this, at the end of the thread, frees
    ScratchStore& heir = own_store();  // itself, if that is what ends
    while (count_ > 0) {
        const Block oldest = remove(0);
        heir.give_rounded(oldest.data, oldest.bytes);
    }
}

ScratchStore::Block ScratchStore::remove(int at) {
    const Block block = blocks_[at];
    std::move(blocks_ + at + 1, blocks_ + count_, blocks_ + at);
    --count_;
    sum_ -= block.bytes;
    return block;
}

void* ScratchStore::find(std::size_t size) {
    for (int k = count_; k-- > 0;)
        if (blocks_[k].bytes == size) return remove(k).data;
    return reserve_ ? reserve_->find(size) : nullptr;
}

void* ScratchStore::take(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    if (void* const found = find(size)) return found;
    try {
        return allocate(size);
    } catch (const std::bad_alloc&) {
        while (count_ > 0) {
            const Block oldest = remove(0);
            release(oldest.data, oldest.bytes);
        }
        return allocate(size);
    }
}

void ScratchStore::give(void* block, std::size_t bytes) noexcept { give_rounded(block, rounded(bytes)); }

void ScratchStore::give_rounded(void* block, std::size_t size) noexcept {
    if (size < kSmall || size > most_) return release(block, size);
    while (count_ == kBlocks || sum_ > most_ - size) {
        const Block oldest = remove(0);
        release(oldest.data, oldest.bytes);
    }
    blocks_[count_++] = {block, size};
    sum_ += size;
}

ScratchStore& ScratchStore::mine() { return innermost_store ? *innermost_store : own_store(); }

ScratchStore::Scope::Scope(ScratchStore& store) : outer_(innermost_store) {
    store.reserve_ = &own_store();
    innermost_store = &store;
}
ScratchStore::Scope::~Scope() {
    innermost_store->reserve_ = nullptr;
    innermost_store = outer_;
}

bool KeptMemory::suits(std::size_t bytes) {
    constexpr std::size_t kLeast = std::size_t{1} << 17;  // from here on the C library asks the system
    return bytes >= kLeast && bytes <= ScratchStore::kPerThread;
}

KeptMemory::KeptMemory(std::size_t bytes) : bytes_(bytes), data_(ScratchStore::mine().take(bytes)) {}
KeptMemory::~KeptMemory() { ScratchStore::mine().give(data_, bytes_); }

}  // namespace mfcore::inline MFCORE_LEVEL::inline base
