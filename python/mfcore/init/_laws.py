"""Laws of rows [a, b, w…] whose blocks are independent: `Gaussian`, `Radial`, `Sphere`, `Product`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from .._base.rng import seed_of
from ..network import Network
from ._scalar import Constant, Normal, ScalarLaw

_STEP = {"a": 0, "b": 1, "w": 2}  # number of the random stream of each block of the row
_PIECE = 1 << 16  # entries of w whose norms are taken together: their squares stay in the cache


class InitialLaw(ABC):
    """A law ρ₀ of rows [a, b, w…]. Base class of all initial laws.

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu, output="trained")
        >>> mf.init.Gaussian(0.1).parts(net)
        Product(a=Normal(mean=0.0, std=0.1), b=None, w=Normal(mean=0.0, std=0.1))
    """

    @abstractmethod
    def parts(self, network: Network) -> Product:
        """The same law as a product over the blocks of this network's row. `Points` has none."""

    def check(self, network: Network, d: float) -> None:
        """Raise ValueError unless this is a law of the rows of `network` for inputs in R^d; d may be ∞."""
        product = self.parts(network)
        for block, stored in (("a", network.has_a), ("b", network.has_b)):
            law = getattr(product, block)
            if stored and law is None:
                raise ValueError(
                    f"init must give a law of {block}, which this network stores: "
                    f"mf.init.Product({block}=…, w=…); got {self!r}"
                )
            if law is not None and not stored:
                option = "output='one'" if block == "a" else "bias='none'"
                raise ValueError(
                    f"init must not give a law of {block}: the network has {option}; got {self!r}"
                )
        w = product.w
        if (
            isinstance(w, ScalarLaw)
            and math.isinf(d)
            and not (network.sphere and w.mean == 0)
            and w != Constant(0)
        ):
            raise ValueError(
                "init must keep |w| finite at d = inf: mf.init.Radial(norm) is N(0, norm²·I/d) for every d; "
                f"got {self!r}"
            )
        if network.sphere and w == Constant(0):
            raise ValueError(f"init must give w a direction on a network with sphere=True, got {self!r}")

    def sample(
        self,
        network: Network,
        d: int,
        count: int,
        rng: Any = None,
        *,
        first: int | None = None,
        threads: int | None = None,
    ) -> FloatArray:
        """Draw `count` neurons.

        Args:
            network: Whose rows they are.
            d: Dimension of the inputs, finite.
            count: Number N of neurons. The first n of them are the same for every N.
            rng: None (fresh randomness), a seed, a SeedSequence or a Generator.
            first: Number of the first of them in a network of which they are a part (default 0): the rows are
                `first` to `first + count - 1` of the whole, to the bit.
            threads: Their number (None: OMP_NUM_THREADS, or all cores). It changes no bit.

        Returns:
            A new array of shape (N, D).

        Raises:
            ValueError: The law does not fit the network, or d is infinite.

        Examples:
            >>> import numpy as np, mfcore as mf
            >>> law, net = mf.init.Radial(1.0), mf.Network(mf.activations.relu)
            >>> whole = law.sample(net, d=3, count=4, rng=0)
            >>> half = law.sample(net, d=3, count=2, rng=0, first=2)
            >>> np.array_equal(half, whole[2:])
            True
        """
        check.instance(network, "network", Network, "an mf.Network")
        d, count = dimension(d), check.count(count, "count")
        check.memory(16.0 * count * network.row(d), "count", count)
        self.check(network, d)
        product, seed = self.parts(network), seed_of(rng)
        theta = np.empty((count, network.row(d)))
        team, start = check.threads(threads), first_row(first)
        for block, where in network.blocks(d).items():
            getattr(product, block).fill(theta[:, where], seed, _STEP[block], team, start)
        return on_the_sphere(theta, network, d)


@configurable
@dataclass(frozen=True)
class Gaussian(InitialLaw):
    """Every coordinate of the row is N(0, std²), independently.

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu, output="trained")
        >>> mf.init.Gaussian(std=0.1).sample(net, d=3, count=800, rng=0).shape
        (800, 4)
    """

    std: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", check.number(self.std, "std", above=0))

    def parts(self, network: Network) -> Product:
        """The same normal law for every stored block."""
        law = Normal(0.0, self.std)
        return Product(a=law if network.has_a else None, b=law if network.has_b else None, w=law)


