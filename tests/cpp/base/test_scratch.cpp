// Memory that kernels give back and take again.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "base/scratch.hpp"

using namespace mfcore;

namespace {
constexpr std::size_t kMega = std::size_t{1} << 20;
}

TEST_CASE("a store hands out again what it was given back") {
    ScratchStore store(8 * kMega);
    void* const first = store.take(kMega);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
    store.give(first, kMega);
    CHECK(store.kept() >= kMega);
    void* const again = store.take(kMega - 1000);  // about as much
    CHECK(again == first);
    CHECK(store.kept() == 0);
    store.give(again, kMega - 1000);
}

TEST_CASE("a store keeps no more than it may, and what was given back last") {
    ScratchStore store(3 * kMega);
    void *a = store.take(2 * kMega), *b = store.take(kMega), *c = store.take(2 * kMega);
    void* const large = store.take(5 * kMega);
    store.give(a, 2 * kMega);
    store.give(b, kMega);
    CHECK(store.kept() == 3 * kMega);
    store.give(c, 2 * kMega);
    CHECK(store.kept() == 3 * kMega);
    store.give(large, 5 * kMega);  // more than all: freed at once
    CHECK(store.kept() == 3 * kMega);
    CHECK(store.take(2 * kMega) == c);
    CHECK(store.take(kMega) == b);
    store.give(c, 2 * kMega);
    store.give(b, kMega);
}

TEST_CASE("a scope lets a thread use another store, and only while it lives") {
    ScratchStore store(8 * kMega);
    {
        const ScratchStore::Scope scope(store);
        CHECK(&ScratchStore::mine() == &store);
        const Scratch<double> v(1 << 17, 1.0);
        CHECK(v.back() == 1.0);
        std::thread([&] { CHECK(&ScratchStore::mine() != &store); }).join();
    }
    CHECK(store.kept() == kMega);
    CHECK(&ScratchStore::mine() != &store);
}

TEST_CASE("a store that holds many sizes forgets the oldest") {
    ScratchStore store(SIZE_MAX);
    constexpr std::size_t kSizes = 100;
    for (std::size_t k = 1; k <= kSizes; ++k) store.give(store.take(k * 4096), k * 4096);
    CHECK(store.kept() > 0);
    CHECK(store.kept() < kSizes * (kSizes + 1) / 2 * 4096);
}

TEST_CASE("what a run kept is left to its thread, and the next run takes it") {
    void* first = nullptr;
    for (int run = 0; run < 2; ++run) {
        ScratchStore store(SIZE_MAX);
        const ScratchStore::Scope scope(store);
        void* const block = store.take(3 * kMega);
        if (run == 0) first = block;
        CHECK(block == first);
        store.give(block, 3 * kMega);
        CHECK(store.kept() == 3 * kMega);
    }
    CHECK(ScratchStore::mine().kept() >= 3 * kMega);
}

TEST_CASE("a filled vector is of zeros, whatever was in its memory before") {
    for (int run = 0; run < 2; ++run) {
        FilledScratch<double> v(1 << 15);
        CHECK(std::count(v.begin(), v.end(), 0.0) == 1 << 15);
        std::fill(v.begin(), v.end(), 7.0);
    }
}
