// Rows that come to rest at an apex of their potential, where a kink of sigma meets w = 0 (eqs. (6.18) to
// (6.20)).
//
// Near the apex the potential is a cone: a neuron at distance r in direction u has the radial velocity -a h(u)
// and the angular one -(a/r) grad h(u). Its direction goes to a valley of a h; if a h is positive there, the
// neuron reaches r = 0 in finite time and stays until a h of its valley becomes negative. Explicit steps can
// neither follow a direction whose rate is of order 1/r nor stay at r = 0. So a row within 2 delta of the apex is
// held as kappa u with r(kappa) = delta (3 t - t^2), t = kappa/delta - 1: directions move at rates of order
// 1/delta at most, and are kept at rest. Rows farther away are as they were, bit for bit.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "base/scratch.hpp"
#include "mfcore/flow/flow.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline flow {
namespace {

constexpr double kLeast = 1e-12;  // of delta: the distance of a row at rest, which keeps its direction
// delta is the larger of these two, times the distances at the start: errors are of order delta^2, the number of
// steps of order 1/delta.
constexpr double kShare = 4;  // of sqrt(rtol)
constexpr double kSmallest = 3e-3;
constexpr double kFading = 0.1;  // of delta: the range in which inward velocities fade out

/// The rows of a system and their distances from the nearest apex, in units of the roots of the rates: in these
/// units the flow is a gradient flow.
struct Cones {
    Apex apex;
    std::vector<double> speed;
    Index rows;

    Cones(const System& system) : apex(system.apex), speed(system.speed), rows(system.size / columns()) {}

    Index columns() const { return apex.row > 0 ? apex.row : static_cast<Index>(speed.size()); }

    /// The bias of the nearest apex.
    double knot(const double* row) const {
        const auto nearer = [&](double p, double q) {
            return std::abs(row[apex.bias] - p) < std::abs(row[apex.bias] - q);
        };
        return apex.bias < 0 ? 0.0 : *std::ranges::min_element(apex.knots, nearer);
    }
    /// sum x_j y_j / rate_j over the columns of the cone.
    double product(const double* x, const double* y, double knot) const {
        double sum = 0;
        for (const Index j : apex.columns) sum += x[j] * y[j] / speed[j];
        return apex.bias < 0 ? sum : sum + (x[apex.bias] - knot) * y[apex.bias] / speed[apex.bias];
    }
    double distance(const double* row, double knot) const {
        double sum = 0;
        for (const Index j : apex.columns) sum += row[j] * row[j] / speed[j];
        if (apex.bias >= 0) sum += (row[apex.bias] - knot) * (row[apex.bias] - knot) / speed[apex.bias];
        return std::sqrt(sum);
    }
    void stretch(double* row, double knot, double factor) const {
        for (const Index j : apex.columns) row[j] *= factor;
        if (apex.bias >= 0) row[apex.bias] = knot + factor * (row[apex.bias] - knot);
    }
    /// Call body(row, knot, distance) for the rows within `reach` of an apex, but not at it.
    template <class Body>
    void near(double* y, double reach, Body&& body) const {
        for (Index i = 0; i < rows; ++i) {
            double* row = y + i * columns();
            const double at = knot(row), there = distance(row, at);
            if (there > 0 && there < reach) body(row, at, there);
        }
    }
};

/// r(kappa)/delta and its derivative, t = kappa/delta - 1 (eq. (6.19)).
std::pair<double, double> radius(double kappa, double delta) {
    const double t = std::clamp(kappa / delta - 1, 0.0, 1.0);
    return {std::max(t * (3 - t), kLeast), 3 - 2 * t};
}

class Folding {
public:
    Folding(System system, double delta) : system_(std::move(system)), cones_(system_), delta_(delta) {}

    void fold(double* y) const {
        cones_.near(y, 2 * delta_, [&](double* row, double knot, double r) {
            const double t = (3 - std::sqrt(9 - 4 * r / delta_)) / 2;
            cones_.stretch(row, knot, delta_ * (1 + t) / r);
        });
    }
    void unfold(double* y) const {
        cones_.near(y, 2 * delta_, [&](double* row, double knot, double kappa) {
            cones_.stretch(row, knot, delta_ * radius(kappa, delta_).first / kappa);
        });
    }
    /// Convert the velocity of theta: keep its angular part, divide its radial part by dr/dkappa and fade it out
    /// where it points inward (eq. (6.20)).
    bool velocity(const double* y, double* out) const {
        Scratch<double> theta(system_.size);
        std::copy_n(y, system_.size, theta.data());
        unfold(theta.data());
        if (!system_.velocity(theta.data(), out)) return false;
        for (Index i = 0; i < cones_.rows; ++i) {
            const double* row = y + i * cones_.columns();
            const double knot = cones_.knot(row), kappa = cones_.distance(row, knot);
            if (kappa == 0 || kappa >= 2 * delta_) continue;
            double* v = out + i * cones_.columns();
            const double radial =
                cones_.product(row, v, knot) / (kappa * kappa);  // along row, per unit of it
            const double fade = std::clamp((kappa / delta_ - 1) / kFading, 0.0, 1.0);
            const double change = radial * ((radial < 0 ? fade : 1.0) / radius(kappa, delta_).second - 1);
            for (const Index j : cones_.apex.columns) v[j] += change * row[j];
            if (cones_.apex.bias >= 0) v[cones_.apex.bias] += change * (row[cones_.apex.bias] - knot);
        }
        return true;
    }
    bool resolved(const double* y) const {
        Scratch<double> theta(system_.size);
        std::copy_n(y, system_.size, theta.data());
        unfold(theta.data());
        return system_.resolved(theta.data());
    }

private:
    System system_;
    Cones cones_;
    double delta_;
};

}  // namespace

Apex apex_of(const Activation& sigma, std::vector<Index> columns, Index bias,
             const std::vector<double>& speed) {
    const auto kinks = sigma.is_piecewise() ? std::span<const double>(sigma.knots) : facts(sigma).kinks;
    const bool has_b = bias >= 0;
    const auto moves = [&](Index j) { return speed[static_cast<std::size_t>(j)] > 0; };
    const bool meets = has_b ? !kinks.empty() : std::ranges::find(kinks, 0.0) != kinks.end();
    if (!meets || columns.size() + has_b < 2 || !std::ranges::all_of(columns, moves) ||
        (has_b && !moves(bias)))
        return {};
    Apex apex{std::move(columns), bias, {}, 0};
    if (has_b) apex.knots.assign(kinks.begin(), kinks.end());
    return apex;
}

double resting_radius(const System& system, const double* start, double rtol) {
    if (system.apex.columns.empty()) return 0;
    const Cones cones(system);
    double sum = 0;
    for (Index i = 0; i < cones.rows; ++i) {
        const double* row = start + i * cones.columns();
        const double r = cones.distance(row, cones.knot(row));
        sum += r * r;
    }
    const double mean = std::sqrt(sum / static_cast<double>(cones.rows));
    return std::max(kShare * std::sqrt(rtol), kSmallest) * (std::isnormal(mean) ? mean : 1.0);
}

System folded(System system, double delta) {
    if (!(delta > 0)) return system;
    System out = system;
    const auto folding = std::make_shared<const Folding>(std::move(system), delta);
    out.velocity = [folding](const double* y, double* v) { return folding->velocity(y, v); };
    out.fold = [folding](double* y) { folding->fold(y); };
    out.unfold = [folding](double* y) { folding->unfold(y); };
    if (out.resolved) out.resolved = [folding](const double* y) { return folding->resolved(y); };
    return out;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline flow
