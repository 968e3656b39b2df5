"""From neurons to the coordinates of a reduction: what symmetric problems look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ._check import FloatArray
from .data import AnisotropicGaussians, DataLaw, Linear, MultiIndex
from .network import Network

Projection = Callable[[FloatArray], FloatArray]


def projections(law: DataLaw) -> dict[str, Projection]:
    """Name of a reduced coordinate to a function of weights w, shape (…, d); |w| itself is left out."""
    axes: int | FloatArray
    if isinstance(law, AnisotropicGaussians):
        axes = int(law.s0 or 0) if law.basis is None else law.basis.T
        return {"r1": partial(_within, axes=axes), "r2": partial(_beside, axes=axes)}
    if isinstance(law, MultiIndex):
        axes = law.directions
        count = law.P
    elif isinstance(law, Linear):
        axes = (law.w / np.linalg.norm(law.w))[None]
        count = 1
    else:
        return {}
    along = {f"s{j + 1}": partial(_along, axes=axes, j=j) for j in range(count)}
    return {**along, "r": partial(_beside, axes=axes)}


def reduced_rows(network: Network, law: DataLaw, coordinates: Sequence[str], rows: FloatArray) -> FloatArray:
    """Rows [a, b, w…] of parameters in the coordinates of the model's reduction, shape (N, k)."""
    w = rows[:, network.row(0) :]
    known = projections(law)
    columns = []
    for name in coordinates:
        if name in ("a", "b"):
            column = rows[:, 0 if name == "a" else network.row(0) - 1]
        elif name in known:
            column = known[name](w)
        elif name == "r":
            column = np.linalg.norm(w, axis=1)
        else:  # w1 … wd: the model has no symmetry but is small
            column = w[:, int(name[1:]) - 1]
        columns.append(column)
    return np.stack(columns, axis=1)


def _parts(w: FloatArray, axes: int | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coordinates along the axes (the first ones, or orthonormal rows), and what is left of w."""
    if isinstance(axes, int | np.integer):
        return w[..., :axes], w[..., axes:]
    along = w @ axes.T
    return along, w - along @ axes


def _along(w: FloatArray, axes: int | FloatArray, j: int) -> FloatArray:
    return _parts(w, axes)[0][..., j]


def _within(w: FloatArray, axes: int | FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(_parts(w, axes)[0], axis=-1))


def _beside(w: FloatArray, axes: int | FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(_parts(w, axes)[1], axis=-1))
