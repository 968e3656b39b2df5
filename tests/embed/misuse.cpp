// Everything here is a mistake, and is answered with std::invalid_argument. Prints a line "mistake: message" for
// each, which tests/packaging/test_embed.py compares.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mfcore/mfcore.hpp>
#include <stdexcept>
#include <vector>

namespace {

template <class Call>
void try_it(const char* mistake, Call&& call) {
    try {
        call();
        std::printf("%s: nothing was thrown\n", mistake);
    } catch (const std::invalid_argument& error) {
        std::printf("%s: %s\n", mistake, error.what());
    }
}

}  // namespace

int main() {
    using namespace mfcore;
    using Limits = std::numeric_limits<double>;
    constexpr double inf = Limits::infinity(), nan = Limits::quiet_NaN();

    // A kind alone is no activation: relu has a knot.
    Activation bare;
    bare.kind = "relu";
    Activation empty;
    empty.kind = "polynomial";
    const std::vector<double> node = {1.0};
    try_it("relu in Smoother", [&] { Smoother{bare, 3.0}; });
    try_it("relu in ReducedFeatures",
           [&] { ReducedFeatures{bare, false, false, {3.0}, {node.data(), 1, 1}}; });
    std::vector<double> theta = {1, 0, 0, 1}, x = {1, 2}, f(2);
    const double y = 1;
    const Mat neurons{theta.data(), 2, 2};
    const ConstMat inputs{x.data(), 1, 2};
    try_it("polynomial in predict", [&] { predict({empty}, {neurons}, inputs, f.data()); });
    try_it("polynomial in sgd_step", [&] { sgd_step({empty}, neurons, inputs, &y, 0.1, 0, {}); });
    try_it("name", [&] { bare.kind = "rellu"; });
    try_it("no knots", [&] { Activation::piecewise_linear({}, {}); });
    try_it("coefficient", [&] { Activation::hermite({1, nan}); });

    const Network network{Activation::tanh()};
    for (const double h : {nan, inf, -1.0}) {
        try_it("h of a step", [&] { sgd_step(network, neurons, inputs, &y, h, 0, {}); });
        try_it("h of a run", [&] { sgd_run(network, neurons, inputs, &y, &h, 0, {}); });
    }
    StepParams params;
    params.ridge = -1;
    try_it("ridge", [&] { sgd_step(network, neurons, inputs, &y, 0.1, 0, params); });
    params = {};
    params.temperature = nan;
    try_it("temperature", [&] { sgd_step(network, neurons, inputs, &y, 0.1, 0, params); });
    params = {};
    params.rates.w = -1;
    try_it("rates", [&] { sgd_step(network, neurons, inputs, &y, 0.1, 0, params); });
    try_it("columns", [&] { sgd_step(network, {theta.data(), 1, 4}, inputs, &y, 0.1, 0, {}); });
    params = {};
    try_it("total", [&] { SplitStep{network, neurons, inputs, 1, params}; });
    params.first_neuron = -1;
    try_it("first_neuron", [&] { SplitStep{network, neurons, inputs, 2, params}; });
    SplitStep split{network, neurons, inputs, 2, {}};
    try_it("backward", [&] { split.backward(&y, 0.1, 0); });
    split.forward(f.data());
    try_it("h of backward", [&] { split.backward(&y, nan, 0); });
    // Rows that are not there.
    const ConstMat missing{nullptr, 1, 2}, fewer{x.data(), -2, 2}, overlapping{theta.data(), 2, 2, 1};
    const double h = 0.1;
    try_it("no samples", [&] { sgd_step(network, neurons, {x.data(), 0, 2}, &y, h, 0, {}); });
    try_it("fewer samples", [&] { sgd_step(network, neurons, fewer, &y, h, 0, {}); });
    try_it("fewer steps", [&] { sgd_run(network, neurons, fewer, &y, &h, 0, {}); });
    try_it("no neurons", [&] { sgd_step(network, {theta.data(), 0, 2}, inputs, &y, h, 0, {}); });
    try_it("fewer neurons", [&] { sgd_step(network, {theta.data(), -2, 2}, inputs, &y, h, 0, {}); });
    try_it("null samples", [&] { sgd_step(network, neurons, missing, &y, h, 0, {}); });
    try_it("null neurons", [&] { sgd_step(network, {nullptr, 2, 2}, inputs, &y, h, 0, {}); });
    try_it("null labels", [&] { sgd_step(network, neurons, inputs, nullptr, h, 0, {}); });
    try_it("null labels of a run", [&] { sgd_run(network, neurons, inputs, nullptr, &h, 0, {}); });
    try_it("null steps of a run", [&] { sgd_run(network, neurons, inputs, &y, nullptr, 0, {}); });
    try_it("null samples of halves", [&] { SplitStep{network, neurons, missing, 2, {}}; });
    try_it("overlapping rows", [&] { predict(network, {overlapping}, inputs, f.data()); });
    try_it("null start", [&] { make_sgd<double>(network, missing, isotropic_gaussians(2, 0.5), 0, {}); });
    try_it("null sampler", [&] { make_sgd<double>(network, neurons, nullptr, 0, {}); });
    try_it("null sampler of layers", [&] { make_layer_wise(network, neurons, nullptr, 0, {}); });
    try_it("null inputs", [&] { predict(network, {neurons}, missing, f.data()); });
    try_it("null theta of pairs", [&] { pair_matrix(network, missing, network, missing, neurons); });
    try_it("product", [&] { product(neurons, neurons, {theta.data(), 1, 2}); });
    std::printf("theta: %g %g %g %g\n", theta[0], theta[1], theta[2], theta[3]);

    // Null pointers, empty functions, shapes that do not fit.
    const SamplerPtr law = isotropic_gaussians(2, 0.5);
    const Gradient gradient = node_gradient(network, law, 0, 10);
    std::vector<double> out(9);
    const ConstMat rows{theta.data(), 2, 2};
    try_it("linear", [&] { linear(2, nullptr); });
    try_it("multi_index", [&] { multi_index(Inputs::gaussian, 3, Link{}); });
    try_it("finite_law", [&] { finite_law(inputs, nullptr); });
    try_it("passes", [&] { passes(nullptr); });
    try_it("predict", [&] { predict(network, {rows}, inputs, nullptr); });
    try_it("interaction", [&] { interaction(network, rows, rows, *law, 0, 10, {out.data(), 2, 3}); });
    try_it("tangent_kernel", [&] { tangent_kernel(network, {rows}, {}, rows, nullptr, {out.data(), 3, 3}); });
    try_it("pair_matrix", [&] { pair_matrix(network, rows, network, rows, {out.data(), 3, 2}); });
    try_it("node_gradient", [&] { node_gradient(network, nullptr, 0, 10); });
    try_it("masses", [&] { node_gradient(network, law, 0, 10, {}, {1.0})(rows, neurons); });
    try_it("neuron_system", [&] { neuron_system(network, 2, 2, 0, {}, nullptr); });
    try_it("fixed_steps", [&] { fixed_steps({}, theta.data(), {.step = 0.1}); });
    try_it("dopri5", [&] {
        dopri5(neuron_system(network, 2, 2, 0, {}, gradient), nullptr, {.rtol = 1e-3, .atol = 1e-3});
    });
    try_it("atom_gradient", [&] { atom_gradient({}, {}, {1.0}); });
    GridFactors factors;
    factors.first = rows;
    try_it("GridPotential", [&] { GridPotential{factors}; });
    factors.shift = theta.data();
    const FokkerPlanckParams noisy{.temperature = 0.1, .rtol = 0.1};
    DiffusionAxis axis;
    axis.edges = {0, 1};
    try_it("cells", [&] { fokker_planck(GridPotential{factors}, {axis}, out.data(), noisy); });
    axis.edges = {0, 1, 2};
    axis.watched = {2};
    try_it("watched", [&] { fokker_planck(GridPotential{factors}, {axis}, out.data(), noisy); });
    try_it("start", [&] { fokker_planck(GridPotential{factors}, {axis}, nullptr, noisy); });

    // Counts, masses and tolerances below 0, and laws of nothing.
    std::int64_t places[2];
    params = {};
    params.threads = -1;
    const std::vector<double> below = {1.5, -0.5};
    const Measure lopsided{rows, below.data()};
    Mat none{theta.data(), 0, 2}, negative{theta.data(), -1, 2};
    try_it("threads of a step", [&] { sgd_step(network, neurons, inputs, &y, 0.1, 0, params); });
    try_it("threads of predict", [&] { predict(network, {rows}, inputs, f.data(), -1); });
    try_it("threads of node_gradient", [&] { node_gradient(network, law, 0, 10, {-1, {}}); });
    try_it("threads of neuron_system", [&] { neuron_system(network, 2, 2, 0, {}, gradient, -1); });
    try_it("threads of fixed_steps", [&] {
        fixed_steps(neuron_system(network, 2, 2, 0, {}, gradient), theta.data(),
                    {.step = 0.1, .threads = -1});
    });
    try_it("threads", [&] { resolve_threads(-1); });
    try_it("permutation", [&] { random::permutation({}, -1, places); });
    try_it("normals", [&] { random::normals({}, 0, -1, f.data()); });
    try_it("signs", [&] { random::signs({}, 0, -1, f.data()); });
    try_it("chi_squares", [&] { random::chi_squares({}, {}, 3, 0, -1, f.data()); });
    try_it("fill_rows", [&] { random::fill_rows({}, random::Numbers::normal, 0, 1, negative); });
    try_it("first of fill_rows",
           [&] { random::fill_rows({}, random::Numbers::normal, 0, 1, neurons, 1, -1); });
    try_it("column_span", [&] { column_span(rows, -1e-3); });
    try_it("predict of nothing", [&] { predict(network, {none}, inputs, f.data()); });
    try_it("tangent_kernel of nothing", [&] { tangent_kernel(network, {none}, {}, rows, nullptr, neurons); });
    try_it("potential of nothing", [&] {
        const Measure empty_law{none};
        potential(network, rows, &empty_law, *law, 0, 10, {.value = f.data()});
    });
    try_it("masses of tangent_kernel",
           [&] { tangent_kernel(network, lopsided, {}, rows, nullptr, neurons); });
    try_it("masses of node_gradient", [&] { node_gradient(network, law, 0, 10, {}, below); });
    try_it("masses of atoms", [&] { atom_system(below, {}, gradient, {}); });
    axis.watched = {};
    try_it("masses of cells", [&] { fokker_planck(GridPotential{factors}, {axis}, below.data(), noisy); });

    // Of one sample the mean is known, its error is not: infinite.
    double error = 0;
    estimate(network, {theta.data(), 1, 2}, *law, 0, 1, 0, {.V = f.data(), .V_error = &error});
    std::printf("error of one sample: %g\n", error);
    std::printf("theta: %g %g %g %g\n", theta[0], theta[1], theta[2], theta[3]);

    // Null weights are no mistake: they mean equal masses.
    const std::vector<double> halves = {0.5, 0.5}, other = theta;
    for (const ConstMat& of : {ConstMat(neurons), ConstMat(other.data(), 2, 2)}) {
        pair_potential(network, neurons, network, of, nullptr, f.data(), nullptr);
        std::vector<double> g(2);
        pair_potential(network, neurons, network, of, halves.data(), g.data(), nullptr);
        std::printf("equal masses: %d\n", f == g);
    }
    return 0;
}
