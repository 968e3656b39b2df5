"""The neuron σ*(x; θ) = a·σ(⟨w, x⟩ + b) and the layout of its row of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from . import _check, _core
from .activations import Activation


@dataclass(frozen=True)
class Network:
    """A two-layer network f(x) = ∫ σ*(x; θ) ρ(dθ), σ*(x; θ) = a·σ(⟨w, x⟩ + b).

    A row of parameters is θ = [a, b, w…] with absent parts left out.

    Args:
        activation: σ, from `mfcore.activations`.
        output: ``"one"`` (a = 1, not stored), ``"fixed"`` (stored, does not move) or ``"trained"``.
        bias: ``"none"`` or ``"trained"``.
        sphere: w lives on the unit sphere; every method keeps |w| = 1.

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu, output="trained")
        >>> net.row(d=3)
        4
    """

    activation: Activation
    output: str = "one"
    bias: str = "none"
    sphere: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.activation, Activation):
            raise TypeError(f"activation must come from mfcore.activations, got {self.activation!r}")
        _check.choice(self.output, "output", ("one", "fixed", "trained"))
        _check.choice(self.bias, "bias", ("none", "trained"))
        if not isinstance(self.sphere, bool):
            raise TypeError(f"sphere must be True or False, got {self.sphere!r}")

    @property
    def has_a(self) -> bool:
        """Whether a row stores the output weight a."""
        return self.output != "one"

    @property
    def has_b(self) -> bool:
        """Whether a row stores the bias b."""
        return self.bias != "none"

    def row(self, d: int) -> int:
        """Length D of a row of parameters for inputs in R^d."""
        return d + self.has_a + self.has_b

    @cached_property
    def _core(self) -> _core.Network:
        return _core.Network(self.activation._core, output=self.output, bias=self.bias, sphere=self.sphere)
