"""How hard a target is to learn: information exponent, leap, and leap over all rotations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from scipy.special import roots_hermitenorm

from .._base import check
from .._base.check import FloatArray
from ..data import MultiIndex
from ..data._links import CheckedLink, fourier_key, hermite_table

Keys = list[tuple[int, ...]]
Terms = dict[tuple[int, ...], float]

_HIGHEST = 30  # degree that is sought in functions
_ENDS = (-14.0, 13.7)  # of integrals against the normal law; z = 0, where a function may jump, is no node
_INTERVALS = 500  # of one of them; a jump takes 40
_MOST_TERMS = 2_000_000  # entries of a tensor of Hermite coefficients
_TOLERANCE = 1e-8  # of the norm, below which a coefficient or a direction counts as absent


def information_exponent(link: Any, *, tolerance: float = _TOLERANCE) -> int:
    """The lowest degree k ≥ 1 with a nonzero Hermite coefficient E φ(G)h_k(G).

    One-pass SGD of a single neuron needs about d^{max(k−1, 1)} steps to find the direction.

    Args:
        link: Coefficients in orthonormal Hermite polynomials (a sequence, or a dict from tuples of degrees),
            a data law on Gaussian inputs, or a vectorised function of one number. Coefficients of a function,
            up to degree 30, are integrals with a stated error.
        tolerance: Of a function: coefficients below this share of its norm count as zero.

    Raises:
        ValueError: If all coefficients of degree ≥ 1 are zero, or if a coefficient of a function is too
            near to zero for the error of its integral.

    Examples:
        >>> import numpy as np
        >>> from mfcore import theory
        >>> theory.information_exponent([1.0, 0.0, 0.5]), theory.information_exponent(lambda z: z**3 - 3 * z)
        (2, 3)
    """
    tolerance = check.number(tolerance, "tolerance", at_least=0)
    if isinstance(link, MultiIndex):
        terms = _hermite_terms(link, tolerance)
    elif callable(link):
        terms = _expanded(link, tolerance)
    elif isinstance(link, Mapping):
        terms = _degrees(link, "link")
    else:
        coefficients = check.array(link, "link", shape=(None,))
        terms = {(k,): float(c) for k, c in enumerate(coefficients)}
    degrees = [sum(key) for key, c in terms.items() if c != 0 and any(key)]
    if not degrees:
        raise ValueError(f"link must depend on its argument, got {check.shown(link)}")
    return min(degrees)


def leap(target: Any, *, tolerance: float = _TOLERANCE) -> int:
    """The leap of a target: the most new coordinates that one of its terms adds, in the best order of them.

    Leap(h) = min_π max_i |S_π(i) ∖ ∪_{j<i}S_π(j)|, where a coordinate that is new counts with its degree. A
    target of leap 1 is a merged staircase; SGD is expected to need d^{max(Leap−1, 1)} steps.

    Args:
        target: Monomials as tuples of coordinates counted from 0, such as ``[(0,), (0, 1)]`` for z₀ + z₀z₁; a
            dict from tuples of Hermite degrees, such as ``{(1, 0): 1.0, (0, 2): 0.5}``, to coefficients; or a
            data law (`mf.data.Staircase`, `mf.data.MultiIndex`).
        tolerance: Of a data law whose link is a function: coefficients below this share of its norm count as
            zero. Others count as they are given.

    Examples:
        >>> from mfcore import theory
        >>> theory.leap([(0,), (0, 1), (0, 1, 2)]), theory.leap([(0,), (0, 1, 2)]), theory.leap({(3,): 1.0})
        (1, 2, 3)
    """
    terms = _terms(target, check.number(tolerance, "tolerance", at_least=0))
    for most in range(1, max(map(sum, terms)) + 1):
        seen = np.zeros(len(terms[0]), dtype=bool)
        left = [np.array(key) for key in terms]
        # A term adds less the more terms come first, so any order that takes all it can is the best.
        while ready := [key for key in left if key[~seen].sum() <= most]:
            left = [key for key in left if key[~seen].sum() > most]
            seen |= np.any(ready, axis=0)
        if not left:
            return most
    raise AssertionError("unreachable: every term adds at most its degree")


def isoleap(target: Any, *, tolerance: float = _TOLERANCE) -> int:
    """Compute the leap of a target in its hardest axes: max over rotations R of Leap(h∘R), Gaussian inputs.

    No search over rotations is needed. With threshold k, let V be the directions found so far and V⁺ those on
    which the part of h of degree at most k across V depends. IsoLeap is the least k with which V grows to all
    directions that h depends on (proof at eq. (12.4)). This is exact but for rounding and `tolerance`.

    Args:
        target: A dict from tuples of Hermite degrees to coefficients, or a data law on Gaussian inputs.
        tolerance: Directions along which the gradient of h, or of its part, is below this share of the
            gradient of h in L² count as absent; and of functions, coefficients as in `leap`.

    Examples:
        >>> from mfcore import theory
        >>> h = {(1, 0): 1.0, (0, 1): 1.0, (1, 1): 1.0}  # z0 + z1 + z0 z1
        >>> theory.leap(h), theory.isoleap(h)
        (1, 2)
    """
    tolerance = check.number(tolerance, "tolerance", at_least=0)
    if isinstance(target, MultiIndex):
        terms = _hermite_terms(target, tolerance)
    else:
        check.instance(
            target, "target", Mapping, "a dict of Hermite degrees or a data law on Gaussian inputs"
        )
        terms = _degrees(target, "target")
    tensor = _tensor(terms)
    whole = _gradients(tensor)
    if not whole.any():
        raise ValueError(f"target must depend on some direction, got {check.shown(target)}")
    least = tolerance * float(np.linalg.norm(whole))
    relevant = _range(whole, least)
    for most in range(1, tensor.ndim * (tensor.shape[0] - 1) + 1):
        found = np.zeros((tensor.ndim, 0))
        while found.shape[1] < relevant.shape[1]:
            axes = np.linalg.qr(np.column_stack([found, np.eye(tensor.ndim)]))[0]
            if found.shape[1]:
                axes[:, : found.shape[1]] = found
            low = _rotated(tensor, axes)
            degrees = np.indices(low.shape)[found.shape[1] :].sum(axis=0)
            low = np.where((degrees >= 1) & (degrees <= most), low, 0.0)
            across = _gradients(low)[found.shape[1] :]
            new = axes[:, found.shape[1] :] @ _range(across, least)
            if new.shape[1] == 0:
                break
            found = np.column_stack([found, new])
        else:
            return most
    raise AssertionError("unreachable: the highest degree reaches everything")


def _terms(target: Any, tolerance: float) -> Keys:
    """Degrees of the terms that depend on something, one tuple of equal length per term."""
    if isinstance(target, MultiIndex):
        if target.inputs == "gaussian":
            keys = [key for key, c in _hermite_terms(target, tolerance).items() if c != 0]
        elif target.inputs == "hypercube" and isinstance(target.link, Mapping):
            keys = _indicators([key for key, c in target.link.items() if c != 0])
        else:
            raise ValueError(f"target must have known coefficients on its inputs, got {target}")
    elif isinstance(target, Mapping):
        keys = [key for key, c in _degrees(target, "target").items() if c != 0]
    elif isinstance(target, Sequence) and not isinstance(target, str):
        keys = _indicators([fourier_key(key, None, "target") for key in target])
    else:
        raise TypeError(f"target must be a list of tuples, a dict or a data law, got {check.shown(target)}")
    keys = [key for key in keys if any(key)]
    if not keys:
        raise ValueError(f"target must have a term with a coordinate, got {check.shown(target)}")
    return keys


def _indicators(sets: Keys) -> Keys:
    """Sets of coordinates as degrees 0 and 1 of those that occur."""
    at = {j: i for i, j in enumerate(sorted(set(itertools.chain(*sets))))}
    return [tuple(int(j in key) for j in at) for key in sets]


def _degrees(given: Mapping[Any, Any], name: str) -> Terms:
    terms: Terms = {}
    for key, value in given.items():
        if not isinstance(key, tuple) or not key:
            raise TypeError(f"{name} must use tuples of degrees such as (1, 0), got {key!r}")
        if terms and len(key) != len(next(iter(terms))):
            raise ValueError(f"{name}: tuples of degrees must have one length, got {key!r}")
        degrees = tuple(check.integer(k, f"{name}: degree of {key!r}", at_least=0) for k in key)
        terms[degrees] = check.number(value, f"{name}[{key!r}]")
    if not terms:
        raise ValueError(f"{name} must have at least one coefficient, got {{}}")
    return terms


def _hermite_terms(law: MultiIndex, tolerance: float) -> Terms:
    """Coefficients of the law's link; of a function, those above the tolerance."""
    if law.covariance is not None:
        raise ValueError(f"the data law must have inputs of covariance I, got {check.shown(law)}")
    if law.inputs == "gaussian" and callable(law.link) and law.directions == 1:
        return _expanded(CheckedLink(law.link), tolerance, columns=True)
    if law.inputs != "gaussian" or law._hermite is None:
        raise ValueError(
            "the data law must have Gaussian inputs and a polynomial link, or one direction, "
            f"got {check.shown(law)}"
        )
    terms = dict(law._hermite)
    if callable(law.link):
        norm = math.sqrt(sum(c * c for c in terms.values()))
        terms = {key: c for key, c in terms.items() if abs(c) > tolerance * norm}
    return terms


