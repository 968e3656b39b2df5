// Products of functions of one coordinate, and two radii: sizes that are no multiple of anything.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "mfcore/base/quadrature.hpp"
#include "mfcore/grid/separable.hpp"
#include "mfcore/reduction/reduction.hpp"

using namespace mfcore;

namespace {

// Functions 1, z, z^2, .. (rank of them) on two panels of [0, 3].
PanelBasis powers(Index rank, bool clamped) {
    PanelBasis basis;
    basis.edges = {0, 1, 3};
    basis.terms = 3;
    basis.rank = rank;
    basis.clamped = clamped;
    const double series[2][3][3] = {{{1, 0.5, 0.375}, {0, 0.5, 0.5}, {0, 0, 0.125}},
                                    {{1, 2, 4.5}, {0, 1, 4}, {0, 0, 0.5}}};
    for (const auto& panel : series)
        for (const auto& term : panel) basis.series.insert(basis.series.end(), term, term + rank);
    return basis;
}

}  // namespace

TEST_CASE("products of powers have the moments and derivatives of polynomials") {
    const std::vector<double> core(18, 1.0);
    const SeparableFeatures features({powers(3, true), powers(2, false), powers(3, false)},
                                     {core.data(), 18, 1}, {2.0}, 0.25);
    CHECK(features.size() == 18);
    const std::vector<double> z = {0.5, 2.5, 1.0, -0.1, 0.3, 3.0, 2.0, 0.0, 1.5};
    std::vector<double> m(18), g(18), value(3), gradient(9), hessian(27);
    const std::vector<double> weights = {0.5, 0.25, 0.25};
    CHECK(features.moments({z.data(), 3, 3}, weights.data(), m.data()) == 0);
    CHECK(m[0] == doctest::Approx(1));
    CHECK(m[1 * 6 + 1 * 3 + 2] == doctest::Approx(0.5 * 0.5 * 2.5 * 1.0));  // z1 z2 z3^2; z1 = 0 or z2 = 0
    double sum = -2;
    for (const double x : m) sum += x;
    CHECK(features.residual(m.data(), g.data()) == doctest::Approx(sum * sum + 0.25));
    CHECK(g[17] == doctest::Approx(sum));

    std::vector<double> one(18, 0.0);
    one[2 * 6 + 1 * 3 + 1] = 1;  // z1^2 z2 z3
    CHECK(features.potential(one.data(), {z.data(), 3, 3}, value.data(), gradient.data(), hessian.data()) ==
          0);
    CHECK(value[0] == doctest::Approx(0.25 * 2.5));
    CHECK(value[1] == doctest::Approx(0));  // a radius of -0.1 counts as 0
    CHECK(gradient[0] == doctest::Approx(2 * 0.5 * 2.5));
    CHECK(gradient[8] == doctest::Approx(0));
    CHECK(hessian[1] == doctest::Approx(2 * 0.5));
    CHECK(hessian[3] == hessian[1]);
}

TEST_CASE("points outside of the box are counted") {
    const std::vector<double> core = {1, 0, 0, 1, 1, 1};
    const SeparableFeatures features({powers(3, false)}, {core.data(), 3, 2}, {0, 0}, 0);
    const std::vector<double> z = {-0.1, 0, 3, 3.1, std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> value(5), m(3);
    CHECK(features.potential(core.data(), {z.data(), 5, 1}, value.data(), nullptr, nullptr) == 3);
    CHECK(std::isnan(value[0]));
    CHECK(value[2] == doctest::Approx(1));
    CHECK(features.moments({z.data(), 5, 1}, nullptr, m.data()) == 3);
    CHECK(std::isnan(m[0]));
    CHECK(features.moments({z.data() + 1, 2, 1}, nullptr, m.data()) == 0);
    CHECK(m[1] == doctest::Approx(1.5));
}

TEST_CASE("the mean of two kinked radii is that of a Gaussian when the norms are averaged too") {
    const Rule chi[2] = {gauss_chi(60, 16), gauss_chi(260, 8)};
    std::vector<double> nodes, weights;
    for (std::size_t a = 0; a < 16; ++a) {
        for (std::size_t b = 0; b < 8; ++b) {
            nodes.insert(nodes.end(), {chi[0].nodes[a], chi[1].nodes[b]});
            weights.push_back(chi[0].weights[a] * chi[1].weights[b]);
        }
    }
    Activation relu;
    relu.kind = "relu";
    relu.left_slope = 0;
    relu.knots = {0};
    relu.jumps = {1};
    const ReducedFeatures features(relu, false, false, {60, 260}, {nodes.data(), 128, 2});
    const std::vector<double> z = {0.7, 0.4, 0.1, 0.8, 0.0, 0.6};
    std::vector<double> phi(3 * 128), slopes(3 * 128 * 2);
    features.evaluate({z.data(), 3, 2}, phi.data(), slopes.data());
    for (std::size_t i = 0; i < 3; ++i) {
        double mean = 0, slope = 0;
        for (std::size_t q = 0; q < 128; ++q) {
            mean += weights[q] * phi[i * 128 + q];
            slope += weights[q] * slopes[(i * 128 + q) * 2 + 1];
        }
        const double R = std::hypot(z[2 * i], z[2 * i + 1]), cone = 0.3989422804014327;
        CHECK(mean == doctest::Approx(cone * R).epsilon(1e-12));
        CHECK(slope == doctest::Approx(cone * z[2 * i + 1] / R).epsilon(1e-11));
    }
}
