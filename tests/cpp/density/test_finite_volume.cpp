// Finite volumes as embedders use them: order of calls, the mean, and what ends a run.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "mfcore/density/finite_volume.hpp"

using namespace mfcore;

namespace {

/// Psi = (mean - 1) z + z^2 / 4 on n cells of [-1, 2], one node with the feature z.
struct Line {
    std::vector<double> centers, decay, shift{1.0}, mass;
    double width;

    explicit Line(Index n) : width(3.0 / static_cast<double>(n)) {
        for (Index i = 0; i < n; ++i) {
            const double z = -1 + (static_cast<double>(i) + 0.5) * width;
            centers.push_back(z);
            decay.push_back(z * z / 4);
            mass.push_back(std::exp(-20 * z * z));
        }
        const double sum = std::accumulate(mass.begin(), mass.end(), 0.0);
        for (double& m : mass) m /= sum;
    }

    std::unique_ptr<Flow> flow(Reconstruction reconstruction, FiniteVolumeParams params = {}) const {
        const auto n = static_cast<Index>(centers.size());
        GridFactors factors;
        factors.first = {centers.data(), n, 1};
        factors.shift = shift.data();
        factors.decay = decay.data();
        GridAxis axis{std::vector<double>(n, width), std::vector<double>(n - 1, 1 / width), {n / 2}};
        return finite_volume(FiniteVolume(GridPotential(factors), {axis}, reconstruction), mass.data(),
                             params);
    }
};

std::vector<double> state(const Flow& flow) {
    std::vector<double> masses(flow.size());
    flow.get(masses.data());
    return masses;
}

const StopPredicate kNever = [] { return false; };

}  // namespace

TEST_CASE("a density is a function of time alone, however it got there") {
    const Line line(77);
    for (const auto reconstruction : {Reconstruction::upwind, Reconstruction::muscl}) {
        const auto whole = line.flow(reconstruction), parts = line.flow(reconstruction);
        CHECK(whole->run(1.0, kNever) == End::reached);
        for (int k = 1; k < 100; ++k) {
            parts->run(0.01 * k, kNever);
            state(*parts);
        }
        const FlowState saved = parts->save();
        const auto restored = line.flow(reconstruction);
        restored->restore(saved);
        CHECK(state(*restored) == state(*parts));
        parts->run(1.0, kNever);
        restored->run(1.0, kNever);
        CHECK(state(*parts) == state(*whole));
        CHECK(state(*restored) == state(*whole));
        CHECK(restored->counts().steps == whole->counts().steps);
    }
}

TEST_CASE("the mean of a density follows its equation") {
    const Line line(600);
    const auto flow = line.flow(Reconstruction::muscl);
    flow->run(2.0, kNever);
    const std::vector<double> masses = state(*flow);
    // mean' = -(mean - 1) - mean / 2, from 0: 2/3 (1 - e^{-3t/2}).
    const double mean = std::inner_product(masses.begin(), masses.end(), line.centers.begin(), 0.0);
    CHECK(std::abs(mean - 2.0 / 3 * (1 - std::exp(-3.0))) < 1e-4);
}

TEST_CASE("mass in a watched cell, rest, and what is not finite end a run") {
    const Line line(40);
    FiniteVolumeParams params;
    params.most_watched = 0.1;
    const auto watched = line.flow(Reconstruction::upwind, params);
    CHECK(watched->run(1e3, kNever) == End::open_end);
    CHECK(watched->t() < 1e3);
    CHECK(state(*watched)[20] > 0.1);

    params = {};
    params.tolerance = 1e-4;
    const auto resting = line.flow(Reconstruction::muscl, params);
    CHECK(resting->run(1e6, kNever) == End::stationary);

    Line broken = line;
    broken.decay[20] = NAN;
    const auto diverging = broken.flow(Reconstruction::muscl);
    CHECK(diverging->run(1.0, kNever) == End::diverged);
    CHECK(state(*diverging) == broken.mass);
    const auto stopped = line.flow(Reconstruction::upwind);
    CHECK_THROWS_AS(line.flow(Reconstruction::upwind, {0, 0, -1.0}), std::invalid_argument);
    CHECK(stopped->run(0, kNever) == End::reached);
}
