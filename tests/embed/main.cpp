// A simulator that owns its arrays and its loop, and asks mfcore for the force on its neurons. Prints lines
// "name values", which tests/packaging/test_embed.py compares with Python's. Argument: the seed of the
// samples.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mfcore/base/run.hpp>
#include <mfcore/data/data.hpp>
#include <mfcore/features/features.hpp>
#include <mfcore/version.hpp>
#include <vector>

int main(int count, char** arguments) {
    const std::uint64_t seed = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;

    // f(x) = (1/3) sum_i tanh(<w_i, x>) on two Gaussian classes in R^2 that differ in their spread.
    const mfcore::Network network{mfcore::Activation::tanh()};
    const mfcore::SamplerPtr law = mfcore::isotropic_gaussians(2, 0.5);
    const std::vector<double> w = {1.0, 0.0, 0.0, 2.0, -1.0, 0.5};
    const mfcore::ConstMat neurons(w.data(), 3, 2);

    // grad Psi(w_i; rho) with rho the network itself, over 1000 samples.
    const mfcore::Measure rho{neurons};
    std::vector<double> gradient(w.size());
    mfcore::PotentialOut out;
    out.gradient = gradient.data();
    mfcore::potential(network, neurons, &rho, *law, seed, 1000, out);

    std::printf("isa %s\n", mfcore::build_info().isa.c_str());
    std::printf("version %s %d\n", MFCORE_VERSION_STRING, MFCORE_VERSION < MFCORE_MAKE_VERSION(99, 0, 0));
    std::printf("gradient");
    for (const double entry : gradient) std::printf(" %.17g", entry);
    std::printf("\n");
    return 0;
}
