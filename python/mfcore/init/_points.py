"""Neurons that are not drawn one by one: in pairs of opposite a, or given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from .._base.registry import configurable
from ..network import Network
from ._laws import InitialLaw, Product, dimension, first_row, on_the_sphere
from ._scalar import symmetric


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
        self,
        network: Network,
        d: int,
        count: int,
        rng: Any = None,
        *,
        first: int | None = None,
        threads: int | None = None,
    ) -> FloatArray:
        """Draw `count` neurons, an even number: rows 2i and 2i + 1 are a pair."""
        check.instance(network, "network", Network, "an mf.Network")
        if check.count(count, "count") % 2:
            raise ValueError(f"count must be even for neurons in pairs, got {count}")
        start = first_row(first)
        if start % 2:
            raise ValueError(f"first must be even for neurons in pairs, got {first}")
        self.check(network, d)
        one_each = self.law.sample(network, d, count // 2, rng, first=start // 2, threads=threads)
        theta = np.repeat(one_each, 2, axis=0)
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
        # A unit vector rounded to float32 is accepted; nothing else is rescaled silently.
        if off.max() > 1e-6:
            i = int(off.argmax())
            norm = np.linalg.norm(self.theta[i, w]) if np.isfinite(off[i]) else math.inf
            raise ValueError(
                f"theta must have |w| = 1 on a network with sphere=True, got |w| = {norm:g} in row {i}"
            )

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
        """A copy of the points: of all, `count` being their number, or of `count` from number `first` on."""
        check.instance(network, "network", Network, "an mf.Network")
        d, count = dimension(d), check.count(count, "count")
        self.check(network, d)
        here, start = len(self.theta), first_row(first)
        if first is None and count != here:
            raise ValueError(f"count must be {here}, the number of given points, got {count}")
        if start + count > here:
            raise ValueError(
                f"first + count must be <= {here}, the number of given points, got {first} + {count}"
            )
        return on_the_sphere(self.theta[start : start + count].copy(), network, d)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Points) and np.array_equal(self.theta, other.theta)

    def __hash__(self) -> int:
        return hash((self.theta.shape, self.theta.tobytes()))

    def __repr__(self) -> str:
        n, columns = self.theta.shape
        small = n * columns <= 16
        return f"Points(theta={self.theta.tolist() if small else f'<array {n}×{columns}>'})"
