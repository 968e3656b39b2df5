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
from ._custom import Custom
from ._kinds import Activation

_FUNCTIONS = ("sin", "cos", "sinh", "cosh", "tanh", "asinh", "atan", "exp", "log", "sqrt", "erf", "erfc")
_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: x / y,
    ast.Pow: lambda x, y: x**y,
}
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
        _ = self._custom

    @cached_property
    def _custom(self) -> Custom:
        return _compiled(self.text)

    @property
    def strip(self) -> float:
        """The height of a strip around the line where σ is analytic, as measured; 0 if none is."""
        assert self._custom.strip is not None
        return self._custom.strip

    @cached_property
    def _core(self) -> _core.Activation:
        return self._custom._core

    def _to_config(self) -> dict[str, Any]:
        return {"kind": self.name, "text": self.text}

    def __repr__(self) -> str:
        return f"mf.activations.expression({self.text!r})"


def expression(text: str) -> Expression:
    """Make an activation of a formula in z, such as "z*tanh(z)"; SymPy finds its derivatives.

    The formula has numbers, pi, z, + − * / ** and the functions sin, cos, sinh, cosh, tanh, asinh, atan, exp,
    log, sqrt, erf and erfc, and must be analytic and finite on the line. It is evaluated as it stands:
    log(1 + exp(z)) overflows at z = 710. It has at most 100 numbers, operations and calls. With numba it runs
    at compiled speed; without it like a Python function of arrays, slowly, and with other last digits. It
    pickles and stands in files by its text.

    Args:
        text: The formula, in the syntax of Python.

    Raises:
        ImportError: SymPy is not installed.
        ValueError: The formula cannot be read, or is not finite at 0.

    Examples:
        >>> import mfcore as mf
        >>> sigma = mf.activations.expression("sin(z) * z")
        >>> round(sigma.derivative(1.0), 6)  # cos 1 + sin 1
        1.381773
    """
    return Expression(text)


@lru_cache(maxsize=64)
def _compiled(text: str) -> Custom:
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
    orders = [_rounded(order, sympy) for order in (value, sympy.diff(value, z), sympy.diff(value, z, 2))]
    if find_spec("numba") is not None:
        return Custom(text, _by_numba(sympy, orders))
    function, slope, curvature = (_by_numpy(sympy, z, order) for order in orders)
    return Custom(text, function, slope, curvature)


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


def _read(node: ast.AST, sympy: Any, z: Any) -> Any:
    """A formula of the syntax tree: what is not listed is refused, since a file may have brought it."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        exact = isinstance(node.value, int)
        return sympy.Integer(node.value) if exact else sympy.Float(node.value, _DIGITS)
    if isinstance(node, ast.Name) and node.id in ("z", "pi"):
        return z if node.id == "z" else sympy.pi
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        operand = _read(node.operand, sympy, z)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = (_read(side, sympy, z) for side in (node.left, node.right))
        if isinstance(node.op, ast.Pow) and right.is_number and not abs(right) <= _MOST_POWER:
            raise ValueError(_too_steep(node))
        return _OPERATIONS[type(node.op)](left, right)
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        function = ast.unparse(node.func)
        if function in _FUNCTIONS:
            return getattr(sympy, function)(_read(node.args[0], sympy, z))
    allowed = f"z, pi, numbers, + - * / ** and {', '.join(_FUNCTIONS)}"
    raise ValueError(f"text must be made of {allowed}, got {ast.unparse(node)!r}")


def _by_numpy(sympy: Any, z: Any, order: Any) -> Callable[[Any], Any]:
    made = sympy.lambdify(z, order, modules=["scipy", "numpy"], cse=True)
    return lambda at: made(at) + 0 * at  # constants too become arrays


def _by_numba(sympy: Any, orders: list[Any]) -> Any:
    """A function of spans: a loop of its own for each number of derivatives wanted."""
    numba: Any = import_module("numba")
    arrays = ("value", "slope", "curvature")
    lines = ["def span(n, at, value, slope, curvature, user):"]
    lines += [f"    {name} = carray({name}, n)" for name in ("at", *arrays)]
    for count, test in (
        (3, "if curvature.ctypes.data != 0"),
        (2, "elif slope.ctypes.data != 0"),
        (1, "else"),
    ):
        shared, last = sympy.cse(orders[:count])
        lines += [f"    {test}:", "        for i in range(n):", "            z = at[i]"]
        steps = [*shared, *zip((f"{name}[i]" for name in arrays), last, strict=False)]
        lines += [f"            {name} = {sympy.pycode(step)}" for name, step in steps]
    made: dict[str, Any] = {"carray": numba.carray, "math": math}
    exec("\n".join(lines), made)
    pointer = numba.types.CPointer(numba.types.float64)
    signature = numba.types.void(numba.types.int64, *[pointer] * 4, numba.types.voidptr)
    return numba.cfunc(signature, error_model="numpy")(made["span"])
