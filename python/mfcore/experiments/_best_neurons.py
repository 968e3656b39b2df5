"""The best N neurons of a model with decay beside the best measure: min over N neurons, inf over measures."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import optimize, stats

from .. import activations, data
from .._base.check import FloatArray
from ..measures._energy import free_energy
from ..measures._measure import Cloud
from ..model import Model
from ..network import Network
from ..perturbations._approximation import approximation_gap
from ..stationary._optimum import Optimum, optimum
from ._row import Row
from ._source import computed, exact

X = np.linspace(-2.0, 2.0, 24)
RIDGE = 1e-3
MODEL = Model(
    data.Dataset(X[:, None], np.sin(3 * X)), Network(activations.tanh, output="trained"), ridge=RIDGE
)
_FEW = 16  # neurons up to which the search begins at random neurons, too
_ROUNDINGS = 12  # of N times the masses of the best measure, the nearest ones
_SINCE = 8  # the envelope is fitted from here on


def energy(points: FloatArray, masses: FloatArray) -> tuple[float, FloatArray]:
    """E = R/2 + (λ/2)∫|θ|²dρ of atoms (a, w), and its slopes over the masses."""
    a, w = points.T
    value = np.tanh(np.outer(w, X))
    gap = (masses * a) @ value - np.sin(3 * X)
    found = 0.5 * np.mean(gap**2) + 0.5 * RIDGE * float(masses @ np.square(points).sum(axis=1))
    slopes = [value @ gap / len(X), a * ((1 - value**2) @ (gap * X)) / len(X)]
    return float(found), np.stack(slopes, axis=1) + RIDGE * points


def descended(points: FloatArray, masses: FloatArray) -> tuple[float, FloatArray]:
    """The least E found from these atoms on with these masses, by a quasi-Newton method, and where."""
    k = len(points)

    def scaled(z: FloatArray) -> tuple[float, FloatArray]:
        found, slopes = energy(z.reshape(k, 2), masses)
        return k * found, (k * masses[:, None] * slopes).ravel()

    options: Any = {"maxiter": 3000, "ftol": 1e-17, "gtol": 1e-12, "maxcor": 20}
    found = optimize.minimize(scaled, points.ravel(), jac=True, method="L-BFGS-B", options=options)
    at = found.x.reshape(k, 2)
    return energy(at, masses)[0], at


def least(best: Optimum, count: int, draws: int, seed: int) -> tuple[float, FloatArray, FloatArray]:
    """E of the best N equal neurons found, its atoms and their masses k/N.

    Equal neurons stay equal as they descend, so that groups of them are atoms. The search begins at the atoms
    of the best measure with masses rounded to multiples of 1/N in several ways, and for few neurons also at
    independent ones.
    """
    points, masses = best.measure.points, best.measure.weights
    low = np.floor(count * masses + 1e-9)
    ways = [low + np.array(up) for up in itertools.product((0, 1), repeat=len(masses))]
    ways = [way for way in ways if way.sum() == count]
    ways.sort(key=lambda way: float(np.square(way / count - masses).sum()))
    starts = [(points[way > 0], way[way > 0] / count) for way in ways[:_ROUNDINGS]]
    if count <= _FEW:
        for k in range(draws):
            rows = 2.5 * np.random.default_rng([seed, count, k]).normal(size=(count, 2))
            starts.append((rows, np.full(count, 1 / count)))
    found = [(*descended(rows, shares), shares) for rows, shares in starts]
    return min(found, key=lambda one: one[0])


def excesses(neurons: FloatArray, draws: int, seed: int) -> tuple[FloatArray, float, list[Row]]:
    """min E_N − inf E for each N; the gap of the best measure, whose half over N bounds it; rows."""
    best = optimum(MODEL, tolerance=1e-13)
    gap = approximation_gap(MODEL, best.measure)
    found = [least(best, int(n), draws, seed) for n in neurons]
    excess = np.array([value for value, _, _ in found]) - best.value
    value, points, shares = found[len(found) // 2]
    other = free_energy(MODEL, Cloud(points, shares))
    below = float(np.maximum(-excess, 0.0).max())
    over = float(np.maximum(excess - 0.5 * gap / neurons, 0.0).max())
    slope, half = envelope(neurons, excess)
    rows = [
        Row("inf E over measures above inf E over N neurons, any N", below, 0.0, 1e-12, exact("never")),
        Row("min E_N above inf E + gap/(2N), any N", over, 0.0, 1e-13, exact("never")),
        Row("E of the N in the middle, mf.free_energy", value, other, 1e-13, computed(free_energy)),
        Row(
            "slope of the largest min E_N − inf E in each octave of N", slope, -2.0, 0.0,
            exact("−2, masses are multiples of 1/N"), half, half / 1.96,
        ),
    ]  # fmt: skip
    return excess, gap, rows


def envelope(neurons: FloatArray, excess: FloatArray) -> tuple[float, float]:
    """The slope of the largest excess in each octave in log N, and half of its 95 % interval.

    The last number of neurons begins an octave that is not there, and is left out.
    """
    neurons, excess = neurons[:-1], excess[:-1]
    octaves = np.floor(np.log2(neurons))
    kept = [np.flatnonzero(octaves == k) for k in np.unique(octaves[neurons >= _SINCE])]
    top = np.array([ns[np.argmax(excess[ns] * neurons[ns] ** 2)] for ns in kept])
    line = stats.linregress(np.log(neurons[top]), np.log(excess[top]))
    return float(line.slope), float(stats.t.ppf(0.975, len(top) - 2) * line.stderr)