def _expanded(link: Callable[[FloatArray], Any], tolerance: float, columns: bool = False) -> Terms:
    """Hermite coefficients of a function of one number (with `columns`: of rows of one) that are above the
    tolerance. The integrals halve intervals until their error is below it, so that φ may jump.
    """

    def values(z: FloatArray) -> FloatArray:
        try:
            found = np.asarray(link(z[:, None] if columns else z), dtype=np.float64)
        except (IndexError, TypeError, ValueError) as error:  # such as of a function of rows
            raise ValueError(
                f"link must be a function of one number, on arrays of them, got {error}"
            ) from error
        if found.shape != z.shape or not np.isfinite(found).all():
            raise ValueError(f"link must map {z.shape} to finite values of that shape, got {found}")
        return found

    def integrand(z: float) -> FloatArray:
        at = np.array([z])
        density = np.exp(-0.5 * at * at) / math.sqrt(2 * math.pi)
        return np.asarray(density * values(at) * hermite_table(at, _HIGHEST)[0])

    nodes, weights = roots_hermitenorm(2 * _HIGHEST)
    norm = math.sqrt(float(weights / weights.sum() @ values(nodes) ** 2))
    wanted = max(tolerance, 1e-13) * norm
    found, error = scipy.integrate.quad_vec(
        integrand, *_ENDS, epsabs=0.1 * wanted, epsrel=0.0, norm="max", limit=_INTERVALS
    )
    terms: Terms = {}
    for k, c in enumerate(found):
        if abs(c) > max(wanted, error):
            terms[(k,)] = float(c)
        elif k and error > wanted and not any(map(sum, terms)):
            raise ValueError(
                f"link must have integrals of error below {wanted:.1e} (tolerance·norm), "
                f"got {c:.1e} ± {error:.1e} for its coefficient of degree {k}"
            )
    return terms