@configurable
@dataclass(frozen=True)
class Radial(InitialLaw):
    """w ~ N(0, norm²·I/d): |w| = norm·χ_d/√d, which tends to the constant `norm` as d → ∞.

    The one Gaussian start that has a limit, so it is the one to use for reduced problems and for d = inf. By
    itself it starts networks whose row is w alone; for others it is the w of a `Product`.

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu)
        >>> w = mf.init.Radial(0.8).sample(net, d=1000, count=5, rng=0)
        >>> bool(abs((w**2).sum(axis=1) - 0.64).max() < 0.2)
        True
    """

    norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check.number(self.norm, "norm", above=0))

    def parts(self, network: Network) -> Product:
        """This law for w, nothing for a and b."""
        return Product(w=self)

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows, the w of θ from row `first` on, from the stream at address (seed, "init", step)."""
        std = self.norm / math.sqrt(rows.shape[1])
        _core.fill_rows(rows, "normal", 0.0, std, seed, "init", step, threads, first)


@configurable
@dataclass(frozen=True)
class Sphere(InitialLaw):
    """w is uniform on the sphere of this radius around 0.

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu)
        >>> w = mf.init.Sphere(radius=2.0).sample(net, d=5, count=100, rng=0)
        >>> bool(abs((w**2).sum(axis=1) - 4.0).max() < 1e-12)
        True
    """

    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check.number(self.radius, "radius", above=0))

    def parts(self, network: Network) -> Product:
        """This law for w, nothing for a and b."""
        return Product(w=self)

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int, first: int) -> None:
        """Fill rows, the w of θ from row `first` on, from the stream at address (seed, "init", step)."""
        _core.fill_rows(rows, "normal", 0.0, 1.0, seed, "init", step, threads, first)
        for piece in np.array_split(rows, 1 + rows.size // _PIECE):  # views; small temporaries
            piece *= self.radius / np.linalg.norm(piece, axis=1, keepdims=True)


@configurable
@dataclass(frozen=True, kw_only=True)
class Product(InitialLaw):
    """Independent laws of the blocks a, b and w of a row.

    Args:
        a: A scalar law, `Normal`, `Uniform` or `Constant`, if and only if the network stores a.
        b: A scalar law, if and only if the network has a bias.
        w: `Radial`, `Sphere`, or a scalar law that every coordinate of w follows independently.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.init.Product(a=mf.init.Uniform(-1, 1), w=mf.init.Radial(0.8))
        >>> net = mf.Network(mf.activations.tanh, output="trained")
        >>> law.sample(net, d=6, count=10, rng=1).shape
        (10, 7)
    """

    a: ScalarLaw | None = None
    b: ScalarLaw | None = None
    w: ScalarLaw | Radial | Sphere

    def __post_init__(self) -> None:
        scalars = "Normal(mean, std), Uniform(low, high) or Constant(value) from mfcore.init"
        for block, law in (("a", self.a), ("b", self.b)):
            if law is not None and not isinstance(law, ScalarLaw):
                raise TypeError(f"{block} must be {scalars}, got {check.shown(law)}")
        if not isinstance(self.w, ScalarLaw | Radial | Sphere):
            raise TypeError(f"w must be Radial(norm), Sphere(radius), {scalars}, got {check.shown(self.w)}")

    def parts(self, network: Network) -> Product:
        """This law itself."""
        return self


def dimension(d: Any) -> int:
    """The argument `d` as a finite dimension."""
    if isinstance(d, float) and math.isinf(d):
        raise ValueError("d must be finite to draw neurons, got inf; model.reduce() has the laws for d = inf")
    return check.count(d, "d")


def first_row(first: Any) -> int:
    """The argument `first`, the number of a neuron in the whole network."""
    return 0 if first is None else check.integer(first, "first", at_least=0, at_most=2**62)


def on_the_sphere(theta: FloatArray, network: Network, d: int) -> FloatArray:
    """The same rows with |w| = 1 if the network is on the sphere, in place."""
    if network.sphere:
        w = theta[:, network.blocks(d)["w"]]
        for piece in np.array_split(w, 1 + w.size // _PIECE):
            piece /= np.linalg.norm(piece, axis=1, keepdims=True)
    return theta
