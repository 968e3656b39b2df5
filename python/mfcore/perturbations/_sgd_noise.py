"""The fluctuations that the noise of SGD adds for N neurons at a step h = κ/N: eqs. (13.20) to (13.22)."""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from ._ensembles import NeuronField, check_cost, drifted, predictions

_SHIFT = 1e-2  # largest distance that an atom is moved
_LEAST = 1e-12  # share of the noise's variance that is left out
_PANELS = 4  # at least, of the whole time
_BOOLE = np.array([7.0, 32.0, 12.0, 32.0, 7.0]) / 90
_SIMPSON = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12


def added(
    field: NeuronField,
    points: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    steps: int,
    kappa: float,
    batch: int,
) -> FloatArray:
    """Additions to output, variance and 2E[(f − y)b] at each time, (2, 3, times): best, and of lower order.

    The sample drawn at time s moves all atoms along (y − f)∇σ*(x; ·). One run from each time s and for each
    principal direction of that noise tells how f answers later; the integral over s is Boole's rule, and
    Simpson's for comparison.
    """
    found = np.zeros((2, 3, len(times)))
    at, rules = _rules(times)
    theta, now = points[None], 0.0
    for i, s in enumerate(at):
        count = int(np.ceil(steps * (s - now) / times[-1]))
        for _ in range(count):
            theta = drifted(field, theta, masses[None], (s - now) / count)
        now = s
        later = times >= s
        for order, terms in enumerate(_from(field, theta[0], masses, times[later], s, steps, batch)):
            found[order][:, later] += kappa * rules[order, later, i] * terms
        for k in np.flatnonzero(times == s):
            f, bend = _bend(field, theta, masses)
            found[:, 2, k] -= kappa * s * (field.weights * (f - field.targets)) @ bend
    return found


def _rules(times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times s in [0, T], and weights (2, times, s) of the integrals over [0, t] by two rules."""
    ends = np.union1d([0.0], times)
    counts = np.ceil(_PANELS * np.diff(ends) / ends[-1]).astype(int)
    edges = np.concatenate(
        [np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(ends[:-1], ends[1:], counts, strict=True)]
        + [ends[-1:]]
    )
    at = np.append((edges[:-1, None] + np.diff(edges)[:, None] * np.arange(4) / 4).ravel(), edges[-1])
    weights = np.zeros((2, len(times), len(at)))
    for k, t in enumerate(times):
        for p in range(int(np.searchsorted(edges, t))):
            width = edges[p + 1] - edges[p]
            weights[0, k, 4 * p : 4 * p + 5] += width * _BOOLE
            weights[1, k, 4 * p : 4 * p + 5] += width * _SIMPSON
    return at, weights


def _from(
    field: NeuronField,
    theta: FloatArray,
    masses: FloatArray,
    later: FloatArray,
    s: float,
    steps: int,
    batch: int,
) -> list[FloatArray]:
    """Integrands of the three at one s, (3, later times), by differences of two orders."""
    ways = _principal(field, theta, masses)
    check_cost(len(ways) * _PANELS * 4, len(masses), field, steps // 2)
    f = predictions(field, theta, masses[None], later, steps, now=s)[0]
    residual = field.weights * (f - field.targets)
    e = _SHIFT / (1 + np.abs(ways).max(axis=(1, 2)))
    moved = np.concatenate([theta + (k * e)[:, None, None] * ways for k in (1, -1, 2, -2)])
    clouds = np.repeat(masses[None], len(moved), axis=0)
    answers = predictions(field, field.settled(moved), clouds, later, steps, now=s)
    found = []
    for g, b in orders(f, answers, e):
        bias = np.einsum("ktq,tq->kt", b, residual)
        output = np.einsum("ktq,q->t", g[:-1] ** 2, field.weights)
        variance = 4 * np.square(np.einsum("ktq,tq->kt", g[:-1], residual)).sum(axis=0)
        # The last direction is a step straight on, where the flow bends.
        terms = np.stack([output, variance, bias[:-1].sum(axis=0)]) / batch
        terms[2] += bias[-1]
        found.append(terms)
    return found


def _principal(field: NeuronField, theta: FloatArray, masses: FloatArray) -> FloatArray:
    """Directions v_k, (k, m, D), with Σ_k v_k v_kᵀ the covariance of (y − f)∇σ*(x; ·); then the velocity."""
    velocity, f = (part[0] for part in field(theta[None], masses[None]))
    slopes = field.slopes(theta)
    mean = velocity - field.decay(theta)
    root = np.sqrt(field.weights)[:, None, None]
    rows = [root * ((field.targets - f)[:, None, None] * slopes - mean)]
    if field.noise > 0:
        rows.append(np.sqrt(field.noise) * root * slopes)
    scale = np.sqrt(masses)[:, None]
    matrix = (np.concatenate(rows) * scale).reshape(-1, theta.size)
    _, sizes, basis = np.linalg.svd(matrix, full_matrices=False)
    rest = np.cumsum((sizes**2)[::-1])[::-1]  # of this direction and those after it
    kept = rest > _LEAST * rest[0]
    ways = (sizes[kept, None] * basis[kept]).reshape(-1, *theta.shape) / scale
    return np.concatenate([ways, velocity[None]])


def _bend(field: NeuronField, theta: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """f and d²f/dt² at one cloud (1, m, D), by runs a little forwards and back."""
    velocity, f = field(theta, masses[None])
    e = np.array([_SHIFT / (1 + np.abs(velocity).max())])
    near = [field(drifted(field, theta, masses[None], k * e[0]), masses[None])[1] for k in (1, -1, 2, -2)]
    return f[0], orders(f, np.stack(near), e)[0][1][0, 0]


def orders(f: FloatArray, runs: FloatArray, e: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """First and second derivatives of runs moved by e, −e, 2e, −2e from f, one after the other: of fourth
    order, and of second (eq. (13.13)).
    """
    near, back, far, behind = np.split(runs, 4)
    e = e.reshape(-1, *[1] * (near.ndim - 1))
    ones = [(near - back) / (2 * e), (far - behind) / (4 * e)]
    twos = [(near - 2 * f + back) / e**2, (far - 2 * f + behind) / (2 * e) ** 2]
    fine = [one + (one - coarse) / 3 for one, coarse in (ones, twos)]
    return [(fine[0], fine[1]), (ones[0], twos[0])]
