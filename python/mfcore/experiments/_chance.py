"""How far above its limit the risk of N neurons is, as independent draws of the law would be."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measures._functions import U
from ..measures._measure import Cloud
from ..model import Model
from ._source import Because


def sampling_gap(model: Model, law: Any) -> float:
    """∫U(θ, θ)dρ − ∫∫U dρdρ (eq. (10.1)) of isotropic classes for a measure of radii.

    N independent neurons of it have this over N more risk.
    """
    cloud = law if isinstance(law, Cloud) else law.as_cloud()
    heavy = cloud.weights > 1e-12
    radii, mass = cloud.points[heavy], cloud.weights[heavy]
    alone = mass @ U(model, radii * np.eye(1, int(model.d))).diagonal()  # U(θ, θ) depends on |w| only
    return float(alone - mass @ U(model.reduce(), radii) @ mass)


def excess(model: Model, law: Any, neurons: int, stated: float) -> Because:
    """A reason for a risk above that of the limit: between a tenth and one and a half times sampling's.

    Training takes back a part of the fluctuations, most of it near the end; finite steps add to them.
    `stated` is the error of the limit's risk.
    """
    gap = sampling_gap(model, law)
    why = (
        f"N = {neurons}: independent draws of the law would add {gap:.3g}/N, of which training leaves a part"
    )
    return Because(why, 0.1 * gap / neurons - stated, 1.5 * gap / neurons + stated)