def _tensor(terms: Mapping[tuple[int, ...], float]) -> FloatArray:
    """Coefficients c_α of Σ_α c_α h_α(z), all degrees up to the total one."""
    p, top = len(next(iter(terms))), max(map(sum, terms))
    if (top + 1) ** p > _MOST_TERMS:
        raise ValueError(
            f"target must have (degree + 1)^P <= {_MOST_TERMS}, got degree {top} in P = {p} coordinates"
        )
    tensor = np.zeros([top + 1] * p)
    for key, c in terms.items():
        tensor[key] = c
    return tensor


def _rotated(tensor: FloatArray, axes: FloatArray) -> FloatArray:
    """Coefficients of h(Q z) for orthonormal columns Q, by a Gauss–Hermite rule that is exact for them."""
    p, size = tensor.ndim, tensor.shape[0]
    nodes, weights = roots_hermitenorm(size)
    grid = np.stack(np.meshgrid(*[nodes] * p, indexing="ij"), axis=-1).reshape(-1, p)
    table = hermite_table(grid @ axes.T, size - 1)  # points, coordinate, degree
    values = np.zeros(len(grid))
    for key in np.argwhere(tensor):
        values += tensor[tuple(key)] * np.prod([table[:, j, k] for j, k in enumerate(key)], axis=0)
    found = values.reshape([size] * p)
    project = hermite_table(nodes, size - 1) * (weights / weights.sum())[:, None]
    for _ in range(p):
        found = np.tensordot(found, project, axes=(0, 0))
    return np.asarray(np.where(np.indices(found.shape).sum(axis=0) < size, found, 0.0))


def _gradients(tensor: FloatArray) -> FloatArray:
    """Coefficients of ∂_j h, a row for each j, by ∂_j h_k = √k h_{k−1}; only those that some row has."""
    parts = []
    for j in range(tensor.ndim):
        shape = [1] * tensor.ndim
        shape[j] = -1
        raised = tensor * np.sqrt(np.arange(tensor.shape[j])).reshape(shape)
        parts.append(np.roll(raised, -1, axis=j).ravel())
    rows = np.array(parts)
    return np.asarray(rows[:, rows.any(axis=0)])


def _range(rows: FloatArray, least: float) -> FloatArray:
    """Orthonormal columns that span what gradients span, up to singular values `least`."""
    vectors, values, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(vectors[:, values > least])
