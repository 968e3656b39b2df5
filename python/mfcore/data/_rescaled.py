"""`Rescaled`, a law with its labels times a factor: what a network of another scale has to learn.

Not a public law: models make one for themselves (`Model._unit`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .. import _core
from ._law import DataLaw, set_field
from ._parts import GaussianPart, HermiteLabel, Label, NetworkLabel, SphereLabel


@dataclass(frozen=True, eq=False, repr=False)
class Rescaled(DataLaw):
    """The law of (x, factor·y), (x, y) distributed by another law."""

    law: DataLaw
    factor: float
    d: float = field(init=False)

    def __post_init__(self) -> None:
        set_field(self, "d", self.law.d)

    def target_power(self) -> float | None:
        """E (factor·y)²."""
        power = self.law.target_power()
        return None if power is None else power * self.factor**2

    def noise_power(self) -> float:
        """E Var(factor·y | x)."""
        return self.law.noise_power() * self.factor**2

    def _make_sampler(self, d: int) -> _core.Sampler:
        return _core.scaled_labels(self.law._sampler, self.factor)

    @property
    def _iid_sampler(self) -> _core.Sampler:
        return _core.scaled_labels(self.law._iid_sampler, self.factor)

    def _run_sampler(self) -> _core.Sampler:
        return _core.scaled_labels(self.law._run_sampler(), self.factor)

    @property
    def _node_sampler(self) -> _core.Sampler | None:
        nodes = self.law._node_sampler
        return None if nodes is None else _core.scaled_labels(nodes, self.factor)

    def _parts(self) -> list[GaussianPart] | None:
        parts = self.law._parts()
        if parts is None:
            return None
        factor = self.factor
        return [replace(part, label=_times(part.label, factor), noise=part.noise * factor) for part in parts]

    def _sphere(self) -> SphereLabel | None:
        label = self.law._sphere()
        if label is None:
            return None
        return replace(label, factor=label.factor * self.factor, noise=label.noise * abs(self.factor))


def _times(label: Label, factor: float) -> Label:
    if isinstance(label, HermiteLabel):
        return replace(label, coefficients={a: c * factor for a, c in label.coefficients.items()})
    if isinstance(label, NetworkLabel):
        return replace(label, factor=label.factor * factor)
    return label * factor
