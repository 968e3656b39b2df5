"""`FiniteVolume1D` and `FiniteVolume2D`: finite-volume steps for loops of the user's own, on masses
updated in place.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.output import Held, output
from .._base.turn import Turn
from ..grids._grid import Grid
from ..measures._measure import Density
from ..model import Model
from ..reductions._given import require_convex
from ..reductions._model import ReducedModel
from ..runs._ends import End
from ..runs._reduced import featured
from ._pde import PDE


class _NoisyStepper:
    """Steps of a density with noise: implicit, of order 2 in their size, whatever that is."""

    def __init__(self, potential: _core.GridPotential, grid: Grid, threads: int) -> None:
        self._potential, self._axes, self._threads = potential, grid.diffusion_axes(), threads
        self._temperature = float(grid.reduced.temperature)

    def bound(self, mass: FloatArray) -> float:
        """The largest stable step: any."""
        return math.inf

    def run(self, mass: FloatArray, dt: float, steps: int) -> tuple[int, float]:
        """Take steps in place. Returns how many were done, and NaN if a number is not finite, as the core."""
        if dt * steps == 0:
            return steps, math.inf
        if not (mass >= 0).all():
            raise ValueError(f"mass must be >= 0, got {check.shown(mass[~(mass >= 0)][0])}")
        flow = _core.FokkerPlanck(
            self._potential,
            self._axes,
            mass.ravel(),
            temperature=self._temperature,
            rtol=1.0,  # of adaptive steps
            step=dt,
            threads=self._threads,
        )
        end, values = flow.advance(dt * steps, math.inf), flow.values()
        if end not in (End.reached, End.interrupted) or not check.finite(values):
            return 0, math.nan
        mass[...] = values.reshape(mass.shape)
        return flow.steps, math.inf


class _FiniteVolume:
    """The common part of the steppers in one and two coordinates."""

    coordinates: ClassVar[int]

    def __init__(
        self,
        model: Model | ReducedModel,
        edges: Any,
        mass: FloatArray,
        *,
        scheme: str | None = None,
        threads: int | None = None,
    ) -> None:
        check.instance(model, "model", (Model, ReducedModel), "an mf.Model or mf.ReducedModel")
        reduced = featured(model)
        require_convex(reduced, "finite volumes")
        k = len(reduced.coordinates)
        moving = sum(rate > 0 for rate in reduced.rates)
        if k != self.coordinates or moving < k:
            raise ValueError(
                f"model must have {self.coordinates} coordinate(s), all moving, got "
                f"({', '.join(reduced.coordinates)}) with rates {list(reduced.rates)}"
            )
        self.scheme = PDE(scheme=scheme).scheme_for(reduced)
        mass = output(mass, "mass", check.as_numpy(mass, "mass").shape, "C")
        axes = Density(edges, mass).edges
        if len(axes) != k:
            raise ValueError(f"edges must be {k} array(s), one per coordinate, got {len(axes)}")
        grid = Grid(reduced, axes)
        for name, radius, e in zip(reduced.coordinates, reduced.nonnegative, grid.edges, strict=True):
            if radius and e[0] < 0:
                raise ValueError(f"edges must be >= 0 along {name}, got {e[0]:g}")
        self.mass, self.edges, self.t = mass, grid.edges, 0.0
        self._held = Held(mass)
        self._reduced, self._threads = reduced, check.threads(threads)
        self._begin(grid)
        risk = self._potential.risk(mass)
        if not math.isfinite(risk):
            raise ValueError(
                "edges must be where the squares of the features are finite, got a risk that is not with "
                f"edges up to {max(float(np.abs(e).max()) for e in grid.edges):g}"
            )
        self._turn = Turn()

    def _begin(self, grid: Grid) -> None:
        with np.errstate(all="ignore"):  # what is not finite is refused in words
            self._potential = grid.with_features().potential(self._threads)
        self._core: _core.GridStepper | _NoisyStepper
        if self._reduced.temperature > 0:
            self._core = _NoisyStepper(self._potential, grid, self._threads)
        else:
            self._core = _core.GridStepper(self._potential, grid.axes(), self.scheme)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_potential", "_core")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin(Grid(self._reduced, self.edges))

    @property
    def bound(self) -> float:
        """The largest stable step at the present masses (eq. (7.5)): masses stay ≥ 0, no new extrema.

        At temperature > 0 it is inf: implicit steps of any size are stable.
        """
        with self._turn:
            return self._core.bound(self.mass)

    @property
    def psi(self) -> FloatArray:
        """Ψ_λ at the centres of the cells."""
        with self._turn:
            return self._potential.potential(self.mass).reshape(self.mass.shape)

    @property
    def risk(self) -> float:
        """The risk R(ρ) of the present masses."""
        with self._turn:
            return self._potential.risk(self.mass)

    def step(self, dt: float) -> None:
        """One step of size dt, 0 ≤ dt ≤ `bound`, on `mass` in place.

        Raises:
            ValueError: The step is beyond the bound; nothing is done.
            FloatingPointError: A number is not finite; nothing is done.
        """
        self.run(dt, 1)

    def run(self, dt: float, steps: int) -> None:
        """Do `steps` steps of size dt: what a loop over `step` does, with noise up to rounding, but faster.

        Raises:
            ValueError: A step is beyond the bound; `mass` and `t` are those before it.
            FloatingPointError: A number is not finite; `mass` and `t` are those before.
            KeyboardInterrupt: Ctrl-C; `mass` and `t` are those reached.
        """
        size, count = (
            check.number(dt, "dt", at_least=0),
            check.integer(steps, "steps", at_least=0, at_most=2**63 - 1),
        )
        with self._turn:
            done, bound = self._core.run(self.mass, size, count)
            self.t += done * size
        if done == count:
            return
        if math.isnan(bound):
            raise FloatingPointError(f"mass must stay finite, got a state that does not at t = {self.t:g}")
        if size > bound:
            raise ValueError(
                f"dt must be at most bound = {bound:.6g} at t = {self.t:g}, got {check.shown(dt)}"
            )
        raise KeyboardInterrupt

    def __repr__(self) -> str:
        cells = "×".join(map(str, self.mass.shape))
        return f"{type(self).__name__}(cells={cells}, scheme={self.scheme!r}, t={self.t:g})"


class FiniteVolume1D(_FiniteVolume):
    """Steps of ∂ρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ in one coordinate, on the caller's masses.

    At the model's temperature 1/β > 0 steps are those of `mf.PDE` with ``step=dt``: implicit, with
    Scharfetter–Gummel fluxes and the volume factors of radii, of second order, stable for any dt.

    Args:
        model: A model whose reduction has one coordinate, or an `mf.ReducedModel` with one.
        edges: Increasing edges of the cells, shape (n + 1,).
        mass: Their masses ≥ 0 of sum 1, updated in place: a writable float64 array of shape (n,).
        scheme: ``"muscl"``, of second order, or ``"upwind"``; with noise ``"scharfetter-gummel"``. None: the
            first that fits.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit.

    Attributes:
        mass: The caller's own array.
        t: Time covered.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore.steppers import FiniteVolume1D
        >>> shift = mf.ReducedModel(  # Ψ = (∫z dρ − 1) z: the mean goes to 1
        ...     coordinates=["z"], weights=[1.0], targets=[1.0],
        ...     features=lambda z: z, gradients=lambda z: np.ones((len(z), 1, 1)),
        ... )
        >>> mass = np.zeros(40)
        >>> mass[10] = 1.0
        >>> stepper = FiniteVolume1D(shift, np.linspace(0, 2, 41), mass, scheme="upwind")
        >>> while stepper.t < 5:
        ...     stepper.step(min(0.5 * stepper.bound, 5 - stepper.t, 0.1))
        >>> centers = np.linspace(0.025, 1.975, 40)
        >>> round(float(mass @ centers), 2), round(float(mass.sum()), 12)
        (1.0, 1.0)

        With a ridge of 1 and noise the law tends to a normal one, of mean 0.5 and variance 0.01:

        >>> noisy = mf.ReducedModel(
        ...     coordinates=["z"], weights=[1.0], targets=[1.0],
        ...     features=lambda z: z, gradients=lambda z: np.ones((len(z), 1, 1)),
        ...     ridge=1.0, temperature=0.01,
        ... )
        >>> stepper = FiniteVolume1D(noisy, np.linspace(0, 2, 41), mass)
        >>> stepper.run(dt=0.5, steps=40)
        >>> mean = float(mass @ centers)
        >>> round(mean, 2), round(float(mass @ (centers - mean) ** 2), 3)
        (0.5, 0.01)
    """

    coordinates = 1

    def __init__(
        self,
        model: Model | ReducedModel,
        edges: npt.ArrayLike,
        mass: FloatArray,
        *,
        scheme: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(model, edges, mass, scheme=scheme, threads=threads)


class FiniteVolume2D(_FiniteVolume):
    """Steps of ∂ρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ in two coordinates, on the caller's masses.

    `edges` is a pair of arrays, and `mass` has shape (n1, n2); all else is as for `FiniteVolume1D`.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore.steppers import FiniteVolume2D
        >>> model = mf.Model(
        ...     mf.data.AnisotropicGaussians(d=np.inf, delta=0.5, fraction=0.2),
        ...     mf.Network(mf.activations.softplus),
        ... )
        >>> mass = np.full((10, 20), 1 / 200)
        >>> stepper = FiniteVolume2D(model, (np.linspace(0, 1, 11), np.linspace(0, 2, 21)), mass)
        >>> before = stepper.risk
        >>> stepper.step(0.5 * stepper.bound)
        >>> stepper.risk < before, stepper.psi.shape
        (True, (10, 20))
    """

    coordinates = 2

    def __init__(
        self,
        model: Model | ReducedModel,
        edges: tuple[npt.ArrayLike, npt.ArrayLike],
        mass: FloatArray,
        *,
        scheme: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(model, edges, mass, scheme=scheme, threads=threads)
