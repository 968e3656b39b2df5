// The limit as a density: two Gaussian classes in R^10 of spread 1.5 and 0.5, neurons sigma(<w, x>) with a truncated ReLU,
// noise of temperature 1e-3. By symmetry a neuron is its radius r = |w|, and rho_t a density of r.
#include <cmath>
#include <cstdio>
#include <mfcore/base/quadrature.hpp>
#include <mfcore/density/fokker_planck.hpp>
#include <mfcore/grid/factors.hpp>
#include <mfcore/reduction/smoothing.hpp>
#include <vector>

using namespace mfcore;

int main() {
    constexpr double d = 10, delta = 0.5, temperature = 1e-3;
    constexpr Index cells = 400;

    // Nodes of the data: |x| = (1 +- delta) s with s ~ chi_d, label +-1, each class with odds 1/2.
    const Rule chi = chi_rule(d);
    const Index half = static_cast<Index>(chi.nodes.size()), nodes = 2 * half;
    std::vector<double> norm, root, label;  // root: of the weight of a node
    for (const double y : {1.0, -1.0})
        for (Index q = 0; q < half; ++q) {
            norm.push_back((1 + y * delta) * chi.nodes[q]);
            root.push_back(std::sqrt(chi.weights[q] / 2));
            label.push_back(y);
        }

    // The table of features sqrt(p_q) E sigma(r |x_q| u) on the cells, compressed to a few functions of r.
    const Smoother smoother(Activation::piecewise_linear({0.5, 1.5}, {10, -10}, -2.5), d);
    std::vector<double> edges, radius(nodes), zero(nodes), table(cells * nodes);
    for (Index i = 0; i <= cells; ++i) edges.push_back(4.0 * i / cells);
    for (Index i = 0; i < cells; ++i) {
        double* const row = table.data() + i * nodes;
        for (Index q = 0; q < nodes; ++q) radius[q] = (edges[i] + edges[i + 1]) / 2 * norm[q];
        smoother.evaluate(nodes, zero.data(), radius.data(), row);
        for (Index q = 0; q < nodes; ++q) row[q] *= root[q];
    }
    const LineFactors line = factors_of_line({table.data(), cells, nodes}, 1e-12);

    // Psi = sum_k b_k (m_k - v_k), R = |m - v|^2 + floor (eq. (2.7)).
    const Index rank = line.turn.cols;
    OwnMatrix b(cells, rank);
    for (Index i = 0; i < cells; ++i)
        for (Index k = 0; k < rank; ++k)
            for (Index l = 0; l < line.turn.rows; ++l)
                b.view()(i, k) += line.basis.view()(i, l) * line.turn.view()(l, k);
    std::vector<double> v(rank);
    GridFactors factors;
    factors.first = b.view();
    factors.shift = v.data();
    factors.floor = 1;
    for (Index k = 0; k < rank; ++k) {
        for (Index q = 0; q < nodes; ++q) v[k] += line.nodes.view()(k, q) * root[q] * label[q];
        factors.floor -= v[k] * v[k];
    }

    // Neurons start as N(0, 0.4^2 / d) in R^10; the volume element of a radius is r^(d-1) dr.
    std::vector<double> mass(cells);
    double sum = 0;
    for (Index i = 0; i < cells; ++i) {
        const double r = (edges[i] + edges[i + 1]) / 2;
        sum += mass[i] = std::pow(r, d - 1) * std::exp(-r * r * d / (2 * 0.4 * 0.4));
    }
    for (double& m : mass) m /= sum;

    DiffusionAxis axis;
    axis.edges = edges;
    axis.volume = d - 1;
    const auto flow = fokker_planck(GridPotential(factors), {axis}, mass.data(),
                                    {.temperature = temperature, .rtol = 1e-4});
    for (const double t : {0.0, 0.1, 1.0, 10.0}) {
        flow->run(t, [] { return false; });
        std::printf("t = %4g: risk %.4f, free energy %.4f\n", t, flow->risk(), flow->free_energy());
    }
}
