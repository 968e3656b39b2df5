// The parallel kernels on one thread and on several: the same bits, and nothing for the thread sanitizer to
// report. Sizes are large enough for each kernel to form a team.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "mfcore/base/random.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/gaussian/expectations.hpp"
#include "mfcore/sgd/sgd.hpp"

using namespace mfcore;

namespace {

constexpr Index kNeurons = 1000, kDimension = 40, kRow = kDimension + 2;
constexpr int kThreads = 3;

Network network_of(Activation::Kind kind) {
    Network net;
    net.activation.kind = kind;
    net.output = Output::trained;
    net.bias = Bias::trained;
    return net;
}

std::vector<double> neurons() {
    std::vector<double> theta(kNeurons * kRow);
    random::normals({1, random::Purpose::init}, 0, kNeurons * kRow, theta.data());
    for (double& entry : theta) entry /= 8;
    return theta;
}

ConstMat rows(const std::vector<double>& theta) { return {theta.data(), kNeurons, kRow}; }

}  // namespace

TEST_CASE("stochastic gradient descent gives the same bits on several threads") {
    const std::vector<double> start = neurons();
    const auto run = [&](int threads, double temperature) {
        SgdParams params;
        params.steps = [](Index, Index count, double* h) { std::fill(h, h + count, 1e-3); };
        params.temperature = temperature;
        const auto sgd = make_sgd<double>(network_of("tanh"), rows(start),
                                          isotropic_gaussians(kDimension, 0.5), 2, params);
        sgd->run(100, threads, {});
        std::vector<double> theta(start.size());
        sgd->theta({theta.data(), kNeurons, kRow});
        return theta;
    };
    for (const double temperature : {0.0, 0.1}) {
        const std::vector<double> alone = run(1, temperature);
        CHECK(alone != start);
        CHECK(run(kThreads, temperature) == alone);
    }
}

TEST_CASE("potentials over samples give the same bits on several threads") {
    const std::vector<double> theta = neurons();
    const auto run = [&](int threads) {
        const Measure rho{rows(theta)};
        std::vector<double> result(kNeurons + kNeurons * kRow + 1);
        const PotentialOut out{result.data(), result.data() + kNeurons, &result.back()};
        RunOptions options;
        options.threads = threads;
        potential(network_of("tanh"), rows(theta), &rho, *isotropic_gaussians(kDimension, 0.5), 3, 2000, out,
                  options);
        return result;
    };
    CHECK(run(kThreads) == run(1));
}

TEST_CASE("estimates of V and U give the same bits on several threads") {
    const std::vector<double> theta = neurons();
    const auto run = [&](int threads) {
        std::vector<double> result(kNeurons + kNeurons * kNeurons);
        EstimateOut out;
        out.V = result.data();
        out.U = result.data() + kNeurons;
        RunOptions options;
        options.threads = threads;
        estimate(network_of("tanh"), rows(theta), *isotropic_gaussians(kDimension, 0.5), 4, 500, 0, out,
                 options);
        return result;
    };
    CHECK(run(kThreads) == run(1));
}

TEST_CASE("exact pairs give the same bits on several threads") {
    const std::vector<double> theta = neurons();
    Network net = network_of("erf");
    const auto run = [&](int threads) {
        std::vector<double> value(kNeurons), gradient(kNeurons * kRow);
        const std::vector<double> weights(kNeurons, 1.0 / kNeurons);
        Mat out(gradient.data(), kNeurons, kRow);
        pair_potential(net, rows(theta), net, rows(theta), weights.data(), value.data(), &out, threads);
        value.insert(value.end(), gradient.begin(), gradient.end());
        return value;
    };
    CHECK(run(kThreads) == run(1));
    net.activation = {"piecewise_linear", 0, 0, {0.1, 0.3}, {1, -1}, {}};
    CHECK(run(kThreads) == run(1));
}
