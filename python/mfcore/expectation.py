"""How the expectation over the data is taken: exactly, or over a fixed set of Monte-Carlo samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import _check
from ._evaluator import Evaluator
from ._exact import GaussianExact, supports
from ._nodes import Nodes
from ._rng import RNG, seed_of

if TYPE_CHECKING:
    from .model import Model


@dataclass(frozen=True)
class Exact:
    """Closed forms and quadrature for Gaussian laws, sums over the nodes of finite laws. The default.

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
        nodes = law._node_sampler
        if nodes is not None:
            return Nodes(network, nodes, 0, nodes.size, law.noise_power(), threads)
        parts = law._parts()
        reason = (
            f"the expectation over {law!r} has no closed form" if parts is None else supports(network, parts)
        )
        if parts is None or reason:
            raise ValueError(f"expectation must be mf.MonteCarlo(samples, rng) here: {reason}")
        return GaussianExact(network, parts, threads)


@dataclass(frozen=True)
class MonteCarlo:
    """The average over a fixed set of samples: every use of one object sees the same samples.

    Args:
        samples: How many, > 0. They are drawn in a stream, so memory does not grow with their number.
        rng: None, int, SeedSequence or Generator; read once, at construction.

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
    rng: RNG = field(default=None, repr=False, compare=False)
    seed: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", _check.integer(self.samples, "samples", at_least=1))
        object.__setattr__(self, "seed", seed_of(self.rng))

    def evaluator(self, model: Model, threads: int = 0) -> Evaluator:
        """The expectations of `model` under this rule."""
        return Nodes(model.network, model.data._iid_sampler, self.seed, self.samples, 0.0, threads)


Expectation = Exact | MonteCarlo
