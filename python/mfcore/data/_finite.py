"""`Dataset`, a finite set of samples, and `Stream`, samples from a function of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.output import Held
from ._law import DataLaw, dimension, set_field

BATCH = 256  # samples asked of a stream at a time; changing it would change what a seed gives


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(DataLaw):
    """The uniform law on n given samples: every row of X with its label has mass 1/n.

    Its risks are empirical risks. It runs with `mf.SGD`, `mf.GD` and `mf.Particles`. Samples have no symmetry
    that the limit could be reduced by: `mf.PDE`, `mf.Atoms` and `mf.JKO` need a network of at most three
    parameters per neuron, where the coordinates are the parameters themselves. The limit in more parameters
    is that of an auxiliary network, ``mf.Nonlinear(N, mf.Particles(20 * N))``.

    `draw` samples rows with replacement. float64 arrays in C order are used without a copy: do not change
    them while the law is in use.

    Args:
        X: Inputs, shape (n, d).
        y: Labels, shape (n,).

    Examples:
        >>> import mfcore as mf
        >>> law = mf.data.Dataset([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], [1.0, -1.0, 0.5])
        >>> law
        Dataset(X=<array 3×2>, y=<array 3>)
        >>> law.target_power()
        0.75
    """

    X: FloatArray
    y: FloatArray
    d: int = field(init=False)

    if TYPE_CHECKING:
        # The arguments; the fields hold their checked form.
        def __init__(self, X: npt.ArrayLike, y: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        X = check.array(self.X, "X", shape=(None, None)).view()
        y = check.labels(self.y, "y", len(X)).view()
        check.squares(y, "y")
        X.flags.writeable = y.flags.writeable = False
        set_field(self, "_held", (Held(X), Held(y)))
        set_field(self, "X", X)
        set_field(self, "y", y)
        set_field(self, "d", X.shape[1])

    def target_power(self) -> float:
        """E y² = (1/n) Σ y_i².

        Examples:
            >>> import mfcore as mf
            >>> mf.data.Dataset([[1.0], [2.0]], [1.0, 3.0]).target_power()
            5.0
        """
        return float(self.y @ self.y) / len(self.y)

    def _make_sampler(self, d: int) -> _core.Sampler:
        return _core.finite_law(self.X, self.y)

    @property
    def _node_sampler(self) -> _core.Sampler:
        return self._sampler

    @cached_property
    def _iid_sampler(self) -> _core.Sampler:
        return _core.resampled(self._sampler)

    def _run_sampler(self) -> _core.Sampler:
        return _core.passes(self._sampler)


@dataclass(frozen=True, eq=False, repr=False)
class Stream(DataLaw):
    """Samples from a callable, ``source(n, rng) -> (X, y)`` with a NumPy generator `rng`.

    The source must take all its randomness from `rng`. It is always asked for blocks of 256 samples, block k
    with a generator made from the seed and k alone, so that a stream is as reproducible and addressable as
    any other law. Every block is checked: shapes (256, d) and (256,), finite numbers.

    Args:
        source: The callable.
        d: Dimension of the inputs. If None, the source is asked for one sample now.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> def source(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        ...     X = rng.laplace(size=(n, 4))
        ...     return X, X[:, 0] * X[:, 1]
        >>> law = mf.data.Stream(source)
        >>> law.d
        4
        >>> X, y = law.draw(1000, rng=0)
    """

    source: Callable[[int, np.random.Generator], tuple[FloatArray, FloatArray]]
    d: int = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not callable(self.source):
            raise TypeError(f"source must be a callable (n, rng) -> (X, y), got {self.source!r}")
        _check_signature(self.source)
        if self.d is None:
            X, _ = _checked(self.source(1, np.random.default_rng(0)), 1, None)
            set_field(self, "d", X.shape[1])
        else:
            set_field(self, "d", dimension(self.d))

    def _make_sampler(self, d: int) -> _core.Sampler:
        return _core.python_sampler(d, _Batches(self.source, d))


class _Batches:
    """Samples by number from a source of batches; the last batch is kept, as neighbouring calls often
    share it.
    """

    def __init__(self, source: Callable[..., Any], d: int) -> None:
        self.source, self.d = source, d
        self.last: tuple[tuple[int, int], tuple[FloatArray, FloatArray]] | None = None

    def __call__(self, seed: int, first: int, count: int) -> tuple[FloatArray, FloatArray]:
        X, y = np.empty((count, self.d)), np.empty(count)
        done = 0
        while done < count:
            number, start = divmod(first + done, BATCH)
            m = min(BATCH - start, count - done)
            inputs, labels = self._block(seed, number)
            X[done : done + m] = inputs[start : start + m]
            y[done : done + m] = labels[start : start + m]
            done += m
        return X, y

    def _block(self, seed: int, number: int) -> tuple[FloatArray, FloatArray]:
        last = self.last
        if last is not None and last[0] == (seed, number):
            return last[1]
        # The block number is the top word of the counter: blocks are 2^192 numbers apart.
        rng = np.random.Generator(np.random.Philox(key=seed, counter=number << 192))
        block = _checked(self.source(BATCH, rng), BATCH, self.d)
        self.last = ((seed, number), block)
        return block


def _check_signature(source: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(source)
    except ValueError:  # compiled functions may not tell
        return
    try:
        signature.bind(1, None)
    except TypeError:
        raise TypeError(f"source must take two arguments (n, rng), got one that takes {signature}") from None


def _checked(batch: Any, n: int, d: int | None) -> tuple[FloatArray, FloatArray]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise TypeError(f"source must return a pair (X, y), got {type(batch).__name__}")
    X = check.array(batch[0], "X of the source", shape=(n, d))
    y = check.array(batch[1], "y of the source", shape=(n,))
    return X, y
