"""Moments of fluctuations by variational equations or by differences of runs."""

from __future__ import annotations

import numpy as np

from .._base.check import FloatArray
from ._ensembles import Field, NeuronField, predictions
from ._sgd_noise import orders
from ._variations import variations

_SHIFT = 1e-2  # ε of the perturbed initial laws
_HELD = 1 << 22  # numbers of one pass over sources


def by_variations(
    field: NeuronField,
    points: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    steps: int,
    noise: int | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """f, (times, Q); output, variance and 2E[(f − y)b], best and of lower order, (2, 3, times); and the terms
    of each source, (atoms, 3, times), of which the last is that of all.
    """
    totals, each = np.zeros((2, 3, len(times))), np.zeros((len(points), 3, len(times)))
    f = np.empty((2, len(times), len(field.targets)))
    width = max(1, _HELD // points.size)
    for first in range(0, len(points), width):
        chosen = np.arange(first, min(first + width, len(points)))
        for k in (1, 0):
            answers = variations(field, points, masses, chosen, times, steps, noise=noise, coarse=k == 1)
            for t, found in enumerate(answers):
                residual = field.weights * (found.f - field.targets)
                terms = np.stack([found.first**2 @ field.weights, 4 * (found.first @ residual) ** 2])
                totals[k, :2, t] += terms @ masses[chosen]
                totals[k, 2, t] += found.second @ residual
                f[k, t], each[chosen, :2, t] = found.f, terms.T
    change = totals[0] - totals[1]
    if noise is None:  # steps of order 4: their error is a 15th of the change, and taken away
        totals[0] += change / 15
        totals[1] = totals[0] - change / 15
    each[:, 2] = totals[0, 2]
    return f[0] if noise is not None else f[0] + (f[0] - f[1]) / 15, totals, each


def by_differences(
    field: Field,
    points: FloatArray,
    masses: FloatArray,
    times: FloatArray,
    steps: int,
    noise: int | None,
    f: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The same by differences of two orders in the masses.

    Of nodes with weights of either sign output is the norm with |p_q|, and the third moment what makes of it
    the offset: 2E[(f − y)b] + Σ_q (p_q − |p_q|)(Df_q)².
    """
    totals, each = np.zeros((2, 3, len(times))), np.zeros((len(points), 3, len(times)))
    residual, sizes = field.weights * (f - field.targets), np.abs(field.weights)
    sources = max(1, _HELD // (4 * len(points) * field.numbers))
    unit = np.eye(len(points))
    for first in range(0, len(points), sources):
        chosen = slice(first, first + sources)
        lean = unit[chosen] - masses
        runs = [masses + e * _SHIFT * lean for e in (1, -1, 2, -2)]
        answers = predictions(field, points, np.concatenate(runs), times, steps, noise=noise)
        for k, (g, b) in enumerate(orders(f, answers, np.array([_SHIFT]))):
            terms = np.stack(
                [
                    np.einsum("jtq,q->jt", g**2, sizes),
                    4 * np.einsum("jtq,tq->jt", g, residual) ** 2,
                    np.einsum("jtq,tq->jt", b, residual) + g**2 @ (field.weights - sizes),
                ],
                axis=1,
            )
            totals[k] += np.einsum("j,jct->ct", masses[chosen], terms)
            if k == 0:
                each[chosen] = terms
    return totals, each
