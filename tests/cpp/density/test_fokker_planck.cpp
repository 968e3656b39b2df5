// Noisy densities as embedders use them: stops, restored states, padded rows; and what the implicit steps
// rest on.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "density/anderson.hpp"
#include "density/scharfetter_gummel.hpp"
#include "mfcore/density/fokker_planck.hpp"

using namespace mfcore;

namespace {

std::vector<double> even_edges(Index cells) {
    std::vector<double> edges;
    for (Index i = 0; i <= cells; ++i) edges.push_back(-3 + 6.0 * static_cast<double>(i) / cells);
    return edges;
}

/// Phi = 3 z and target 1 at one node, with decay z^2/2: 17 cells, which rows pad.
struct Line {
    static constexpr Index kCells = 17;
    std::vector<DiffusionAxis> axes = {{even_edges(kCells), 1, 0, {}}};
    std::vector<double> basis, decay, shift = {1.0}, start = std::vector<double>(kCells, 0.0);

    Line() {
        for (Index i = 0; i < kCells; ++i) {
            const double z = (axes[0].edges[i] + axes[0].edges[i + 1]) / 2;
            basis.push_back(3 * z);
            decay.push_back(z * z / 2);
        }
        start[3] = start[4] = 0.5;
    }
    std::unique_ptr<FokkerPlanck> flow(const FokkerPlanckParams& params) const {
        GridFactors factors;
        factors.first = {basis.data(), kCells, 1};
        factors.shift = shift.data();
        factors.decay = decay.data();
        return fokker_planck(GridPotential(factors), axes, start.data(), params);
    }
    static FokkerPlanckParams params() {
        FokkerPlanckParams params;
        params.temperature = 0.2;
        params.rtol = 1e-4;
        return params;
    }
};

std::vector<double> masses(const Flow& flow) {
    std::vector<double> mass(static_cast<std::size_t>(flow.size()));
    flow.get(mass.data());
    return mass;
}

}  // namespace

TEST_CASE("a run that is stopped after every look goes on to the same bits") {
    const Line line;
    const auto whole = line.flow(Line::params()), parts = line.flow(Line::params());
    CHECK(whole->run(2.0, {}) == End::reached);
    CHECK(parts->run(0.1, [] { return true; }) != End::stuck);
    // The predicate is asked every 50 ms only: cut the run by restoring it into another one as well.
    const auto other = line.flow(Line::params());
    other->restore(parts->save());
    CHECK(other->run(2.0, {}) == End::reached);
    CHECK(masses(*other) == masses(*whole));
    CHECK(other->counts().steps == whole->counts().steps);
    CHECK(other->free_energy() == whole->free_energy());
}

TEST_CASE("every coupling and order conserves mass and lowers the free energy") {
    const Line line;
    for (const Coupling coupling : {Coupling::lagged, Coupling::implicit, Coupling::automatic}) {
        for (const int order : {1, 2}) {
            FokkerPlanckParams params = Line::params();
            params.coupling = coupling;
            params.order = order;
            const auto flow = line.flow(params);
            const double before = flow->free_energy();
            CHECK(flow->run(50.0, {}) == End::reached);
            const std::vector<double> mass = masses(*flow);
            CHECK(std::abs(std::accumulate(mass.begin(), mass.end(), 0.0) - 1) < 1e-13);
            CHECK(flow->free_energy() < before);
            CHECK(flow->largest_rise() < 1e-12);
        }
    }
}

TEST_CASE("states of the wrong size are refused") {
    const auto flow = Line().flow(Line::params());
    FlowState state = flow->save();
    state.vectors.pop_back();
    CHECK_THROWS_AS(flow->restore(state), std::invalid_argument);
    state = flow->save();
    state.numbers.push_back(0);
    CHECK_THROWS_AS(flow->restore(state), std::invalid_argument);
}

TEST_CASE("padding changes no mass and stays empty") {
    const Index rows = 6, cols = 5, pitch = 8;
    const std::vector<DiffusionAxis> axes = {{even_edges(rows), 1, 0, {}}, {even_edges(cols), 0.5, 0, {}}};
    std::vector<double> tight(rows * cols), padded(rows * pitch), psi(rows * cols), padded_psi(rows * pitch);
    for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) {
            tight[i * cols + j] = padded[i * pitch + j] = 1.0 / static_cast<double>(rows * cols);
            psi[i * cols + j] = padded_psi[i * pitch + j] = std::sin(static_cast<double>(3 * i + j));
        }
    }
    diffuse(axes, 0.5, psi.data(), 0.3, tight.data(), tight.data());
    ScharfetterGummel fluxes(axes, 0.5, 1, pitch);
    fluxes.set_potential(padded_psi.data());
    fluxes.step(0.3, padded.data(), padded.data());
    for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < pitch; ++j)
            CHECK(padded[i * pitch + j] == (j < cols ? tight[i * cols + j] : 0.0));
    }
}

TEST_CASE("acceleration solves n linear equations in about n steps") {
    // x = b - A x with A = diag(0, 1, ..., 4) + ones: without acceleration this diverges.
    constexpr Index n = 5;
    double x[n] = {}, g[n];
    Anderson anderson(n);
    double residual = 0;
    for (int step = 0; step < n + 2; ++step) {
        const double sum = std::accumulate(x, x + n, 0.0);
        for (Index k = 0; k < n; ++k) g[k] = 1.0 - static_cast<double>(k) * x[k] - sum;
        residual = anderson.advance(x, g);
    }
    CHECK(residual < 1e-12);
}
