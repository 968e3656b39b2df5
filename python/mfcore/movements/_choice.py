"""Choose how a run of minimising movements evaluates its features: directly, or from tables where they cost
much.
"""

from __future__ import annotations

from ..measures._measure import Cloud, Density
from ..reductions._model import ReducedModel
from ._bands import BandsEnergy, serves
from ._field import PointEnergy
from ._start import start_atoms
from ._table import TableEnergy

_EVALUATIONS = 40  # evaluations of all features in one step: about ten Newton steps, with second derivatives
_DEAREST = 0.5  # seconds that one of these may take; else the method refuses


def energy_of(reduced: ReducedModel, start: Cloud | Density | None, count: int, threads: int) -> PointEnergy:
    """The energy of points, from tables where features are costly and these serve."""
    points = None if reduced.temperature > 0 else start_atoms(reduced, start, count).points
    if serves(reduced, count if points is None else len(points)):
        return BandsEnergy(reduced, threads)
    if points is None:
        return PointEnergy(reduced, threads)
    field = TableEnergy.around(reduced, threads, points)
    if not isinstance(field, TableEnergy):
        _check_cost(reduced, len(points))
    return field


def _check_cost(reduced: ReducedModel, atoms: int) -> None:
    """Refuse features of which one evaluation takes so long that a step would take minutes."""
    compiled = reduced._compiled
    if compiled is None:
        return
    seconds = 1e-9 * compiled.nanoseconds * atoms
    if seconds > _DEAREST:
        raise ValueError(
            f"mf.JKO would take about {_EVALUATIONS * seconds:.0f} s per step on one core for {atoms} atoms "
            f"and the {len(reduced.weights)} nodes of these features. Give it fewer nodes, as in "
            f"mf.solve(model.reduce(nodes=12), …), whose node_error tells what that costs, or a smaller count"
        )
