"""Features of networks with |w| = 1 in coordinates (a, b, s), with r = √(1 − |s|²) implied: eq. (5.14)."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..init import Points, Radial, Sphere
from ..init._blocks import BlockLaw, Point, Scalar, SpherePoint
from ..init._scalar import Normal
from ._init import ReducedInit
from ._model import ReducedModel

if TYPE_CHECKING:
    from ..init import Product
    from ..model import Model


def completed(z: FloatArray, outer: int) -> FloatArray:
    """Rows (a, b, s) with r = √(1 − |s|²) appended; s that a step carried past |s| = 1 counts as s/|s|."""
    size = np.maximum(np.linalg.norm(z[:, outer:], axis=1), 1.0)
    s = z[:, outer:] / size[:, None]
    left = 1 - np.square(s).sum(axis=1)
    return np.column_stack([z[:, :outer], s, np.sqrt(np.maximum(left, 0.0))])


class SphereFeatures:
    """Φ_q(a, b, s, √(1 − |s|²)) and the tangential part of its gradient.

    Args:
        whole: Features in (a, b, s, r).
        outer: How many of a and b there are.
    """

    def __init__(self, whole: _core.ReducedFeatures, outer: int) -> None:
        self._whole, self._outer = whole, outer

    def features(self, z: FloatArray) -> FloatArray:
        """Φ_q at rows (a, b, s), shape (n, Q)."""
        return np.asarray(self._whole.features(completed(z, self._outer)))

    def gradients(self, z: FloatArray) -> FloatArray:
        """∂Φ_q less its part along w = (s, r), the entries of (a, b, s), shape (n, Q, k)."""
        full = completed(z, self._outer)
        gradients = np.array(self._whole.gradients(full))
        w = full[:, self._outer :]
        along = np.einsum("nqc,nc->nq", gradients[:, :, self._outer :], w)
        gradients[:, :, self._outer :] -= along[:, :, None] * w[:, None, :]
        return gradients[:, :, :-1]


def on_sphere(model: Model, whole: ReducedModel, core: _core.ReducedFeatures, P: int) -> ReducedModel:
    """The reduction of a network with |w| = 1, from that without the constraint, in (a, b, s_1 … s_P, r)."""
    outer = model.network.row(0)
    if P == 0 or whole.nonnegative[outer + P :] != (True,):
        raise ValueError(
            "data must have directions, and one block of coordinates across them, for a network with "
            f"sphere=True to be reduced, got {model.data!r}; mf.SGD, mf.GD and mf.Particles run"
        )
    if model.temperature > 0:
        raise ValueError(
            f"temperature must be 0 for a network with sphere=True to be reduced, got {model.temperature:g}; "
            "mf.SGD, mf.GD and mf.Particles run with noise on the sphere"
        )
    features = SphereFeatures(core, outer)
    # |w| does not change, so decay acts on a and b alone.
    decays = tuple(decay and c < outer for c, decay in enumerate(whole.decays[:-1]))
    return dataclasses.replace(
        whole,
        coordinates=whole.coordinates[:-1],
        features=features.features,
        gradients=features.gradients,
        volume=(),
        log_volume=0.0,
        nonnegative=(),
        rates=whole.rates[:-1],
        decays=decays,
        initial=_initial(model, P),
        curved=True,
    )


def _initial(model: Model, P: int) -> ReducedInit | None:
    """ρ₀ in (a, b, s): w uniform on the unit sphere, s = 0 at d = ∞; None for other laws."""
    if model.init is None or isinstance(model.init, Points):
        return None
    product: Product = model.init.parts(model.network)
    uniform = isinstance(product.w, Radial | Sphere) or (
        isinstance(product.w, Normal) and product.w.mean == 0
    )
    if not uniform:
        return None
    blocks: list[BlockLaw] = [Scalar(law) for law in (product.a, product.b) if law is not None]
    if math.isinf(model.data.d):
        return ReducedInit([*blocks, Point((0.0,) * P)])
    return ReducedInit([*blocks, SpherePoint(1.0, P, (model.data.d - P,), implied=True)])
