"""Fourier and Hermite coefficients of f on the coordinates that the target depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG
from ..data import MultiIndex
from ..data._links import degrees_key, fourier_key
from ..data._multi_index import MAX_ENUMERATED
from ..data._parts import HermiteLabel
from ..expectations._exact import hermite_correlation
from ..measures._measure import Cloud, Density, as_measure
from ..measures._place import MeasureLike
from ..measures._replicas import per_replica
from ..model import Model

_BLOCK = 1 << 21  # most numbers of pre-activations held at a time


class _Neurons(NamedTuple):
    """Neurons α·a·σ(b + ⟨s, z⟩ + ⟨w⊥, x⊥⟩) as the coefficients see them."""

    masses: FloatArray  # α·a times the mass of the neuron
    b: FloatArray
    along: FloatArray  # s, shape (N, P)
    norm: FloatArray  # |w⊥|
    across: FloatArray | None  # w⊥, shape (N, d − P); None in reduced coordinates


@overload
def fourier(
    model: Model,
    measure: MeasureLike,
    sets: Sequence[Sequence[int]],
    *,
    samples: int | None = None,
    rng: RNG = None,
    errors: Literal[False] = False,
) -> FloatArray: ...


@overload
def fourier(
    model: Model,
    measure: MeasureLike,
    sets: Sequence[Sequence[int]],
    *,
    samples: int | None = None,
    rng: RNG = None,
    errors: Literal[True],
) -> tuple[FloatArray, FloatArray]: ...


@per_replica
def fourier(
    model: Model,
    measure: MeasureLike,
    sets: Sequence[Sequence[int]],
    *,
    samples: int | None = None,
    rng: RNG = None,
    errors: bool = False,
) -> FloatArray | tuple[FloatArray, FloatArray]:
    """Fourier coefficients f̂(S) = E f(x) Π_{j∈S} x_j of f_ρ on the hypercube, eq. (12.1).

    The mean over the coordinates that the target depends on is a sum over their 2^P values. Over the others
    it is a sum, too, if d ≤ 16. Else ⟨w⊥, x⊥⟩ has the normal law with a correction by its fourth cumulant,
    eq. (12.2), which leaves an error of order 1/d² for weights that are spread over many coordinates; in the
    coordinates of the limit the normal law is exact. As observable of a run:
    ``observe={"f": lambda rho: mf.theory.fourier(model, rho, sets)}``.

    Args:
        model: With inputs on the hypercube and directions that are its first P coordinates, such as
            `mf.data.Staircase`.
        measure: Neurons, or a measure in the reduced coordinates (a, b, s…, r) of the limit d → ∞.
        sets: Tuples S of coordinates counted from 0, each below P; () is the mean of f.
        samples: Take the mean over the other coordinates by so many samples in place of the normal law.
        rng: Of the samples.
        errors: Also return the errors: one standard error of samples; for the normal law the size of the
            correction; 0 where the mean is exact.

    Returns:
        f̂(S) for each set, shape (len(sets),), or the pair of them and their errors.

    Examples:
        f(x) = (x_0 + x_1 + 2x_4)²:

        >>> import mfcore as mf
        >>> law = mf.data.Staircase(5, [(0,), (0, 1)])
        >>> model = mf.Model(law, mf.Network(mf.activations.polynomial([0.0, 0.0, 1.0])))
        >>> mf.theory.fourier(model, [[1.0, 1.0, 0.0, 0.0, 2.0]], [(), (0,), (0, 1)]).round(12) + 0.0
        array([6., 0., 2.])
    """
    law = _law(model, "hypercube")
    if not isinstance(law.directions, int):
        raise ValueError(f"data must have its first coordinates as directions, got {law}")
    P = law.P
    if P > MAX_ENUMERATED:
        raise ValueError(f"data must have at most {MAX_ENUMERATED} directions for Fourier sums, got {P}")
    keys = [fourier_key(key, P, "sets") for key in _entries(sets, "sets", P)]
    neurons = _neurons(model, law, measure)
    cube = _cube(P)
    characters = np.array([cube[list(key)].prod(axis=0) for key in keys]) / cube.shape[1]
    if samples is not None:
        count = check.integer(samples, "samples", at_least=2)
        if neurons.across is None:
            raise ValueError(f"samples must be left out for measures in reduced coordinates, got {count}")
        check.memory(8.0 * count * (2 * law.d + cube.shape[1]), "samples", count)
        rest = law.draw(count, rng)[0][:, P:]
        drawn = _mean_f(model, neurons, cube, rest) @ characters.T
        value, error = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / np.sqrt(count)
    elif neurons.across is not None and law.d <= MAX_ENUMERATED:
        rest = _cube(int(law.d) - P).T
        value = _mean_f(model, neurons, cube, rest).mean(axis=0) @ characters.T
        error = np.zeros(len(keys))
    else:
        f, correction = _normal_f(model, neurons, cube)
        value, error = (f + correction) @ characters.T, np.abs(correction @ characters.T)
    return (value, error) if check.boolean(errors, "errors") else value


@per_replica
def hermite(model: Model, measure: MeasureLike, indices: Sequence[Sequence[int] | int]) -> FloatArray:
    """Hermite coefficients f̂(α) = E f(x) Π_j h_{α_j}(⟨e_j, x⟩) of f_ρ under x ~ N(0, I), eq. (12.3).

    Polynomials are orthonormal, h_k = He_k/√k!, and e_j are the directions of the target. Coefficients are
    exact, for neurons and for measures of the limit, at any d; those of degree 1 and 2 tell when a direction
    has been found. As observable of a run: ``observe={"f": lambda rho: mf.theory.hermite(model, rho,
    indices)}``.

    Args:
        model: With `mf.data.MultiIndex` on Gaussian inputs.
        measure: Neurons, or a measure in the reduced coordinates (a, b, s…, r).
        indices: Tuples of P degrees; numbers if P = 1.

    Returns:
        f̂(α) for each index, shape (len(indices),).

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.MultiIndex(5, [0.0, 1.0], directions=1)
        >>> model = mf.Model(law, mf.Network(mf.activations.hermite([0.0, 1.0, 2.0])))
        >>> mf.theory.hermite(model, [[1.0, 0, 0, 0, 0], [0, 1.0, 0, 0, 0]], [0, 1, 2]).round(12)
        array([0. , 0.5, 1. ])
    """
    law = _law(model, "gaussian")
    P = law.P
    keys = [
        degrees_key((key,) if P == 1 and isinstance(key, int | np.integer) else key, P, "indices")
        for key in _entries(indices, "indices", P)
    ]
    neurons = _neurons(model, law, measure)
    w = np.column_stack([neurons.along, neurons.norm])
    axes = np.eye(P, P + 1)
    means = [
        hermite_correlation(model.network, HermiteLabel(axes, {key: 1.0}), neurons.b, w)[0] for key in keys
    ]
    return np.array(means) @ neurons.masses


def _law(model: Any, inputs: str) -> MultiIndex:
    """The law of a model whose target depends on a few directions of such inputs."""
    check.instance(model, "model", Model, "an mf.Model")
    law = model.data
    if not isinstance(law, MultiIndex) or law.inputs != inputs:
        example = "mf.data.Staircase" if inputs == "hypercube" else "mf.data.MultiIndex"
        raise ValueError(f"data must be a law like {example} with inputs={inputs!r}, got {law}")
    if law.covariance is not None:
        raise ValueError(f"data must have inputs of covariance I for these coefficients, got {law}")
    return law


def _entries(given: Any, name: str, p: int) -> list[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name} must be a list of tuples, got {check.shown(given)}")
    entries = list(given)
    if not entries:
        raise ValueError(f"{name} must have at least one entry, got {check.shown(given)}")
    return [tuple(key.tolist()) if isinstance(key, np.ndarray) and key.ndim else key for key in entries]


def _neurons(model: Model, law: MultiIndex, measure: MeasureLike) -> _Neurons:
    """The parts of neurons that coefficients see, from rows of parameters or reduced coordinates."""
    network, P = model.network, law.P
    outer = network.row(0)
    if isinstance(measure, Density):
        measure = measure.as_cloud()
    found = measure.points if isinstance(measure, Cloud) else check.array(measure, "measure")
    full = found.shape[-1:] == (model.row,)  # of a number it is ()
    radius = law.d > P and not network.sphere
    row = int(model.row) if full and model.row is not None else outer + P + radius
    points, weights = as_measure(measure, "measure", row)
    masses = network.scale * weights * (points[:, 0] if network.has_a else 1.0)
    b = points[:, outer - 1] if network.has_b else np.zeros(len(points))
    if full:
        split = law._split()
        assert split is not None  # of a law without a covariance
        along, across = split.parts(points[:, outer:])
        return _Neurons(masses, b, along, np.linalg.norm(across, axis=1), across)
    along = points[:, outer : outer + P]
    if network.sphere:  # r is implied by |w| = 1
        norm = np.sqrt(np.maximum(1 - (along**2).sum(axis=1), 0.0))
    else:
        norm = np.maximum(points[:, -1], 0.0) if radius else np.zeros(len(points))
    return _Neurons(masses, b, along, norm, None)


def _cube(p: int) -> FloatArray:
    """All points of {−1, 1}^p as columns, shape (p, 2^p)."""
    bits = np.arange(2**p) >> np.arange(p)[::-1, None]
    return np.asarray(2.0 * (bits & 1) - 1.0, dtype=np.float64)


def _mean_f(model: Model, neurons: _Neurons, cube: FloatArray, rest: FloatArray) -> FloatArray:
    """f at each value of the first coordinates beside each row of the others, shape (rows, 2^P)."""
    assert neurons.across is not None
    sigma = model.network.activation
    inside = neurons.along @ cube + neurons.b[:, None]
    out = np.empty((len(rest), inside.shape[1]))
    step = max(1, _BLOCK // inside.size)
    for first in range(0, len(rest), step):
        outside = rest[first : first + step] @ neurons.across.T
        out[first : first + step] = neurons.masses @ sigma(outside[:, :, None] + inside)
    return out


def _normal_f(model: Model, neurons: _Neurons, cube: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of f over the other coordinates by the normal law, and its correction, at each value of the
    first ones: eq. (12.2).
    """
    sigma = model.network.activation._core
    f, correction = np.empty(cube.shape[1]), np.zeros(cube.shape[1])
    for q, z in enumerate(cube.T):
        m = neurons.along @ z + neurons.b
        f[q] = neurons.masses @ _core.smooth(sigma, m, neurons.norm)[0]
        if neurons.across is not None:
            fourth = (neurons.across**4).sum(axis=1)
            there = neurons.norm > 0
            slopes = _core.slope_coefficients(sigma, m[there], neurons.norm[there], 4)[:, 3]
            change = -np.sqrt(6) / 12 * fourth[there] / neurons.norm[there] ** 3 * slopes
            correction[q] = neurons.masses[there] @ change
    return f, correction
