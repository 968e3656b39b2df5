"""The neuron σ*(x; θ) = a·σ(⟨w, x⟩ + b) and the layout of its row of parameters."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from . import _core, activations
from ._base import check, registry
from .activations import Activation

registry.configurable_module(activations)

_LEAST = 1e-70  # of the scale: its square, and that of labels over it, are finite


@registry.configurable
@dataclass(frozen=True)
class Network:
    """A two-layer network f(x) = ∫ σ*(x; θ) ρ(dθ), σ*(x; θ) = α·a·σ(⟨w, x⟩ + b) with scale α.

    A row of parameters is θ = [a, b, w…] with absent parts left out.

    Args:
        activation: σ, from `mfcore.activations`.
        output: ``"one"`` (a = 1, not stored), ``"fixed"`` (stored, does not move) or ``"trained"``.
        bias: ``"none"``, ``"fixed"`` (stored, does not move) or ``"trained"``.
        sphere: w lives on the unit sphere; every method keeps |w| = 1.
        scale: α > 0, so that N neurons predict f = α·N⁻¹Σ a·σ. √N is the scale of neural tangent kernels; as
            α → ∞ at fixed t·α² neurons stay where they are and f follows its linearisation, if f is 0 at the
            start (`mf.init.Paired`).

    Examples:
        >>> import mfcore as mf
        >>> net = mf.Network(mf.activations.relu, output="trained")
        >>> net.row(d=3)
        4
        >>> net.layout, net.trained
        ('a, w…', ('a', 'w'))
    """

    activation: Activation
    _: KW_ONLY
    output: str = "one"
    bias: str = "none"
    sphere: bool = False
    scale: float = 1.0

    def __post_init__(self) -> None:
        what = "an activation from mfcore.activations"
        if isinstance(self.activation, str):
            named = [name for name in registry.public_names(activations) if name.islower() and name != "get"]
            close = difflib.get_close_matches(self.activation.lower(), named, n=1)
            hint = f"did you mean mf.activations.{close[0]}?" if close else f"there are {', '.join(named)}"
            raise TypeError(f"activation must be {what}, got {self.activation!r}; {hint}")
        check.instance(self.activation, "activation", Activation, what)
        _check_block(self.output, "output", ("one", "fixed", "trained"))
        _check_block(self.bias, "bias", ("none", "fixed", "trained"))
        object.__setattr__(self, "sphere", check.boolean(self.sphere, "sphere"))
        scale = check.number(self.scale, "scale", above=0)
        object.__setattr__(self, "scale", check.number(scale, "scale", at_least=_LEAST, at_most=1 / _LEAST))

    @property
    def has_a(self) -> bool:
        """Tell whether a row stores the output weight a."""
        return self.output != "one"

    @property
    def has_b(self) -> bool:
        """Tell whether a row stores the bias b."""
        return self.bias != "none"

    @property
    def trained(self) -> tuple[str, ...]:
        """The blocks that move, in the order of the row: those of a, b and w."""
        moving = {"a": self.output == "trained", "b": self.bias == "trained", "w": True}
        return tuple(block for block, moves in moving.items() if moves)

    @property
    def layout(self) -> str:
        """The row in words, such as ``a, b, w…``."""
        return "a, " * self.has_a + "b, " * self.has_b + "w…"

    @property
    def still(self) -> tuple[int, ...]:
        """The columns of a row that are stored and do not move."""
        if self.output == "one" and self.bias == "none":
            return ()
        stored = ["a"] * self.has_a + ["b"] * self.has_b
        return tuple(k for k, block in enumerate(stored) if block not in self.trained)

    def row(self, d: int) -> int:
        """Length D of a row of parameters for inputs in R^d."""
        return check.integer(d, "d", at_least=0) + self.has_a + self.has_b

    def blocks(self, d: int) -> dict[str, slice]:
        """Which columns of a row each stored block occupies.

        Examples:
            >>> import mfcore as mf
            >>> mf.Network(mf.activations.relu, bias="trained").blocks(d=3)
            {'b': slice(0, 1, None), 'w': slice(1, 4, None)}
        """
        sizes = {"a": int(self.has_a), "b": int(self.has_b), "w": check.integer(d, "d", at_least=0)}
        found, start = {}, 0
        for block, size in sizes.items():
            if size:
                found[block] = slice(start, start + size)
                start += size
        return found

    @cached_property
    def _core(self) -> _core.Network:
        """The neuron without its scale, which the core does not know: see `Model._unit`."""
        return _core.Network(self.activation._core, output=self.output, bias=self.bias, sphere=self.sphere)

    def __getstate__(self) -> dict[str, Any]:
        # Unpickling makes the compiled part again.
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

    def _to_config(self) -> dict[str, Any]:
        return registry.table_of(self)


def _check_block(value: Any, name: str, options: tuple[str, ...]) -> None:
    """Check the role of a block; True and False, which other libraries take, are answered with the word."""
    if isinstance(value, bool):
        word = "trained" if value else options[0]
        listed = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {listed}, got {value}; did you mean {word!r}?")
    check.choice(value, name, options)


def from_config(table: Mapping[str, Any]) -> Network:
    """The inverse of `Network._to_config`."""
    network = registry.from_config(dict(table))
    if not isinstance(network, Network):
        raise ValueError(f"a network must have the kind 'Network', got {table.get('kind')!r}")
    return network
