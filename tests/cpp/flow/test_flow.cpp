// The integrators as embedders use them: on a field of their own, without neurons.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "mfcore/flow/flow.hpp"

using namespace mfcore;

namespace {

/// The circle: x' = -y, y' = x.
System rotation() {
    System system;
    system.size = 2;
    system.speed = {1.0};
    system.velocity = [](const double* y, double* v) {
        v[0] = -y[1];
        v[1] = y[0];
        return true;
    };
    return system;
}

double distance_from_start_after_a_turn(Flow& flow) {
    CHECK(flow.run(2 * std::numbers::pi, {}) == End::reached);
    double y[2];
    flow.get(y);
    return std::hypot(y[0] - 1, y[1]);
}

}  // namespace

TEST_CASE("dopri5 turns a circle to its tolerance, with a step count that grows as its fifth root") {
    const double start[] = {1, 0};
    const auto loose = dopri5(rotation(), start, {1e-4, 1e-4}),
               tight = dopri5(rotation(), start, {1e-9, 1e-9});
    CHECK(distance_from_start_after_a_turn(*loose) < 2e-3);
    CHECK(distance_from_start_after_a_turn(*tight) < 2e-8);
    CHECK(tight->counts().steps < 16 * loose->counts().steps);  // (1e5)^(1/5) = 10
    // Two evaluations to begin with, then six for every step tried: the last serves the next step.
    const FlowCounts& counts = tight->counts();
    CHECK(counts.evaluations == 2 + 6 * (counts.steps + counts.rejected));
}

TEST_CASE("fixed steps stop at the step nearest to the time asked for") {
    const double start[] = {1, 0};
    const auto flow = fixed_steps(rotation(), start, {Scheme::rk4, 0.1});
    CHECK(flow->run(0.26, {}) == End::reached);
    CHECK(flow->t() == doctest::Approx(0.3));
    CHECK(flow->counts().evaluations == 12);
    CHECK_THROWS_AS(flow->run(0.1, {}), std::invalid_argument);
}

TEST_CASE("a field that stops in the middle of a step changes no bit of the run") {
    const double start[] = {1, 0};
    System system = rotation();
    int calls = 0;
    system.velocity = [&, inner = system.velocity](const double* y, double* v) {
        return ++calls != 25 && inner(y, v);
    };
    const auto stopped = dopri5(system, start, {1e-6, 1e-9}), whole = dopri5(rotation(), start, {1e-6, 1e-9});
    CHECK(stopped->run(1.0, {}) == End::interrupted);
    const double t = stopped->t();
    CHECK(t > 0);
    CHECK(t < 1.0);
    double one[2], two[2];
    CHECK(stopped->run(1.0, {}) == End::reached);
    CHECK(whole->run(1.0, {}) == End::reached);
    stopped->get(one);
    whole->get(two);
    CHECK(one[0] == two[0]);
    CHECK(one[1] == two[1]);
}

namespace {

/// One entry above a wall, pushed by a force of time: the second entry is the time itself.
System pushed(double (*force)(double t)) {
    System system;
    system.size = 2;
    system.speed = {1.0, 1.0};
    system.nonnegative = {true, false};
    system.velocity = [force](const double* y, double* v) {
        v[0] = force(y[1]);
        if (y[0] == 0) v[0] = std::max(v[0], 0.0);
        v[1] = 1;
        return true;
    };
    return system;
}

}  // namespace

TEST_CASE("an entry that hits a wall stays there until it is pushed away, and no step stalls") {
    // Inward until t = 1, where 0.3 - t + t^2 / 2 = 0 was long before; then away from the wall.
    const double start[] = {0.3, 0};
    const auto flow = dopri5(pushed([](double t) { return t - 1; }), start, {1e-9, 1e-11});
    double y[2];
    for (const double t : {0.2, 0.5, 0.9, 1.5, 2.0}) {
        CHECK(flow->run(t, {}) == End::reached);
        flow->get(y);
        const double hit = 1 - std::sqrt(0.4);
        const double want = t < hit ? 0.3 - t + t * t / 2 : t < 1 ? 0 : (t - 1) * (t - 1) / 2;
        CHECK(y[0] == doctest::Approx(want).epsilon(1e-8));
        CHECK(y[0] >= 0);
    }
    CHECK(flow->counts().steps < 60);
}

TEST_CASE("fixed steps clamp to a wall and leave it") {
    const double start[] = {0.3, 0};
    for (const Scheme scheme : {Scheme::euler, Scheme::heun, Scheme::rk4}) {
        const auto flow = fixed_steps(pushed([](double t) { return t - 1; }), start, {scheme, 0.01});
        double y[2];
        CHECK(flow->run(0.8, {}) == End::reached);
        flow->get(y);
        CHECK(y[0] == 0);
        CHECK(flow->run(2.0, {}) == End::reached);
        flow->get(y);
        CHECK(y[0] == doctest::Approx(0.5).epsilon(0.02));  // first order at the kink
    }
}

TEST_CASE("a step whose end is not resolved is not taken, and its end is shown") {
    System system = rotation();
    system.resolved = [](const double* y) { return y[0] > 0.5; };
    const double start[] = {1, 0};
    const auto flow = dopri5(system, start, {1e-6, 1e-9});
    CHECK(flow->run(3.0, {}) == End::unresolved);
    double y[2], refused[2];
    flow->get(y);
    flow->refused(refused);
    CHECK(y[0] > 0.5);
    CHECK(refused[0] <= 0.5);
    CHECK(flow->t() < std::numbers::pi / 3);
    CHECK(y[0] == doctest::Approx(std::cos(flow->t())).epsilon(1e-5));
}
