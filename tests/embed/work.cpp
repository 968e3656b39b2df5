// Compiled once for each instruction-set level, with its headers and without its flags: a network of this level learns.
#include "work.hpp"

#include <cstdio>
#include <mfcore/mfcore.hpp>
#include <stdexcept>

namespace embed::MFCORE_ISA {

std::vector<double> work() {
    mfcore::Network network{mfcore::Activation::softplus()};
    network.output = mfcore::Output::trained;
    const mfcore::SamplerPtr law = mfcore::isotropic_gaussians(4, 0.5);
    std::vector<double> theta(30 * 5), x(200 * 4), y(200), h(200, 0.05), psi(30);
    mfcore::random::normals({.seed = 1, .purpose = mfcore::random::Purpose::init}, 0, 150, theta.data());
    law->draw(1, 0, {x.data(), 200, 4}, y.data());
    mfcore::sgd_run(network, {theta.data(), 30, 5}, {x.data(), 200, 4}, y.data(), h.data(), 0, {});

    const mfcore::ConstMat neurons{theta.data(), 30, 5};
    const mfcore::Measure rho{neurons};
    mfcore::potential(network, neurons, &rho, *law, 1, 500, {.value = psi.data()});
    theta.insert(theta.end(), psi.begin(), psi.end());

    // What is thrown in the archive is caught here.
    mfcore::StopScope scope([] { return true; });
    try {
        for (int k = 0; k < 1'000'000'000; ++k) mfcore::check_stop();
        std::puts("not interrupted");
    } catch (const mfcore::Interrupted&) {
    }
    try {
        mfcore::Activation::hermite({});
        std::puts("not refused");
    } catch (const std::invalid_argument&) {
    }
    std::printf("%s", mfcore::build_info().isa.c_str());
    return theta;
}

}  // namespace embed::MFCORE_ISA
