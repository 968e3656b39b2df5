"""`Stationary`: a stationary law, and how exactly its numbers are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._base.check import FloatArray


@dataclass(frozen=True, eq=False)
class Stationary:
    """The result of `mf.gibbs`: the law of least free energy, and how exactly its numbers are known.

    ``risk``, ``free_energy`` and ``dual`` are integrals over the coordinates themselves, by panels that are
    halved until two rules agree, whatever `cells` are; only ``measure`` is made of cells. F* is between
    ``dual`` and ``free_energy + error``. With ``points`` given, all numbers are about the laws on these
    points, and nobody knows how near they are to the laws between them: ``error`` is None.

    Args:
        measure: ρ*, in reduced coordinates, on a grid or on points: its own F and R, by `mf.free_energy` and
            `mf.risk`, differ from those here by the error of the cells, of second order in their width.
        risk: R(ρ*).
        free_energy: F(ρ*), the least free energy of all laws, to `error`.
        error: How far ``free_energy`` may be from the least free energy: integrals, rounding, mass outside
            the box, and `node_error`. None on points given.
        risk_error: The same of ``risk``.
        node_error: The part of `error` that comes from averaging over the data by a sum over nodes, from
            `ReducedModel.node_error`; 0 where the nodes are the data.
        dual: A lower bound of the free energy of all laws: D(f), the value of the concave dual, less `error`.
        gap: F(ρ*) − D(f) ≥ 0, computed without cancellation: what the search for f left. It does not contain
            `error`, which is larger as a rule; ``free_energy - dual`` is the sum of both.
        f: Values f_q at the nodes that maximise D; the start of another search.
        temperature: 1/β.
        steps: Newton steps on the cells or points.
    """

    measure: Any  # a Density or a Cloud, which the arguments of mf.gibbs decide
    risk: float
    free_energy: float
    dual: float
    gap: float
    f: FloatArray = field(repr=False)
    temperature: float
    steps: int
    error: float | Any = None
    risk_error: float | Any = None
    node_error: float = 0.0

    def __repr__(self) -> str:
        if self.error is None:
            errors = f"error=unknown: on points given, gap={self.gap:.1e} among laws on them"
        else:
            errors = (
                f"error={self.error:.1e}, risk_error={self.risk_error:.1e}, gap={self.gap:.1e} without error"
            )
        return (
            f"Stationary(temperature={self.temperature:g}, risk={self.risk:.10g}, "
            f"free_energy={self.free_energy:.10g}, {errors}, measure={self.measure!r})"
        )
