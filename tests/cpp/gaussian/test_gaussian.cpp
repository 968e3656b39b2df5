// Exact expectations as embedders call them: null outputs, numbers that are not finite, strides.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "mfcore/gaussian/expectations.hpp"

using namespace mfcore;

namespace {

Activation kinked() {  // (t - 1/2)_+ - (t - 3/2)_+
    return {"piecewise_linear", 0, 0, {0.5, 1.5}, {1, -1}, {}};
}

/// rows x cols numbers in [-1, 1] that follow no pattern.
std::vector<double> numbers(Index rows, Index cols) {
    std::vector<double> out(static_cast<std::size_t>(rows * cols));
    for (std::size_t k = 0; k < out.size(); ++k)
        out[k] = std::sin(1.0 + 7.3 * static_cast<double>(k * k % 101));
    return out;
}

}  // namespace

TEST_CASE(
    "the potential and its matrix agree for every kind, whatever the sizes, and null outputs are skipped") {
    using Kind = Activation::Kind;
    const Activation linear{"linear", 0, 1, {}, {}, {}}, relu{"relu", 0, 0, {0}, {1}, {}};
    const Activation hermite{"hermite", 0, 0, {}, {}, {0.1, 0.2, 0.3}};
    std::vector<Activation> kinds = {linear, relu, hermite, kinked()};
    for (const Kind kind : {"erf", "gelu", "tanh", "sigmoid", "softplus"})
        kinds.push_back({kind, 0, 0, {}, {}, {}});
    for (const Activation& sigma : kinds) {
        const Network network{sigma, Output::trained, Bias::trained, false};
        const Index n = 3, m = 11, D = network.row(2);
        const auto theta = numbers(n, D), other = numbers(m, D), weights = numbers(m, 1);
        std::vector<double> U(n * m), value(n), slope(n * D);
        const ConstMat rows{theta.data(), n, D}, cols{other.data(), m, D};
        Mat grad{slope.data(), n, D};
        pair_matrix(network, rows, network, cols, {U.data(), n, m});
        pair_potential(network, rows, network, cols, weights.data(), value.data(), nullptr);
        pair_potential(network, rows, network, cols, weights.data(), nullptr, &grad);
        for (Index i = 0; i < n; ++i) {
            double sum = 0;
            for (Index j = 0; j < m; ++j)
                sum += weights[static_cast<std::size_t>(j)] * U[static_cast<std::size_t>(i * m + j)];
            CHECK(value[static_cast<std::size_t>(i)] == doctest::Approx(sum).epsilon(1e-13));
            CHECK(grad(i, 0) * theta[static_cast<std::size_t>(i * D)] == doctest::Approx(sum).epsilon(1e-13));
        }
    }
}

TEST_CASE("what is not finite comes out as NaN, and quickly") {
    using Kind = Activation::Kind;
    for (const Kind kind : {"erf", "gelu", "tanh", "softplus"}) {
        const Network network{{kind, 0, 0, {}, {}, {}}, Output::one, Bias::trained, false};
        for (const Index bad : {0, 1}) {
            double theta[] = {0.3, 0.5}, other[] = {0.1, 0.2}, U = 0;
            theta[bad] = std::nan("");
            pair_matrix(network, {theta, 1, 2}, network, {other, 1, 2}, {&U, 1, 1});
            CHECK(std::isnan(U));
            pair_matrix(network, {other, 1, 2}, network, {theta, 1, 2}, {&U, 1, 1});
            CHECK(std::isnan(U));
        }
        const double m = 0, steep = 1e300;  // its square is none
        double T = 0;
        smooth({"tanh", 0, 0, {}, {}, {}}, 1, &m, &steep, &T, nullptr, nullptr);
        CHECK(std::isnan(T));
    }
}

TEST_CASE("rows may have a stride") {
    const Network network{kinked(), Output::one, Bias::trained, false};
    const Index n = 5, D = network.row(3), wide = D + 4;
    const auto padded = numbers(n, wide);
    std::vector<double> packed;
    for (Index i = 0; i < n; ++i) packed.insert(packed.end(), &padded[i * wide], &padded[i * wide] + D);
    std::vector<double> one(n * n), two(n * n);
    const ConstMat strided{padded.data(), n, D, wide}, dense{packed.data(), n, D};
    pair_matrix(network, strided, network, strided, {one.data(), n, n});
    pair_matrix(network, dense, network, dense, {two.data(), n, n});
    CHECK(one == two);
}
