// Networks of mfcore.h, for one instruction-set level: their steps, predictions and potentials.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "foreign/codes.hpp"
#include "mfcore/data/data.hpp"
#include "mfcore/features/features.hpp"
#include "mfcore/sgd/step.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline foreign {
namespace {

/// The object behind an mfcore_network.
struct Handle {
    Network network;
    StepParams forces;
    Index d, neurons, steps;
    double* theta;
    std::vector<double> own;  ///< what theta points to, where the rows were copied
    double scale = 1;

    Mat rows() { return {theta, neurons, network.row(d)}; }
    ConstMat rows() const { return {theta, neurons, network.row(d)}; }
};

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

/// The labels in units of the scale: a network of scale alpha moves as one of scale 1 that learns y/alpha (eq. (11.1)).
class Labels {
public:
    Labels(const Handle& network, Index samples, const double* y) : y_(y) {
        require_pointer(y, "y");
        if (network.scale == 1) return;
        scaled_.assign(y, y + samples);
        for (double& label : scaled_) label /= network.scale;
        y_ = scaled_.data();
    }
    const double* data() const { return y_; }

private:
    const double* y_;
    std::vector<double> scaled_;
};

/// Multiply numbers by a factor; null are none.
void multiply(double* numbers, Index count, double factor) {
    if (numbers && factor != 1)
        for (Index i = 0; i < count; ++i) numbers[i] *= factor;
}

/// A network without rows.
std::unique_ptr<Handle> make_handle(const Activation& activation, int a, int b, std::int64_t neurons,
                                    std::int64_t d) {
    require(a >= MFCORE_ABSENT && a <= MFCORE_TRAINED, "a", "must be absent, fixed or trained", a);
    require(b >= MFCORE_ABSENT && b <= MFCORE_TRAINED, "b", "must be absent, fixed or trained", b);
    require_count(neurons, "neurons");
    require_count(d, "d");
    Network network{activation};
    network.output = static_cast<Output>(a);
    network.bias = static_cast<Bias>(b);
    return std::make_unique<Handle>(
        Handle{network, {}, static_cast<Index>(d), static_cast<Index>(neurons), 0, nullptr, {}});
}

}  // namespace

int create_network_on(const mfcore_activation* activation, int a, int b, std::int64_t neurons, std::int64_t d,
                      double* theta, mfcore_network** created) {
    return guarded([&] {
        require_pointer(created, "created");
        *created = nullptr;
        require_pointer(theta, "theta");
        auto made = make_handle(activation_of(activation), a, b, neurons, d);
        made->theta = theta;
        *created = reinterpret_cast<mfcore_network*>(made.release());
        return MFCORE_OK;
    });
}

int create_network(const char* activation, int a, int b, std::int64_t neurons, std::int64_t d,
                   const double* theta, mfcore_network** created) {
    return guarded([&] {
        require_pointer(created, "created");
        *created = nullptr;
        require_pointer(activation, "activation");
        require_pointer(theta, "theta");
        auto made = make_handle(named_activation(activation), a, b, neurons, d);
        made->own.assign(theta, theta + made->neurons * made->network.row(made->d));
        made->theta = made->own.data();
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

int set_rates(mfcore_network* network, double a, double b, double w) {
    return guarded([&] {
        auto& own = handle(network);
        for (const double rate : {a, b, w})
            require(rate >= 0 && std::isfinite(rate), "rates", "must be finite and >= 0", rate);
        own.forces.rates = {a, b, w};
        return MFCORE_OK;
    });
}

int set_scale(mfcore_network* network, double alpha) {
    return guarded([&] {
        auto& own = handle(network);
        // Its square, and that of labels over it, are finite.
        require(alpha >= 1e-70 && alpha <= 1e70, "alpha", "must be from 1e-70 to 1e70", alpha);
        own.scale = alpha;
        return MFCORE_OK;
    });
}

int take_step(mfcore_network* network, std::int64_t samples, const double* x, const double* y, double h,
              int threads) {
    return guarded([&] {
        auto& own = handle(network);
        const ConstMat inputs = inputs_of(own, samples, x);
        const Labels labels(own, inputs.rows, y);
        StepParams params = own.forces;
        const double square = own.scale * own.scale;
        params.ridge /= square;
        params.temperature /= square;
        params.rates = {square * params.rates.a, square * params.rates.b, square * params.rates.w};
        params.threads = threads;
        if (!sgd_step(own.network, own.rows(), inputs, labels.data(), h, own.steps, params))
            return failure(MFCORE_NOT_FINITE, "the prediction or the update is not finite; try a smaller h");
        ++own.steps;
        return static_cast<int>(MFCORE_OK);
    });
}

int predict_at(const mfcore_network* network, std::int64_t samples, const double* x, double* f, int threads) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(f, "f");
        const ConstMat inputs = inputs_of(own, samples, x);
        predict(own.network, {own.rows()}, inputs, f, threads);
        multiply(f, inputs.rows, own.scale);
        return MFCORE_OK;
    });
}

int potentials_at(const mfcore_network* network, std::int64_t points, const double* theta,
                  std::int64_t samples, const double* x, const double* y, double* value, double* gradient,
                  int threads) {
    return guarded([&] {
        auto& own = handle(network);
        require_pointer(theta, "theta");
        require_count(points, "points");
        const ConstMat inputs = inputs_of(own, samples, x);
        const Labels labels(own, inputs.rows, y);
        const Measure rho{own.rows()};
        const ConstMat at{theta, static_cast<Index>(points), own.network.row(own.d)};
        PotentialOut out;
        out.value = value;
        out.gradient = gradient;
        potential(own.network, at, &rho, *finite_law(inputs, labels.data()), 0, inputs.rows, out,
                  {threads, {}});
        multiply(value, at.rows, own.scale * own.scale);
        multiply(gradient, at.rows * at.cols, own.scale * own.scale);
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
        std::copy_n(own.theta, own.neurons * own.network.row(own.d), theta);
        return MFCORE_OK;
    });
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline foreign
