// The interface in C: networks as handles, exceptions as codes.
#include <mfcore/mfcore.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <mfcore/version.hpp>
#include <new>
#include <stdexcept>
#include <vector>

#include "mfcore/base/errors.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/sgd/step.hpp"

struct mfcore_network {
    mfcore::Network network;
    mfcore::StepParams forces;
    mfcore::Index d, neurons, steps;
    std::vector<double> theta;

    mfcore::Mat rows() { return {theta.data(), neurons, network.row(d)}; }
    mfcore::ConstMat rows() const { return {theta.data(), neurons, network.row(d)}; }
};

namespace {

using namespace mfcore;

constinit thread_local char message[512] = "";

int failure(int code, const char* what) {
    std::snprintf(message, sizeof message, "%s", what);
    return code;
}

/// Call body(), which returns a code, and turn what it throws into one.
template <class Body>
int guarded(Body&& body) {
    try {
        return body();
    } catch (const std::invalid_argument& error) {
        return failure(MFCORE_INVALID, error.what());
    } catch (const std::bad_alloc&) {
        return failure(MFCORE_NO_MEMORY, "memory is exhausted");
    } catch (const std::exception& error) {
        return failure(MFCORE_FAILED, error.what());
    } catch (...) {
        return failure(MFCORE_FAILED, "an unknown exception");
    }
}

void require_pointer(const void* pointer, const char* name) {
    require(pointer != nullptr, name, "must not be null", "null");
}

void require_count(std::int64_t count, const char* name) { require(count >= 1, name, "must be >= 1", count); }

/// The samples of the caller as a matrix.
ConstMat inputs_of(const mfcore_network& network, std::int64_t samples, const double* x) {
    require_count(samples, "samples");
    require_pointer(x, "x");
    return {x, static_cast<Index>(samples), network.d};
}

}  // namespace

const char* mfcore_version() { return MFCORE_VERSION_STRING; }

const char* mfcore_message() { return message; }

int mfcore_create(const char* activation, int a, int b, std::int64_t neurons, std::int64_t d,
                  const double* theta, mfcore_network** created) {
    return guarded([&] {
        require_pointer(created, "created");
        *created = nullptr;
        require_pointer(activation, "activation");
        require_pointer(theta, "theta");
        require(a >= MFCORE_ABSENT && a <= MFCORE_TRAINED, "a", "must be absent, fixed or trained", a);
        require(b >= MFCORE_ABSENT && b <= MFCORE_TRAINED, "b", "must be absent, fixed or trained", b);
        require_count(neurons, "neurons");
        require_count(d, "d");
        constexpr std::int64_t most = std::int64_t{1} << 31;  // of each, so that products are no overflow
        require(neurons <= most && d <= most, "neurons, d", "must be <= 2^31", std::max(neurons, d));
        Network network{named_activation(activation)};
        network.output = static_cast<Output>(a);
        network.bias = static_cast<Bias>(b);
        const Index row = network.row(static_cast<Index>(d));
        auto made = std::make_unique<mfcore_network>(
            mfcore_network{network, {}, static_cast<Index>(d), static_cast<Index>(neurons), 0, {}});
        made->theta.assign(theta, theta + made->neurons * row);
        *created = made.release();
        return MFCORE_OK;
    });
}

void mfcore_free(mfcore_network* network) { delete network; }

int mfcore_set_forces(mfcore_network* network, double ridge, double temperature, std::uint64_t seed) {
    return guarded([&] {
        require_pointer(network, "network");
        require(ridge >= 0, "ridge", "must be >= 0", ridge);
        require(temperature >= 0, "temperature", "must be >= 0", temperature);
        network->forces.ridge = ridge;
        network->forces.temperature = temperature;
        network->forces.seed = seed;
        return MFCORE_OK;
    });
}

int mfcore_step(mfcore_network* network, std::int64_t samples, const double* x, const double* y, double h,
                int threads) {
    return guarded([&] {
        require_pointer(network, "network");
        require_pointer(y, "y");
        const ConstMat inputs = inputs_of(*network, samples, x);
        network->forces.threads = threads;
        if (!sgd_step(network->network, network->rows(), inputs, y, h, network->steps, network->forces))
            return failure(MFCORE_NOT_FINITE, "the prediction or the update is not finite; try a smaller h");
        ++network->steps;
        return static_cast<int>(MFCORE_OK);
    });
}

int mfcore_predict(const mfcore_network* network, std::int64_t samples, const double* x, double* f,
                   int threads) {
    return guarded([&] {
        require_pointer(network, "network");
        require_pointer(f, "f");
        predict(network->network, {network->rows()}, inputs_of(*network, samples, x), f, threads);
        return MFCORE_OK;
    });
}

int mfcore_potentials(const mfcore_network* network, std::int64_t points, const double* theta,
                      std::int64_t samples, const double* x, const double* y, double* value, double* gradient,
                      int threads) {
    return guarded([&] {
        require_pointer(network, "network");
        require_pointer(theta, "theta");
        require_pointer(y, "y");
        require_count(points, "points");
        const ConstMat inputs = inputs_of(*network, samples, x);
        const Measure rho{network->rows()};
        const ConstMat at{theta, static_cast<Index>(points), network->network.row(network->d)};
        PotentialOut out;
        out.value = value;
        out.gradient = gradient;
        potential(network->network, at, &rho, *finite_law(inputs, y), 0, inputs.rows, out, {threads, {}});
        return MFCORE_OK;
    });
}

std::int64_t mfcore_row(const mfcore_network* network) {
    return network ? network->network.row(network->d) : 0;
}

int mfcore_theta(const mfcore_network* network, double* theta) {
    return guarded([&] {
        require_pointer(network, "network");
        require_pointer(theta, "theta");
        std::copy(network->theta.begin(), network->theta.end(), theta);
        return MFCORE_OK;
    });
}
