// Implicit Euler steps of masses in their own potential, as fixed points in the moments (eq. (7.14)).
#include "density/noisy_steps.hpp"

#include <algorithm>
#include <cmath>

#include "density/newton.hpp"
#include "mfcore/base/errors.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline density {

constexpr int kIterations = 60;  // at most, for the fixed point of an implicit step

NoisySteps::NoisySteps(GridPotential potential, const std::vector<DiffusionAxis>& axes, double temperature,
                       int threads)
    : potential_(std::move(potential)),
      fluxes_(axes, temperature, threads, potential_.stride()),
      temperature_(temperature),
      sums_(potential_.size(), threads),
      anderson_(potential_.rank()),
      psi_(potential_.size()),
      mu_(potential_.size()),
      fixed_(potential_.rank()),
      image_(potential_.rank()) {
    require(fluxes_.size() == potential_.size(), "axes", "must have the cells of the potential",
            fluxes_.size());
}

void NoisySteps::evaluate(NoisyState& state) {
    potential_.moments(state.mass.data(), state.moments.data());
    potential_.potential(state.moments.data(), state.psi.data());
    ++evaluations;
    const BlockSums::Sums sum = entropy(sums_, state.mass.data(), fluxes_.log_volume().data(),
                                        potential_.decay(), state.log_density.data());
    state.risk = potential_.risk(state.moments.data());
    state.free_energy = state.risk / 2 + sum.c + temperature_ * sum.a;
    state.scale = state.risk / 2 + std::abs(sum.c) + temperature_ * sum.b;
}

double NoisySteps::dissipation(const NoisyState& state) {
    set_potential(state.psi);
    for (std::size_t i = 0; i < mu_.size(); ++i) mu_[i] = state.psi[i] + temperature_ * state.log_density[i];
    return fluxes_.dissipation(state.mass.data(), mu_.data());
}

double NoisySteps::fastest(const NoisyState& state) {
    set_potential(state.psi);
    return fluxes_.fastest();
}

void NoisySteps::lagged(const NoisyState& now, double h, Vector& to) {
    set_potential(now.psi);
    fluxes_.step(h, now.mass.data(), to.data());
}

void NoisySteps::lagged_pair(const NoisyState& now, double h, Vector& full, Vector& half) {
    set_potential(now.psi);
    fluxes_.two_steps(now.mass.data(), h, full.data(), h / 2, half.data());
    if (potential_.rank() > 0) {
        potential_.moments(half.data(), image_.data());
        set_potential_of(image_);
    }
    fluxes_.step(h / 2, half.data(), half.data());
}

bool NoisySteps::implicit(const NoisyState& now, double h, bool thorough, Vector& to) {
    fixed_ = now.moments;
    return fixed_step(now, now.mass, h, thorough, to);
}

bool NoisySteps::implicit_pair(const NoisyState& now, double h, bool thorough, Vector& full, Vector& half) {
    if (!implicit(now, h, thorough, full)) return false;
    const Vector after = fixed_;
    for (std::size_t k = 0; k < fixed_.size(); ++k) fixed_[k] = (now.moments[k] + after[k]) / 2;
    if (!fixed_step(now, now.mass, h / 2, thorough, half)) return false;
    middle_ = half;
    fixed_ = after;
    return fixed_step(now, middle_, h / 2, thorough, half);
}

void NoisySteps::set_potential(const Vector& psi) {
    if (potential_.rank() == 0 && constant_set_) return;  // the masses do not enter
    fluxes_.set_potential(psi.data());
    constant_set_ = true;
}

void NoisySteps::set_potential_of(const Vector& moments) {
    potential_.potential(moments.data(), psi_.data());
    ++evaluations;
    set_potential(psi_);
}

/// Do a step in the potential of the moments fixed_; the moments of its result are image_.
void NoisySteps::image_step(const Vector& from, double h, Vector& to) {
    set_potential_of(fixed_);
    fluxes_.step(h, from.data(), to.data());
    potential_.moments(to.data(), image_.data());
}

/// Do the step in the potential of its own result (eq. (7.14)), from the guess fixed_ of its moments, which
/// are left there. A residual r of the moments can make the free energy rise by r^2/2 at most: where rounding
/// lets r fall no further, it has to be so small that this does not show.
bool NoisySteps::fixed_step(const NoisyState& now, const Vector& from, double h, bool thorough, Vector& to) {
    const double enough = 0.1 * std::sqrt(kEnergyRounding * now.scale);
    const Vector guess = fixed_;
    if (accelerated_step(now, from, h, enough, to)) return true;
    if (!thorough) return false;
    Eigen::VectorXd x = Eigen::Map<const Eigen::VectorXd>(guess.data(), potential_.rank());
    const auto residual = [&](const Eigen::VectorXd& at, Eigen::VectorXd& out) {
        fixed_.assign(at.begin(), at.end());
        image_step(from, h, to);
        out = Eigen::Map<const Eigen::VectorXd>(image_.data(), at.size()) - at;
    };
    const bool found = newton(x, enough, residual);
    Eigen::VectorXd last(x.size());
    residual(x, last);
    return found;
}

bool NoisySteps::accelerated_step(const NoisyState& now, const Vector& from, double h, double enough,
                                  Vector& to) {
    double best = INFINITY;
    int since = 0;  // iterations since the residual was halved
    anderson_.restart();
    for (int k = 0; k < kIterations && since < 8; ++k) {
        image_step(from, h, to);
        double moved = 0, size = 0;
        for (std::size_t i = 0; i < fixed_.size(); ++i) {
            const double change = image_[i] - now.moments[i], shift = potential_.shift()[i];
            moved += change * change;
            size += image_[i] * image_[i] + shift * shift;
        }
        const double residual = anderson_.advance(fixed_.data(), image_.data());
        if (!std::isfinite(residual)) return false;
        if (residual <= 1e-8 * std::sqrt(moved) + 1e-15 * std::sqrt(size)) return true;
        if (since > 2 && residual <= enough) return true;
        since = residual < best / 2 ? 0 : since + 1;
        best = std::min(best, residual);
    }
    return false;
}

}  // namespace mfcore::inline MFCORE_LEVEL::inline density
