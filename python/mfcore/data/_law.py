"""`DataLaw`, the base class of all data laws: drawing, comparing, showing, configuration."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG, seed_of
from ..network import Network
from ._parts import GaussianPart, Label, SphereLabel
from ._symmetry import Split, Symmetry

MOST_NOISE = 1e150  # standard deviations up to this have squares, and sums of squares, that are finite


class DataLaw(ABC):
    """A law P(x, y) of inputs x in R^d and labels y in R. Base class of all laws; not made by itself.

    Two laws are equal when they are of one class with equal arguments.
    """

    d: float

    def draw(
        self,
        n: int,
        rng: RNG = None,
        *,
        first: int = 0,
    ) -> tuple[FloatArray, FloatArray]:
        """Draw samples number `first` … `first + n − 1` of the stream that `rng` starts.

        Sample k is the same whatever else is drawn, so a batch may be cut anywhere.

        Args:
            n: Number of samples.
            rng: None (fresh entropy), an int, a SeedSequence or a Generator.
            first: Number of the first sample.

        Returns:
            X of shape (n, d) and y of shape (n,).

        Raises:
            ValueError: An argument is out of range, or d is infinite.

        Examples:
            >>> import mfcore as mf
            >>> law = mf.data.IsotropicGaussians(d=3, delta=0.5)
            >>> X, y = law.draw(5, rng=0)
            >>> X.shape, y.shape
            ((5, 3), (5,))
            >>> tail, _ = law.draw(2, rng=0, first=3)
            >>> bool((tail == X[3:]).all())
            True
        """
        n = check.count(n, "n")
        first = check.integer(first, "first", at_least=0, at_most=2**63 - 1 - n)
        d = self._finite_dimension()
        check.memory(8.0 * n * (d + 1), *(("n", n) if n > 1 else ("d", d)))
        sampler = self._iid_sampler
        X, y = sampler.draw(seed_of(rng), first, n)
        return X, y

    def target_power(self) -> float | None:
        """E y², noise included, where it is known in closed form; otherwise None.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.MultiIndex(5, [0.0, 2.0, 1.0], directions=1, noise=0.5).target_power()
            5.25
        """
        return None

    def noise_power(self) -> float:
        """τ² = E Var(y | x) of the additive label noise.

        Examples:
            >>> import mfcore as mf
            >>> mf.data.Linear([1.0, 2.0], noise=0.5).noise_power()
            0.25
        """
        noise: float = getattr(self, "noise", 0.0)
        return noise**2

    @cached_property
    def _sampler(self) -> _core.Sampler:
        """The sampler of the core; for a finite law it holds the nodes by number."""
        return self._make_sampler(self._finite_dimension())

    @property
    def _iid_sampler(self) -> _core.Sampler:
        """Independent samples of the law; differs from `_sampler` for finite laws only."""
        return self._sampler

    def _run_sampler(self) -> _core.Sampler:
        """The sampler of one training run: fresh samples, or passes over the nodes of a finite dataset."""
        return self._sampler

    @property
    def _node_sampler(self) -> _core.Sampler | None:
        """The nodes of a finite law, all of weight 1/n and without label noise; None for other laws."""
        return None

    @property
    def _nodes(self) -> int:
        """Number of nodes of a finite law, 0 for the others."""
        nodes = self._node_sampler
        return 0 if nodes is None else int(nodes.size)

    def _parts(self) -> list[GaussianPart] | None:
        """The law as a Gaussian mixture with known labels, or None."""
        return None

    def _sphere(self) -> SphereLabel | None:
        """The target of a law whose inputs are uniform on the sphere of radius √d, or None."""
        return None

    _reduced_if: ClassVar[str] = ""  # in words, when a class with `_symmetry` has one

    _plain_first: ClassVar[bool] = False  # short rows of parameters are reduced to themselves all the same

    def _symmetry(self) -> Symmetry | None:
        """The few numbers of x and w that the law depends on, and their distribution; None if not known."""
        return None

    def _split(self) -> Split | None:
        """The parts of w that the symmetry keeps apart; None if it is not known to have one."""
        return None

    def _along(self) -> tuple[Label, int] | None:
        """y as a function of the p directions of `_split`, and p, where x is standard Gaussian; else None."""
        return None

    @abstractmethod
    def _make_sampler(self, d: int) -> _core.Sampler:
        """The compiled law for inputs in R^d."""

    def _finite_dimension(self) -> int:
        if math.isinf(self.d):
            raise ValueError(
                f"d must be finite to draw samples, got d=inf in {self!r}; "
                "only the reduced rungs (mf.PDE, mf.Atoms, mf.JKO) run at d=inf"
            )
        return int(self.d)

    def _arguments(self) -> dict[str, Any]:
        """The arguments this law was made of, in canonical form."""
        return {f.name: getattr(self, f.name) for f in self._fields() if f.init}

    def _fields(self) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass

    def _to_config(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only; read back by `from_config`."""
        given = {name: _plain(value, name) for name, value in self._arguments().items() if value is not None}
        return {"kind": type(self).__name__, **given}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataLaw) or type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._arguments(), other._arguments()
        return all(_same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((type(self), self.d))

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in self._fields()}
        shown = [
            f"{name}={_show(value)}"
            for name, value in self._arguments().items()
            if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        # Pickles and copies carry the fields alone: compiled samplers are made anew where they are needed.
        return {f.name: getattr(self, f.name) for f in self._fields()}


def set_field(law: DataLaw, name: str, value: Any) -> None:
    """Store the canonical form of an argument of a frozen law, while it is being made."""
    object.__setattr__(law, name, value)


def dimension(value: Any, *, infinite: bool = False) -> float:
    """Check `d`: an int >= 1, or math.inf where that is allowed."""
    if infinite and isinstance(value, float) and value == math.inf:
        return math.inf
    return check.count(value, "d")


def noise_level(value: Any) -> float:
    """Check the standard deviation of label noise: a number >= 0 whose square is one, too."""
    return check.number(check.number(value, "noise", at_least=0), "noise", at_most=MOST_NOISE)


def own_array(value: npt.ArrayLike, name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """A read-only copy, so that a law never changes with the caller's array."""
    array = check.array(value, name, shape=shape).copy()
    array.flags.writeable = False
    return array


def check_orthonormal(rows: FloatArray, name: str, what: str) -> None:
    """Refuse rows e_i unless |⟨e_i, e_j⟩ − δ_ij| ≤ 1e-10."""
    error = float(np.abs(rows @ rows.T - np.eye(len(rows))).max())
    if error > 1e-10:
        raise ValueError(f"{name} must have orthonormal {what} to within 1e-10, got an error of {error:.3g}")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b)
    return bool(a == b)


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<array {'×'.join(map(str, value.shape))}>"
    if isinstance(value, Mapping | tuple) and len(value) > 8:
        return f"<{len(value)} coefficients>"
    if callable(value):
        return getattr(value, "__qualname__", None) or repr(value)
    return repr(value)


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):  # keys are tuples, which TOML does not have
        return {"terms": [list(key) for key in value], "coefficients": list(value.values())}
    if isinstance(value, Network):
        return value._to_config()
    if callable(value):
        raise ValueError(f"{name} is a callable and cannot be written to TOML, got {_show(value)}")
    return value
