"""The model: what is learned (data), by what (network), from where (init), under which forces."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import data as data_laws
from ._base import check, course
from ._base.check import FloatArray
from ._base.course import Course, Force, forces_at
from ._base.registry import configurable, configurable_module
from .data import DataLaw
from .data._rescaled import Rescaled
from .init import InitialLaw
from .network import Network

if TYPE_CHECKING:
    from .reductions._model import ReducedModel

configurable_module(data_laws)


@configurable
@dataclass(frozen=True)
class Model:
    """A learning problem, the same for every rung of the ladder.

    Neurons follow dθ = −∇Ψ_λ(θ; ρ) dt + √(2·temperature) dB with Ψ_λ = Ψ + ridge·|θ|²/2, the decay acting on
    trained blocks only. Without noise and decay this descends the risk R(ρ) = E(y − f_ρ)².

    Args:
        data: The law P(x, y), from `mfcore.data`.
        network: The neuron σ*(x; θ).
        init: The law ρ₀ of the neurons, from `mfcore.init`. None: methods must be given their start.
        ridge: λ ≥ 0: a number or, for `mf.solve` alone, a function of t, or rows (t, value) between which it
            is linear and beyond which it is constant, as files hold it. See `Model.at`.
        temperature: 1/β ≥ 0, in the same ways; as a function of t, > 0 throughout.
        rates: Speed of trained blocks relative to the clock, such as ``{"a": 10.0}``; 1 where left out.

    Examples:
        >>> import math, mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=320, delta=0.5),
        ...     network=mf.Network(mf.activations.relu, output="trained"),
        ...     init=mf.init.Product(a=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.4)),
        ...     rates={"a": 2.0},
        ... )
        >>> model.d, model.row
        (320, 321)
        >>> model.replace(ridge=0.1).ridge
        0.1

        Annealing, a temperature that falls while the model learns:

        >>> cooled = model.replace(ridge=0.1, temperature=lambda t: 1e-4 / math.log(math.e + t))
        >>> run = mf.solve(cooled, mf.SGD(neurons=50, step=1e-3), horizon=2.0, rng=0)
        >>> run.meta["stretches"] > 10, cooled.at(0.0).temperature
        (True, 0.0001)
    """

    data: DataLaw
    network: Network
    init: InitialLaw | Any = None  # not InitialLaw | None: who has given it need not show that it is there
    _: KW_ONLY
    ridge: Force = 0.0
    temperature: Force = 0.0
    rates: Mapping[str, float] | None = field(default=None, hash=False)

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(
            self,
            data: DataLaw,
            network: Network,
            init: InitialLaw | None = None,
            *,
            ridge: Force | npt.ArrayLike = 0.0,
            temperature: Force | npt.ArrayLike = 0.0,
            rates: Mapping[str, float] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        check.instance(self.data, "data", DataLaw, "a data law from mfcore.data")
        check.instance(self.network, "network", Network, "an mf.Network")
        if self.init is not None:
            check.instance(self.init, "init", InitialLaw, "an initial law from mfcore.init")
            self.init.check(self.network, self.data.d)
        for name in ("ridge", "temperature"):
            object.__setattr__(self, name, course.force(getattr(self, name), name))
        if self.rates is not None:
            object.__setattr__(self, "rates", self._checked_rates(self.rates) or None)

    @property
    def d(self) -> float:
        """Dimension of the inputs, that of the data; may be ``math.inf``."""
        return self.data.d

    @cached_property
    def row(self) -> int | None:
        """Length D of a row [a, b, w…] of parameters; None when d = inf."""
        return None if math.isinf(self.d) else self.network.row(int(self.d))

    @cached_property
    def _speeds(self) -> dict[str, float]:
        """The rates of a, b and w, 0 of a block that is absent or fixed."""
        given, trained = self.rates or {}, self.network.trained
        return {block: given.get(block, 1.0) if block in trained else 0.0 for block in "abw"}

    @cached_property
    def _entry_speeds(self) -> FloatArray:
        """The rate of every entry of a row, 0 of those that do not move."""
        assert self.row is not None  # neurons: d is finite
        speeds = np.empty(self.row)
        for block, where in self.network.blocks(int(self.d)).items():
            speeds[where] = self._speeds[block]
        speeds.flags.writeable = False  # everybody's
        return speeds

    @cached_property
    def _unit(self) -> Model:
        """A model of scale 1 whose neurons move as those of this one: eq. (11.1).

        It learns y/α, α² times as fast, under 1/α² of the decay and of the noise.
        """
        scale = self.network.scale
        if scale == 1:
            return self
        square = scale**2
        speeds = self.rates or {}
        return dataclasses.replace(
            self,
            data=Rescaled(self.data, 1 / scale),
            network=dataclasses.replace(self.network, scale=1.0),
            ridge=self.ridge / square,
            temperature=self.temperature / square,
            rates={block: square * speeds.get(block, 1.0) for block in self.network.trained},
        )

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """Keep what functions make of the model alone for the next call: one entry for each use."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}

    def reduce(self, *, limit: bool = False, nodes: int | None = None) -> ReducedModel:
        """The model in the few coordinates that its symmetry leaves, in which the limit runs.

        The law must have a symmetry, or neurons at most three parameters.

        Sums over nodes are averages over the data to 1e-12 where features are smooth. In one radius kinks
        of a piecewise linear σ are integrated exactly: V, U, Ψ, ∇Ψ and the risk are as accurate from d = 3
        on, ∇Ψ to 1e-9 at d = 2 and to 1e-6 at d = 1. Beside one direction of Gaussian x, V is as accurate
        at any radius; U and ∇Ψ are sums of products at nodes that all neurons share, and lose 1e-5 in U
        where steps are sharp (r ≪ s), 4e-8 at r = s/4 across three dimensions, 3e-10 across seven. Beside
        more directions nodes do not see kinks of r ≪ s at all. Two radii of one size are as accurate from d
        = 38 on, and lose 1e-3 in ∇Ψ where r₂ is far smaller than an r₁ of three dimensions. `node_error` is
        measured where kinks are sharp, and `Trajectory.error` contains it.

        Closed forms of pairs (eq. (5.15)) take the place of nodes, in ``reduced.pairs``, for Gaussian inputs
        with the labels of an `mf.data.Teacher`, or of an `mf.data.MultiIndex` whose link is a polynomial (to
        1e-12, as 2 cos z is) if σ has kinks and there are several directions. V is exact and U an average
        over one angle, whose error `node_error` tells. They have no features: ``nodes=`` gives these, and
        methods that need them take nodes of a `Model` by themselves. With one direction and trained output
        weights `mf.Atoms` takes the pairs of a `Model` in the place of its nodes.

        Networks with ``sphere=True`` have coordinates (a, b, s…) on |w| = 1, where the norm across the
        directions is implied, for laws with directions (`mf.data.MultiIndex` and its like).

        Args:
            limit: Use the features of the limit d → ∞ although d is finite; the initial law and the volume
                exponents stay those of d.
            nodes: Nodes per averaged variable, in place of the automatic number (for 1e-12 where features are
                smooth; `node_error` of the result tells).

        Raises:
            ValueError: No reduction is known; the message says what has one.

        Examples:
            >>> import mfcore as mf
            >>> model = mf.Model(
            ...     data=mf.data.IsotropicGaussians(d=320, delta=0.5),
            ...     network=mf.Network(mf.activations.relu),
            ...     init=mf.init.Radial(0.4),
            ... )
            >>> reduced = model.reduce()
            >>> reduced.coordinates, reduced.volume
            (('r',), (319.0,))
            >>> model.reduce(limit=True).features([2.0]).round(6)
            array([[1.196827, 0.398942]])
        """
        from .reductions._of_laws import build  # a room below this one

        return build(self, check.boolean(limit, "limit"), nodes)

    def at(self, t: float) -> Model:
        """The model with the numbers that its temperature and its ridge are at time t.

        What belongs to one temperature, such as `mf.gibbs`, takes this model. `mf.solve` follows functions of
        t by forces that are constant on stretches, where they are those of the middle. A stretch ends where
        one of them has changed by 2 % (by 10⁻⁴ of its largest value so far, or 0.2 % of what it rises to, if
        more), at knots of rows, and at the end of a step; ``meta["stretches"]`` of a trajectory counts them.
        What a function does between nine even points of a stretch goes unnoticed.

        Examples:
            >>> import mfcore as mf
            >>> model = mf.Model(
            ...     mf.data.Dataset([[1.0]], [1.0]), mf.Network(mf.activations.tanh),
            ...     ridge=0.1, temperature=[[0.0, 1.0], [10.0, 0.1]],
            ... )
            >>> model.at(5.0).temperature
            0.55
        """
        return forces_at(self, check.number(t, "t", at_least=0))

    def replace(self, **changes: Any) -> Model:
        """A copy with some fields changed, checked anew."""
        known = [entry.name for entry in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                hint = check.did_you_mean(name, known)
                raise TypeError(
                    f"replace takes the fields of a model ({', '.join(known)}), got {name!r}{hint}"
                )
        return dataclasses.replace(self, **changes)

    def _checked_rates(self, rates: Any) -> dict[str, float]:
        check.instance(rates, "rates", Mapping, 'a mapping such as {"a": 2.0}')
        trained = self.network.trained
        for block in rates:
            if block not in trained:
                stored = {"a": self.network.has_a, "b": self.network.has_b}.get(block, False)
                why = "is fixed" if stored else "does not exist"
                raise ValueError(
                    f"rates must name trained blocks ({', '.join(trained)}), got {block!r}, "
                    f"which {why} in {self.network!r}"
                )
        return {block: check.number(rate, f"rates[{block!r}]", above=0) for block, rate in rates.items()}

    def __repr__(self) -> str:
        shown = [f"data={self.data!r}", f"network={self.network!r}"]
        for entry in dataclasses.fields(self)[2:]:
            value = getattr(self, entry.name)
            if isinstance(value, Course) or value != entry.default:
                shown.append(f"{entry.name}={value!r}")
        return f"Model({', '.join(shown)})"

    def __str__(self) -> str:
        lines = [f"  {entry.name:<12} {getattr(self, entry.name)!r}" for entry in dataclasses.fields(self)]
        return "\n".join(["Model", *lines])
