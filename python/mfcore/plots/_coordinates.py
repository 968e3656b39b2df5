"""Coordinates of measures by name: columns of neurons, and the coordinates of reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from .._base import check
from .._base.check import FloatArray
from ..measures._measure import Cloud, Density
from ..measures._tangent import LinearMeasure, Tangent
from ..model import Model
from ..reductions._model import ReducedModel
from ..reductions._pairs import served
from ..reductions._project import projections
from ..runs._trajectory import Measure

Column = Callable[[FloatArray], FloatArray]


# quadrature nodes per averaged variable: fields are right to about 1e-3, less than a line's width
_NODES = 12


def reduced_of(model: Model | ReducedModel) -> ReducedModel:
    """The reduced model of a run, with few nodes: exact enough for a picture."""
    return model if isinstance(model, ReducedModel) else model.reduce(nodes=_NODES)


def names_of(model: Model | ReducedModel | None, measure: Measure) -> tuple[str, ...]:
    """The coordinates of a reduced measure: those of its model, or z, or z1, z2 and so on without one."""
    if isinstance(model, Model) and served(model):  # many directions have too many nodes
        return model.reduce().coordinates
    if model is not None:
        return tuple(reduced_of(model).coordinates)
    if not isinstance(measure, Cloud | Density):
        raise TypeError("model must be an mf.Model for neurons, got None")
    count = measure.points.shape[1] if isinstance(measure, Cloud) else len(measure.edges)
    return ("z",) if count == 1 else tuple(f"z{c + 1}" for c in range(count))


def columns(model: Model | ReducedModel | None, measure: Measure) -> dict[str, Column]:
    """Functions from rows of such a measure to its named coordinates: |w| (``"norm"``), a, b, reduced
    coordinates.
    """
    found: dict[str, Column] = {}
    if not isinstance(measure, np.ndarray):
        names = names_of(model, measure)
        for c, name in enumerate(names):
            found[name] = partial(_column, at=c)
        if isinstance(model, Model):
            found["norm"] = partial(_norm, at=[c for c, name in enumerate(names) if name not in ("a", "b")])
        return found
    if not isinstance(model, Model):
        raise TypeError(f"model must be an mf.Model for neurons, got {model!r}")
    first, d = model.network.row(0), model.data.d
    if math.isfinite(d) and (measure.ndim < 2 or measure.shape[-1] != first + d):
        raise ValueError(f"measure must have rows of {first + d} parameters, got the shape {measure.shape}")
    d = measure.shape[-1] - first
    blocks = model.network.blocks(d)
    for name in ("a", "b"):
        if name in blocks:
            found[name] = partial(_column, at=blocks[name].start)
    for name, of in projections(model.data).items():
        found[name] = partial(_projection, first=first, of=of)
    found["norm"] = partial(_norm, at=blocks["w"])
    found.setdefault("r", found["norm"])
    for j in range(min(d, 3)):  # a network with so few parameters is its own reduction
        found[f"w{j + 1}"] = partial(_column, at=first + j)
    return found


def values(model: Model | ReducedModel | None, measure: Measure, name: str) -> tuple[FloatArray, FloatArray]:
    """Values and masses of one coordinate of all atoms, neurons (of all replicas) or cells."""
    if isinstance(measure, Tangent):
        measure = measure.theta
    if isinstance(measure, LinearMeasure):
        raise ValueError(f"measure must consist of neurons, atoms or cells, got {measure!r}")
    known = columns(model, measure)
    if not isinstance(name, str) or name not in known:
        hint = check.did_you_mean(name, known) or f"; it has {', '.join(known)}"
        raise ValueError(f"coordinate must be one of the model's, got {check.shown(name)}{hint}")
    if isinstance(measure, np.ndarray):
        x = np.ravel(known[name](measure))
        return x, np.full(len(x), 1.0 / len(x))
    cloud = measure if isinstance(measure, Cloud) else measure.as_cloud()
    _check_count(names_of(model, cloud), cloud.points.shape[1])
    return np.asarray(known[name](cloud.points)), cloud.weights


def marginal(
    model: Model | ReducedModel | None, measure: Density, name: str
) -> tuple[FloatArray, FloatArray] | None:
    """Edges and masses of a density along one axis of its grid; None if `name` is not an axis."""
    names = names_of(model, measure)
    _check_count(names, len(measure.edges))
    if name == "norm" and len(names) == 1:
        name = names[0]
    if name not in names:
        return None
    c = names.index(name)
    return measure.edges[c], measure.mass.sum(axis=tuple(k for k in range(len(names)) if k != c))


def _check_count(names: Sequence[str], given: int) -> None:
    """Refuse a measure that has other coordinates than the model."""
    if given != len(names):
        raise ValueError(f"measure must be in the model's coordinates ({', '.join(names)}), got {given}")


def symbol(name: str) -> str:
    """The label of an axis for a coordinate: r1 becomes r₁."""
    if name == "norm":
        return "$|w|$"
    stem = name.rstrip("0123456789")
    return f"${stem}_{{{name[len(stem) :]}}}$" if stem and stem != name else f"${name}$" if stem else name


def _column(rows: FloatArray, at: int) -> FloatArray:
    return np.asarray(rows[..., at])


def _norm(rows: FloatArray, at: slice | list[int]) -> FloatArray:
    return np.asarray(np.linalg.norm(rows[..., at], axis=-1))


def _projection(rows: FloatArray, first: int, of: Column) -> FloatArray:
    return of(rows[..., first:])
