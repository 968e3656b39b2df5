// What the functions of mfcore.h do, for one instruction-set level: networks as handles, exceptions as codes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "foreign/functions.hpp"
#include "mfcore/base/errors.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/sgd/step.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {
namespace {

/// What an mfcore_network points to.
struct Handle {
    Network network;
    StepParams forces;
    Index d, neurons, steps;
    std::vector<double> theta;

    Mat rows() { return {theta.data(), neurons, network.row(d)}; }
    ConstMat rows() const { return {theta.data(), neurons, network.row(d)}; }
};

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

/// The network of the caller.
Handle& handle(mfcore_network* network) {
    require_pointer(network, "network");
    return *reinterpret_cast<Handle*>(network);
}
const Handle& handle(const mfcore_network* network) {
    require_pointer(network, "network");
    return *reinterpret_cast<const Handle*>(network);
}

/// The samples of the caller as a matrix.
ConstMat inputs_of(const Handle& network, std::int64_t samples, const double* x) {
    require_count(samples, "samples");
    require_pointer(x, "x");
    return {x, static_cast<Index>(samples), network.d};
}

const char* last_message() { return message; }

int create_network(const char* activation, int a, int b, std::int64_t neurons, std::int64_t d,
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
        auto made = std::make_unique<Handle>(
            Handle{network, {}, static_cast<Index>(d), static_cast<Index>(neurons), 0, {}});
        made->theta.assign(theta, theta + made->neurons * row);
        *created = reinterpret_cast<mfcore_network*>(made.release());
        return MFCORE_OK;
    });
}

void free_network(mfcore_network* network) { delete reinterpret_cast<Handle*>(network); }

int set_forces(mfcore_network* network, double ridge, double temperature, std::uint64_t seed) {
    return guarded([&] {
        auto& own = handle(network);
        require(ridge >= 0, "ridge", "must be >= 0", ridge);
        require(temperature >= 0, "temperature", "must be >= 0", temperature);
        own.forces.ridge = ridge;
        own.forces.temperature = temperature;
        own.forces.seed = seed;
        return MFCORE_OK;
    });
}

int take_step(mfcore_network* network, std::int64_t samples, const double* x, const double* y, double h,
              int threads) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(y, "y");
        const ConstMat inputs = inputs_of(own, samples, x);
        own.forces.threads = threads;
        if (!sgd_step(own.network, own.rows(), inputs, y, h, own.steps, own.forces))
            return failure(MFCORE_NOT_FINITE, "the prediction or the update is not finite; try a smaller h");
        ++own.steps;
        return static_cast<int>(MFCORE_OK);
    });
}

int predict_at(const mfcore_network* network, std::int64_t samples, const double* x, double* f, int threads) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(f, "f");
        predict(own.network, {own.rows()}, inputs_of(own, samples, x), f, threads);
        return MFCORE_OK;
    });
}

int potentials_at(const mfcore_network* network, std::int64_t points, const double* theta,
                  std::int64_t samples, const double* x, const double* y, double* value, double* gradient,
                  int threads) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(theta, "theta");
        require_pointer(y, "y");
        require_count(points, "points");
        const ConstMat inputs = inputs_of(own, samples, x);
        const Measure rho{own.rows()};
        const ConstMat at{theta, static_cast<Index>(points), own.network.row(own.d)};
        PotentialOut out;
        out.value = value;
        out.gradient = gradient;
        potential(own.network, at, &rho, *finite_law(inputs, y), 0, inputs.rows, out, {threads, {}});
        return MFCORE_OK;
    });
}

std::int64_t row_length(const mfcore_network* network) {
    return network ? handle(network).network.row(handle(network).d) : 0;
}

int copy_theta(const mfcore_network* network, double* theta) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(theta, "theta");
        std::copy(own.theta.begin(), own.theta.end(), theta);
        return MFCORE_OK;
    });
}

}  // namespace

extern const mfcore_functions c_functions;
constinit const mfcore_functions c_functions = {last_message,  create_network, free_network,
                                                set_forces,    take_step,      predict_at,
                                                potentials_at, row_length,     copy_theta};

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
