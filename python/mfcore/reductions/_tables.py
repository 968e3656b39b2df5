"""Tables of features on a grid of reduced coordinates, and their low-rank compression (eq. (2.6))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _core
from .._base import check
from .._base.check import FloatArray

_MOST_ENTRIES = 1 << 25  # 256 MB, of which compression holds six copies
_MOST_WORK = 1 << 36  # products of one factorisation: some minutes


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Features Φ_q at all points of a tensor grid.

    Args:
        axes: Coordinate values of the cells, one array per coordinate.
        values: Features, shape (n_1, …, n_k, Q).
        weights: Weights p_q of the nodes, by which `compress` measures errors.
    """

    axes: tuple[FloatArray, ...]
    values: FloatArray
    weights: FloatArray

    def compress(self, tolerance: float = 1e-12) -> LowRank:
        """Compress the table to basis · coefficients of low rank.

        What counts is what reaches the potential and the risk: the deviation of √|p_q| Φ_q in any cell is at
        most `tolerance` times the largest entry of this kind.

        Raises:
            ValueError: The table is too large: its compression would take long, or gigabytes.

        Examples:
            >>> import numpy as np
            >>> from mfcore.reductions._tables import Table
            >>> z = np.linspace(0, 1, 50)
            >>> table = Table((z,), np.stack([z, z**2, z + z**2], axis=1), np.ones(3) / 3)
            >>> table.compress().basis.shape
            (50, 2)
        """
        tolerance = check.number(tolerance, "tolerance", above=0)
        nodes = self.values.shape[-1]
        cells = self.values.size // max(nodes, 1)
        if self.values.size > _MOST_ENTRIES or self.values.size * min(cells, nodes) > _MOST_WORK:
            raise ValueError(
                f"values must have at most {_MOST_ENTRIES:.0e} entries for compression, and {_MOST_WORK:.0e} "
                f"entries times the smaller of cells and nodes, got {cells} cells and {nodes} nodes"
            )
        scale = np.sqrt(np.abs(self.weights))
        flat = self.values.reshape(-1, self.values.shape[-1])
        basis, coefficients, error = _core.compress(flat * scale, tolerance)
        return LowRank(basis, coefficients / scale, error)

    def __repr__(self) -> str:
        *cells, q = self.values.shape
        return f"Table({'×'.join(map(str, cells))} cells, {q} nodes)"


@dataclass(frozen=True, eq=False, repr=False)
class LowRank:
    """A compressed table, Φ ≈ basis · coefficients: (n, rank) with orthonormal columns, and (rank, Q), n
    counting grid points in C order.

    `error` is the measured deviation, in the sense of `Table.compress`.
    """

    basis: FloatArray
    coefficients: FloatArray
    error: float

    def __repr__(self) -> str:
        n, rank = self.basis.shape
        return f"LowRank(cells={n}, nodes={self.coefficients.shape[1]}, rank={rank}, error={self.error:.1e})"
