"""`mf.SGD`, `mf.GD` and `mf.Particles` as frozen descriptions: what moves, and how it is integrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from ..expectations._rules import Expectation
from ..model import Model
from ..reductions._model import ReducedModel
from ..runs._ranks import check_comm
from ..runs._reduced import model_of
from ..runs._stiff import KINDS, ImplicitFlow
from ._flow import FlowRung
from ._population import FIXED, check_noise, check_population, fixed
from ._sgd import SgdRung
from ._split import SplitRung, refuse
from ._step_clock import StepClock

Schedule = Callable[[Any], Any]


@configurable
@dataclass(frozen=True)
class SGD:
    """One-pass stochastic gradient descent of N neurons on fresh samples.

    θ_i ← θ_i + h_k[(y_k − f_N(x_k))∇σ*(x_k; θ_i) − λθ_i] + √(2h_k/β) g, one step per `batch` samples, with
    the model's ridge λ, temperature 1/β and rates; t = Σ h_k. Finite datasets are passed through in random
    order, again and again. Steps are done in blocks, equal to the sequential algorithm up to rounding;
    Langevin noise is exact in law. On the sphere w is divided by its length after each step.

    Args:
        neurons: N, the width. f_N is a mean over neurons, so that the clock does not depend on N; distances
            to the limit fall as 1/√N, those of risks as 1/N. The time of a step grows as N·d.
        step: h, the length of a step on the clock t: k steps end at k·h. A learning rate η on (y − f_N)² is
            h = 2η/N. A finite step changes the risk by an amount of order h·d (eq. (10.8));
            `theory.propose_step` gives h for a wanted bias.
        batch: Samples per step; their gradients are averaged, so that the clock does not depend on it, and
            the noise of a step falls as 1/batch. A step holds 16·N·batch bytes of activations. Theorems
            are about 1, the default.
        schedule: ξ, a function of k·h > 0 that gives h_k = h·ξ(k·h): of an array, or of one number.
        replicas: Independent networks, run in parallel: the risk has a column for each, and `final` the shape
            (replicas, N, D). Replica 0 is the run without replicas.
        precision: ``"float64"`` or ``"float32"``, which is faster, with rounding of 6e-8 in place of 1e-16.
        coupled: Draw Langevin noise number by number, as `mf.GD` and `mf.Particles` do, so that paths with
            the same `rng` and step share their increments. Slower: the noise of blocks is equal in law only.
            Needs float64, as float32 has other numbers.
        comm: A communicator of mpi4py, such as ``MPI.COMM_WORLD``, to split the network over processes: see
            `mf.gather`. Needs one replica in float64, and `coupled` at temperature > 0.

    Examples:
        >>> import mfcore as mf
        >>> mf.SGD(neurons=800, step=1e-5).batch
        1
    """

    neurons: int
    step: float
    batch: int = 1
    schedule: Schedule | None = None
    replicas: int = 1
    precision: str = "float64"
    coupled: bool = False
    _: KW_ONLY
    comm: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check.boolean(self.coupled, "coupled")
        for name in ("neurons", "batch", "replicas"):
            object.__setattr__(self, name, check.count(getattr(self, name), name))
        object.__setattr__(self, "step", check.number(self.step, "step", above=0))
        check.choice(self.precision, "precision", ("float64", "float32"))
        if self.coupled and self.precision != "float64":
            raise ValueError(
                f"precision must be 'float64' with coupled=True, as other rungs draw, got {self.precision!r}"
            )
        if self.schedule is not None and not callable(self.schedule):
            raise TypeError(f"schedule must be a function of k·step, got {check.shown(self.schedule)}")
        check_comm(self.comm)
        refuse(
            self.comm,
            replicas=(self.replicas, 1, "as replicas are runs of their own"),
            precision=(self.precision, "float64", "whose steps are not done in blocks"),
        )

    def time_after(self, steps: int) -> float:
        """Sum the sizes h of the first steps.

        Args:
            steps: How many.

        Examples:
            >>> import mfcore as mf
            >>> mf.SGD(100, step=0.1, schedule=lambda t: 1.0 if t < 0.5 else 0.1).time_after(10)
            0.55
        """
        return StepClock(self.step, self.schedule).after(
            check.integer(steps, "steps", at_least=0, at_most=2**53)
        )

    def begin(self, model: Model | ReducedModel, seed: int, threads: int) -> SgdRung | SplitRung:
        """A run of this method at t = 0."""
        full = model_of(model)
        if self.comm is None:
            return SgdRung(self, full, seed, threads)
        if full.temperature > 0:
            refuse(self.comm, coupled=(self.coupled, True, "as the noise of blocks is not that of steps"))
        return SplitRung(self, "euler", self.step, full, seed, threads)


@configurable
@dataclass(frozen=True)
class GD:
    """Gradient descent of N neurons on the population risk.

    θ_i ← θ_i − h·rate·∇Ψ_λ(θ_i; ρ_N) + √(2h·rate/β) g on the clock t = k·h, the expectation over the data
    taken in full at every step. On the sphere w takes this step and is then divided by its length, as in
    `mf.SGD`; a step along the tangent differs from it at order h².

    Args:
        neurons: N, the width. f_N is a mean over neurons, so that the clock does not depend on N; distances
            to the limit fall as 1/√N, those of risks as 1/N. The time of a step grows as N·d.
        step: h, on the clock t = k·h, as of `mf.SGD`. The distance to the flow, h → 0, falls as h.
        expectation: `mf.Exact()`, the default, or `mf.MonteCarlo(samples, rng)`, fixed samples, which a
            network of as many parameters learns by heart: at the end ``meta["training_risk"]`` is the risk
            on them, and one far below that of fresh samples is a warning.
        tolerance: Stop with status ``"stationary"`` when the root mean square of ∇Ψ_λ over the trained
            entries is below it. None: go on to the horizon.
        comm: A communicator of mpi4py, to split the network over processes: see `mf.gather`. Needs an
            average over samples or nodes, and no tolerance.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.GD(neurons=50, step=0.1), horizon=1.0, save_at=[0.0, 1.0], rng=0)
        >>> bool(run.risk[1] < run.risk[0]), run.meta["steps"]
        (True, 10)
    """

    neurons: int
    step: float
    _: KW_ONLY
    expectation: Expectation | None = None
    tolerance: float | None = None
    comm: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check.number(self.step, "step", above=0))
        check_population(self)

    def begin(
        self, model: Model | ReducedModel, seed: int, threads: int, followers: int = 0
    ) -> FlowRung | SplitRung:
        """A run of this method at t = 0, with neurons without mass in its field if there are followers."""
        return fixed(self, "euler", self.step, model_of(model), seed, threads, followers)


@configurable
@dataclass(frozen=True)
class Particles:
    """The gradient flow of N neurons, θ̇_i = −rate·∇Ψ_λ(θ_i; ρ_N), or Langevin dynamics at temperature > 0.

    ``"dopri5"`` chooses its steps by `rtol` and `atol`; states at save points come from its continuous
    extension, so that saving changes no bit of the rest. ``"euler"`` (order 1), ``"heun"`` (2) and ``"rk4"``
    (4) take fixed steps. ``"lsoda"``, ``"bdf"`` and ``"radau"`` are SciPy's solvers for stiff problems, such
    as rates that differ by orders of magnitude; they hold an (N·D)² matrix. All that choose their steps let
    neurons rest where a kink of σ meets w = 0 (eqs. (6.18) to (6.20)), as ReLU neurons do.

    At temperature > 0, ``"euler"`` (Euler–Maruyama, weak order 1) or ``"heun"`` (weak order 2: the noise is
    additive; 1 on the sphere). The increments are those of `mf.GD`, and of `mf.SGD` with ``coupled=True``,
    with the same `rng` and step.

    Args:
        neurons: N, the width. f_N is a mean over neurons, so that the clock does not depend on N; distances
            to the limit fall as 1/√N, those of risks as 1/N. The time of a step grows as N·d.
        method: The scheme, one of those above. ``"dopri5"`` is quickest where nothing is stiff.
        rtol: Relative error of each entry of θ per step, of schemes that choose their steps. The default is
            far below the distance of networks to their limit.
        atol: Absolute error per step, for entries near 0.
        step: Step size h of schemes with fixed steps, which need it; the clock is t = k·h.
        expectation: `mf.Exact()`, the default, or `mf.MonteCarlo(samples, rng)`, fixed samples, which a
            network of as many parameters learns by heart: at the end ``meta["training_risk"]`` is the risk
            on them, and one far below that of fresh samples is a warning.
        tolerance: Stop with status ``"stationary"`` when the root mean square of ∇Ψ_λ over the trained
            entries is below it. None: go on to the horizon.
        comm: A communicator of mpi4py, to split the network over processes: see `mf.gather`. Needs a
            fixed step, an average over samples or nodes, and no tolerance.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=10, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.Particles(neurons=50), horizon=1.0, save_at=[0.0, 1.0], rng=0)
        >>> bool(run.risk[1] < run.risk[0])
        True
        >>> noisy = model.replace(temperature=1e-3, ridge=0.1)
        >>> mf.solve(noisy, mf.Particles(50, method="heun", step=0.1), horizon=1.0, rng=0).status
        'completed'
    """

    neurons: int
    _: KW_ONLY
    method: str = "dopri5"
    rtol: float = 1e-6
    atol: float = 1e-9
    step: float | None = None
    expectation: Expectation | None = None
    tolerance: float | None = None
    comm: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check.choice(self.method, "method", ("dopri5", *FIXED, *KINDS))
        for name in ("rtol", "atol"):
            object.__setattr__(self, name, check.number(getattr(self, name), name, above=0))
        if self.method in FIXED:
            if self.step is None:
                raise ValueError(f"step must be given with method={self.method!r}")
            object.__setattr__(self, "step", check.number(self.step, "step", above=0))
        elif self.step is not None:
            raise ValueError(
                f"step must be left out with method={self.method!r}, which chooses its own, got {self.step!r}"
            )
        check_population(self)
        if self.comm is not None and self.method not in FIXED:
            raise ValueError(
                "method must be 'euler', 'heun' or 'rk4', with a step, for a network that is split over "
                f"processes, got {self.method!r}"
            )

    def begin(
        self, model: Model | ReducedModel, seed: int, threads: int, followers: int = 0
    ) -> FlowRung | SplitRung:
        """A run of this method at t = 0, with neurons without mass in its field if there are followers."""
        full = model_of(model)
        if self.step is not None:
            return fixed(self, self.method, self.step, full, seed, threads, followers)
        check_noise(self, self.method, full)
        stop = (self.tolerance or 0.0) / full.network.scale**2
        unit = slice(full.network.row(0), None) if full.network.sphere else None

        def integrator(system: _core.System, start: FloatArray) -> _core.Flow | ImplicitFlow:
            if self.method in KINDS:
                return ImplicitFlow(
                    system, start, self.method, rtol=self.rtol, atol=self.atol, tolerance=stop, unit=unit
                )
            return _core.Flow.dopri5(system, start, rtol=self.rtol, atol=self.atol, tolerance=stop)

        return FlowRung(
            full, self.neurons, self.expectation, seed, threads, integrator, self.tolerance, followers
        )
