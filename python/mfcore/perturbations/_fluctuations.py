"""`fluctuations`: N neurons beside their limit, to leading order in 1/N (eqs. (13.11) to (13.13)).

What the noise of SGD adds is in `_sgd_noise`. Of Langevin dynamics the law of the start is that of θ(0) with
a Brownian path: each atom has one path, in the limit and in all perturbed runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import activations
from .._base import check
from .._base.check import FloatArray
from .._base.places import places
from .._base.rng import RNG, seed_of
from ..expectations._rules import Expectation, MonteCarlo
from ..init import Paired, Points, Sphere
from ..measures._evaluators import evaluator_of
from ..measures._measure import as_measure
from ..measures._place import AnyModel, MeasureLike, row_of
from ..model import Model
from ..reductions._init import ReducedInit, reduced_init
from ..reductions._model import ReducedModel
from ..reductions._nodes import _plain
from ._draws import drawn
from ._ensembles import (
    FIRST_STEPS,
    FeatureField,
    Field,
    NeuronField,
    check_cost,
    predictions,
    steps_for,
)
from ._linear import merged
from ._moments import by_differences, by_variations
from ._on_nodes import nodes_of
from ._sgd_noise import added
from ._start_nodes import Moments, most_nodes, of_nodes

_SMOOTH = (64, 24, 12)  # Gauss nodes of each coordinate of normal inputs in 1, 2, 3 dimensions
_LINEAR = (16, 16, 12, 8, 5, 4, 3, 3, 2, 2, 2, 2)  # the same for linear networks
_ENOUGH = 1e-6  # change of f, relative to 1 + |f|, when steps are halved, where variations are integrated


@dataclass(frozen=True, eq=False, repr=False)
class Fluctuations:
    """Moments of N independent initial neurons under the flow, as N → ∞, as `fluctuations` returns them.

    Attributes:
        t: Times.
        risk: R of the limit.
        output: lim N E‖f_N − f‖². Where the weights of a `ReducedModel` have either sign, the norm has their
            absolute values.
        variance: lim N Var R_N.
        offset: lim N (E R_N − R) = output + 2E[(f − y)b], where b = lim N (E f_N − f) is the bias of f; with
            weights of either sign these replace their absolute values in `output`.
        error: Errors of the four at each time, the largest: by steps in time or, where they are differences
            of runs, by these; and by the Gauss nodes of ρ₀, the sum of the differences to two rules with
            fewer nodes. It does not know what nodes of the data leave out, or atoms that are given or drawn.
        sampling: Standard errors of the three by the draws of ρ₀ and of Langevin noise, (3, times), the field
            that they make taken as exact; 0 where atoms are Gauss nodes or given.
        atoms: The atoms that stand for ρ₀.
    """

    t: FloatArray
    risk: FloatArray
    output: FloatArray
    variance: FloatArray
    offset: FloatArray
    error: FloatArray
    sampling: FloatArray
    atoms: int

    def __repr__(self) -> str:
        drawn = f", sampling={self.sampling.max():.1e}" if self.sampling.any() else ""
        return (
            f"Fluctuations(t=[0, {self.t[-1]:g}], output={self.output[0]:.4g} … {self.output[-1]:.4g}, "
            f"offset={self.offset[0]:.4g} … {self.offset[-1]:.4g}, atoms={self.atoms}, "
            f"error={self.error.max():.1e}{drawn})"
        )


def fluctuations(
    model: AnyModel,
    horizon: float,
    save_at: int | npt.ArrayLike = 11,
    *,
    start: MeasureLike | None = None,
    sgd: float = 0.0,
    batch: int = 1,
    atoms: int = 256,
    expectation: Expectation | None = None,
    rng: RNG = 0,
) -> Fluctuations:
    """Compute how far N neurons (independent draws of ρ₀) are from their limit, to leading order in 1/N.

    f_N at time t is a function F of the empirical law ρ₀ + ν of the start. With D its derivative in the
    direction δ_θ − ρ₀ of one more neuron at θ, N E‖f_N − f‖² → ∫‖DF‖²dρ₀, N Var R_N → 4∫E[(f − y)DF]²dρ₀,
    and N(E f_N − f) → ½∫D²F dρ₀. For smooth σ the variational equations give D and D²; on the sphere, with
    kinks and for a `ReducedModel` runs of perturbed initial laws do, side by side. At a temperature ρ₀
    is the law of the start with its Brownian path. SGD, whose samples move all neurons at once, adds terms of
    the same order when h·N is held fixed: those of its noise, and those of its finite step.

    Args:
        model: A model, or a `ReducedModel`.
        horizon: T.
        save_at: Times, or how many, evenly from 0 to T.
        start: Atoms that stand for ρ₀. None: Gauss nodes of the model's initial law where `atoms` of them
            give 6 in each random coordinate, fewer than `atoms` where that changes nothing; all its points if
            it is a law of points; else `atoms` draws: the result is then that of the empirical law of these
            draws.
        sgd: κ = h·N of one-pass SGD on independent samples, held fixed as N → ∞; 0: the particles of
            `mf.Particles`. A finite dataset that is passed through in random order, as `mf.SGD` does, has
            none of the terms of the noise, and another bias.
        batch: Samples in a step of SGD.
        atoms: Most atoms. The cost is proportional to their square, and half as much again by the rules
            with fewer nodes: a step with 256 of them in four dimensions and 1700 nodes takes 0.4 s on one
            core. Where neurons part, as near the origin with long horizons, 16 nodes in each of two
            coordinates leave 1 to 10 %, as `error` says, and 32 leave a third of that.
        expectation: For laws without nodes `mf.MonteCarlo(samples, rng)`. None: Gauss nodes of normal inputs,
            in up to 3 dimensions (64, 24² or 12³ of them), 12 for linear networks.
        rng: For draws, and for Brownian paths.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> law = mf.data.Dataset([[1.0], [-1.0]], [1.0, -1.0])
        >>> model = mf.Model(law, mf.Network(mf.activations.linear), mf.init.Gaussian(std=2.0))
        >>> found = theory.fluctuations(model, 1.0, [0.0, 1.0])
        >>> (found.output / np.exp([0.0, -2.0])).round(6).tolist()  # f_N − f = (w̄_N − w̄)x, e^{−t} both
        [4.0, 4.0]
        >>> noisy = theory.fluctuations(model, 1.0, [0.0, 1.0], sgd=2.0)  # both samples are fitted by one w
        >>> round(float(noisy.output[1] / found.output[1]), 6)
        1.0
    """
    row_of(model)  # refuses what is no model, and d = inf
    kappa, batch = check.number(sgd, "sgd", at_least=0), check.count(batch, "batch")
    if kappa > 0:
        _check_sgd(model)
    end = check.number(horizon, "horizon", above=0)
    times = places(save_at, "save_at", end)
    field = _field(model, expectation)
    noise = seed_of(rng) if model.temperature > 0 else None
    most = check.count(atoms, "atoms")
    law = _product(model) if start is None else None
    each = 0 if law is None else most_nodes(law, most)

    def moments(points: FloatArray, masses: FloatArray, random: bool = False) -> Moments:
        return _moments(field, points, masses, times, kappa, batch, noise, random)

    if law is not None and each > 0:
        found, of_rule = of_nodes(law, each, moments)
    else:
        found, of_rule = moments(*_start(model, start, most, rng)), np.zeros(len(times))
    risk, output, variance, offset = found.values
    return Fluctuations(
        t=times,
        risk=risk,
        output=output,
        variance=variance,
        offset=offset,
        error=found.error + of_rule,
        sampling=found.sampling,
        atoms=found.atoms,
    )


def _moments(
    field: Field,
    points: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    kappa: float,
    batch: int,
    noise: int | None,
    random: bool,
) -> Moments:
    """The moments of one set of atoms, drawn if `random`; those without mass, and repeated ones, are left out
    first.
    """
    if noise is None:  # one atom, one path
        points, masses = merged(points, masses)
    points, masses = points[masses > 0], masses[masses > 0] / masses.sum()
    if isinstance(field, NeuronField) and field.smooth:
        precise = () if kappa > 0 else (_ENOUGH, FIRST_STEPS // 2)  # noise of SGD comes by differences
        steps = steps_for(field, points, masses, times, *precise)
        f, totals, each = by_variations(field, points, masses, times, steps, noise)
    else:
        check.memory(16.0 * len(points) ** 2, "atoms", len(points))
        check_cost(len(points), len(points), field, FIRST_STEPS)
        steps = steps_for(field, points, masses, times)
        check_cost(len(points), len(points), field, steps)
        f = predictions(field, points, masses[None], times, steps, noise=noise)[0]
        totals, each = by_differences(field, points, masses, times, steps, noise, f)
    each[:, 2] += each[:, 0]
    if kappa > 0:
        assert isinstance(field, NeuronField)
        totals += added(field, points, masses, times, steps, kappa, batch)
    output, variance, bias = totals[0]
    risk = np.square(f - field.targets) @ field.weights + field.noise
    return Moments(
        values=np.stack([risk, output, variance, output + bias]),
        error=np.abs(totals[0] - totals[1]).max(axis=0),
        sampling=_standard_error(each, masses) if random else np.zeros((3, len(times))),
        atoms=len(points),
    )


def _standard_error(each: FloatArray, masses: FloatArray) -> FloatArray:
    """Return the standard errors of means over drawn atoms, from the terms (atoms, 3, times) of each."""
    mean = np.einsum("j,jct->ct", masses, each)
    return np.asarray(np.sqrt(np.einsum("j,jct->ct", masses**2, (each - mean) ** 2)))


def _check_sgd(model: AnyModel) -> None:
    """Refuse models of which the noise of SGD is not known."""
    if isinstance(model, ReducedModel):
        raise ValueError(
            f"model must be an mf.Model for sgd > 0, got {model!r}: of one sample reduced coordinates know "
            "an average alone"
        )
    if model.temperature > 0:
        raise ValueError(f"model must have temperature 0 for sgd > 0, got {model.temperature:g}")


def _field(model: AnyModel, expectation: Expectation | None) -> Field:
    if isinstance(model, ReducedModel):
        evaluator_of(model, expectation, None)  # refuses an expectation
        return FeatureField(model)
    nodes = nodes_of(model, expectation)
    if nodes is not None:
        sampled = isinstance(expectation, MonteCarlo)  # labels with their noise
        return NeuronField(model, *nodes, noise=0.0 if sampled else None)
    # A linear network depends on second moments only.
    most = _LINEAR if model.network.activation == activations.linear else _SMOOTH
    if model.data._parts() is None or model.d > len(most):
        raise ValueError(
            "expectation must be mf.MonteCarlo(samples, rng) for fluctuations on a law without nodes in more "
            f"than {len(most)} dimensions, got {expectation!r} with {model.data!r}"
        )
    if model.network.activation.kinks:
        raise ValueError(
            f"activation must be smooth for fluctuations on {model.data!r}, got "
            f"{model.network.activation!r}: sums over nodes do not see what its kinks do. Give "
            "model.reduce() where it exists, whose features are averages; else an mf.data.Dataset of inputs, "
            "or a smooth activation, such as mf.activations.softplus"
        )
    grid = _plain(model, most[int(model.d) - 1], False)
    return NeuronField(model, grid.rows, grid.targets, grid.weights, grid.noise)


def _start(
    model: AnyModel, start: MeasureLike | None, most: int, rng: RNG
) -> tuple[FloatArray, FloatArray, bool]:
    """Atoms and masses that stand for ρ₀, given or drawn; and whether anything was drawn."""
    noisy = model.temperature > 0
    if isinstance(model, Model) and noisy and model.network.sphere:
        raise ValueError(
            f"model must have temperature 0 for fluctuations on the sphere, got {model.temperature:g}"
        )
    if start is not None:
        return *as_measure(start, "start", row_of(model)), noisy
    law: Any = model.initial if isinstance(model, ReducedModel) else model.init
    if isinstance(law, Paired):
        raise ValueError(f"init must draw independent neurons for fluctuations, got {law!r}")
    if isinstance(law, Points) and not noisy:
        return *as_measure(law.theta, "init", row_of(model)), False
    return drawn(model, most, rng, "start"), np.full(most, 1 / most), True


def _product(model: AnyModel) -> ReducedInit | None:
    """ρ₀ as a product of independent blocks, which has Gauss nodes; None if it is none, or draws paths."""
    if model.temperature > 0:
        return None
    if isinstance(model, ReducedModel):
        return model.initial if isinstance(model.initial, ReducedInit) else None
    if model.init is None or isinstance(model.init, Paired | Points):
        return None
    if isinstance(model.init.parts(model.network).w, Sphere):
        return None
    return reduced_init(model, [f"w{j + 1}" for j in range(int(model.d))], (), ())
