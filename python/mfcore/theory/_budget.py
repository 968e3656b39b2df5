"""The results of a ladder: the risk of every rung, their gaps (eq. (10.3)), and what to read off them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import check
from .._base.archive import read_archive, reading, write_archive
from .._base.check import FloatArray
from ..runs._trajectory import from_plain, plain
from ._rates import Rates, interval, rates_of

if TYPE_CHECKING:
    import xarray

RUNGS = ("PDE", "ND", "PD", "GD", "SGD")
GAPS = ("PDE-ND", "ND-PD", "PD-GD", "GD-SGD")
_TOTAL = "total"
_QUANTITIES = ("risk", "norm", "distance", "w1")


@dataclass(frozen=True)
class Bound:
    """The measured |R(ρ_t) − R_N(SGD)| beside C·err of eq. (10.4), with one fitted constant C for all N and
    h.

    Attributes:
        constant: The smallest C for which C·err covers the measured values.
        measured: Quantile 1 − e^{−z²} over replicas of the largest gap in t, shape (N, step).
        err: err_{N,D}(z), shape (N, step).
        z: As asked.
    """

    constant: float
    measured: FloatArray
    err: FloatArray
    z: float

    @property
    def ratio(self) -> FloatArray:
        """The ratio measured/(C·err), at most 1, and about the same everywhere if the bound has the
        right form.
        """
        return np.asarray(self.measured / (self.constant * self.err))

    def __repr__(self) -> str:
        low, high = self.ratio.min(), self.ratio.max()
        return f"Bound(constant={self.constant:.4g}, z={self.z:g}, ratio={low:.2g} … {high:.2g})"


@dataclass(frozen=True, eq=False, repr=False)
class Ladder:
    """Risks and distances of five rungs on one clock, for widths N, steps h and replicas.

    The rungs are `RUNGS`: the limit, N independent neurons in its field, gradient flow, gradient descent and
    SGD of N neurons; `GAPS` are between neighbours.

    Attributes:
        t: Times, shape (T,).
        neurons: Widths N.
        step: Steps h.
        risk: R of the measure of each rung, shape (N, step, replica, rung, T).
        error: Its error: of the discretisation of the limit, and the standard error of a held-out sample,
            which all networks share.
        norm: ∫|w|dρ, a function that is 1-Lipschitz in θ; same shape.
        distance: max_i |θ_i − θ̄_i| between neighbours from ND on, shape (N, step, replica, 3, T).
        w1: W1 between the laws of |w| of neighbours, shape (N, step, replica, 4, T). NaN beside a limit of
            atoms, which are no sample of their law.
        meta: Model, limit, status, seed, version, ISA, seconds, and the rule of the risk.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(1.0),
        ... )
        >>> budget = theory.ladder(model, [20, 80], [0.02], horizon=0.4, replicas=4, rng=0)
        >>> parts = sum(budget.gap(name) for name in theory.GAPS)
        >>> bool(abs(parts - budget.gap("total")).max() < 1e-12)
        True
        >>> budget.rates()["ND-PD", "N"].slope < 0
        True
    """

    t: FloatArray
    neurons: tuple[int, ...]
    step: tuple[float, ...]
    risk: FloatArray
    error: FloatArray
    norm: FloatArray
    distance: FloatArray
    w1: FloatArray
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        """How many draws of neurons were complete."""
        return int(self.risk.shape[2])

    def names(self, quantity: str = "risk") -> tuple[str, ...]:
        """Names of the gaps that were measured of a quantity ("risk" or "distance")."""
        check.choice(quantity, "quantity", _QUANTITIES)
        if quantity == "distance":
            return GAPS[1:]
        if quantity == "w1":
            return GAPS if np.isfinite(self.w1[..., 0, :]).any() else GAPS[1:]
        return (*GAPS, _TOTAL)

    def gap(self, name: str, quantity: str = "risk") -> FloatArray:
        """One gap over time, shape (N, step, replica, T).

        Args:
            name: One of `GAPS`, or ``"total"``, which is from the limit to SGD and the sum of the others.
            quantity: ``"risk"`` and ``"norm"`` are signed, upper rung minus lower; ``"distance"`` and
                ``"w1"`` are distances.
        """
        check.choice(name, "name", self.names(quantity))
        if quantity in ("distance", "w1"):
            array = self.distance if quantity == "distance" else self.w1
            return np.asarray(array[..., (GAPS[1:] if quantity == "distance" else GAPS).index(name), :])
        values = self.risk if quantity == "risk" else self.norm
        upper, lower = (0, len(RUNGS) - 1) if name == _TOTAL else (GAPS.index(name), GAPS.index(name) + 1)
        return np.asarray(values[..., upper, :] - values[..., lower, :])

    def suprema(self, name: str, quantity: str = "risk") -> FloatArray:
        """The largest |gap| over the times, shape (N, step, replica)."""
        return np.asarray(np.abs(self.gap(name, quantity)).max(axis=-1))

    def mean(self, name: str, quantity: str = "risk") -> tuple[FloatArray, FloatArray]:
        """Mean of |gap| over replicas and half of its 95 % interval, each of shape (N, step, T).

        The interval of PDE-ND and of the total has the errors of the limit and of a held-out sample in it.
        """
        middle, half = interval(np.moveaxis(np.abs(self.gap(name, quantity)), 2, -1))
        return middle, np.hypot(half, self._stated(name, quantity))

    def largest(self, name: str, quantity: str = "risk") -> tuple[FloatArray, FloatArray]:
        """Mean of `suprema` over replicas and half of its 95 % interval, each of shape (N, step)."""
        middle, half = interval(self.suprema(name, quantity))
        return middle, np.hypot(half, self._stated(name, quantity).max(axis=-1))

    def rates(self, quantity: str = "risk") -> Rates:
        """Slopes of the largest gaps in N and h, by weighted regression, with jackknife intervals.

        A slope in N has a constant for each step, and a slope in h one for each width.
        """
        return rates_of(self, quantity, self.names(quantity))

    def bound(self, z: float = 1.0, *, dimension_free: bool = True) -> Bound:
        """The total against C·err, holding with probability 1 − e^{−z²}; C is fitted (eq. (10.4)).

        Args:
            z: Larger for more certainty. Quantiles that the replicas cannot resolve are their maximum.
            dimension_free: err = N^{−1/2}(√log N + z) + (√(D + log N) + z)√h; otherwise
                err = √(1/N ∨ h)·(√(D + log(N/h)) + z).
        """
        z = check.number(z, "z", above=0)
        n, h = np.array(self.neurons, dtype=float)[:, None], np.array(self.step)[None, :]
        row = self.meta["model"].row
        if dimension_free:
            err = (np.sqrt(np.log(n)) + z) / np.sqrt(n) + (np.sqrt(row + np.log(n)) + z) * np.sqrt(h)
        else:
            err = np.sqrt(np.maximum(1 / n, h)) * (np.sqrt(row + np.log(n / h)) + z)
        share = -math.expm1(-z * z)
        measured = np.quantile(self.suprema(_TOTAL), share, axis=-1, method="higher")
        return Bound(float((measured / err).max()), np.asarray(measured), np.asarray(err), z)

    def bias(self) -> tuple[FloatArray, FloatArray]:
        """(R_SGD − R_PD)/R_PD, averaged over replicas, and half of its 95 % interval, shape (N, step, T).

        Both start from the same neurons: what is left is the step's.
        """
        flow, sgd = (self.risk[..., RUNGS.index(rung), :] for rung in ("PD", "SGD"))
        return interval(np.moveaxis((sgd - flow) / flow, 2, -1))

    def table(self, quantity: str = "risk") -> str:
        """The budget as a Markdown table: largest |gap| over time, mean and half of the 95 % interval."""
        names = self.names(quantity)
        lines = [f"| N | h | {' | '.join(names)} |", "|---:|---:|" + "---:|" * len(names)]
        columns = {name: self.largest(name, quantity) for name in names}
        for i, n in enumerate(self.neurons):
            for j, h in enumerate(self.step):
                cells = [_cell(*(part[i, j] for part in columns[name])) for name in names]
                lines.append(f"| {n} | {h:g} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def to_xarray(self) -> xarray.Dataset:
        """All that was measured as an `xarray.Dataset` with named coordinates."""
        try:
            import xarray
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'mfcore[xarray]'") from None
        common = ("neurons", "step", "replica")
        variables = {
            name: ((*common, "rung", "t"), getattr(self, name)) for name in ("risk", "error", "norm")
        }
        missing = np.full_like(self.distance[..., :1, :], np.nan)  # the limit has no neurons
        variables["distance"] = ((*common, "gap", "t"), np.concatenate([missing, self.distance], axis=-2))
        variables["w1"] = ((*common, "gap", "t"), self.w1)
        places: dict[str, Any] = {"neurons": list(self.neurons), "step": list(self.step), "t": self.t}
        places |= {"rung": list(RUNGS), "gap": list(GAPS)}
        return xarray.Dataset(variables, places, {name: str(value) for name, value in self.meta.items()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path`, a NumPy .npz archive without pickles; `Ladder.load` reads it."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {"neurons": np.array(self.neurons), "step": np.array(self.step)}
        meta = {name: plain(value, arrays, f"meta/{name}") for name, value in self.meta.items()}
        write_archive(path, arrays, {"ladder": meta})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ladder:
        """Read a ladder that `save` wrote."""
        arrays, info = read_archive(path, "ladder")
        with reading(path, "path"):
            return cls(
                **{name: arrays[name] for name in _ARRAYS},
                neurons=tuple(arrays["neurons"].tolist()),
                step=tuple(arrays["step"].tolist()),
                meta={name: from_plain(value, arrays) for name, value in info["ladder"].items()},
            )

    def _stated(self, name: str, quantity: str) -> FloatArray:
        """Half of the 95 % interval that remains however many replicas there are, shape (N, step, T)."""
        if quantity != "risk" or name not in (GAPS[0], _TOTAL):
            return np.zeros(1)
        return np.asarray(np.hypot(self.error[:, :, 0, 0], 1.96 * self.error[:, :, 0, 1]))

    def __repr__(self) -> str:
        limit = self.meta.get("limit")
        return (
            f"Ladder(neurons={self.neurons}, step={self.step}, replicas={self.replicas}, "
            f"t=[{self.t[0]:g}, {self.t[-1]:g}], limit={limit!r})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n\n{self.table()}\n\n{self.rates().table()}"


_ARRAYS = ("t", "risk", "error", "norm", "distance", "w1")


def _cell(value: float, half: float) -> str:
    if not math.isfinite(value):
        return "diverged"
    return f"{value:.3g}" + (f" ± {half:.1g}" if math.isfinite(half) else "")
