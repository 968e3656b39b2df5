// A loop of one's own in C++: 200 neurons learn y = |x_1| from samples that the program makes, with a step size
// that the program decides.
#include <cmath>
#include <cstdio>
#include <mfcore/base/random.hpp>
#include <mfcore/features/features.hpp>
#include <mfcore/sgd/step.hpp>
#include <vector>

using namespace mfcore;

int main() {
    constexpr Index neurons = 200, d = 5, batch = 20, steps = 4000;
    Network network{Activation::relu()};
    network.output = Output::trained;  // rows of parameters are [a, w]
    const Index row = network.row(d);

    // Numbers have addresses: number k of (seed, purpose, step).
    std::vector<double> theta(neurons * row), x(batch * d), y(batch), f(batch);
    random::normals({.seed = 1, .purpose = random::Purpose::init}, 0, neurons * row, theta.data());

    double risk = 0;
    StepParams params;
    params.ridge = 1e-4;
    for (Index k = 0; k < steps; ++k) {
        random::normals({.seed = 1, .purpose = random::Purpose::inputs}, k * batch * d, batch * d, x.data());
        for (Index i = 0; i < batch; ++i) y[i] = std::abs(x[i * d]);

        // The risk on samples that the network has not seen, averaged over about 100 steps.
        predict(network, {{theta.data(), neurons, row}}, {x.data(), batch, d}, f.data());
        double square = 0;
        for (Index i = 0; i < batch; ++i) square += (y[i] - f[i]) * (y[i] - f[i]) / batch;
        risk += (square - risk) / (k < 100 ? k + 1 : 100);
        if (k % 1000 == 999) std::printf("step %5td: risk %.4f\n", k + 1, risk);

        const double h = 0.2 / (1 + 0.001 * k);
        if (!sgd_step(network, {theta.data(), neurons, row}, {x.data(), batch, d}, y.data(), h, k, params)) {
            std::printf("diverged in step %td\n", k);
            return 1;
        }
    }
}
