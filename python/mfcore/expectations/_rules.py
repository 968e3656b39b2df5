"""How the expectation over the data is taken: exactly, or over a fixed set of Monte-Carlo samples."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING

from .._base import check
from .._base.registry import configurable
from .._base.rng import RNG, seed_of
from ._evaluator import Evaluator, Scaled
from ._exact import GaussianExact, supports
from ._nodes import Nodes
from ._zonal import SphereExact
from ._zonal_series import supports as supports_on_sphere

if TYPE_CHECKING:
    from ..model import Model


@configurable
@dataclass(frozen=True)
class Exact:
    """Average over the data exactly: closed forms and quadrature for Gaussian laws, sums for finite ones.

    This is the default. Inputs on the sphere have series in the cosine, which end for polynomials σ; of σ
    without kinks on |w| = 1 they leave out a share of at most 1e-12 of E σ².

    A law or an activation without an exact form raises a `ValueError` that says why and names `MonteCarlo`.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=3, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> mf.V(model, [[1.0, 0.0, 0.0]], expectation=mf.Exact()).round(6)
        array([-0.199471])
    """

    def evaluator(self, model: Model, threads: int = 0) -> Evaluator:
        """The expectations of `model` under this rule."""
        law, network = model.data, model.network
        if network.scale != 1:
            return Scaled(self.evaluator(model._unit, threads), network.scale**2)
        nodes = law._node_sampler
        if nodes is not None:
            return Nodes(network, nodes, 0, nodes.size, law.noise_power(), threads)
        if (label := law._sphere()) is not None:
            if reason := supports_on_sphere(network, label):
                raise ValueError(f"expectation must be mf.MonteCarlo(samples, rng) here: {reason}")
            return SphereExact(network, label, threads)
        parts = law._parts()
        reason = (
            f"the expectation over {law!r} has no closed form" if parts is None else supports(network, parts)
        )
        if parts is None or reason:
            raise ValueError(f"expectation must be mf.MonteCarlo(samples, rng) here: {reason}")
        return GaussianExact(network, parts, threads)


@configurable
@dataclass(frozen=True)
class MonteCarlo:
    """The average over a fixed set of samples: every use of one object sees the same samples.

    Args:
        samples: How many, > 0. They are drawn in a stream, so memory does not grow with their number.
        rng: None, int, SeedSequence or Generator; read once, at construction.
        seed: The 64-bit seed that another object shows, instead of `rng`: then the samples are the same.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=3, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> v = mf.V(model, [[1.0, 0.0, 0.0]], expectation=mf.MonteCarlo(100_000, rng=0))
        >>> bool(abs(v[0] + 0.199471) < 0.02)
        True
    """

    samples: int
    rng: InitVar[RNG] = None
    seed: int | None = None

    def __post_init__(self, rng: RNG) -> None:
        object.__setattr__(self, "samples", check.count(self.samples, "samples"))
        if self.seed is None:
            object.__setattr__(self, "seed", seed_of(rng))
        elif rng is not None:
            raise ValueError(f"seed must be left out when rng is given, got {self.seed} and {rng!r}")
        else:
            object.__setattr__(self, "seed", check.integer(self.seed, "seed", at_least=0, at_most=2**64 - 1))

    def evaluator(self, model: Model, threads: int = 0) -> Evaluator:
        """The expectations of `model` under this rule."""
        if model.network.scale != 1:
            return Scaled(self.evaluator(model._unit, threads), model.network.scale**2)
        return Nodes(model.network, model.data._iid_sampler, int(self.seed or 0), self.samples, 0.0, threads)


Expectation = Exact | MonteCarlo
