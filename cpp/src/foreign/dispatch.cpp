// The functions of mfcore.h, and best(). Compiled without instruction-set flags: these run on every machine, and hand
// over to the functions of the level that is best on this one.
#include <mfcore/mfcore.h>

#include <atomic>
#include <cstdlib>
#include <mfcore/base/best.hpp>
#include <mfcore/base/versioned.hpp>
#include <mfcore/version.hpp>
#include <string_view>

#include "base/levels.hpp"
#include "foreign/functions.hpp"

#define MFCORE_DECLARE(level)                                   \
    namespace mfcore::inline MFCORE_VERSIONED::level::foreign { \
    extern const mfcore_functions c_functions;                  \
    }
MFCORE_EACH_LEVEL(MFCORE_DECLARE)

namespace {

struct Level {
    std::string_view name;
    const mfcore_functions* functions;
};

#define MFCORE_LISTED(level) {#level, &mfcore::level::foreign::c_functions},
constexpr Level kInstalled[] = {MFCORE_EACH_LEVEL(MFCORE_LISTED)};  // the best one last

/// True if this machine runs the level. One that is no level of x86-64 was compiled for this machine alone.
bool usable(std::string_view level) {
    if (level[0] != 'v') return true;
    for (const char* name : mfcore::cpu::levels())
        if (level == name) return true;
    return false;
}

/// The level to use; null if there is none.
const Level* choose() {
    const char* const asked = std::getenv("MFCORE_ISA");
    const Level* best = nullptr;
    for (const Level& level : kInstalled)
        if ((!asked || !*asked || level.name == asked) && usable(level.name)) best = &level;
    return best;
}

/// The level that choose() returned when it was first called.
const Level* chosen() {
    static constinit std::atomic<const Level*> known{nullptr};
    const Level* level = known.load(std::memory_order_relaxed);
    if (!level) known.store(level = choose(), std::memory_order_relaxed);
    return level;
}

/// Call one of the functions of the level in use.
template <class Function, class... Arguments>
int call(Function mfcore_functions::* function, Arguments... arguments) {
    const Level* const level = chosen();
    return level ? (level->functions->*function)(arguments...) : static_cast<int>(MFCORE_FAILED);
}

}  // namespace

const char* mfcore::best() {
    const Level* const level = choose();
    return level ? level->name.data() : "";
}

const char* mfcore_version() { return MFCORE_VERSION_STRING; }

const char* mfcore_level() {
    const Level* const level = chosen();
    return level ? level->name.data() : "";
}

const char* mfcore_message() {
    const Level* const level = chosen();
    return level ? level->functions->message()
                 : "MFCORE_ISA, or the machine, allows none of the instruction-set levels of this library";
}

int mfcore_activation_named(const char* name, mfcore_activation** created) {
    return call(&mfcore_functions::activation_named, name, created);
}

int mfcore_activation_piecewise_linear(std::int64_t count, const double* knots, const double* jumps,
                                       double offset, double left_slope, mfcore_activation** created) {
    return call(&mfcore_functions::activation_piecewise_linear, count, knots, jumps, offset, left_slope,
                created);
}

int mfcore_activation_polynomial(std::int64_t count, const double* coefficients,
                                 mfcore_activation** created) {
    return call(&mfcore_functions::activation_polynomial, count, coefficients, created);
}

int mfcore_activation_hermite(std::int64_t count, const double* coefficients, mfcore_activation** created) {
    return call(&mfcore_functions::activation_hermite, count, coefficients, created);
}

int mfcore_activation_custom(mfcore_function function, void* user, mfcore_activation** created) {
    return call(&mfcore_functions::activation_custom, function, user, created);
}

void mfcore_activation_free(mfcore_activation* activation) {
    if (activation) chosen()->functions->activation_free(activation);
}

int mfcore_create_on(const mfcore_activation* activation, int a, int b, std::int64_t neurons, std::int64_t d,
                     double* theta, mfcore_network** created) {
    return call(&mfcore_functions::create_on, activation, a, b, neurons, d, theta, created);
}

int mfcore_create(const char* activation, int a, int b, std::int64_t neurons, std::int64_t d,
                  const double* theta, mfcore_network** created) {
    return call(&mfcore_functions::create, activation, a, b, neurons, d, theta, created);
}

void mfcore_free(mfcore_network* network) {
    if (network) chosen()->functions->free(network);
}

int mfcore_set_forces(mfcore_network* network, double ridge, double temperature, std::uint64_t seed) {
    return call(&mfcore_functions::set_forces, network, ridge, temperature, seed);
}

int mfcore_set_rates(mfcore_network* network, double a, double b, double w) {
    return call(&mfcore_functions::set_rates, network, a, b, w);
}

int mfcore_set_scale(mfcore_network* network, double alpha) {
    return call(&mfcore_functions::set_scale, network, alpha);
}

int mfcore_step(mfcore_network* network, std::int64_t samples, const double* x, const double* y, double h,
                int threads) {
    return call(&mfcore_functions::step, network, samples, x, y, h, threads);
}

int mfcore_predict(const mfcore_network* network, std::int64_t samples, const double* x, double* f,
                   int threads) {
    return call(&mfcore_functions::predict, network, samples, x, f, threads);
}

int mfcore_potentials(const mfcore_network* network, std::int64_t points, const double* theta,
                      std::int64_t samples, const double* x, const double* y, double* value, double* gradient,
                      int threads) {
    return call(&mfcore_functions::potentials, network, points, theta, samples, x, y, value, gradient,
                threads);
}

std::int64_t mfcore_row(const mfcore_network* network) {
    return network ? chosen()->functions->row(network) : 0;
}

int mfcore_theta(const mfcore_network* network, double* theta) {
    return call(&mfcore_functions::theta, network, theta);
}

int mfcore_density_create(int axes, const mfcore_axis* axis, std::int64_t nodes, const double* weights,
                          const double* targets, const double* features, const double* decay,
                          double temperature, double* mass, mfcore_density** created) {
    return call(&mfcore_functions::density_create, axes, axis, nodes, weights, targets, features, decay,
                temperature, mass, created);
}

void mfcore_density_free(mfcore_density* density) {
    if (density) chosen()->functions->density_free(density);
}

int mfcore_density_step(mfcore_density* density, double h) {
    return call(&mfcore_functions::density_step, density, h);
}

int mfcore_density_bound(mfcore_density* density, double* bound) {
    return call(&mfcore_functions::density_bound, density, bound);
}

int mfcore_density_risk(mfcore_density* density, double* risk) {
    return call(&mfcore_functions::density_risk, density, risk);
}
