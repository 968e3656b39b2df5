// The matrix products of base/tiles.hpp and sgd/gram.hpp against loops as one writes them down, and the
// barrier of base/barrier.hpp with more members than cores.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "base/parallel.hpp"
#include "mfcore/base/random.hpp"
#include "network/neurons.hpp"
#include "sgd/gram.hpp"

using namespace mfcore;

namespace {

constexpr Index kMost = 40;

template <class T>
std::vector<T> normals(Index n, std::uint64_t seed) {
    std::vector<T> out(static_cast<std::size_t>(n));
    random::normals({seed, random::Purpose::probe, 0}, 0, n, out.data());
    return out;
}

/// Rounding of sums of at most `terms` products of normals (each below 25 with all but 1e-6 of the odds),
/// twice: in the tile and in the loop.
template <class T>
T rounding(Index terms) {
    return 2 * 25 * static_cast<T>(terms + 1) * std::numeric_limits<T>::epsilon();
}

template <class T, int R>
void check_forward(Index rows, Index cols) {
    constexpr Index width = R * simd::kLanes<T>;
    const Index gap = 3;  // rows of x and z need not be contiguous
    const auto x = normals<T>(rows * (cols + gap), 1), w = normals<T>(cols * width, 2),
               start = normals<T>(width, 3);
    std::vector<T> z(rows * (width + gap), T(7));
    tiles::forward<T, R>({x.data(), rows, cols, cols + gap}, w.data(), start.data(), z.data(), width + gap);
    T error = 0;
    for (Index q = 0; q < rows; ++q) {
        for (Index i = 0; i < width; ++i) {
            T sum = start[i];
            for (Index j = 0; j < cols; ++j) sum += x[q * (cols + gap) + j] * w[j * width + i];
            error = std::max(error, std::abs(sum - z[q * (width + gap) + i]));
        }
        for (Index i = width; i < width + gap; ++i) REQUIRE(z[q * (width + gap) + i] == T(7));
    }
    REQUIRE(error <= rounding<T>(cols));
}

template <class T, int R>
void check_backward(Index rows, Index cols) {
    constexpr Index width = R * simd::kLanes<T>;
    const Index gap = 2;
    const T shrink = T(0.75);
    const auto x = normals<T>(rows * (cols + gap), 4), c = normals<T>(rows * (width + gap), 5),
               before = normals<T>(cols * width, 6);
    std::vector<T> g = before;
    tiles::backward<T, R>({x.data(), rows, cols, cols + gap}, c.data(), width + gap, shrink, g.data());
    T error = 0;
    for (Index j = 0; j < cols; ++j) {
        for (Index i = 0; i < width; ++i) {
            T sum = shrink * before[j * width + i];
            for (Index q = 0; q < rows; ++q) sum += x[q * (cols + gap) + j] * c[q * (width + gap) + i];
            error = std::max(error, std::abs(sum - g[j * width + i]));
        }
    }
    REQUIRE(error <= rounding<T>(rows));
}

/// Moments of a tile with itself, columns in the groups that for_columns makes.
template <class T, int R>
void check_moments(Index samples) {
    constexpr Index width = R * simd::kLanes<T>;
    const auto s = normals<T>(samples * width, 7);
    std::vector<T> u(width * width);
    std::vector<int> visits(width, 0);
    tiles::for_columns(width, [&](Index n, auto count) {
        constexpr int C = count();
        simd::Vec<T> acc[C][R] = {};
        tiles::accumulate<T, R, C, true>(samples, s.data(), width, s.data() + n, width, 1, acc);
        for (int c = 0; c < C; ++c) {
            ++visits[n + c];
            for (int r = 0; r < R; ++r) simd::store(&u[(n + c) * width + r * simd::kLanes<T>], acc[c][r]);
        }
    });
    T error = 0;
    for (Index n = 0; n < width; ++n) {
        REQUIRE(visits[n] == 1);
        for (Index i = 0; i < width; ++i) {
            T sum = 0;
            for (Index q = 0; q < samples; ++q) sum += s[q * width + n] * s[q * width + i];
            error = std::max(error, std::abs(sum - u[n * width + i]));
        }
    }
    REQUIRE(error <= rounding<T>(samples));
}

template <class T, int R>
void check_tiles() {
    for (Index rows = 1; rows <= kMost; ++rows) {
        for (Index cols = 1; cols <= kMost; ++cols) {
            check_forward<T, R>(rows, cols);
            check_backward<T, R>(rows, cols);
        }
        check_moments<T, R>(rows);
    }
}

/// Samples of which number k repeats number k - 1 if `repeats`, so that their Gram matrix is singular.
template <class T>
std::vector<T> samples(Index rows, Index cols, bool repeats) {
    auto x = normals<T>(rows * cols, 8);
    for (Index k = 1; repeats && k < rows; k += 2) std::copy_n(&x[(k - 1) * cols], cols, &x[k * cols]);
    return x;
}

template <class T>
void check_gram(Index rows, Index cols) {
    const auto x = samples<T>(rows, cols, false);
    const Index stride = rows + 3;
    std::vector<T> whole(rows * stride), shares(rows * stride);
    gram<T>({x.data(), rows, cols}, 0, rows, whole.data(), stride);
    for (Index first = 0; first < rows; first += 8)
        gram<T>({x.data(), rows, cols}, first, std::min(rows, first + 8), shares.data(), stride);
    T error = 0;
    for (Index k = 0; k < rows; ++k) {
        for (Index l = k; l < rows; ++l) {
            T sum = 0;
            for (Index j = 0; j < cols; ++j) sum += x[k * cols + j] * x[l * cols + j];
            error = std::max(error, std::abs(sum - whole[k * stride + l]));
            REQUIRE(shares[k * stride + l] == whole[k * stride + l]);  // whoever computes a column
        }
    }
    REQUIRE(error <= rounding<T>(cols));
}

/// G = L L^T; away from square shapes, whose pivots may be small by chance, with a zero column for every
/// sample in the span of the earlier ones and no other.
template <class T>
void check_cholesky(Index rows, Index cols, bool repeats) {
    const auto x = samples<T>(rows, cols, repeats);
    std::vector<T> g(rows * rows), factor(rows * rows);
    gram<T>({x.data(), rows, cols}, 0, rows, g.data(), rows);
    cholesky<T>(rows, g.data(), rows, factor.data());
    // What is dropped is a pivot below 1e3 eps of its diagonal, whose square root times another column's
    // entries is at most sqrt(1e3 eps) of them; the rest is rounding.
    T error = 0, largest = 0;
    Index rank = 0;
    for (Index k = 0; k < rows; ++k) {
        rank += factor[k * rows + k] > 0;
        if (repeats && k % 2 == 1 && rows + 8 <= cols) REQUIRE(factor[k * rows + k] == 0);
        largest = std::max(largest, g[k * rows + k]);
        for (Index l = k; l < rows; ++l) {
            T sum = 0;
            for (Index q = 0; q < rows; ++q) sum += factor[k * rows + q] * factor[l * rows + q];
            error = std::max(error, std::abs(sum - g[k * rows + l]));
        }
    }
    if (!repeats && rows + 8 <= cols) REQUIRE(rank == rows);
    REQUIRE(error <= std::sqrt(1e3 * std::numeric_limits<T>::epsilon()) * largest);
}

template <class T>
void check_sums() {
    constexpr Index lanes = simd::kLanes<T>;
    const auto x = normals<T>(lanes * lanes, 8);
    simd::Vec<T> v[lanes];
    for (Index i = 0; i < lanes; ++i) v[i] = simd::load(x.data() + i * lanes);
    const simd::Vec<T> sums = simd::sums<T>(v);
    for (Index i = 0; i < lanes; ++i) CHECK(sums[i] == simd::sum<T>(simd::load(x.data() + i * lanes)));
}

TEST_CASE("sums of several vectors at once have the bits of each") {
    check_sums<double>();
    check_sums<float>();
}

}  // namespace

