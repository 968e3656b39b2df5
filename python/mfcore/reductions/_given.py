"""Check what a user gives for a `ReducedModel`: functions of points, names, numbers per coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray

if TYPE_CHECKING:
    from ._model import ReducedModel


class Batched:
    """A user's function of points, with the shapes of argument and result checked."""

    function: Any

    def __init__(self, function: Any, name: str, k: int, result: tuple[int, ...]) -> None:
        if isinstance(function, Batched):  # dataclasses.replace hands the wrapped one back
            function = function.function
        if not callable(function) and not (function is None and name == "gradients"):
            raise TypeError(f"{name} must be a callable of points z, shape (n, {k}), got {function!r}")
        self.function, self.name, self.k, self.result = function, name, k, result

    def __call__(self, z: npt.ArrayLike) -> FloatArray:
        if self.function is None:
            raise ValueError("gradients must be given to differentiate a ReducedModel, got None")
        points = check.array(z, "z", empty=True)
        if points.ndim == 1 and self.k == 1:
            points = points[:, None]
        points = check.array(points, "z", shape=(None, self.k), empty=True)
        values = np.asarray(self.function(points), dtype=np.float64)
        if values.shape != (len(points), *self.result):
            raise ValueError(
                f"{self.name} must map shape {points.shape} to {(len(points), *self.result)}, "
                f"got {values.shape}"
            )
        return values


def names_of(given: Sequence[str]) -> tuple[str, ...]:
    """Different names of the coordinates."""
    names = tuple(given) if isinstance(given, Sequence) else ()
    if isinstance(given, str) or not names or not all(isinstance(c, str) for c in names):
        raise TypeError(f"coordinates must be a sequence of names, got {given!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"coordinates must have different names, got {given!r}")
    return names


def _entries(given: Any, name: str, k: int) -> list[Any]:
    """One entry per coordinate, or none at all."""
    if given is None:
        return []
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise TypeError(f"{name} must be a sequence with one entry per coordinate, got {check.shown(given)}")
    if len(given) not in (0, k):
        raise ValueError(f"{name} must have one entry per coordinate ({k}), got {given!r}")
    return list(given)


def numbers(given: Any, name: str, k: int, default: float) -> tuple[float, ...]:
    """A finite number per coordinate."""
    return tuple(check.number(x, name) for x in _entries(given, name, k)) or (default,) * k


def flags(given: Any, name: str, k: int) -> tuple[bool, ...]:
    """True or False per coordinate."""
    return tuple(check.boolean(x, name) for x in _entries(given, name, k)) or (False,) * k


def frozen(array: FloatArray) -> FloatArray:
    """A copy that refuses to be written."""
    array = array.copy()
    array.flags.writeable = False
    return array


def require_flat(reduced: ReducedModel, what: str) -> None:
    """Refuse a curved space for `what`, which takes gradients for derivatives of Φ.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore.reductions._given import require_flat
        >>> z = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: z, curved=True
        ... )
        >>> require_flat(z, "mf.PDE")
        Traceback (most recent call last):
        ValueError: model must have flat coordinates for mf.PDE, got (z) on a curved space; mf.Atoms runs
    """
    if reduced.curved:
        raise ValueError(
            f"model must have flat coordinates for {what}, got ({', '.join(reduced.coordinates)}) on a "
            "curved space; mf.Atoms runs"
        )


def convex(reduced: ReducedModel) -> bool:
    """Tell whether R is a convex function of ρ: all weights are positive.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore.reductions._given import convex
        >>> convex(mf.ReducedModel(coordinates=["z"], weights=[1.0], targets=[0.0], features=lambda z: z))
        True
    """
    return bool(reduced.weights.min() > 0)


def require_convex(reduced: ReducedModel, what: str) -> None:
    """Refuse for `what` a risk that is not convex in ρ, and a curved space.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore.reductions._given import require_convex
        >>> z = mf.ReducedModel(coordinates=["z"], weights=[-1.0], targets=[0.0], features=lambda z: z)
        >>> require_convex(z, "mf.gibbs")
        Traceback (most recent call last):
        ValueError: weights must be > 0 for mf.gibbs, which rests on a convex risk, got -1; mf.Atoms runs
    """
    require_flat(reduced, what)
    least = float(reduced.weights.min())
    if least < 0:
        raise ValueError(
            f"weights must be > 0 for {what}, which rests on a convex risk, got {least:g}; mf.Atoms runs"
        )
