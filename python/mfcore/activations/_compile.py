"""Code of formulas: functions of arrays for NumPy, and functions of spans that numba compiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ._kinked import Parts


def by_numpy(sympy: Any, z: Any, order: Parts) -> Callable[[Any], Any]:
    """Make a function of arrays."""
    made = [sympy.lambdify(z, part, modules=["scipy", "numpy"], cse=True) for part in order.between]

    def function(at: Any) -> Any:
        out, place = 1.0 * at, np.searchsorted(order.kinks, at)
        for k, part in enumerate(made):
            here = (place == k) & (at == at)
            out[here] = part(at[here])
        return out

    return function if order.kinks else lambda at: made[0](at) + 0 * at  # constants too become arrays


def by_numba(sympy: Any, orders: list[Parts]) -> Any:
    """Make a function of spans: a loop for each number of derivatives wanted, in it a case for each part."""
    numba: Any = import_module("numba")
    arrays, kinks = ("value", "slope", "curvature"), orders[0].kinks
    lines = ["def span(n, at, value, slope, curvature, user):"]
    lines += [f"    {name} = carray({name}, n)" for name in ("at", *arrays)]
    for count, test in (
        (3, "if curvature.ctypes.data != 0"),
        (2, "elif slope.ctypes.data != 0"),
        (1, "else"),
    ):
        lines += [f"    {test}:", "        for i in range(n):", "            z = at[i]"]
        margin = " " * (16 if kinks else 12)
        if kinks:  # NaN is in none of the cases
            lines += ["            if z != z:", *(f"{margin}{name}[i] = z" for name in arrays[:count])]
        for k in range(len(kinks) + 1):
            if kinks:
                lines.append(
                    f"            elif z <= {kinks[k]!r}:" if k < len(kinks) else "            else:"
                )
            shared, last = sympy.cse([order.between[k] for order in orders[:count]])
            steps = [*shared, *zip((f"{name}[i]" for name in arrays), last, strict=False)]
            lines += [f"{margin}{name} = {sympy.pycode(step)}" for name, step in steps]
    made: dict[str, Any] = {"carray": numba.carray, "math": math}
    exec("\n".join(lines), made)
    pointer = numba.types.CPointer(numba.types.float64)
    signature = numba.types.void(numba.types.int64, *[pointer] * 4, numba.types.voidptr)
    return numba.cfunc(signature, error_model="numpy")(made["span"])
