"""Initial laws ρ₀ of the neurons: `mfcore.init`.

A law of the whole row (`Gaussian`, `Points`, or of w alone: `Radial`, `Sphere`) or a `Product` of laws of its
blocks a, b and w; `Chi` is a law of a radius, for reduced coordinates. Neuron i is the same whatever the
number of neurons drawn with it: its randomness is an address. On a network with ``sphere=True`` every drawn w
is divided by its length, so that a Gaussian w is then uniform on the sphere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from .._base.rng import seed_of
from ..network import Network
from ._blocks import Chi
from ._scalar import Constant, Normal, ScalarLaw, Symmetric, Uniform, symmetric

__all__ = [
    "Chi",
    "Constant",
    "Gaussian",
    "InitialLaw",
    "Normal",
    "Paired",
    "Points",
    "Product",
    "Radial",
    "ScalarLaw",
    "Sphere",
    "Symmetric",
    "Uniform",
]

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
        self, network: Network, d: int, count: int, rng: Any = None, *, threads: int | None = None
    ) -> FloatArray:
        """Draw `count` neurons.

        Args:
            network: Whose rows they are.
            d: Dimension of the inputs, finite.
            count: Number N of neurons. The first n of them are the same for every N.
            rng: None (fresh randomness), a seed, a SeedSequence or a Generator.
            threads: Their number (None: OMP_NUM_THREADS, or all cores). It changes no bit.

        Returns:
            A new array of shape (N, D).

        Raises:
            ValueError: The law does not fit the network, or d is infinite.
        """
        check.instance(network, "network", Network, "an mf.Network")
        d, count = _dimension(d), check.count(count, "count")
        check.memory(16.0 * count * network.row(d), "count", count)
        self.check(network, d)
        product, seed = self.parts(network), seed_of(rng)
        theta = np.empty((count, network.row(d)))
        team = check.threads(threads)
        for block, where in network.blocks(d).items():
            getattr(product, block).fill(theta[:, where], seed, _STEP[block], team)
        return _on_the_sphere(theta, network, d)


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

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int) -> None:
        """Fill rows, the w of θ, from the stream at address (seed, "init", step)."""
        std = self.norm / math.sqrt(rows.shape[1])
        _core.fill_rows(rows, "normal", 0.0, std, seed, "init", step, threads)


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

    def fill(self, rows: FloatArray, seed: int, step: int, threads: int) -> None:
        """Fill rows, the w of θ, from the stream at address (seed, "init", step)."""
        _core.fill_rows(rows, "normal", 0.0, 1.0, seed, "init", step, threads)
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


@configurable
@dataclass(frozen=True)
class Paired(InitialLaw):
    """Neurons in pairs (a, b, w), (−a, b, w) of another law: the network predicts 0 at t = 0, to the bit.

    The law of one neuron, and so ρ₀ of the limit, is that law with the sign of a drawn at random.

    Args:
        law: The law of the first neuron of each pair: a `Product` with a law of a, or `Gaussian`.

    Examples:
        >>> import mfcore as mf
        >>> law = mf.init.Paired(mf.init.Product(a=mf.init.Constant(1.0), w=mf.init.Radial(1.0)))
        >>> net = mf.Network(mf.activations.relu, output="trained")
        >>> law.sample(net, d=3, count=4, rng=0)[:, 0].tolist()
        [1.0, -1.0, 1.0, -1.0]
    """

    law: InitialLaw

    def __post_init__(self) -> None:
        if not isinstance(self.law, InitialLaw) or isinstance(self.law, Points | Paired):
            raise TypeError(
                f"law must be an initial law such as mf.init.Product(a=…, w=…), got {check.shown(self.law)}"
            )

    def parts(self, network: Network) -> Product:
        """The law of one neuron: that of the pairs with the sign of a drawn at random."""
        product = self.law.parts(network)
        return Product(a=None if product.a is None else symmetric(product.a), b=product.b, w=product.w)

    def check(self, network: Network, d: float) -> None:
        """Raise ValueError unless this is a law of the rows of `network`, which must store a."""
        if not network.has_a:
            raise ValueError(
                "init must be paired on a network with an output weight a, output='trained' or 'fixed', got "
                f"{self!r} with output='one'"
            )
        super().check(network, d)

    def sample(
        self, network: Network, d: int, count: int, rng: Any = None, *, threads: int | None = None
    ) -> FloatArray:
        """Draw `count` neurons, an even number: rows 2i and 2i + 1 are a pair."""
        check.instance(network, "network", Network, "an mf.Network")
        if check.count(count, "count") % 2:
            raise ValueError(f"count must be even for neurons in pairs, got {count}")
        self.check(network, d)
        theta = np.repeat(self.law.sample(network, d, count // 2, rng, threads=threads), 2, axis=0)
        theta[1::2, 0] *= -1.0
        return theta


@configurable
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Points(InitialLaw):
    """Given neurons, one row [a, b, w…] each. They are copied.

    Examples:
        >>> import mfcore as mf
        >>> mf.init.Points([[1.0, 0.0], [0.0, 1.0]])
        Points(theta=[[1.0, 0.0], [0.0, 1.0]])
    """

    theta: FloatArray

    def __init__(self, theta: npt.ArrayLike) -> None:
        rows = check.array(theta, "theta", shape=(None, None)).copy()
        rows.flags.writeable = False
        object.__setattr__(self, "theta", rows)

    def parts(self, network: Network) -> Product:
        """None: given points are not a product of laws."""
        raise ValueError(f"init must be a law of independent blocks here, got {self!r}")

    def check(self, network: Network, d: float) -> None:
        """Raise ValueError unless the rows are as long as those of `network` for inputs in R^d."""
        columns = self.theta.shape[1]
        if math.isinf(d):
            raise ValueError(
                f"init must be a law, not points of {columns} entries, when d = inf; got {self!r}"
            )
        row = network.row(int(d))
        if columns != row:
            raise ValueError(
                f"theta must have rows [{network.layout}] of length {row} for d = {d}, got {columns}"
            )
        if not network.sphere:
            return
        w = network.blocks(int(d))["w"]
        with np.errstate(over="ignore"):  # infinity is refused as what it is: not 1
            off = np.abs(np.linalg.norm(self.theta[:, w], axis=1) - 1.0)
        # What float32 keeps of a unit vector is taken for one; the rest is rescaled by nobody silently.
        if off.max() > 1e-6:
            i = int(off.argmax())
            norm = np.linalg.norm(self.theta[i, w]) if np.isfinite(off[i]) else math.inf
            raise ValueError(
                f"theta must have |w| = 1 on a network with sphere=True, got |w| = {norm:g} in row {i}"
            )

    def sample(
        self, network: Network, d: int, count: int, rng: Any = None, *, threads: int | None = None
    ) -> FloatArray:
        """A copy of the points; `count` must be their number."""
        check.instance(network, "network", Network, "an mf.Network")
        d, count = _dimension(d), check.count(count, "count")
        self.check(network, d)
        if count != len(self.theta):
            raise ValueError(f"count must be {len(self.theta)}, the number of given points, got {count}")
        return _on_the_sphere(self.theta.copy(), network, d)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Points) and np.array_equal(self.theta, other.theta)

    def __hash__(self) -> int:
        return hash((self.theta.shape, self.theta.tobytes()))

    def __repr__(self) -> str:
        n, columns = self.theta.shape
        small = n * columns <= 16
        return f"Points(theta={self.theta.tolist() if small else f'<array {n}×{columns}>'})"


def _dimension(d: Any) -> int:
    if isinstance(d, float) and math.isinf(d):
        raise ValueError("d must be finite to draw neurons, got inf; model.reduce() has the laws for d = inf")
    return check.count(d, "d")


def _on_the_sphere(theta: FloatArray, network: Network, d: int) -> FloatArray:
    if network.sphere:
        w = theta[:, network.blocks(d)["w"]]
        for piece in np.array_split(w, 1 + w.size // _PIECE):
            piece /= np.linalg.norm(piece, axis=1, keepdims=True)
    return theta
