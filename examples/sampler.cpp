// Potentials under a law of one's own: points on a noisy circle, labelled by whether they lie in the upper half. The law
// is a Sampler; Psi, its gradient and the risk are averages over its samples.
#include <cmath>
#include <cstdio>
#include <mfcore/base/random.hpp>
#include <mfcore/features/features.hpp>
#include <numbers>
#include <vector>

using namespace mfcore;

class Circle : public Sampler {
public:
    explicit Circle(double noise) : noise_(noise) {}
    Index dimension() const override { return 2; }

    // Sample k is the same whatever is drawn before or beside it: one uniform and two normal numbers, at addresses
    // that depend on k alone.
    void draw(std::uint64_t seed, Index first, Mat x, double* y) const override {
        std::vector<double> angle(x.rows), g(2 * x.rows);
        random::uniforms({seed, random::Purpose::labels}, first, x.rows, angle.data());
        random::normals({seed, random::Purpose::inputs}, 2 * first, 2 * x.rows, g.data());
        for (Index k = 0; k < x.rows; ++k) {
            const double phi = 2 * std::numbers::pi * angle[k];
            x(k, 0) = std::cos(phi) + noise_ * g[2 * k];
            x(k, 1) = std::sin(phi) + noise_ * g[2 * k + 1];
            y[k] = angle[k] < 0.5 ? 1 : -1;
        }
    }

private:
    double noise_;
};

int main() {
    const Network network{Activation::tanh()};
    const Circle circle(0.1);
    std::vector<double> w = {0, 1, 2, 1, -2, 1};  // three neurons, rows
    const ConstMat neurons{w.data(), 3, 2};
    const Measure rho{neurons};

    std::vector<double> psi(3), gradient(6);
    double risk = 0;
    potential(network, neurons, &rho, circle, 7, 100'000, {psi.data(), gradient.data(), &risk});
    std::printf("risk %.4f\n", risk);
    for (Index i = 0; i < 3; ++i)
        std::printf("w = (%g, %g): Psi %.4f, gradient (%.4f, %.4f)\n", w[2 * i], w[2 * i + 1], psi[i],
                    gradient[2 * i], gradient[2 * i + 1]);

    // With the same samples the potential is a smooth function: differences of it are its gradient.
    const double h = 1e-5;
    const std::vector<double> moved = {h, 1, -h, 1};
    std::vector<double> ends(2);
    potential(network, {moved.data(), 2, 2}, &rho, circle, 7, 100'000, {.value = ends.data()});
    std::printf("by differences: %.4f\n", (ends[0] - ends[1]) / (2 * h));
}
