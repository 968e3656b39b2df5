// What Python cannot reach: views with gaps between the rows, and the factories as an embedder calls them.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/products.hpp"
#include "mfcore/data/data.hpp"

using namespace mfcore;

namespace {

const Index kDimension = 7;
const std::vector<double> kDirections = {0.6, 0, 0.8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
const std::vector<double> kRoot = [] {
    std::vector<double> root(49, 0.1);
    for (int j = 0; j < 7; ++j) root[static_cast<std::size_t>(8 * j)] = 1 + j;
    return root;
}();

std::vector<SamplerPtr> laws() {
    const ConstMat directions{kDirections.data(), 2, kDimension};
    const Link link = hermite_link(2, {{1.0, {{0, 1}, {1, 2}}}, {0.5, {}}});
    return {isotropic_gaussians(kDimension, 0.5),
            anisotropic_gaussians(kDimension, 3, 0.5),
            anisotropic_gaussians(directions, 0.5),
            multi_index(Inputs::gaussian, kDimension, link, {}, 0.1),
            multi_index(Inputs::hypercube, kDimension, link, directions),
            multi_index(Inputs::sphere, kDimension, link),
            linear(kDimension, kDirections.data(), {kRoot.data(), kDimension, kDimension}, 0.2),
            cube_nodes(kDimension, link),
            resampled(cube_nodes(kDimension, link))};
}

}  // namespace

TEST_CASE("a view with gaps between its rows gets the same samples, and the gaps stay untouched") {
    const Index n = 21, stride = 10;
    for (const SamplerPtr& law : laws()) {
        std::vector<double> dense(n * kDimension), gaps(n * stride, -99.0), y(n), z(n);
        law->draw(5, 3, {dense.data(), n, kDimension}, y.data());
        law->draw(5, 3, {gaps.data(), n, kDimension, stride}, z.data());
        CHECK(y == z);
        for (Index k = 0; k < n; ++k) {
            for (Index j = 0; j < stride; ++j) {
                const double expected = j < kDimension ? dense[k * kDimension + j] : -99.0;
                CHECK(gaps[k * stride + j] == expected);
            }
        }
    }
}

TEST_CASE("an inner product does not depend on its place in the batch and agrees with a plain loop") {
    for (Index n : {1, 2, 7, 8, 9, 31, 64, 65}) {
        std::vector<double> x(9 * n), w(5 * n), all(9 * 5), one(5);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.0 + static_cast<double>(i));
        for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::cos(2.0 + static_cast<double>(i));
        row_products({x.data(), 9, n}, {w.data(), 5, n}, {all.data(), 9, 5});
        for (Index k = 0; k < 9; ++k) {
            row_products({x.data() + k * n, 1, n}, {w.data(), 5, n}, {one.data(), 1, 5});
            for (Index j = 0; j < 5; ++j) {
                double sum = 0;
                for (Index i = 0; i < n; ++i) sum += x[k * n + i] * w[j * n + i];
                CHECK(all[k * 5 + j] == one[j]);
                CHECK(std::abs(all[k * 5 + j] - sum) < 1e-13);  // at most 65 terms of size one
            }
        }
    }
}

TEST_CASE("a finite law reads the caller's memory and keeps its owner alive") {
    auto memory = std::make_shared<std::vector<double>>(std::vector<double>{1, 2, 3, 4, 5, 6});
    const std::vector<double> labels = {10, 20, 30};
    const SamplerPtr law = finite_law({memory->data(), 3, 2}, labels.data(), memory);
    const std::weak_ptr<std::vector<double>> watch = memory;
    memory.reset();
    REQUIRE(!watch.expired());
    double x[4], y[2];
    law->draw(0, 1, {x, 2, 2}, y);
    CHECK(x[0] == 3);
    CHECK(x[3] == 6);
    CHECK(y[1] == 30);
    CHECK(law->size() == 3);
    CHECK_THROWS_AS(law->draw(0, 2, {x, 2, 2}, y), std::invalid_argument);
}

TEST_CASE("factories refuse what makes no law") {
    const Link link = hermite_link(2, {{1.0, {{0, 1}}}});
    CHECK_THROWS_AS(isotropic_gaussians(0, 0.5), std::invalid_argument);
    CHECK_THROWS_AS(isotropic_gaussians(3, 1.0), std::invalid_argument);
    CHECK_THROWS_AS(anisotropic_gaussians(3, 4, 0.5), std::invalid_argument);
    CHECK_THROWS_AS(hermite_link(2, {{1.0, {{2, 1}}}}), std::invalid_argument);
    CHECK_THROWS_AS(multi_index(Inputs::gaussian, 1, link), std::invalid_argument);
    CHECK_THROWS_AS(multi_index(Inputs::gaussian, 3, link, {}, -1), std::invalid_argument);
    CHECK_THROWS_AS(multi_index(Inputs::gaussian, 3, link, {kDirections.data(), 1, 3}),
                    std::invalid_argument);
    CHECK_THROWS_AS(linear(3, kRoot.data(), {kRoot.data(), 2, 2}), std::invalid_argument);
    CHECK_THROWS_AS(resampled(isotropic_gaussians(3, 0.5)), std::invalid_argument);
}
