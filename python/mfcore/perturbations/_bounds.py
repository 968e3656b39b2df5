"""`bounds`: theorems as tables: hypotheses, what they promise for a model at hand, and what is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG
from ..expectations._rules import Expectation
from ..measures._cells import reduction_for
from ..measures._distance import kl
from ..measures._energy import free_energy
from ..measures._functions import risk
from ..measures._measure import Cloud, Density, as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..model import Model
from ..reductions._model import ReducedModel
from ..stationary._certificate import certificate
from ..stationary._gibbs import gibbs
from ..stationary._optimum import optimum
from ._approximation import approximation_gap
from ._draws import generator_of
from ._linear import merged
from ._quantise import quantise

_ROUNDING = 1e-10  # of a comparison, relative to 1 + the right side
_ODDS = 4.9  # standard errors: once in a million
_REACH, _STEPS = 50.0, 100_001  # σ and its slopes are searched on [−50, 50]


@dataclass(frozen=True)
class Theorem:
    """A theorem for a model and a measure, as `bounds` lists it: left ≤ right, both as numbers.

    Attributes:
        name: What it is called.
        statement: left ≤ right in symbols.
        hypotheses: What it asks for, and what is known of that here.
        left: The left side, measured; nan where that takes runs.
        right: The right side; nan where a constant of the theorem is not explicit.
        error: Of left − right: standard errors, searches, grids.
        holds: Whether left ≤ right, up to `error`; None where a side is not known.
    """

    name: str
    statement: str
    hypotheses: Mapping[str, str]
    left: float
    right: float
    error: float = 0.0

    @property
    def holds(self) -> bool | None:
        """Whether left ≤ right up to `error` and rounding."""
        if math.isnan(self.left) or math.isnan(self.right):
            return None
        return self.left <= self.right + self.error + _ROUNDING * (1 + abs(self.right))

    def __str__(self) -> str:
        said = {True: "holds", False: "FAILS", None: "not compared"}[self.holds]
        lines = [f"{self.name}: {self.statement}", f"  {self.left:.6g} ≤ {self.right:.6g}: {said}"]
        return "\n".join(lines + [f"  {what}: {known}" for what, known in self.hypotheses.items()])


def bounds(
    model: AnyModel,
    measure: MeasureLike,
    *,
    neurons: int = 64,
    replicas: int = 100,
    expectation: Expectation | None = None,
    rng: RNG = 0,
    threads: int | None = None,
) -> list[Theorem]:
    """Evaluate theorems about a measure: the hypotheses of each, and both sides of its inequality.

    Always: independent neurons, in the mean, and greedy ones, with certainty. Without noise and with a
    reduction: the convexity gap against the least risk. With noise, for a density on equal cells: the two
    bounds of F − F* by relative entropy, and the excess risk of temperature over D/β. Of propagation of
    chaos, whose constants are not explicit, what its hypotheses ask for; `theory.ladder` compares runs.

    Args:
        model: A model, or a `ReducedModel`.
        measure: The measure.
        neurons: N of the networks that are drawn.
        replicas: How many are drawn.
        expectation: As in `mf.risk`.
        rng: Draws them.
        threads: Default `OMP_NUM_THREADS`, else the cores.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> X = np.linspace(-2, 2, 9)[:, None]
        >>> law = mf.data.Dataset(X, np.sin(X[:, 0]))
        >>> model = mf.Model(law, mf.Network(mf.activations.tanh, output="trained"))
        >>> rho = np.random.default_rng(0).normal(size=(20, 2))
        >>> for theorem in theory.bounds(model, rho):
        ...     print(theorem.name, theorem.holds)
        independent neurons True
        greedy neurons True
        convexity True
        propagation of chaos None
    """
    count, draws = check.count(neurons, "neurons"), check.integer(replicas, "replicas", at_least=2)
    target = target_of(model, measure)
    noisy = float(target.temperature) > 0  # refuses forces that change with time
    float(target.ridge)
    generator = generator_of(rng)
    found = [*_neurons(target, measure, count, draws, expectation, generator, threads)]
    if not noisy:
        found += _convexity(model, measure)
    elif isinstance(measure, Density):
        reduced = reduction_for(model, measure)
        assert reduced is not None  # a density is in reduced coordinates
        found += _entropy(reduced, measure)
    if isinstance(target, Model):
        found.append(_chaos(target, measure))
    return found


def _neurons(
    target: AnyModel,
    measure: MeasureLike,
    count: int,
    draws: int,
    expectation: Expectation | None,
    generator: np.random.Generator,
    threads: int | None,
) -> Iterator[Theorem]:
    """E R_N − R = gap/N, and R_N − R ≤ gap/N of greedy neurons."""
    rho = Cloud(*merged(*as_measure(measure, "measure", row_of(target))))
    gap = approximation_gap(target, rho, expectation=expectation, threads=threads)

    def excess(method: str) -> float:
        rows = quantise(target, rho, count, method, expectation=expectation, rng=generator, threads=threads)
        return risk(target, rows, expectation=expectation, threads=threads) - whole

    whole = risk(target, rho, expectation=expectation, threads=threads)
    sample = np.array([excess("iid") for _ in range(draws)])
    asked = {"∫U(θ, θ)dρ finite": f"gap = {gap:.6g}"}
    yield Theorem(
        "independent neurons",
        f"E R_N − R ≤ gap/N, N = {count} (an equality)",
        {**asked, "measured": f"the mean of {draws} draws"},
        float(sample.mean()),
        gap / count,
        _ODDS * float(sample.std(ddof=1)) / math.sqrt(draws),
    )
    yield Theorem("greedy neurons", f"R_N − R ≤ gap/N, N = {count}", asked, excess("greedy"), gap / count)


def _convexity(model: AnyModel, measure: MeasureLike) -> Iterator[Theorem]:
    """R(ρ) − inf R ≤ 2(∫Ψdρ − inf Ψ), and without the 2 for R/2 with decay."""
    try:
        bound = certificate(model, measure)
        best = optimum(model)
    except ValueError:  # no reduction
        return
    yield Theorem(
        "convexity",
        "E(ρ) − inf E ≤ ∫Ψ_λdρ − inf Ψ_λ, E = R/2 + (λ/2)∫|θ|²dρ"
        if model.ridge
        else "R − inf R ≤ 2(∫Ψdρ − inf Ψ)",
        {"loss": "the square", "inf": f"mf.optimum, gap {best.gap:.1e}", "message": bound.message or "none"},
        bound.value - best.value,
        bound.gap,
        bound.error + best.gap + best.error,
    )


def _entropy(reduced: ReducedModel, density: Density) -> Iterator[Theorem]:
    """β⁻¹KL(ρ‖ρ*) ≤ F − F* ≤ β⁻¹KL(ρ‖ρ̂) among laws on the cells, and R(ρ*_β) − inf R over D/β."""
    if any(np.ptp(np.diff(edges)) > 1e-9 * (edges[-1] - edges[0]) for edges in density.edges):
        return
    box = [(float(edges[0]), float(edges[-1])) for edges in density.edges]
    rest = gibbs(reduced, cells=density.mass.shape, extent=box)
    assert isinstance(rest.measure, Density)
    still = Density(density.edges, rest.measure.mass)
    gained = free_energy(reduced, density) - free_energy(reduced, still)
    asked = {"noise": f"β = {1 / reduced.temperature:.6g}", "F*": "least on these cells, mf.gibbs"}
    lower = reduced.temperature * kl(density, still)
    yield Theorem("relative entropy, below", "β⁻¹KL(ρ‖ρ*) ≤ F − F*", asked, lower, gained, 1e-9)
    upper = certificate(reduced, density)
    yield Theorem("relative entropy, above", "F − F* ≤ β⁻¹KL(ρ‖ρ̂)", asked, gained, upper.gap, 1e-9)
    best = optimum(reduced, extent=box if len(box) > 1 else box[0])
    dimension = sum(rate > 0 for rate in reduced.rates) + sum(reduced.volume)
    left = rest.risk - best.risk
    yield Theorem(
        "temperature",
        "R(ρ*_β) − inf R ≤ C·D/β (up to logarithms)",
        {
            "constant": f"not explicit; here left/(D/β) = {left * 1 / (dimension * reduced.temperature):.4g}",
            "D": f"{dimension:g}",
            "inf R": f"mf.optimum on the box, gap {best.gap:.1e}",
        },
        left,
        math.nan,
    )


def _chaos(model: Model, measure: MeasureLike) -> Theorem:
    """The quantities that propagation of chaos bounds, with constants that are not explicit."""
    network, d = model.network, int(model.d)
    points, weights = as_measure(measure, "measure", row_of(model))
    z = np.linspace(-_REACH, _REACH, _STEPS)
    sigma = network.activation
    within = f"on [−{_REACH:g}, {_REACH:g}]"
    a = np.abs(points[:, 0]) if network.has_a else np.ones(len(points))
    norms = np.linalg.norm(points[:, network.row(0) :], axis=1)
    known = {
        "σ bounded": f"sup|σ| = {_largest(sigma(z))} {within}",
        "σ Lipschitz": f"sup|σ'| = {_largest(sigma.derivative(z))} {within}",
        "σ' Lipschitz": (
            "no: kinks" if sigma.kinks
            else f"sup|σ''| = {_largest(sigma.second_derivative(z))} {within}"
        ),
        "output weights bounded": f"sup|a| = {a.max():.4g}, mean {weights @ a:.4g} on the measure",
        "weights": f"sup|w| = {norms.max():.4g} on the measure",
        "inputs sub-Gaussian": _inputs(model, d),
        "constant": "not explicit; theory.ladder measures rates",
    }  # fmt: skip
    left = math.nan
    return Theorem(
        "propagation of chaos", "sup_t|R_N − R| ≤ C e^{CT} err_{N,D}: eq. (10.4)", known, left, math.nan
    )


def _largest(values: FloatArray) -> str:
    return f"{np.abs(values).max():.4g}"


def _inputs(model: Model, d: int) -> str:
    """The largest variance of ⟨u, x⟩ over unit vectors u, in closed form or on nodes."""
    parts = model.data._parts()
    if parts is not None:
        roots = [np.linalg.norm(part.root(np.eye(d)), 2) for part in parts]
        return f"Gaussian parts, ‖Σ‖ ≤ {max(roots) ** 2:.4g}"
    nodes = model.data._node_sampler
    if nodes is None:
        return "not known"
    X, _ = nodes.draw(0, 0, nodes.size)
    return f"finite: sup|x| = {np.linalg.norm(X, axis=1).max():.4g}"
