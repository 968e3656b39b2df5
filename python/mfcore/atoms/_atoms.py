"""`mf.Atoms`: the limit itself as weighted atoms in reduced coordinates, of any number of dimensions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .._base import check
from .._base.registry import configurable, shown_call
from ..measures._measure import Cloud
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._stiff import KINDS
from ._rung import AtomRung

_FIXED = ("euler", "heun", "rk4")


@configurable
@dataclass(frozen=True, repr=False)
class Atoms:
    """The law ρ_t as weighted atoms z_i, ż_i = −rate·∇Ψ_λ(z_i; ρ), in the model's reduced coordinates.

    Without noise the atoms are nodes of a quadrature of ρ₀, carried along: as exact as ρ_t(z₀) is smooth.
    Where one number alone is random in ρ₀ they are Gauss–Legendre nodes of panels, which are halved as the
    flow tears them apart (a separatrix) and united again, up to `count` atoms. Otherwise they are tensor
    products of Gauss nodes, or points that fill ρ₀ evenly where these would be too few per coordinate.
    Radii end at 0: atoms that are driven into the wall wait there until they are pushed away from it.

    At temperature > 0 the atoms are independent draws from ρ₀ with equal masses, and steps are exact in law
    for what the noise of a radius' hidden directions does.

    `Trajectory.error` is how far the risk is from R(ρ_t), ρ_t the exact flow from ρ₀ at the time recorded
    with the features of the reduction: by ρ₀ as atoms and by the steps. It comes from coarser runs beside
    this one: tolerances 32 times as large or steps 2h, which takes about half the time of this one, and with
    Gauss nodes in k coordinates half, three quarters and a quarter as many in each, which take about (3/4)^k
    of it. It is inf where a coarser run ended before this one.
    With noise it is one standard error of independent draws, and the bias of the step is not in it.

    Args:
        count: The most atoms; a step costs their number times that of the nodes. Without noise runs begin
            with fewer where these resolve ρ₀; with noise errors fall as count^(−1/2). Default 1024, 4096 in
            more than two random coordinates, 10 000 with noise.
        start: Atoms to start from, in place of ρ₀, in reduced coordinates; masses may be 0.
        rtol: Relative error of each coordinate per step, of schemes that choose their steps. The default is
            about as exact as the nodes of ρ₀ are.
        atol: Absolute error per step, for coordinates near 0.
        method: ``"dopri5"`` chooses its steps; ``"euler"``, ``"heun"`` and ``"rk4"`` have a fixed `step`.
            With noise ``"euler"`` (weak order 1) or ``"heun"`` (weak order 2). ``"lsoda"``, ``"bdf"`` and
            ``"radau"`` are SciPy's solvers for stiff problems, such as rates that differ by orders of
            magnitude; they hold a matrix of the size of the state squared. None: ``"lsoda"`` where rates
            differ by a factor of 100 or more and at most 500 numbers move, else ``"dopri5"``.
        step: Step size h of schemes with fixed steps; the clock is t = k·h.
        tolerance: Stop with status ``"stationary"`` when the root mean square of ∇Ψ_λ over ρ is below it.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import Atoms
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, Atoms(), horizon=1.0, save_at=[0.0, 1.0])
        >>> run.final
        Cloud(points=<array 64×1>, weights=<array 64>)
        >>> bool(run.risk[1] < run.risk[0]), bool(run.error.max() < 1e-8)
        (True, True)
    """

    count: int | None = None
    _: KW_ONLY
    start: Cloud | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    method: str | None = None
    step: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.start is not None:
            check.instance(self.start, "start", Cloud, "an mf.Cloud(points, weights)")
        if self.count is not None and self.start is not None:
            raise ValueError(f"count must be left out with start, got {self.count!r}")
        if self.method is not None:
            check.choice(self.method, "method", ("dopri5", *_FIXED, *KINDS))
        if self.method in _FIXED and self.step is None:
            raise ValueError(f"step must be given with method={self.method!r}")
        if self.method not in _FIXED and self.step is not None:
            raise ValueError(
                f"step must be left out with method={self.method or 'dopri5'!r}, which chooses its own, got "
                f"{self.step!r}"
            )
        if self.count is not None:
            object.__setattr__(self, "count", check.count(self.count, "count"))
        for name in ("rtol", "atol", "step", "tolerance"):
            if name in ("rtol", "atol") or getattr(self, name) is not None:
                object.__setattr__(self, name, check.number(getattr(self, name), name, above=0))

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> AtomRung:
        """A run of this method at t = 0."""
        return AtomRung(self, model, seed, threads)

    def __repr__(self) -> str:
        return shown_call(self)
