"""The bias of one-pass SGD with a finite step (eqs. (10.7), (10.8)), and the step that has a wanted bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.places import places
from ..activations import Activation
from ..data import IsotropicGaussians
from ..measures._measure import Cloud
from ..model import Model
from ..runs._trajectory import Trajectory
from ._budget import Ladder

_CELLS = 100  # cells for the initial law of r
_RTOL = 1e-6
_FAR = 1e150  # velocities beyond this have squares that overflow
_NEGLIGIBLE = 1e-7  # cells lighter than this fraction of the heaviest are left out
_ANGLES = 8000  # angles over which the square of the slope of σ is averaged
_RADII = 200  # radii in the table of these averages
_ROUNDS = 5  # rounds of the search for a step; the bias is nearly linear in it
_CLOSE = 0.02  # relative error of the bias at which the search ends


@dataclass(frozen=True)
class StepProposal:
    """A step of SGD for a wanted bias.

    Attributes:
        step: h, for `mf.SGD`.
        bias: The largest relative change of the risk that is expected.
        basis: What that rests on.
    """

    step: float
    bias: float
    basis: str


def modified_flow(
    model: Model, step: float, *, horizon: float, save_at: int | npt.ArrayLike = 51
) -> Trajectory:
    """The law of |w| under one-pass SGD with step h, to first order in h, on isotropic Gaussians (eq.
    (10.8)).

    A step adds h²E[(y − f)²σ'(⟨w, x⟩)²|x_⊥|²] to |w|², x_⊥ being x across w, beside the descent of the risk:

        dr/dt = −∂_rΨ + (h/2r)·𝒬(r),    𝒬(r) = Σ_q p_q (y_q − f_q)² s_q² E_u[σ'(r s_q u)²(1 − u²)].

    It grows with the dimension, as h·d·slope²; Euler's error of order h, which does not, is left out. The
    risk is that of the law. SGD's own has E Var f_N on top, of the same order h: all neurons share their
    samples, so that f_N fluctuates however many there are.

    Args:
        model: Of `mf.data.IsotropicGaussians` with finite d and σ* = σ(⟨w, x⟩), without noise.
        step: h; 0 gives the limit itself.
        horizon: T.
        save_at: Times, or how many.

    Returns:
        A trajectory with risk and the mean and standard deviation of |w|.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=320, delta=0.5),
        ...     network=mf.Network(mf.activations.piecewise_linear([0, 0.5, 1.5], [-2.5, -4, 7.5])),
        ...     init=mf.init.Radial(0.4),
        ... )
        >>> runs = [theory.modified_flow(model, h, horizon=0.05, save_at=2) for h in (0.0, 1e-5)]
        >>> [round(float(run.observed["norm_mean"][-1]), 4) for run in runs]
        [0.6658, 0.695]
    """
    flow = _RadialFlow(model)
    h, end = check.number(step, "step", at_least=0), check.number(horizon, "horizon", above=0)
    times = places(save_at, "save_at", end)
    radii = flow.radii(h, times)
    mean = radii @ flow.weights
    spread = np.sqrt(np.maximum(radii**2 @ flow.weights - mean**2, 0.0))
    return Trajectory(
        t=times,
        risk=np.array([flow.risk(r) for r in radii]),
        error=np.zeros(len(times)),
        observed={"norm_mean": mean, "norm_std": spread},
        final=Cloud(radii[-1], flow.weights),
        kept={},
        status="completed",
        message=f"reached t = {times[-1]:g}",
        meta={"model": model, "method": f"modified_flow(step={h:g})", "horizon": end, "t": float(times[-1])},
    )


def propose_step(source: Model | Ladder, bias: float = 0.01, *, horizon: float | None = None) -> StepProposal:
    """Propose a step h of SGD at which its risk differs from that of the limit by at most `bias`, relatively.

    From a model, by `modified_flow`, which must know it: the step at which the law of the neurons has a risk
    that differs from that of the limit by this share, at most, up to the horizon. The fluctuations of f_N are
    not in it. They raise the risk of SGD, and so make up for a part of the bias where the law's is negative,
    as it is while neurons that spread learn faster (measured at d = 320: −7 % for −10 % of the law).

    From a `Ladder` of any model, as measured: `Ladder.bias` at the widest network is fitted by B·h, and
    h = bias/B, where B is the upper end of its 95 % interval, so that noise makes the step smaller. The step
    is at most the largest that was measured. The bias is taken as linear in h, which larger ones are not.

    Both are about the mean over runs; single runs fluctuate by O(√h) around it.

    Args:
        source: The model, or a ladder of it with at least two replicas.
        bias: |ΔR|/R.
        horizon: T, with a model; a ladder has its own.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=320, delta=0.5),
        ...     network=mf.Network(mf.activations.piecewise_linear([0, 0.5, 1.5], [-2.5, -4, 7.5])),
        ...     init=mf.init.Radial(0.4),
        ... )
        >>> proposal = theory.propose_step(model, bias=0.05, horizon=0.1)
        >>> 1e-7 < proposal.step < 1e-4
        True
    """
    wanted = check.number(bias, "bias", above=0, below=1)
    if isinstance(source, Ladder):
        if horizon is not None:
            raise ValueError(f"horizon must be left out with a ladder, got {horizon!r}")
        return _measured(source, wanted)
    check.instance(source, "source", Model, "an mf.Model or what mf.theory.ladder returns")
    if horizon is None:
        raise ValueError("horizon must be given with a model, got None")
    return _predicted(source, wanted, check.number(horizon, "horizon", above=0))


def _measured(ladder: Ladder, wanted: float) -> StepProposal:
    if ladder.replicas < 2:
        raise ValueError(f"source must have at least 2 replicas, got {ladder.replicas}")
    widest = int(np.argmax(ladder.neurons))
    mean, half = (part[widest] for part in ladder.bias())
    steps = np.array(ladder.step)[:, None]
    # At every time, the regression through the origin with the inverse squares of the intervals.
    known = np.isfinite(half).all(axis=0) & (half > 0).all(axis=0)
    if not known.any():
        raise ValueError("source must have steps at which SGD did not diverge")
    weight = 1 / half[:, known] ** 2
    total = (weight * steps**2).sum(axis=0)
    slope = np.abs((weight * steps * mean[:, known]).sum(axis=0) / total)
    upper = float((slope + 1 / np.sqrt(total)).max())
    step = min(wanted / upper, max(ladder.step))
    return StepProposal(step, upper * step, f"measured at N = {ladder.neurons[widest]}")


def _predicted(model: Model, wanted: float, horizon: float) -> StepProposal:
    flow = _RadialFlow(model)
    times = np.linspace(0.0, horizon, 51)
    exact = np.array([flow.risk(r) for r in flow.radii(0.0, times)])

    def found(h: float) -> float:
        risks = np.array([flow.risk(r) for r in flow.radii(h, times)])
        return float((np.abs(risks - exact) / exact).max())

    # A step that moves r by about that share of itself, then by the rule of proportion.
    step = wanted / max(flow.spreading(flow.start), 1e-300)
    for _ in range(_ROUNDS):
        got = found(step)
        if abs(got - wanted) <= _CLOSE * wanted:
            break
        step *= min(max(wanted / got if got > 0 else 10.0, 0.1), 10.0)
    return StepProposal(step, found(step), "the modified radial flow")


class _RadialFlow:
    """The modified flow of radii r = |w|: gradient descent plus the spreading 𝒬(r) by fresh samples (eq.
    (10.8)).
    """

    def __init__(self, model: Model) -> None:
        check.instance(model, "model", Model, "an mf.Model")
        network, law = model.network, model.data
        plain = network.output == "one" and network.bias == "none" and not network.sphere
        if not isinstance(law, IsotropicGaussians) or math.isinf(law.d) or not plain or model.temperature > 0:
            raise ValueError(
                "model must have IsotropicGaussians of finite d, neurons σ(⟨w, x⟩) and no noise for the "
                f"modified flow, got {model!r}; mf.theory.propose_step(ladder) measures the bias instead"
            )
        reduced = model.reduce()
        if reduced.initial is None:
            raise ValueError(f"init must be an initial law, got {model.init!r}")
        features: Any = reduced._compiled
        self._features = features
        self._reduced, self._rate, self._scale = reduced, reduced.rates[0], network.scale
        self._s = np.asarray(features.rows)[:, 0]  # norms of x at the nodes
        (low, high), *_ = reduced.initial.support()
        edges = np.linspace(low, high, _CELLS + 1) if low < high else np.array([low * 0.999, low * 1.001])
        masses = np.asarray(reduced.initial.cell_masses([edges])).ravel()
        known = masses > _NEGLIGIBLE * masses.max()
        self.start, self.weights = (0.5 * (edges[1:] + edges[:-1]))[known], masses[known]
        self.weights = self.weights / self.weights.sum()
        self._sigma, self._d = network.activation, int(law.d)
        self._largest = 0.0
        self._table: Callable[[FloatArray], FloatArray]

    def risk(self, radii: FloatArray) -> float:
        """R of atoms at these radii."""
        return float(self._reduced.weights @ self._gap(radii) ** 2) + self._reduced.noise

    def radii(self, step: float, times: FloatArray) -> FloatArray:
        """Radii at all times, (T, atoms)."""
        from scipy.integrate import solve_ivp  # takes long to load

        end = float(times[-1])

        # The variable is u = r², whose velocity 2r·ṙ has no pole at r = 0.
        @np.errstate(all="ignore")
        def velocity(_: float, u: FloatArray) -> FloatArray:
            r = np.sqrt(np.maximum(u, 0.0))
            reduced = self._reduced
            gap = self._gap(r)
            slopes = self._features.gradients(r[:, None], 1)[..., 0]  # so few are slower on more threads
            descent = slopes @ (reduced.weights * gap) + reduced.ridge * r
            found = np.asarray(-2 * self._rate * r * descent + step * self._square(r, gap))
            if not np.abs(found).max() < _FAR:  # nor a number
                raise ValueError(
                    f"step must be so small that |w| stays finite up to horizon = {end:g}, got {step:g}"
                )
            return found

        # Atoms that come to r = 0 make it stiff, each by itself: the diagonal of the Jacobian is enough.
        found = solve_ivp(
            velocity,
            (0.0, end),
            self.start**2,
            method="LSODA",
            t_eval=times,
            rtol=_RTOL,
            atol=1e-3 * _RTOL,
            lband=0,
            uband=0,
        )
        if not found.success:
            raise RuntimeError(f"the modified flow with step = {step:g} broke off: {found.message}")
        return np.asarray(np.sqrt(np.maximum(found.y.T, 0.0)))

    def spreading(self, r: FloatArray) -> float:
        """The relative growth of ∫r² dρ per unit of step and time by fresh samples."""
        return float(self.weights @ self._square(r, self._gap(r)) / (self.weights @ r**2))

    def _gap(self, r: FloatArray) -> FloatArray:
        """f_q − y_q."""
        return np.asarray(self.weights @ self._features.features(r[:, None], 1) - self._reduced.targets)

    def _square(self, r: FloatArray, gap: FloatArray) -> FloatArray:
        """𝒬(r) of eq. (10.8), times the square of the rate of w."""
        scale = r[:, None] * self._s
        if scale.max() > self._largest:
            self._largest = 2 * float(scale.max())
            self._table = _mean_square(self._sigma, self._d, self._largest)
        share = self._reduced.weights * (gap * self._s * self._rate * self._scale) ** 2
        return np.asarray(self._table(scale) @ share)


def _mean_square(sigma: Activation, d: int, largest: float) -> Callable[[FloatArray], FloatArray]:
    """A table for R ↦ E_u[σ'(Ru)²(1 − u²)], u the first coordinate of a unit vector of R^d, for R up to
    `largest`.
    """
    from scipy.interpolate import CubicSpline  # takes long to load

    R = np.linspace(0.0, largest, _RADII)
    end = min(1.0, 9 / math.sqrt(d))
    u = (np.arange(_ANGLES) + 0.5) / _ANGLES * 2 * end - end
    density = (1 - u * u) ** ((d - 3) / 2)
    density *= (1 - u * u) / density.sum()
    means = np.square(sigma.derivative(np.multiply.outer(R, u))) @ density
    spline: Callable[[FloatArray], FloatArray] = CubicSpline(R, means)
    return spline
