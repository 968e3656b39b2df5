// A number that is not finite is found wherever it stands.
#include <doctest/doctest.h>

#include <limits>
#include <utility>
#include <vector>

#include "mfcore/base/finite.hpp"

using mfcore::all_finite;
using mfcore::ConstMat;
using mfcore::Index;

TEST_CASE("one that is not finite is found at every place, and large ones are finite") {
    constexpr double inf = std::numeric_limits<double>::infinity();
    for (const Index n : {0, 1, 7, 8, 33, 100, 40'001}) {
        std::vector<double> x(static_cast<std::size_t>(n), std::numeric_limits<double>::max());
        CHECK(all_finite({x.data(), 1, n}));
        CHECK(all_finite({x.data(), n, 1}, 2));
        for (Index k = 0; k < n; k += n > 100 ? 997 : 1)
            for (const double bad : {inf, -inf, std::numeric_limits<double>::quiet_NaN()}) {
                const double good = std::exchange(x[static_cast<std::size_t>(k)], bad);
                CHECK_FALSE(all_finite({x.data(), 1, n}));
                CHECK_FALSE(all_finite({x.data(), n, 1}, 2));
                x[static_cast<std::size_t>(k)] = good;
            }
    }
}

TEST_CASE("what lies between rows is not looked at") {
    constexpr Index rows = 500, cols = 13, stride = 17;
    std::vector<double> x(rows * stride, 1.0);
    for (Index i = 0; i < rows; ++i)
        for (Index j = cols; j < stride; ++j) x[i * stride + j] = std::numeric_limits<double>::quiet_NaN();
    const ConstMat matrix(x.data(), rows, cols, stride);
    CHECK(all_finite(matrix, 2));
    for (Index i = 0; i < rows; ++i)
        for (const Index j : {Index{0}, cols - 1}) {
            const double good = std::exchange(x[i * stride + j], std::numeric_limits<double>::quiet_NaN());
            CHECK_FALSE(all_finite(matrix, 2));
            x[i * stride + j] = good;
        }
}
