"""Activations of the user: functions of spans at compiled speed, or functions of arrays in Python."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _core
from .._base import check
from ._kinds import Activation, numbers
from ._measured import check_derivative
from ._measured import strip as measured_strip
from ._spans import SIGNATURE, Span, span_of


@dataclass(frozen=True, repr=False)
class Custom(Activation):
    """A function of the user's; made by `custom`, which explains the arguments.

    Two are equal if their functions are the same objects. In a checkpoint stand `label` and `key`: give
    another key to another function of the same name.

    Examples:
        >>> import numpy as np
        >>> import mfcore as mf
        >>> sine = mf.activations.custom(np.sin, slope=np.cos, name="sine")
        >>> sine.label, round(sine.strip, 3), sine.kinks
        ('sine', 2.828, ())
    """

    name: str = field(default="custom", init=False)
    label: str
    function: Any
    slope: Any = None
    curvature: Any = None
    key: str = ""
    kinks: tuple[float, ...] = ()
    strip: float = None  # type: ignore[assignment]  # measured where it is not given

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", _text(self.label, "name"))
        object.__setattr__(self, "key", _text(self.key, "key"))
        kinks = numbers(self.kinks, "kinks") if check.as_numpy(self.kinks, "kinks").size else ()
        object.__setattr__(self, "kinks", kinks)
        if not all(a < b for a, b in pairwise(self.kinks)):
            raise ValueError(f"kinks must be strictly increasing, got {list(self.kinks)}")
        if self._span is None:
            for function, name in ((self.function, "function"), (self.slope, "slope")):
                if not callable(function):
                    what = (
                        "the derivative of function, as a function of arrays"
                        if name == "slope"
                        else f"callable, or {SIGNATURE}"
                    )
                    raise ValueError(f"{name} must be {what}, got {function!r}")
        elif self.slope is not None or self.curvature is not None:
            raise ValueError(
                "slope and curvature must be left out with a function of spans, which fills both"
            )
        for order, name in ((0, "function"), (1, "slope")):
            with np.errstate(all="ignore"):
                at_zero = _core.evaluate(self._made(0.0), np.zeros(1), order)[0]
            if not np.isfinite(at_zero):
                raise ValueError(
                    f"{name} must be finite at z = 0, where tiles of neurons are filled up, got {at_zero}"
                )
        if self.strip is None:
            probe = self._made(0.0)
            functions = (
                lambda z: _core.evaluate(probe, z, 0),
                lambda z: _core.evaluate(probe, z, 1),
                lambda z: _core.evaluate(probe, z, 0) ** 2,  # as of pairs
            )
            object.__setattr__(self, "strip", measured_strip(functions, self.kinks))
        object.__setattr__(self, "strip", check.number(self.strip, "strip", at_least=0))

    @cached_property
    def _span(self) -> Span | None:
        return span_of(self.function)

    @cached_property
    def _curved(self) -> bool:
        if self._span is None:
            return self.curvature is not None
        _, slope, curvature = self._span(np.linspace(-1.0, 1.0, 64))
        if np.isnan(slope).all():
            raise ValueError(f"function must fill slope: it is {SIGNATURE}")
        return not np.isnan(curvature).all()

    def _made(self, strip: float) -> _core.Activation:
        if self._span is None:
            return _core.Activation.of_python(
                self.function, self.slope, self.curvature, strip=strip, kinks=self.kinks
            )
        return _core.Activation.of_spans(
            *self._span, owner=self.function, curved=self._curved, strip=strip, kinks=self.kinks
        )

    @cached_property
    def _core(self) -> _core.Activation:
        assert self.strip is not None
        return self._made(self.strip)

    def _to_config(self) -> dict[str, Any]:
        raise TypeError(f"{self!r} has no form in files: a function cannot be written, an expression(…) can")

    def __reduce__(self) -> tuple[Any, ...]:
        functions = (self._pickled(f) for f in (self.function, self.slope, self.curvature))
        return _restored, (self.label, *functions, self.key, self.kinks, self.strip)

    def _pickled(self, function: Any) -> Any:
        """A function of Python as it is, since it pickles by its import path; of a pointer that path."""
        if function is None or span_of(function) is None:
            return function
        source = getattr(function, "__wrapped__", function)
        path = f"{getattr(source, '__module__', None)}:{getattr(source, '__qualname__', None)}"
        try:
            if _imported(path) is function:
                return _Path(path)
        except (ImportError, AttributeError):
            pass
        raise pickle.PicklingError(
            f"{self!r} does not pickle: its function cannot be imported as {path}. A "
            "numba.cfunc at the top of a module can; other pointers have no import path"
        )

    def __repr__(self) -> str:
        shown = getattr(self.function, "__qualname__", type(self.function).__name__)
        key = f", key={self.key!r}" if self.key else ""
        return f"mf.activations.custom({shown}, name={self.label!r}{key})"


def _text(value: Any, name: str) -> str:
    check.instance(value, name, str, "text")
    return str(value)


class _Path(str):
    """The import path of a function, as module:qualname."""


def _imported(path: str) -> Any:
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def _restored(label: str, *arguments: Any) -> Custom:
    return Custom(label, *(_imported(x) if isinstance(x, _Path) else x for x in arguments))


def custom(
    function: Any,
    *,
    slope: Any = None,
    curvature: Any = None,
    name: str | None = None,
    key: str = "",
    kinks: Any = (),
    strip: float | None = None,
    check: bool = True,
) -> Custom:
    """Make an activation of a function of your own, which the core calls at compiled speed if it is compiled.

    At compiled speed: `function` is ``numba.cfunc``, ``scipy.LowLevelCallable`` or a ctypes function pointer
    ``void f(int64 n, double* z, double* value, double* slope, double* curvature, void* user)`` that fills
    value[i] = σ(z[i]), and slope and curvature where they are not null. It is called once for spans of 64 to
    512 numbers, by several threads at once, and must give a number the same bits wherever it stands in z. It
    must not raise.

    Or, slowly, functions of arrays in Python: `function` and `slope`. Each span waits for the interpreter,
    which one thread has at a time; results are still the same on any number of threads.

    In single precision arguments and values are converted, span by span. Averages over Gaussian inputs and
    reductions are taken by quadrature, to about 1e-12 of the size of σ for spreads of up to 100 or so. Pairs
    of neurons in `Exact` need a σ that does not jump at its kinks; those with kinks that are nearly parallel
    take 0.3 ms each. Hessians need the curvature.

    Args:
        function: σ: a pointer to a function of spans, or a function of arrays in Python.
        slope: σ', of arrays; only with a Python function, which needs it.
        curvature: σ'', of arrays; without it what needs second derivatives is refused.
        name: How σ is called in messages, files and checkpoints; the function's own name by default.
        key: What else tells σ in checkpoints: a version, or parameters.
        kinks: Where σ is not analytic, strictly increasing; quadrature is split there.
        strip: A height a such that σ is analytic for |Im z| < a, between kinks. By default it is measured, on
            [−100, 100], as a power of √2 of at most 4; 0 refuses quadrature.
        check: Compare slope and curvature with finite differences.

    Raises:
        ValueError: A derivative is wrong, or the function is not finite at 0 or has other arguments.

    Examples:
        >>> import numpy as np
        >>> import mfcore as mf
        >>> swish = mf.activations.custom(
        ...     lambda z: z / (1 + np.exp(-z)),
        ...     slope=lambda z: (1 + np.exp(-z) * (1 + z)) / (1 + np.exp(-z)) ** 2,
        ...     name="swish",
        ... )
        >>> round(swish(1.0), 6), round(swish.derivative(1.0), 6)
        (0.731059, 0.927671)
    """
    label = getattr(function, "__name__", type(function).__name__) if name is None else name
    known = {} if strip is None else {"strip": strip}
    made = Custom(label, function, slope, curvature, key, kinks, **known)
    if check:
        values = [lambda z, k=k: _core.evaluate(made._core, z, k) for k in range(3)]
        check_derivative(values[0], values[1], ("function", "slope"), made.kinks)
        if made._curved:
            check_derivative(values[1], values[2], ("slope", "curvature"), made.kinks)
    return made
