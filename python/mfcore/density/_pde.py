"""`mf.PDE`: the density of the limit on a grid of cells, without and with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from .._base import check
from .._base.registry import configurable, shown_call
from ..measures._measure import Density
from ..model import Model
from ..reductions._model import ReducedModel
from ._cells import MOST_CELLS
from ._rung import DensityRung

__all__ = ["PDE"]

_NOISELESS = ("muscl", "upwind")
_NOISY = "scharfetter-gummel"


@configurable
@dataclass(frozen=True, repr=False)
class PDE:
    """The limit ρ_t itself, ∂ρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ in reduced coordinates, on a grid of one or two of them.

    Without noise: finite volumes, ``"muscl"`` of second order (van Leer's slopes, two-stage Runge–Kutta) or
    ``"upwind"`` of first, zero flux at the ends. With noise: ``"scharfetter-gummel"`` fluxes with the volume
    factors of radii, implicit in time with steps whose errors fall with those of the grid, of second order
    in cells that noise crosses before drift does (Δ|∇Ψ| < 2/β), upwind elsewhere. Masses stay ≥ 0 and sum
    to 1 up to rounding.

    The grid starts where ρ₀ is. When mass arrives at its end it grows by a quarter there, leaves out what has
    become empty, and cells merge in pairs when there are too many: between two and four thirds of `cells`.
    Coordinates with rate 0 have a few cells around Gauss nodes of ρ₀. A coordinate that ρ₀ knows exactly
    starts in two cells, the mean kept; the scheme then spreads it over several: `mf.Atoms` has no such error.

    `Trajectory.error` is a grid convergence index (Roache) from two more runs, on half and on a quarter of
    the cells (a third of the cost): c |R_h − R_2h|/(2^p − 1), the distance to vanishing cells if differences
    shrink by 2^p per halving, with p as measured between 1 and the order of the scheme (1 also where mass
    gathers in single cells, listed in ``meta["atoms"]``); c is 1.25 where the measured order is that of the
    scheme to within ½, and 3 where it is not. As errors oscillate, the largest at the last two times of the
    form 2^k counts as well. It is an estimate, made to be too large: over 21 models, 30 to 800 cells and
    times from 0.01 to 1000 it is at least the true error at 98 % of points, and 5 times it at the median;
    now and then it is a third of it, most where a quarter of the cells resolves nothing. From a
    point, which may be unstable, the errors of all times count, and may be a hundred times too large.

    Args:
        cells: Cells of each moving coordinate, one number or one for each; at most 2^22 in all. Errors fall
            as cells⁻² where ρ is smooth; without noise steps shorten as cells⁻¹. Default 400, or 200×200.
        scheme: One of the above. None: ``"muscl"`` without noise, ``"scharfetter-gummel"`` with it.
        step: Largest step on the clock t, at most the stability bound; with noise a fixed step. None: the
            bound itself, or steps whose errors are those of the grid.
        extent: Name of a coordinate, such as ``"r"``, to (low, high) that the grid starts with. None: where
            ρ₀ is; grids grow, so that it need not hold all that comes.
        tolerance: Stop with status ``"stationary"`` when the root mean square of ∇Ψ_λ over ρ is below it;
            with noise, of the velocity.
        error: Whether to estimate the error of the risk, which costs a third; without, it is NaN.
        start: A density to start from in place of ρ₀, with its own cells.

    Examples:
        >>> import math, mfcore as mf
        >>> from mfcore import PDE
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, PDE(cells=100), horizon=1.0, save_at=[0.0, 1.0])
        >>> run.final
        Density(edges=<[0, 1.11884]>, mass=<array 100>)
        >>> bool(run.risk[1] < run.risk[0]), bool(run.error[1] < 1e-3)
        (True, True)
    """

    cells: int | Sequence[int] | None = None
    _: KW_ONLY
    scheme: str | None = None
    step: float | None = None
    extent: Mapping[str, tuple[float, float]] | None = None
    tolerance: float | None = None
    error: bool = True
    start: Density | None = None

    def __post_init__(self) -> None:
        if self.start is not None:
            check.instance(self.start, "start", Density, "an mf.Density")
            for name in ("cells", "extent"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} must be left out with start, got {getattr(self, name)!r}")
        if self.scheme is not None:
            check.choice(self.scheme, "scheme", (*_NOISELESS, _NOISY))
        if self.cells is not None:
            object.__setattr__(self, "cells", _cells(self.cells))
        for name in ("step", "tolerance"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check.number(getattr(self, name), name, above=0))
        if self.extent is not None:
            object.__setattr__(self, "extent", _extent(self.extent))
        check.boolean(self.error, "error")

    def scheme_for(self, model: ReducedModel) -> str:
        """The scheme this method uses on a model: its own if it fits the temperature, else the default."""
        check.instance(model, "model", ReducedModel, "an mf.ReducedModel")
        noisy = model.temperature > 0
        if self.scheme is None:
            return _NOISY if noisy else _NOISELESS[0]
        if noisy and self.scheme != _NOISY:
            raise ValueError(
                f"scheme must be {_NOISY!r} at temperature = {model.temperature:g}, got {self.scheme!r}"
            )
        if not noisy and self.scheme == _NOISY:
            raise ValueError(f"scheme must be 'muscl' or 'upwind' at temperature = 0, got {self.scheme!r}")
        return self.scheme

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> DensityRung:
        """A run of this method at t = 0."""
        return DensityRung(self, model, threads)

    def __repr__(self) -> str:
        return shown_call(self)


def _cells(given: object) -> int | tuple[int, ...]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        return tuple(
            check.integer(n, f"cells[{c}]", at_least=2, at_most=MOST_CELLS) for c, n in enumerate(given)
        )
    return check.integer(given, "cells", at_least=2, at_most=MOST_CELLS)


def _extent(given: object) -> dict[str, tuple[float, float]]:
    check.instance(given, "extent", Mapping, 'a mapping such as {"r": (0, 2)}')
    assert isinstance(given, Mapping)
    found = {}
    for name, ends in given.items():
        low, high = check.array(ends, f"extent[{name!r}]", shape=(2,)).tolist()
        if not low < high:
            raise ValueError(f"extent[{name!r}] must have low < high, got ({low:g}, {high:g})")
        found[str(name)] = (low, high)
    return found
