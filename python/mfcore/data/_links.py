"""Links y = φ(z), z = Πx in R^P: callables, Hermite polynomials and Fourier monomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm

from .. import _core
from .._base import check
from .._base.check import FloatArray

Terms = dict[tuple[int, ...], float]
LinkFunction = Callable[[FloatArray], FloatArray]

MAX_DEGREE = 30  # highest degree of polynomials that are recognised in callables
MAX_COORDINATES = 3


class CheckedLink:
    """A user's link that must return one finite number per row."""

    def __init__(self, link: LinkFunction) -> None:
        self.link = link

    def __call__(self, z: FloatArray) -> FloatArray:
        values = np.asarray(self.link(z), dtype=np.float64)
        if values.shape == (len(z), 1) == z.shape:  # a function of numbers, such as np.tanh
            values = values[:, 0]
        if values.shape != z.shape[:1]:
            raise ValueError(f"link must map shape {z.shape} to ({len(z)},), got {values.shape}")
        finite = np.isfinite(values)
        if not finite.all():
            at = int(np.argmin(finite))
            raise ValueError(f"link must return finite values, got {values[at]} at z = {z[at].tolist()}")
        return values


def canonical(link: Any, p: int, inputs: str) -> LinkFunction | Terms:
    """Check a link against P and the kind of inputs: a callable stays, coefficients become a dict of
    tuples.
    """
    if callable(link):
        check.memory(32.0 * p, "directions", p)
        CheckedLink(link)(np.linspace(0.25, 0.75, 2 * p).reshape(2, p))
        return link  # type: ignore[no-any-return]
    if isinstance(link, Mapping):
        if not link:
            raise ValueError("link must have at least one coefficient, got {}")
        key_of = fourier_key if inputs == "hypercube" else degrees_key
        terms: Terms = {}
        for key, value in link.items():
            clean = key_of(key, p, "link")
            if clean in terms:
                raise ValueError(f"link must name every term once, got {clean} twice")
            terms[clean] = check.number(value, f"link[{key!r}]")
        check.squares(np.array(list(terms.values())), "link")
        return terms
    if isinstance(link, Sequence | np.ndarray) and not isinstance(link, str):
        if inputs == "hypercube":
            raise ValueError("link must be a callable or a dict for inputs='hypercube', got a sequence")
        if p != 1:
            raise ValueError(f"link must be a callable or a dict for P > 1, got a sequence with P = {p}")
        coefficients = check.array(link, "link", shape=(None,))
        check.squares(coefficients, "link")
        return {(k,): float(c) for k, c in enumerate(coefficients)}
    raise TypeError(f"link must be a callable, a dict or a sequence of coefficients, got {link!r}")


def fourier_key(key: Any, p: int | None, name: str) -> tuple[int, ...]:
    """A monomial as an ascending tuple of distinct coordinates, each in [0, p) if p is given."""
    if not isinstance(key, tuple | list):
        raise TypeError(f"{name} must use tuples of coordinates such as (0, 1), got {key!r}")
    coordinates = tuple(sorted(check.integer(j, f"{name}: coordinate of {key!r}") for j in key))
    if len(set(coordinates)) < len(coordinates):
        raise ValueError(f"{name}: a monomial must not repeat a coordinate, got {key!r}")
    if coordinates and coordinates[0] < 0:
        raise ValueError(f"{name}: coordinates must be >= 0, got {key!r}")
    if p is not None and coordinates and coordinates[-1] >= p:
        raise ValueError(f"{name}: coordinates must be < P = {p}, got {key!r}")
    return coordinates


def degrees_key(key: Any, p: int, name: str) -> tuple[int, ...]:
    """A tuple of p degrees, each at least 0."""
    if not isinstance(key, tuple):
        raise TypeError(f"{name} must use tuples of degrees such as (1, 0), got {key!r}")
    if len(key) != p:
        raise ValueError(f"{name}: degrees must have length P = {p}, got {key!r}")
    return tuple(check.integer(k, f"{name}: degree of {key!r}", at_least=0) for k in key)


def compile_link(link: LinkFunction | Terms, p: int, inputs: str) -> _core.Link:
    """The link φ for the samplers of the core."""
    if callable(link):
        return _core.python_link(p, CheckedLink(link))
    if inputs == "hypercube":
        terms = [(c, [(j, 1) for j in key]) for key, c in link.items()]
    else:
        terms = [(c, [(j, k) for j, k in enumerate(key) if k > 0]) for key, c in link.items()]
    return _core.hermite_link(p, terms)


def hermite_table(z: FloatArray, degree: int) -> FloatArray:
    """h_0(z) … h_degree(z), orthonormal h_k = He_k/√k!, along a new last axis."""
    table = np.empty((*z.shape, degree + 1))
    table[..., 0] = 1.0
    if degree >= 1:
        table[..., 1] = z
    for k in range(1, degree):
        table[..., k + 1] = (z * table[..., k] - math.sqrt(k) * table[..., k - 1]) / math.sqrt(k + 1)
    return table


def hermite_coefficients(link: LinkFunction, p: int) -> Terms | None:
    """Hermite coefficients of φ if it is a polynomial of degree <= 30 in at most three variables, else None.

    The coefficients E φ(G) h_α(G) come from a Gauss–Hermite rule that is exact for such polynomials; φ counts
    as one if on the nodes of another rule the expansion misses it by at most 1e-12 of its L² norm. Some other
    functions pass, such as sin(z): for expectations of this accuracy they are polynomials.
    """
    if p > MAX_COORDINATES:
        return None
    # n nodes are exact up to degree 2n − 1 >= 60; the second rule has other nodes, so that a function cannot
    # pass by agreeing with a polynomial on those of the first.
    values, table, weights = _on_grid(link, p, MAX_DEGREE + 10)
    if values is None:
        return None
    coefficients = values
    for _ in range(p):
        coefficients = np.tensordot(coefficients, table * weights[:, None], axes=(0, 0))
    degrees = np.indices(coefficients.shape).sum(axis=0)
    norm = math.sqrt(float((coefficients**2).sum()))
    coefficients[(degrees > MAX_DEGREE) | (np.abs(coefficients) <= 1e-14 * norm)] = 0.0

    values, table, weights = _on_grid(link, p, MAX_DEGREE + 11)
    if values is None:
        return None
    fitted = coefficients
    for _ in range(p):
        fitted = np.tensordot(fitted, table, axes=(0, 1))
    if _mean((values - fitted) ** 2, weights) > 1e-24 * _mean(values**2, weights):
        return None
    return {tuple(map(int, at)): float(coefficients[tuple(at)]) for at in np.argwhere(coefficients)}


def _mean(values: FloatArray, weights: FloatArray) -> float:
    for _ in range(values.ndim):
        values = np.tensordot(values, weights, axes=(0, 0))
    return float(values)


def _on_grid(link: LinkFunction, p: int, n: int) -> tuple[FloatArray | None, FloatArray, FloatArray]:
    """φ on the tensor grid of the n-point Gauss–Hermite rule (None if not finite there), h_k and weights."""
    nodes, weights = roots_hermitenorm(n)
    grid = np.stack(np.meshgrid(*[nodes] * p, indexing="ij"), axis=-1).reshape(-1, p)
    with np.errstate(all="ignore"):
        values = np.asarray(link(grid), dtype=np.float64).reshape([n] * p)
        finite = bool(np.isfinite(values).all() and np.isfinite(values**2).all())
    table = hermite_table(nodes, MAX_DEGREE)
    return (values if finite else None), table, weights / math.sqrt(2 * math.pi)
