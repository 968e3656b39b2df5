"""Initial laws ρ₀ in reduced coordinates, as products of independent blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG, number_of
from ..init import Points, Radial, Sphere
from ..init._blocks import BlockLaw, Chi, Point, Scalar, SpherePoint, cell_edges, share_among_cells
from ..init._scalar import Constant, Normal, ScalarLaw, nodes_count

if TYPE_CHECKING:
    from ..model import Model


class ReducedInit:
    """The initial law of reduced coordinates, such as ``model.reduce().initial``: independent blocks.

    Args:
        blocks: For each coordinate a law of `mfcore.init`: `Normal`, `Uniform`, `Constant`, or `Chi` for a
            radius. Numbers are coordinates that are known.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.8),
        ... )
        >>> rho0 = model.reduce().initial
        >>> rho0.sample(100, rng=0).shape
        (100, 1)
        >>> r, weights = rho0.quadrature(8)
        >>> round(float(weights @ r[:, 0] ** 2), 12)
        0.64

        For features made by hand, here in coordinates (s, r):

        >>> rho0 = mf.ReducedInit([mf.init.Normal(0.0, 0.1), mf.init.Chi(39, 0.1)])
        >>> rho0.sample(100, rng=0).shape
        (100, 2)
    """

    def __init__(self, blocks: Sequence[BlockLaw | ScalarLaw | float]) -> None:
        if isinstance(blocks, str) or not isinstance(blocks, Sequence) or not blocks:
            raise TypeError(f"blocks must be a list with a law for each coordinate, got {blocks!r}")
        self._blocks = tuple(map(_block, blocks))

    def sample(self, n: int, rng: RNG = None) -> FloatArray:
        """Draw n independent points, shape (n, k)."""
        n = check.count(n, "n")
        check.memory(16.0 * n * len(self.support()), "n", n)
        if not isinstance(rng, np.random.Generator):
            number_of(rng)  # refuses what is no seed
        generator = np.random.default_rng(rng)
        return np.concatenate([block.sample(n, generator) for block in self._blocks], axis=1)

    def quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Points, shape (m, k), and weights of sum 1: the tensor product of n Gauss nodes per coordinate.

        Coordinates that are known have one node.
        """
        n = nodes_count(n)
        varying = [low < high for low, high in self.support()]
        check.memory(16.0 * float(n) ** sum(varying) * len(varying), "n", n)
        points, weights = np.empty((1, 0)), np.ones(1)
        for block in self._blocks:
            nodes, w = block.quadrature(n)
            points = np.concatenate(
                [np.repeat(points, len(nodes), axis=0), np.tile(nodes, (len(points), 1))], axis=1
            )
            weights = np.multiply.outer(weights, w).ravel()
        return points, weights

    def support(self) -> list[tuple[float, float]]:
        """For each coordinate where all but about 1e-12 of the law is; equal numbers where it is known.

        Examples:
            >>> import mfcore as mf
            >>> law = mf.data.MultiIndex(50, [0.0, 1.0], directions=1)
            >>> model = mf.Model(law, mf.Network(mf.activations.relu), mf.init.Product(w=mf.init.Sphere(2.0)))
            >>> [(round(low, 2), round(high, 2)) for low, high in model.reduce().initial.support()]
            [(-1.61, 1.61), (1.18, 2.0)]
        """
        return [limits for block in self._blocks for limits in block.support()]

    def cell_masses(
        self, edges: Sequence[FloatArray], nodes: Sequence[int | None] | None = None
    ) -> FloatArray:
        """Masses of the cells of a tensor grid: exact for laws with a density, sum 1.

        Args:
            edges: Increasing edges of the cells of each coordinate. Mass outside goes to the outermost cells.
            nodes: For each coordinate None, or the number of Gauss nodes that are the centres of its cells.
        """
        edges = cell_edges(edges, len(self.support()))
        if nodes is not None and (not isinstance(nodes, list | tuple) or len(nodes) != len(edges)):
            raise ValueError(f"nodes must be {len(edges)} numbers or None, got {check.shown(nodes)}")
        masses, first = np.ones(()), 0
        for block in self._blocks:
            last = first + len(block.support())
            counts = [nodes_count(n) for n in nodes[first:last] if n is not None] if nodes is not None else []
            cells = edges[first:last]
            if counts:
                points, weights = block.quadrature(counts[0])
                own = share_among_cells(points, weights, cells)
            else:
                own = block.cell_masses(cells)
            masses = np.multiply.outer(masses, own)
            first = last
        return np.asarray(masses / masses.sum())

    def __repr__(self) -> str:
        return f"ReducedInit([{', '.join(map(repr, self._blocks))}])"


def _block(law: BlockLaw | ScalarLaw | float) -> BlockLaw:
    if isinstance(law, ScalarLaw):
        return Scalar(law)
    if isinstance(law, int | float | np.number):
        return Point((check.number(law, "blocks"),))
    if not hasattr(law, "cell_masses"):
        raise TypeError(f"blocks must be laws of one coordinate, such as mf.init.Normal(), got {law!r}")
    return law


def reduced_init(
    model: Model, directions: Sequence[str], dims: Sequence[float], shares: Sequence[float]
) -> ReducedInit | None:
    """ρ₀ of `model` in coordinates [a, b, s_1 … s_P or w_1 … w_d, r_1 …]; None if it is not a product there.

    Args:
        model: The model.
        directions: Names of the directions.
        dims: Dimensions of the radii, possibly infinite.
        shares: At d = inf the shares of |w|² that the radii take.
    """
    if model.init is None or isinstance(model.init, Points):
        return None
    product = model.init.parts(model.network)
    blocks: list[BlockLaw | ScalarLaw] = [law for law in (product.a, product.b) if law is not None]
    law, d, p = product.w, model.d, len(directions)
    if isinstance(law, Radial) and not math.isinf(d):
        law = Normal(0.0, law.norm / math.sqrt(d))
    if law == Constant(0.0):
        return ReducedInit([*blocks, Point((0.0,) * (p + len(dims)))])
    if math.isinf(d):
        if isinstance(law, ScalarLaw):
            return None
        radius = law.norm if isinstance(law, Radial) else law.radius
        along = (0.0,) * p + tuple(radius * math.sqrt(share) for share in shares)
        return ReducedInit([*blocks, Point(along)])
    if isinstance(law, Sphere):
        return ReducedInit([*blocks, SpherePoint(law.radius, p, tuple(dims))])
    assert isinstance(law, ScalarLaw)
    invariant = isinstance(law, Normal) and law.mean == 0
    if not invariant and (dims or directions[0] != "w1"):  # other laws keep their form along the axes alone
        return None
    return ReducedInit([*blocks, *[law] * p, *[Chi(dim, law.std) for dim in dims]])
