"""`bounds`: theorems as tables: hypotheses, what they promise for a model at hand, and what is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import nan

import numpy as np

from .._base import check
from .._base.rng import RNG
from ..expectations._rules import Expectation
from ..measures._cells import reduction_for
from ..measures._distance import kl
from ..measures._energy import free_energy
from ..measures._evaluators import evaluator_of
from ..measures._functions import risk
from ..measures._measure import Cloud, Density, as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..model import Model
from ..reductions._model import ReducedModel
from ..stationary._certificate import certificate
from ..stationary._compact import TooDearError
from ..stationary._gibbs import gibbs
from ..stationary._optimum import optimum
from ._approximation import approximation_gap
from ._draws import generator_of
from ._hypotheses import constants
from ._linear import merged
from ._quantise import quantise
from ._run_bounds import chaos, tangent
from ._theorem import Theorem

_ODDS = 4.9  # standard errors: once in a million
_ENTROPY = ("β⁻¹KL(ρ‖ρ*) ≤ F − F*", "F − F* ≤ β⁻¹KL(ρ‖ρ̂)")
_CONVEXITY = ("R − inf R ≤ 2(∫Ψdρ − inf Ψ)", "E(ρ) − inf E ≤ ∫Ψ_λdρ − inf Ψ_λ, E = R/2 + (λ/2)∫|θ|²dρ")


def bounds(
    model: AnyModel,
    measure: MeasureLike,
    *,
    neurons: int = 64,
    replicas: int = 100,
    horizon: float | None = None,
    expectation: Expectation | None = None,
    rng: RNG = 0,
    threads: int | None = None,
) -> list[Theorem]:
    """Evaluate theorems about a measure: the hypotheses of each, and both sides of its inequality.

    Always: independent neurons, in the mean, and greedy ones, with certainty. Without noise and with a
    reduction: the convexity gap against the least risk. With noise, for a density on equal cells: the two
    bounds of F − F* by relative entropy, and the excess risk of temperature over D/β. Of propagation of
    chaos, in its first form and without the dimension, whose constants are not explicit, what its hypotheses
    ask for: constants of σ, of the inputs, of ∇V and ∇U, by closed forms or by a search at the atoms. With a
    horizon, flows of neurons drawn from the measure give its left side, too, and the lemmas of the tangent
    kernel with both sides (those of `lazy_bounds`).

    Args:
        model: A model, or a `ReducedModel`.
        measure: The measure.
        neurons: N of the networks that are drawn.
        replicas: How many are drawn.
        horizon: T of the flows, of at most 20 of these networks. None: no flows, which can take long.
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
        propagation of chaos, dimension-free None
    """
    count, draws = check.count(neurons, "neurons"), check.integer(replicas, "replicas", at_least=2)
    check.memory(32.0 * draws, "replicas", replicas)
    end = None if horizon is None else check.number(horizon, "horizon", above=0)
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
        points, weights = merged(*as_measure(measure, "measure", row_of(target)))
        known = constants(target, points, weights, evaluator_of(target, expectation, threads), generator)
        drawn = [quantise(target, measure, count, rng=generator) for _ in range(min(draws, 20))]
        found += chaos(target, points, weights, known, drawn, end, expectation, threads)
        if end is not None:
            found += tangent(target, drawn[0], end, expectation, threads)
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
    except TooDearError as error:
        yield Theorem("convexity", _CONVEXITY[model.ridge > 0], {"inf": f"not searched: {error}"}, nan, nan)
        return
    except ValueError:  # no reduction
        return
    try:
        best = optimum(model)
    except ValueError as error:  # too dear, or a coordinate rests
        yield Theorem("convexity", _CONVEXITY[model.ridge > 0], {"inf": f"not searched: {error}"}, nan, nan)
        return
    yield Theorem(
        "convexity",
        _CONVEXITY[model.ridge > 0],
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
    try:
        rest = gibbs(reduced, cells=density.mass.shape, extent=box)
    except ValueError as error:  # a coordinate rests
        for name, statement in zip(("below", "above"), _ENTROPY, strict=True):
            asked = {"F*": f"not known: {error}"}
            yield Theorem(f"relative entropy, {name}", statement, asked, nan, nan)
        return
    assert isinstance(rest.measure, Density)
    still = Density(density.edges, rest.measure.mass)
    gained = free_energy(reduced, density) - free_energy(reduced, still)
    asked = {"noise": f"β = {1 / reduced.temperature:.6g}", "F*": "least on these cells, mf.gibbs"}
    lower = reduced.temperature * kl(density, still)
    yield Theorem("relative entropy, below", _ENTROPY[0], asked, lower, gained, 1e-9)
    upper = certificate(reduced, density)
    yield Theorem("relative entropy, above", _ENTROPY[1], asked, gained, upper.gap, 1e-9)
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
        nan,
    )