TEST_CASE_TEMPLATE("products over tiles are those of plain loops", T, double, float) {
    check_tiles<T, 1>();
    check_tiles<T, 2>();
    check_tiles<T, 3>();
}

TEST_CASE_TEMPLATE("the Gram matrix is that of plain loops, in any shares", T, double, float) {
    for (Index rows = 1; rows <= kMost; ++rows)
        for (Index cols = 1; cols <= kMost; ++cols) check_gram<T>(rows, cols);
    check_gram<T>(150, 1);  // more columns than are done at a time
}

TEST_CASE_TEMPLATE("the Cholesky factor gives the Gram matrix back, of full rank or not", T, double, float) {
    for (Index rows = 1; rows <= kMost; rows += 3) {
        for (Index cols = 1; cols <= kMost; ++cols) {
            check_cholesky<T>(rows, cols, false);
            check_cholesky<T>(rows, cols, true);
        }
    }
}

TEST_CASE_TEMPLATE("tiles know when an entry is not finite", T, double, float) {
    Network net;
    net.output = Output::trained;
    const Index n = 5, row = 8;
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
        for (Index at = 0; at < n * row; ++at) {
            std::vector<double> theta(n * row, 1.0);
            CHECK(NeuronTiles<T, 1>(net, {theta.data(), n, row}).finite());
            theta[at] = bad;
            CHECK_FALSE(NeuronTiles<T, 1>(net, {theta.data(), n, row}).finite());
        }
    }
}

