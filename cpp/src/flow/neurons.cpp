// The velocity of neurons in their own field (eqs. (1.7), (6.8)).
#include "network/neurons.hpp"

#include <cmath>
#include <numeric>

#include "base/parallel.hpp"
#include "mfcore/flow/flow.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {
namespace {

constexpr Index kRows = 64;  // neurons per block of a parallel loop

/// Call body(row) for every neuron.
template <class Body>
void for_neurons(Index neurons, Index row, int threads, Body&& body) {
    for_blocks(neurons, kRows, threads_for(neurons * row, threads), [&](Index, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) body(i);
    });
}

double dot(const double* a, const double* b, Index n) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) sum += a[j] * b[j];
    return sum;
}

std::vector<double> speeds(const Network& network, Index d, const Rates& rates) {
    std::vector<double> speed(network.row(d), rates.w);
    if (network.has_a()) speed[0] = network.output == Output::trained ? rates.a : 0;
    if (network.has_b()) speed[network.b_at()] = network.trains_b() ? rates.b : 0;
    return speed;
}

}  // namespace

Gradient node_gradient(Network network, SamplerPtr sampler, std::uint64_t seed, Index samples,
                       RunOptions options, std::vector<double> masses) {
    require(samples > 0, "samples", "must be > 0", samples);
    require(sampler != nullptr, "sampler", "must not be null", "null");
    require(options.threads >= 0, "threads", "must be >= 0", options.threads);
    for (const double mass : masses) require(mass >= 0, "masses", "must be >= 0", mass);
    return [=, network = std::move(network), masses = std::move(masses)](ConstMat theta, Mat gradient) {
        require(masses.empty() || static_cast<Index>(masses.size()) == theta.rows, "masses",
                "must be one for each neuron", masses.size());
        const Measure rho{theta, masses.empty() ? nullptr : masses.data()};
        PotentialOut out;
        out.gradient = gradient.data;
        return potential(network, theta, &rho, *sampler, seed, samples, out, options) == samples;
    };
}

System neuron_system(const Network& network, Index neurons, Index d, double ridge, const Rates& rates,
                     Gradient gradient, int threads) {
    require(neurons > 0, "neurons", "must be > 0", neurons);
    require(ridge >= 0, "ridge", "must be >= 0", ridge);
    require(gradient != nullptr, "gradient", "must be a function", "none");
    require(threads >= 0, "threads", "must be >= 0", threads);
    const Index row = network.row(d), w_at = network.w_at();
    System system;
    system.size = neurons * row;
    system.speed = speeds(network, d, rates);
    if (!network.sphere) {
        std::vector<Index> columns(d);
        std::iota(columns.begin(), columns.end(), w_at);
        system.apex =
            apex_of(network.activation, columns, network.has_b() ? network.b_at() : -1, system.speed);
    }
    system.velocity = [=, speed = system.speed](const double* y, double* velocity) {
        if (!gradient({y, neurons, row}, {velocity, neurons, row})) return false;
        for_neurons(neurons, row, threads, [&](Index i) {
            const double* theta = y + i * row;
            double* v = velocity + i * row;
            for (Index j = 0; j < row; ++j) v[j] = -speed[j] * (v[j] + ridge * theta[j]);
        });
        return true;
    };
    if (!network.sphere) return system;
    system.tangent = [=](const double* y, double* velocity) {
        for_neurons(neurons, row, threads, [&](Index i) {
            const double* w = y + i * row + w_at;
            double* v = velocity + i * row + w_at;
            const double along = dot(v, w, d) / dot(w, w, d);
            for (Index j = 0; j < d; ++j) v[j] -= along * w[j];
        });
    };
    system.project = [=](double* y) {
        for_neurons(neurons, row, threads, [&](Index i) {
            double* w = y + i * row + w_at;
            const double square = dot(w, w, d);
            // Beyond the square root of the largest number: NaN, which is seen.
            const double inverse = std::isfinite(square) ? 1 / std::sqrt(square) : square - square;
            for (Index j = 0; j < d; ++j) w[j] *= inverse;
        });
    };
    return system;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
