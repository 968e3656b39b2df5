"""Activations written as formulas: SymPy derives them, numba compiles them if it is installed."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .. import _core
from .._base import check
from . import _kinked
from ._compile import by_numba, by_numpy
from ._custom import Custom
from ._kinds import Activation, PiecewiseLinear
from ._kinked import Parts

_FUNCTIONS = ("sin", "cos", "sinh", "cosh", "tanh", "asinh", "atan", "exp", "log", "sqrt", "erf", "erfc")
_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: x / y,
    ast.Pow: lambda x, y: x**y,
}
_RELATIONS = {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}
_MOST_POWER = 1000
_MOST_PARTS = 100  # numbers, names, operations and calls; second derivatives grow like their cube
_MOST_BITS = 2048  # of whole numbers, numerators and denominators that SymPy would write out
_CLOSED = {"sin", "cos", "sinh", "cosh", "tanh", "erf", "erfc"}  # powers of these do not reach what is inside
_DIGITS = 17  # which tell all floats apart
_WHOLE = 1 << 53  # whole numbers beyond are written as floats


@dataclass(frozen=True, repr=False)
class Expression(Activation):
    """σ by a formula in z; made by `expression`, which explains the argument.

    Examples:
        >>> import mfcore as mf
        >>> mf.activations.expression("sin(z) * z").text
        'sin(z) * z'
    """

    name: str = field(default="expression", init=False)
    text: str

    def __post_init__(self) -> None:
        check.instance(self.text, "text", str, "a formula such as 'sin(z) * z'")
        _ = self._made

    @cached_property
    def _made(self) -> Custom | PiecewiseLinear:
        return _compiled(self.text)

    @property
    def strip(self) -> float:
        """The height of a strip around the line where σ is analytic between kinks, as measured; or 0."""
        return self._made.strip if isinstance(self._made, Custom) else math.inf

    @property
    def kinks(self) -> tuple[float, ...]:
        """The points where σ is not analytic."""
        return self._made.kinks

    @cached_property
    def _core(self) -> _core.Activation:
        return self._made._core

    def _to_config(self) -> dict[str, Any]:
        return {"kind": self.name, "text": self.text}

    def __repr__(self) -> str:
        return f"mf.activations.expression({self.text!r})"


def expression(text: str) -> Expression:
    """Make an activation of a formula in z, such as "z*tanh(z)"; SymPy finds its derivatives.

    The formula has numbers, pi, z, + − * / ** and the functions sin, cos, sinh, cosh, tanh, asinh, atan, exp,
    log, sqrt, erf and erfc, and must be continuous and finite on the line. It may have kinks, by max, min,
    abs and Piecewise((z, z > 0), (exp(z) - 1, True)), at roots of polynomials of degree at most 8; where all
    parts are lines, it is a `piecewise_linear` with its closed forms. It is evaluated as it stands:
    log(1 + exp(z)) overflows at z = 710. It has at most 100 numbers, operations and calls. With numba it runs
    at compiled speed; without it like a Python function of arrays, slowly, and with other last digits. It
    pickles and stands in files by its text.

    Args:
        text: The formula, in the syntax of Python.

    Raises:
        ImportError: SymPy is not installed.
        ValueError: The formula cannot be read, is not finite at 0, jumps, or has kinks that are not found.

    Examples:
        >>> import mfcore as mf
        >>> sigma = mf.activations.expression("sin(z) * z")
        >>> round(sigma.derivative(1.0), 6)  # cos 1 + sin 1
        1.381773
        >>> mf.activations.expression("max(z, 0.1 * z) + min(abs(z), 1)").kinks
        (-1.0, 0.0, 1.0)
    """
    return Expression(text)


@lru_cache(maxsize=64)
def _compiled(text: str) -> Custom | PiecewiseLinear:
    try:
        sympy: Any = import_module("sympy")
    except ImportError:
        raise ImportError("an expression needs SymPy: pip install 'mfcore[symbolic]'") from None
    z = sympy.Symbol("z", real=True)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _bound(tree)
        value = _read(tree, sympy, z)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"text must be a formula in z, got {text!r}: {getattr(error, 'msg', error)}"
        ) from None
    slope = value.derivative(z)
    parts = [order.each(lambda part: _rounded(part, sympy)) for order in (value, slope, slope.derivative(z))]
    _kinked.check_continuous(parts[0], z)
    if value.kinks and all(part.is_polynomial(z) for part in parts[1].between) and not any(parts[2].between):
        knots = value.kinks
        at_knots = [float(part.subs(z, knot)) for part, knot in zip(parts[0].between, knots, strict=False)]
        return PiecewiseLinear(knots, at_knots, *(float(parts[1].between[end]) for end in (0, -1)))  # type: ignore[arg-type]
    if find_spec("numba") is not None:
        return Custom(text, by_numba(sympy, parts), kinks=value.kinks)
    function, first, second = (by_numpy(sympy, z, order) for order in parts)
    return Custom(text, function, first, second, kinks=value.kinks)


def _bound(tree: ast.AST) -> None:
    """Refuse what would take SymPy minutes or gigabytes, before it sees any of it."""
    parts = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    if parts > _MOST_PARTS:
        raise ValueError(f"text must have at most {_MOST_PARTS} numbers, operations and calls, got {parts}")
    _bits(tree)


def _bits(node: ast.AST) -> tuple[float, float]:
    """Bits of the whole numbers in a part once SymPy has multiplied it out, and its value: NaN with z."""
    bits, value = 0.0, math.nan
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        bits = float(node.value.bit_length()) if isinstance(node.value, int) else 0.0
        value = float(node.value) if bits < _MOST_BITS / 2 else math.inf
    elif isinstance(node, ast.UnaryOp):
        bits, value = _bits(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        (left, one), (right, two) = _bits(node.left), _bits(node.right)
        bits = left + right
        if isinstance(node.op, ast.Pow):
            if _MOST_POWER < abs(two) < math.inf:
                raise ValueError(_too_steep(node))
            bits = right + left * (1.0 if math.isnan(two) else max(1.0, min(abs(two), _MOST_POWER)))
        try:
            value = float(_OPERATIONS[type(node.op)](one, two))
        except (ArithmeticError, TypeError):  # too large, or complex
            value = math.inf
    elif isinstance(node, ast.Call) and len(node.args) == 1:
        bits, value = _bits(node.args[0])
        inside = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
        bits, value = (0.0 if inside <= _CLOSED else bits), (value if math.isnan(value) else math.inf)
    elif isinstance(node, ast.Call | ast.Tuple | ast.Compare):
        bits = max((_bits(part)[0] for part in ast.iter_child_nodes(node)), default=0.0)
    if bits > _MOST_BITS:
        raise ValueError(
            f"text must have whole numbers of at most {_MOST_BITS} bits in each part, multiplied out, got "
            f"{ast.unparse(node)!r}"
        )
    return bits, value


def _too_steep(node: ast.AST) -> str:
    return f"powers in text must be at most {_MOST_POWER}, got {ast.unparse(node)!r}"


def _rounded(order: Any, sympy: Any) -> Any:
    """A formula with floats in place of whole numbers that compiled code does not hold.

    Raises:
        ValueError: One is beyond the range of floats, or a part is no real number.
    """
    if order.has(sympy.I, sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise ValueError(f"text must be real and finite, also in its derivatives, got {order}")
    large = {x for x in order.atoms(sympy.Rational) if max(abs(x.p), x.q) > _WHOLE}
    numbers = order.atoms(sympy.Float) | large
    for x in numbers:
        if abs(x) > sys.float_info.max:
            raise ValueError(
                f"text must have numbers, also in its derivatives, of at most {sys.float_info.max:.4g}, "
                f"got one near 1e{float(sympy.log(abs(x), 10)):.0f}"
            )
    return order.xreplace({x: sympy.Float(float(x), _DIGITS) for x in large})


def _read(node: ast.AST, sympy: Any, z: Any) -> Parts:
    """A formula of the syntax tree: what is not listed is refused, since a file may have brought it."""

    def read(part: ast.AST) -> Parts:
        return _read(part, sympy, z)

    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        exact = isinstance(node.value, int)
        return Parts((), (sympy.Integer(node.value) if exact else sympy.Float(node.value, _DIGITS),))
    if isinstance(node, ast.Name) and node.id in ("z", "pi"):
        return Parts((), (z if node.id == "z" else sympy.pi,))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        operand = read(node.operand)
        return operand.each(lambda part: -part) if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = read(node.left), read(node.right)
        powers = right.between if isinstance(node.op, ast.Pow) else ()
        if any(power.is_number and not abs(power) <= _MOST_POWER for power in powers):
            raise ValueError(_too_steep(node))
        return _kinked.joined(_OPERATIONS[type(node.op)], left, right)
    if isinstance(node, ast.Call) and node.args and not node.keywords:
        function, count = ast.unparse(node.func), len(node.args)
        if function in _FUNCTIONS and count == 1:
            return read(node.args[0]).each(getattr(sympy, function))
        if function in ("abs", "Abs") and count == 1:
            inside = read(node.args[0])
            return _kinked.chosen(inside, inside, inside.each(lambda part: -part), z)
        if function in ("max", "Max", "min", "Min") and count > 1:
            choice = _kinked.largest if function in ("max", "Max") else _kinked.smallest
            return choice(map(read, node.args), z)
        if function == "Piecewise":
            return _cases(node.args, read, z)
    allowed = f"z, pi, numbers, + - * / **, {', '.join(_FUNCTIONS)}, max, min, abs and Piecewise"
    raise ValueError(f"text must be made of {allowed}, got {ast.unparse(node)!r}")


def _cases(cases: list[ast.expr], read: Callable[[ast.AST], Parts], z: Any) -> Parts:
    """Piecewise((part, condition), …, (part, True)): the part of the first condition that holds."""
    last = cases[-1]
    if not (isinstance(last, ast.Tuple) and len(last.elts) == 2 and ast.unparse(last.elts[1]) == "True"):
        raise ValueError(f"Piecewise in text must end with (formula, True), got {ast.unparse(last)!r}")
    value = read(last.elts[0])
    for case in reversed(cases[:-1]):
        part, condition = case.elts if isinstance(case, ast.Tuple) and len(case.elts) == 2 else (case, None)
        relations = condition.ops if isinstance(condition, ast.Compare) else []
        sign = _RELATIONS.get(type(relations[0]), 0) if len(relations) == 1 else 0
        if not isinstance(condition, ast.Compare) or sign == 0:
            raise ValueError(
                "Piecewise in text must have pairs (formula, condition) such as (z, z > 0), got "
                f"{ast.unparse(case)!r}"
            )
        one, two = read(condition.left), read(condition.comparators[0])
        gap = _kinked.joined(lambda x, y: x - y, *((one, two) if sign > 0 else (two, one)))
        value = _kinked.chosen(gap, read(part), value, z)
    return value