namespace {

/// Entry j of neuron i's w lies at j * width + i of the tiles, in T, and comes back as it was stored.
template <class T, int R>
void check_packing(const Network& net, Index count, Index d) {
    using Tiles = NeuronTiles<T, R>;
    const Index row = net.row(d), gap = 3;  // rows of the caller need not be contiguous
    const auto theta = normals<double>(count * (row + gap), 4);
    const Tiles packed(net, {theta.data(), count, row, row + gap});
    std::vector<double> out(count * (row + gap), 7.0);
    packed.unpack(net, {out.data(), count, row, row + gap});
    Index wrong = 0;
    for (Index i = 0; i < packed.tiles() * Tiles::kWidth; ++i) {
        const Index t = i / Tiles::kWidth, at = i % Tiles::kWidth;
        const auto stored = [&](Index j) {
            return i < count ? static_cast<T>(theta[i * (row + gap) + j]) : T(0);
        };
        for (Index j = 0; j < d; ++j) wrong += packed.w(t)[j * Tiles::kWidth + at] != stored(net.w_at() + j);
        wrong += packed.a(t)[at] != stored(0) || packed.b(t)[at] != stored(net.b_at());
        for (Index j = 0; i < count && j < row + gap; ++j)
            wrong += out[i * (row + gap) + j] != (j < row ? static_cast<double>(stored(j)) : 7.0);
    }
    REQUIRE(wrong == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("neurons are packed into tiles and come back as they were", T, double, float) {
    Network net;
    net.output = Output::trained;
    net.bias = Bias::trained;
    for (const Index d : {1, 2, 7, 8, 9, 16, 21})
        for (const Index count : {1, 7, 8, 9, 33, 64}) {
            check_packing<T, 1>(net, count, d);
            check_packing<T, 2>(net, count, d);
            check_packing<T, 3>(net, count, d);
        }
}

TEST_CASE("members that outnumber the cores all get what all hand over at every meeting") {
    const int members = 4 * static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const Index numbers = 5;
    for (const int size : {1, 2, members}) {
        Exchange<double> exchange(members, numbers);
        std::vector<int> wrong(size, 0);
        const auto member = [&](int rank) {
            for (int meeting = 0; meeting < 200; ++meeting) {
                double* const mine = exchange.mine(rank);
                for (Index k = 0; k < numbers; ++k) mine[k] = 1000.0 * meeting + 10.0 * rank + k;
                exchange.meet(rank, size);
                for (int other = 0; other < size; ++other)
                    for (Index k = 0; k < numbers; ++k)
                        wrong[rank] += exchange.of(rank, other)[k] != 1000.0 * meeting + 10.0 * other + k;
            }
        };
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank) threads.emplace_back(member, rank);
        for (std::thread& thread : threads) thread.join();
        CHECK(wrong == std::vector<int>(size, 0));
    }
}
