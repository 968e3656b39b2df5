"""`mf.explain`: what the reduction of a model is, which rungs run on it, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .._base import check
from ..atoms._atoms import Atoms
from ..atoms._rung import default_atoms
from ..density._cells import initial_grid
from ..density._pde import PDE
from ..expectations._rules import Exact
from ..measures._place import AnyModel
from ..model import Model
from ..movements._rung import check_moves
from ..reductions._model import ReducedModel
from ..runs._reduced import in_motion, model_of, reduced_of

_STEP = 0.1  # of the scheme that atoms with noise are asked for with


@dataclass(frozen=True)
class Explanation:
    """What a model's reduction is and which rungs run on it, as returned by `mf.explain`.

    Args:
        coordinates: Reduced coordinates; empty if there are none.
        reduction: What V and U are made of there, in words, or why there is no reduction.
        costs: Rungs that run, each with what one evaluation of ∇Ψ takes, or one step of SGD.
        refused: Rungs that do not run, each with the sentence that it would raise.
    """

    coordinates: tuple[str, ...]
    reduction: str
    costs: dict[str, str]
    refused: dict[str, str]

    def __str__(self) -> str:
        lines = [f"reduction: {self.reduction}"]
        lines += [f"mf.{name}: {cost}" for name, cost in self.costs.items()]
        lines += [f"mf.{name} does not run: {why}" for name, why in self.refused.items()]
        return "\n".join(lines)


def explain(model: AnyModel) -> Explanation:
    """Say what the reduction of a model is, which rungs run on it, and at what cost per step.

    Costs are orders of magnitude, in numbers of pairs, features or products; nothing is run or timed.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> relu = mf.Network(mf.activations.relu)
        >>> init = mf.init.Gaussian(std=0.3)
        >>> model = mf.Model(mf.data.Teacher(relu, 3 * np.eye(3, 20)), relu, init)
        >>> found = mf.explain(model)
        >>> found.coordinates
        ('s1', 's2', 's3', 'r')
        >>> found.costs["Atoms"]
        '512² pairs of atoms × 8 cosines'
        >>> found.refused["PDE"].split(", got")[0]
        'model must have one or two moving coordinates for a density on a grid'
    """
    if not isinstance(model, ReducedModel):
        check.instance(model, "model", Model, "an mf.Model or mf.ReducedModel")
    costs: dict[str, str] = {}
    refused: dict[str, str] = {}

    def ask(name: str, cost: Callable[[], str]) -> None:
        try:
            costs[name] = cost()
        except (ValueError, TypeError) as error:
            refused[name] = str(error)

    for name in ("SGD", "GD", "Particles"):
        ask(name, lambda name=name: _of_network(model, name))  # type: ignore[misc]
    for name, of_limit in (("Atoms", _of_atoms), ("PDE", _of_density), ("JKO", _of_movements)):
        ask(name, lambda of_limit=of_limit: of_limit(model))  # type: ignore[misc]
    try:
        reduced = reduced_of(model)
    except ValueError as error:
        return Explanation((), f"none: {error}", costs, refused)
    return Explanation(reduced.coordinates, _described(reduced), costs, refused)


def _described(reduced: ReducedModel) -> str:
    names = ", ".join(reduced.coordinates)
    if reduced.pairs is not None:
        made = (
            f"closed forms of pairs in ({names}), U averaged over {_several(reduced.pairs.cosines, 'cosine')}"
        )
    else:
        made = f"features in ({names}) at {_several(len(reduced.weights), 'node')} of the data"
    if reduced.node_error is None:
        return made
    return f"{made}, error {reduced.node_error:.0e} of the size of a neuron"


def _of_network(model: AnyModel, name: str) -> str:
    whole = model_of(model)
    if math.isinf(whole.d):
        raise ValueError(f"d must be finite for neurons, got {whole.data!r}")
    d = int(whole.d)
    if name == "SGD":
        return f"N neurons × {d} inputs"
    nodes = whole.data._nodes
    if nodes:
        return f"N neurons × {_several(nodes, 'sample')} × {d} inputs"
    try:
        Exact().evaluator(whole)
    except ValueError:
        return f"N neurons × samples × {d} inputs, with expectation=mf.MonteCarlo(samples)"
    return f"N² pairs of neurons × {d} inputs"


def _of_atoms(model: AnyModel) -> str:
    reduced = in_motion(model)
    noisy = reduced.temperature > 0
    count = default_atoms(Atoms(method="heun", step=_STEP) if noisy else Atoms(), reduced)
    if reduced.pairs is not None:
        return f"{count}² pairs of atoms × {_several(reduced.pairs.cosines, 'cosine')}"
    return f"{count} atoms × {_several(len(reduced.weights), 'node')}"


def _of_density(model: AnyModel) -> str:
    reduced = reduced_of(model)
    grid, _ = initial_grid(reduced, PDE())
    return f"{'×'.join(map(str, grid.shape))} cells × compressed features"


def _of_movements(model: AnyModel) -> str:
    reduced = reduced_of(model)
    check_moves(reduced)
    if reduced.pairs is not None:
        return "atoms × nodes of the data, which it makes by itself"
    return f"atoms × {_several(len(reduced.weights), 'node')}"


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
