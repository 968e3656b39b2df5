"""Mistakes in the numerics of the core."""

from __future__ import annotations

from .mutant import mutants_of

_mutant = mutants_of("cpp/src")

CORE = (
    # Flows: Runge-Kutta pairs, walls, noise.
    _mutant(
        "tableau of the fifth order",
        "flow/adaptive.cpp",
        "{35.0 / 384, 0, 500.0 / 1113,",
        "{35.0 / 385, 0, 500.0 / 1113,",
        "neurons/test_particles.py limit/test_limit.py",
    ),
    _mutant(
        "error of a step",
        "flow/adaptive.cpp",
        "kError[kStages] = {71.0 / 57600, ",
        "kError[kStages] = {71.0 / 57500, ",
        "neurons/test_particles.py atoms limit",
    ),
    _mutant(
        "continuous extension",
        "flow/adaptive.cpp",
        "dense_[2][i] = bend;",
        "dense_[2][i] = 0.99 * bend;",
        "neurons/test_particles.py atoms",
    ),
    _mutant(
        "turn at a wall",
        "flow/adaptive.cpp",
        "return std::max(std::abs(clamped), depth(i));",
        "return std::abs(clamped);",
        "atoms/test_atoms.py",
    ),
    _mutant(
        "error of the risk",
        "flow/adaptive.cpp",
        "[&](Index i) { return error_of(i); });",
        "[&](Index i) { return 0.01 * error_of(i); });",
        "neurons atoms limit",
    ),
    _mutant(
        "classical Runge-Kutta",
        "flow/flow.cpp",
        "h / 6 * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[3][i])",
        "h / 6 * (k[0][i] + 2 * (k[1][i] + k[2][i]) + k[2][i])",
        "neurons/test_particles.py atoms/test_atoms_runs.py",
    ),
    _mutant(
        "noise of a radius",
        "flow/flow.cpp",
        "std::hypot(along, across_[i] + turn * across_[i])",
        "std::hypot(along, across_[i])",
        "atoms neurons/test_nonlinear.py",
    ),
    _mutant(
        "atoms resting at a wall",
        "flow/atoms.cpp",
        "velocity[i] = std::max(velocity[i], 0.0);",
        "velocity[i] = std::min(velocity[i], 0.0);",
        "atoms/test_atoms.py",
    ),
    _mutant(
        "decay of atoms", "flow/atoms.cpp", "velocity[i] + decay * z", "velocity[i] + decay", "atoms limit"
    ),
    # Densities.
    _mutant(
        "volumes of cells in the flux",
        "density/scharfetter_gummel.cpp",
        "log_volume[i] - std::log(width[i + 1] / width[i])",
        "log_volume[i] + std::log(width[i + 1] / width[i])",
        "density",
    ),
    _mutant(
        "volume of a radial cell",
        "density/scharfetter_gummel.cpp",
        "std::log(-minus_rest) - std::log(e + 1);",
        "std::log(-minus_rest) - std::log(e + 1) * (low > 0);",
        "density/test_fokker_planck.py",
    ),
    _mutant(
        "temperature of the flux",
        "density/scharfetter_gummel.cpp",
        "axis.rate * temperature / (centre[i + 1] - centre[i])",
        "axis.rate * temperature / (z[i + 1] - z[i])",
        "density",
    ),
    _mutant(
        "van Leer's slope",
        "density/finite_volume_cells.hpp",
        "same_sign, a * (b / (a + b)), zero",
        "same_sign, 0.5 * a * (b / (a + b)), zero",
        "density/test_finite_volume_orders.py",
    ),
    _mutant(
        "density at a face",
        "density/finite_volume_cells.hpp",
        "out.on = v_on * larger(rho + half, zero);",
        "out.on = v_on * larger(rho - half, zero);",
        "density/test_finite_volume_orders.py",
    ),
    _mutant(
        "slope across a closed face",
        "density/finite_volume_cells.hpp",
        "simd::select<double>(before > zero, rho",
        "simd::select<double>(before >= zero, rho",
        "density",
    ),
    _mutant(
        "second half of an implicit step",
        "density/noisy_steps.cpp",
        "return fixed_step(now, middle_, h / 2, thorough, half);",
        "return fixed_step(now, middle_, h, thorough, half);",
        "density",
    ),
    _mutant(
        "rise of the free energy",
        "density/fokker_planck.cpp",
        "c.rise = std::max(c.rise, ahead_.free_energy - now_.free_energy);",
        "c.rise = std::max(c.rise, now_.free_energy - ahead_.free_energy);",
        "density",
    ),
    _mutant(
        "stiffness of finite volumes",
        "density/finite_volume.cpp",
        "? change / (h_ * report.descent) : 0",
        "? 0.25 * change / (h_ * report.descent) : 0",
        "density/test_density_errors.py",
    ),
    _mutant(
        "rest at a kink",
        "flow/apex.cpp",
        "(radial < 0 ? fade : 1.0)",
        "fade",
        "neurons/test_resting.py",
    ),
    # SGD.
    _mutant(
        "decay between samples",
        "sgd/direct.hpp",
        "const T keep = T(1) - h_w * ridge",
        "const T keep = T(1) - h * ridge",
        "neurons/test_sgd_random.py neurons/test_fixed_bias.py",
    ),
    _mutant(
        "weight of a sample in a batch",
        "sgd/batch.hpp",
        "error_[q] = (block.y[q] - error_[q] * count) * batch;",
        "error_[q] = (block.y[q] - error_[q] * count * batch);",
        "neurons/test_sgd.py",
    ),
    _mutant(
        "decay of a batch step",
        "sgd/batch.hpp",
        "T shrink = static_cast<T>(1 - h * params_.rates.w * params_.ridge);",
        "T shrink = static_cast<T>(1 - h * params_.ridge);",
        "neurons/test_sgd.py",
    ),
    _mutant(
        "variance of Langevin noise",
        "sgd/noise.hpp",
        "std::sqrt(2 * h * params_.temperature * rate)",
        "std::sqrt(h * params_.temperature * rate)",
        "neurons/test_sgd_noise.py",
    ),
    _mutant(
        "noise seen by a block",
        "sgd/noise.hpp",
        "e[i] = decay * e[i] + amp * draws_[i];",
        "e[i] += amp * draws_[i];",
        "neurons/test_sgd_noise.py",
    ),
    _mutant(
        "bridge of noise",
        "sgd/noise.hpp",
        "gain = before * keep / all",
        "gain = before / all",
        "neurons/test_sgd_noise.py",
    ),
    _mutant(
        "noise of one call",
        "sgd/step.cpp",
        "[&](double rate) { return std::sqrt(2 * h * params.temperature * rate); };",
        "[&](double rate) { return std::sqrt(2 * h * params.temperature) * rate; };",
        "neurons/test_steppers.py neurons/test_sgd_noise.py",
    ),
    _mutant(
        "layer by layer, errors",
        "sgd/layer_wise.cpp",
        "error_[q] = y[q] - f / static_cast<double>(count());",
        "error_[q] = y[q] - f;",
        "neurons/test_layer_wise.py",
    ),
    # Expectations in closed form.
    _mutant(
        "erf pairs, correlation",
        "gaussian/erf.cpp",
        "square1 + square2 * (1.0 - square1)",
        "square1 + square2",
        "expectations",
    ),
    _mutant(
        "erf pairs, narrow neurons",
        "gaussian/erf.cpp",
        "kNarrow = 0.1;",
        "kNarrow = 1e-9;",
        "expectations",
    ),
    _mutant(
        "gelu pairs, curvature",
        "gaussian/erf.cpp",
        "x * rho * (1.0 + u.square * (3.0 - x2))",
        "x * rho * (1.0 + u.square * (2.0 - x2))",
        "expectations",
    ),
    _mutant(
        "pairs of leaky rectifiers",
        "gaussian/homogeneous.cpp",
        "mu1 * mu2 + 0.5 * (mu1 * jump(second) + mu2 * jump(first))",
        "mu1 * mu2 + 0.5 * (mu1 * jump(first) + mu2 * jump(second))",
        "expectations measures",
    ),
    _mutant(
        "smoothing of a ramp",
        "gaussian/smooth.cpp",
        "jump * (R * phi - to_knot * tail)",
        "jump * (R * phi - R * to_knot * tail)",
        "expectations/test_gaussian_smoothing.py",
    ),
    _mutant(
        "step of the trapezoidal rule",
        "gaussian/quadrature.cpp",
        "rule.step * special::kInvSqrt2Pi * std::exp(-0.5 * g * g)",
        "rule.step * special::kInvSqrt2Pi * std::exp(-0.4999999 * g * g)",
        "expectations",
    ),
    _mutant(
        "panels with kinks",
        "gaussian/panels.cpp",
        "sum.k02 -= outer.R * rho * sum.k11;",
        "sum.k02 += outer.R * rho * sum.k11;",
        "expectations measures",
    ),
    _mutant(
        "Hermite recurrence",
        "gaussian/series.cpp",
        "scale * at.h * h - (scale * root(k - 1)) * before",
        "scale * at.h * h - (scale * root(k)) * before",
        "expectations/test_pair_series.py",
    ),
    _mutant(
        "standard error of estimates",
        "features/moments.hpp",
        "static_cast<double>(blocks - 1) * static_cast<double>(samples)",
        "static_cast<double>(blocks) * static_cast<double>(samples)",
        "measures/test_estimate.py",
    ),
    _mutant(
        "tangent kernel on spheres",
        "features/tangent.cpp",
        "partner.normal().middle_rows(j, m), -rates.w,",
        "partner.normal().middle_rows(j, m), rates.w,",
        "lazy",
    ),
    # Reductions.
    _mutant(
        "tail of a direction",
        "reduction/sphere.cpp",
        "term *= (d / 2 + j) / (1.5 + j) * tau * tau;",
        "term *= (d / 2 + j) / (1.5 + j) * std::abs(tau);",
        "reductions",
    ),
    _mutant(
        "polynomials of a direction",
        "reduction/two_radii.cpp",
        "k == 1 ? 1 / d :",
        "k == 0 ? 1 / d :",
        "reductions",
    ),
    _mutant(
        "density of a direction",
        "reduction/smoothing.cpp",
        "std::pow(std::cos(x), d_ - 2)",
        "std::pow(std::cos(x), d_ - 1)",
        "reductions",
    ),
    # Data and random numbers.
    _mutant(
        "spread of a class",
        "data/data.cpp",
        "x(i, j) *= 1 + y[i] * delta;",
        "x(i, j) *= 1 - y[i] * delta;",
        "data",
    ),
    _mutant(
        "label noise", "data/data.cpp", "y[k + i] += noise_ * g[i];", "y[k + i] += noise_ * g[0];", "data"
    ),
    _mutant(
        "acceptance of chi",
        "base/random_chi.cpp",
        "square / 2 + d * (1 - cube + std::log(cube))",
        "square / 2 + d * (1 - cube) + std::log(cube)",
        "base/test_random.py",
    ),
)
