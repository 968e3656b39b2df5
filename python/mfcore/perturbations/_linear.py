"""The linearised flow of weighted atoms, as products with vectors: own Hessian and coupling (eq. (13.1))."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..measures._evaluators import evaluator_of
from ..measures._measure import as_measure
from ..measures._place import AnyModel, MeasureLike, row_of, target_of
from ..reductions._model import ReducedModel
from ..runs._reduced import featured
from ._differences import OfGradients
from ._features import OfFeatures
from ._frames import Frames
from ._on_nodes import OnNodes, nodes_of


class Products(Protocol):
    """Derivatives of ∇Ψ, without decay, at the atoms of a measure. Rows are those of all atoms, (m, D)."""

    gradient: FloatArray  # ∇Ψ at the atoms
    error: float  # of a product with a unit vector; 0 where derivatives are exact
    held: npt.NDArray[np.bool_] | None  # entries at rest at the end of a radius, (m, D)

    def own(self, v: FloatArray) -> FloatArray:
        """H_i v_i: the change of ∇Ψ at an atom that moves in the field of those at rest."""
        ...

    def coupled(self, v: FloatArray) -> FloatArray:
        """H_i v_i + Σ_j w_j K_ij v_j: the same as all atoms move."""
        ...


class Linearisation:
    """The flow near a measure of atoms: ∇Ψ_λ, products with H_λ and H_λ + K, and the frames they act in.

    Args:
        model: In whose coordinates the measure is.
        points: Atoms, shape (m, D).
        weights: Their masses.
        products: Derivatives of ∇Ψ there.
    """

    def __init__(self, model: AnyModel, points: FloatArray, weights: FloatArray, products: Products) -> None:
        self.model, self.points, self.weights, self.products = model, points, weights, products
        rates, decays, sphere = _speeds(model)
        self.frames = Frames(rates, points, sphere)
        self.decay = np.where(decays, model.ridge, 0.0)
        self.gradient = products.gradient + self.decay * points
        held = products.held
        if held is None:
            self.free = np.ones((len(points), self.frames.size), dtype=bool)
        else:
            self.free = ~held[:, rates > 0]
            self.gradient = np.where(held, 0.0, self.gradient)
        # On the sphere the constraint adds −⟨w, ∇_wΨ_λ⟩ to the Hessian across w: eq. (13.4).
        self._bend = np.zeros((len(points), self.frames.size))
        if sphere is not None:
            along = np.sum(points[:, sphere:] * self.gradient[:, sphere:], axis=1)
            self._bend[:, self.frames.size - self.frames.tangent :] = along[:, None]

    @property
    def error(self) -> float:
        """Error of the products so far with unit vectors."""
        return self.products.error

    def own(self, c: FloatArray) -> FloatArray:
        """H_i c_i in the frames of the atoms, (m, k) to (m, k)."""
        v = self.frames.up(c)
        return np.asarray(self.frames.down(self.products.own(v) + self.decay * v) - self._bend * c)

    def coupled(self, c: FloatArray) -> FloatArray:
        """H_i c_i + Σ_j w_j K_ij c_j in the frames of the atoms."""
        v = self.frames.up(c)
        return np.asarray(self.frames.down(self.products.coupled(v) + self.decay * v) - self._bend * c)


def linearise(
    model: AnyModel, measure: MeasureLike, expectation: Expectation | None, threads: int | None
) -> Linearisation:
    """The linearised flow near a measure; points that coincide are one atom."""
    target = target_of(model, measure)
    if isinstance(target, ReducedModel) and target.pairs is not None:
        target = featured(model)
    points, weights = merged(*as_measure(measure, "measure", row_of(target)))
    return at_atoms(target, points, weights, expectation, threads)


def at_atoms(
    target: AnyModel,
    points: FloatArray,
    weights: FloatArray,
    expectation: Expectation | None,
    threads: int | None,
) -> Linearisation:
    """The same for atoms that are known to differ, in the coordinates of the model."""
    evaluator = evaluator_of(target, expectation, threads)  # checks the arguments, too
    products: Products
    if isinstance(target, ReducedModel):
        products = OfFeatures(target, points, weights)
    elif (nodes := nodes_of(target, expectation)) is not None:
        products = OnNodes(target, points, weights, *nodes)
    else:
        products = OfGradients(evaluator, points, weights, bool(target.network.activation.kinks))
    return Linearisation(target, points, weights, products)


def merged(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The atoms of a measure, in the order of their first points, and their masses."""
    _, first, atom = np.unique(points, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(points):
        return points, weights
    order = np.argsort(first)
    masses = np.zeros(len(first))
    np.add.at(masses, atom.ravel(), weights)
    return np.ascontiguousarray(points[first[order]]), masses[order]


def _speeds(model: AnyModel) -> tuple[FloatArray, npt.NDArray[np.bool_], int | None]:
    """Rates of the entries of a row, which of them decay, and where w on the sphere begins."""
    if isinstance(model, ReducedModel):
        return np.array(model.rates), np.array(model.decays, dtype=bool), None
    network, rates = model.network, model._entry_speeds
    return rates, rates > 0, network.row(0) if network.sphere else None
