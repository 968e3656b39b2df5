"""Mistakes in the numerics of the Python layer."""

from __future__ import annotations

from .mutant import Mutant


def _mutant(name: str, file: str, old: str, new: str, tests: str) -> Mutant:
    """Name the source below python/mfcore and the tests below tests/python."""
    paths = " ".join(f"tests/python/{test}" for test in tests.split())
    return Mutant(name, f"python/mfcore/{file}", old, new, paths)


LAYER = (
    # The clock and its conventions.
    _mutant(
        "temperature of a published rule",
        "conventions.py",
        "temperature=noise / (2 * drift * beta)",
        "temperature=noise / (2 * beta)",
        "model/test_conventions.py",
    ),
    _mutant(
        "ridge of a published rule",
        "conventions.py",
        "ridge=decay * ridge / drift",
        "ridge=decay * ridge",
        "model/test_conventions.py",
    ),
    # Measures.
    _mutant(
        "energy of a density",
        "measures/_energy.py",
        "value = 0.5 * risk(target, measure,",
        "value = risk(target, measure,",
        "measures",
    ),
    _mutant(
        "flux of the dissipation",
        "measures/_energy.py",
        "_bernoulli(delta) * per_length[..., :-1] - _bernoulli(-delta)",
        "_bernoulli(-delta) * per_length[..., :-1] - _bernoulli(delta)",
        "measures/test_energy.py",
    ),
    _mutant(
        "distance of unequal cells",
        "measures/_distance.py",
        "(x * x + x * y + y * y) / 3",
        "(x * x - x * y + y * y) / 3",
        "measures/test_distance.py",
    ),
    _mutant(
        "volume of a radial cell",
        "measures/_cells.py",
        "part - np.log(power)",
        "part + np.log(power)",
        "measures",
    ),
    _mutant(
        "ridge in the potential",
        "measures/_functions.py",
        "0.5 * model.ridge * np.square(",
        "model.ridge * np.square(",
        "measures/test_functions.py",
    ),
    # Reductions and starts.
    _mutant(
        "label noise of a mixture",
        "reductions/_nodes.py",
        "sum(part.weight * part.noise**2 for part in parts)",
        "sum(part.noise**2 for part in parts)",
        "reductions",
    ),
    _mutant(
        "volume exponent of a radius",
        "reductions/_of_laws.py",
        "else dim - 1.0 for dim in dims]",
        "else dim - 2.0 for dim in dims]",
        "reductions density",
    ),
    _mutant(
        "surface of a sphere",
        "reductions/_of_laws.py",
        "math.log(2.0) + 0.5 * d * math.log(math.pi)",
        "math.log(2.0) + d * math.log(math.pi)",
        "measures reductions stationary density",
    ),
    _mutant(
        "error of the nodes",
        "reductions/_of_laws.py",
        "return KINK_SAFETY * error if sharp else error",
        "return 1e-6 * error",
        "reductions",
    ),
    _mutant(
        "mass of a cell of a radius",
        "init/_blocks.py",
        "special.gammainc(self.d / 2, inner**2 / 2)",
        "special.gammainc(self.d / 2, inner / 2)",
        "model/test_init.py density measures",
    ),
    _mutant(
        "density of a radius",
        "atoms/_starts.py",
        "special.xlogy(block.d - 1, x) - x * x / 2",
        "special.xlogy(block.d, x) - x * x / 2",
        "atoms",
    ),
    # The limit and its stated errors.
    _mutant(
        "order of finite volumes",
        "density/_companions.py",
        "return factor * max(last, before / 2**p) / (2**p - 1)",
        "return 0.1 * factor * max(last, before / 2**p) / (2**p - 1)",
        "density limit",
    ),
    _mutant(
        "minimising movements, transport",
        "movements/_step.py",
        "value = there.energy + energy.transport(x - begin.x) / (2 * tau)",
        "value = there.energy + energy.transport(x - begin.x) / tau",
        "movements",
    ),
    _mutant(
        "minimising movements, slope",
        "movements/_atoms.py",
        "slope + move / (tau * self.field.rates)",
        "slope + 2 * move / (tau * self.field.rates)",
        "movements",
    ),
    # Stated errors and bounds that mutants once survived.
    _mutant(
        "bias of atoms in their error",
        "atoms/_rung.py",
        "bias = share * (own -",
        "bias = 0.0 * share * (own -",
        "limit/test_errors_stated.py",
    ),
    _mutant(
        "corner of a wall in the error",
        "atoms/_rung.py",
        "error += self._corner(z, f)",
        "error += 0.0 * self._corner(z, f)",
        "limit/test_errors_stated.py",
    ),
    _mutant(
        "third rule of Gauss nodes",
        "atoms/_companions.py",
        "error = sum(differences)",
        "error = differences[0]",
        "limit/test_errors_stated.py",
    ),
    _mutant(
        "alignment of movements",
        "movements/_rung.py",
        "_ALIGNED_GAUSS = 0.5",
        "_ALIGNED_GAUSS = 0.1",
        "limit/test_errors_stated.py",
    ),
    _mutant(
        "displacement bound",
        "lazy/_bounds.py",
        "displacement_bound=np.sqrt(fastest",
        "displacement_bound=2 * np.sqrt(fastest",
        "lazy/test_bounds.py",
    ),
    _mutant(
        "error of the search",
        "stationary/_certificate.py",
        "error = share * (4 * difference +",
        "error = share * (0 * difference +",
        "stationary/test_certificate.py",
    ),
    _mutant(
        "rate of w in finite steps",
        "theory/_steps.py",
        "(gap * self._s * self._rate * self._scale) ** 2",
        "(gap * self._s * self._scale) ** 2",
        "theory/test_ladder_steps.py",
    ),
    _mutant(
        "interval of a proposed step",
        "theory/_steps.py",
        "upper = float((slope + 1 / np.sqrt(total)).max())",
        "upper = float(slope.max())",
        "theory/test_ladder_steps.py",
    ),
    _mutant(
        "error of the nodes of the start",
        "perturbations/_start_nodes.py",
        "return rules[-1], error.max(axis=0)",
        "return rules[-1], 0 * error.max(axis=0)",
        "perturbations/test_fluctuations.py",
    ),
    _mutant(
        "norm under weights of either sign",
        "perturbations/_moments.py",
        "(f - field.targets), np.abs(field.weights)",
        "(f - field.targets), field.weights",
        "reductions/test_signs.py",
    ),
    _mutant(
        "verdict at an eigenvalue of 0",
        "perturbations/_stability.py",
        "return None if abs(rate) <= error else rate > 0",
        "return rate > error",
        "reductions/test_signs.py",
    ),
    # Where it ends.
    _mutant(
        "certificate, gap",
        "stationary/_certificate.py",
        "gap = 2 * share * max(mean - depth, 0.0)",
        "gap = share * max(mean - depth, 0.0)",
        "stationary",
    ),
    # The lazy regime.
    _mutant(
        "decay of the residual",
        "lazy/_laziness.py",
        "np.exp(-2 * self.smallest * times) * self.residual**2",
        "np.exp(-self.smallest * times) * self.residual**2",
        "lazy",
    ),
    _mutant(
        "growth of linear modes",
        "lazy/_linearized.py",
        "-np.expm1(-values * t) / values, t)",
        "-np.expm1(-values * t) / values, 0 * t)",
        "lazy",
    ),
    _mutant(
        "derivative of the tangent measure",
        "measures/_tangent.py",
        "along += by[:, row - 1]",
        "along += 0 * by[:, row - 1]",
        "lazy measures",
    ),
    _mutant(
        "kernel of a bias",
        "lazy/_infinite.py",
        "self._std * norms) ** 2 + bias.std**2)",
        "self._std * norms) ** 2)",
        "lazy",
    ),
    _mutant(
        "deterministic equivalent",
        "theory/_regression.py",
        "spread = 1 - float(count @ kept**2) / n",
        "spread = 1 - float(count @ kept) / n",
        "theory lazy",
    ),
    # Theory.
    _mutant(
        "edge of noise",
        "theory/_filtered.py",
        "edge = (1 + math.sqrt(aspect)) ** 2",
        "edge = 1 + math.sqrt(aspect)",
        "theory",
    ),
    _mutant(
        "error of the bound",
        "theory/_budget.py",
        "err = np.sqrt(np.maximum(1 / n, h)) * (np.sqrt(row + np.log(n / h)) + z)",
        "err = np.sqrt(np.maximum(1 / n, h)) * (np.sqrt(row + np.log(n / h)) - z)",
        "theory",
    ),
    _mutant(
        "interval of a mean",
        "theory/_rates.py",
        "factor = special.stdtrit(n - 1, 0.5 + CONFIDENCE / 2) / math.sqrt(n)",
        "factor = special.ndtri(0.5 + CONFIDENCE / 2) / math.sqrt(n)",
        "theory",
    ),
    _mutant(
        "interval of a rate",
        "theory/_rates.py",
        "math.sqrt((n - 1) / n * np.square(less - less.mean()).sum())",
        "math.sqrt(1 / n * np.square(less - less.mean()).sum())",
        "theory",
    ),
    _mutant(
        "correction of a sum of signs",
        "theory/_coefficients.py",
        "change = -np.sqrt(6) / 12",
        "change = np.sqrt(6) / 12",
        "theory",
    ),
    # Measures near a measure.
    _mutant(
        "second variation",
        "perturbations/_paths.py",
        "bend = 4 * (both[0] + both[1] - 2 * middle)",
        "bend = 2 * (both[0] + both[1] - 2 * middle)",
        "perturbations",
    ),
    _mutant(
        "variance of the risk",
        "perturbations/_moments.py",
        "4 * (found.first @ residual) ** 2",
        "2 * (found.first @ residual) ** 2",
        "perturbations",
    ),
    _mutant(
        "classical Runge-Kutta of variations",
        "perturbations/_variations.py",
        "two = self._velocity(state.along(one, 0.5 * h))[0]",
        "two = self._velocity(state.along(one, 0.4 * h))[0]",
        "perturbations",
    ),
    _mutant(
        "quantisation",
        "perturbations/_quantise.py",
        "score = score + 2 * (row - mean)",
        "score = score + (row - mean)",
        "perturbations",
    ),
    # Steps of networks outside of the core.
    _mutant(
        "noise of a split network",
        "neurons/_update.py",
        "np.sqrt(2 * (h if noise_of is None else noise_of) * self.temperature * self._speed)",
        "np.sqrt(2 * h * self.temperature * self._speed)",
        "neurons",
    ),
    _mutant(
        "share of a rank",
        "neurons/_split.py",
        "f *= len(theta) / self.total",
        "f *= 1.0",
        "neurons/test_split.py",
    ),
)
