"""Activation functions σ with two derivatives: described here, evaluated in C++.

`relu, erf, tanh, sigmoid, linear, softplus, gelu, silu, sin, cos` are objects; `piecewise_linear`, `hermite`
and `polynomial` make others, `custom` one of a function of yours, `expression` one of a formula. All are
unscaled: erf(t), tanh(t), 1/(1 + e⁻ᵗ), log(1 + eᵗ), tΦ(t), t/(1 + e⁻ᵗ). Errors of those of the core are a
few units in the last place over the whole line, tails included; the bounds stand in the header
mfcore/network/activation.hpp. `gaussian_mean` averages any of them over a normal argument.

- `_kinds`: those of the core; `_config`: their names in files
- `_custom`: functions of the user; `_spans`: given as pointers
- `_expression`: formulas; `_kinked`: their kinks; `_compile`: their code
- `_measured`: what the values of a function show, such as a strip where it is analytic
- `_averages`: means over a normal argument
"""

from ._averages import gaussian_mean
from ._config import KINDS as KINDS
from ._config import from_config
from ._custom import Custom, custom
from ._expression import Expression, expression
from ._kinds import (
    Activation,
    Hermite,
    Pieces,
    PiecewiseLinear,
    Polynomial,
    cos,
    erf,
    gelu,
    get,
    hermite,
    linear,
    piecewise_linear,
    polynomial,
    relu,
    sigmoid,
    silu,
    sin,
    softplus,
    tanh,
)

__all__ = [
    "Activation",
    "Custom",
    "Expression",
    "Hermite",
    "Pieces",
    "PiecewiseLinear",
    "Polynomial",
    "cos",
    "custom",
    "erf",
    "expression",
    "from_config",
    "gaussian_mean",
    "gelu",
    "get",
    "hermite",
    "linear",
    "piecewise_linear",
    "polynomial",
    "relu",
    "sigmoid",
    "silu",
    "sin",
    "softplus",
    "tanh",
]
