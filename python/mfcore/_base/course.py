"""Forces that change with time: a temperature or a ridge as a function of t, in place of a number.

`mf.solve` follows them. Whatever else needs a number refuses them in words as soon as it computes with one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from . import check

if TYPE_CHECKING:
    Force = float | Any  # a number; or, of a model that `mf.solve` alone understands, a Course
else:
    Force = float

M = TypeVar("M", bound=Any)
Rows = tuple[tuple[float, float], ...]


@dataclass(frozen=True, repr=False)
class Course:
    """A force c(t) ≥ 0 that changes with time. It is no number, and says so where one is needed.

    Args:
        name: ``"temperature"`` or ``"ridge"``.
        given: A function of t, or rows (t, value) between which c is linear and beyond which it is constant.
        factor: A number that its values are multiplied with.
    """

    name: str
    given: Callable[[float], float] | Rows
    factor: float = 1.0

    __array_ufunc__ = None  # so that NumPy leaves products to the methods below

    def __call__(self, t: float) -> float:
        """c(t)."""
        given = self.given
        value = given(t) if callable(given) else float(np.interp(t, *np.transpose(given)))
        return self.factor * check.number(value, f"{self.name}(t = {t:g})", at_least=0)

    @property
    def knots(self) -> tuple[float, ...]:
        """The times of rows; none of a function."""
        return () if callable(self.given) else tuple(t for t, _ in self.given)

    def __truediv__(self, other: Any) -> Course:
        if isinstance(other, int | float):
            return dataclasses.replace(self, factor=self.factor / other)
        self._refuse()

    def __repr__(self) -> str:
        shown = check.shown(self.given) if callable(self.given) else repr([list(row) for row in self.given])
        return shown if self.factor == 1 else f"{self.factor:g}·{shown}"

    def _to_config(self) -> Any:
        return self.given if callable(self.given) else [list(row) for row in self.given]

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            f"{self.name} must be a number here, got a function of time, {self!r}, which mf.solve alone "
            "follows; model.at(t) is the model with the numbers of the time t"
        )

    __array__ = __bool__ = __float__ = __int__ = __format__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __abs__ = __neg__ = __pow__ = __rpow__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __rtruediv__ = _refuse


def force(value: Any, name: str) -> Force:
    """Check a temperature or ridge ≥ 0: a number, a function of t, or rows (t, value) of rising t."""
    if isinstance(value, Course):
        return dataclasses.replace(value, name=name)
    if callable(value):
        return Course(name, value)
    if not isinstance(value, list | tuple | np.ndarray) or check.as_numpy(value, name).ndim == 0:
        return check.number(value, name, at_least=0)
    rows: npt.NDArray[np.float64] = check.array(value, name, shape=(None, 2))
    if len(rows) == 0 or (np.diff(rows[:, 0]) <= 0).any() or (rows[:, 1] < 0).any():
        raise ValueError(
            f"{name} must be a number >= 0, a function of t, or rows (t, value >= 0) of rising t, got "
            f"{check.shown(value)}"
        )
    return Course(name, tuple((float(t), float(c)) for t, c in rows))


def at(value: Force, t: float) -> float:
    """The number that a force is at time t."""
    return value(t) if isinstance(value, Course) else value


def changes(model: Any) -> bool:
    """Tell whether a force of the model is a function of t."""
    return isinstance(model.ridge, Course) or isinstance(model.temperature, Course)


def forces_at(model: M, t: float) -> M:
    """The model with the numbers of its forces at time t."""
    found = {}
    for name in ("ridge", "temperature"):
        value = getattr(model, name)
        if isinstance(value, Course):
            found[name] = at(value, t)
            if name == "temperature" and found[name] == 0:  # without noise methods are others
                raise ValueError(f"temperature(t = {t:g}) must be > 0, as a function of t throughout, got 0")
    return dataclasses.replace(model, **found) if found else model


def largest(value: Force, t: float) -> float:
    """The largest of 65 values of a force on [0, t], or the number it is."""
    if not isinstance(value, Course):
        return float(value)
    return max(value(s) for s in np.linspace(0.0, t if math.isfinite(t) else 0.0, 65).tolist())
