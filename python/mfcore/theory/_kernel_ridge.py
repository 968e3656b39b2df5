"""`kernel_ridge`: ridge regression measured on draws, with kernels of the angle, of models and of neurons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from .. import _core
from .._base import check, factors
from .._base.check import FloatArray
from .._base.rng import RNG, Seed, derive, seed_of
from ..data import DataLaw
from ..lazy._kernel import chosen_speeds, tangent_kernel
from ..model import Model

_BLOCK = 1 << 22  # most values of a kernel function computed at a time
_NOISE = 1e-9  # of eigenvalues relative to n times the largest entry: kernels are good to 1e-10


@dataclass(frozen=True, repr=False)
class RegressionDraws:
    """Risks of kernel ridge regression, one column for each independent draw.

    Attributes:
        samples: n of each row.
        neurons: N of each row, inf for the kernel of infinitely many or of a function.
        risk: Excess risk E(f̂ − f)² on fresh inputs and labels without noise, shape (rows, draws).
        train: Mean square error on the samples, noise included, of the same shape.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> data = mf.data.MultiIndex(8, [0.0, 1.0], 1, inputs="sphere")
        >>> found = theory.kernel_ridge(lambda u: 1 + u, data, samples=[4, 20], draws=3, rng=0)
        >>> found.mean.shape, found.risk.shape
        ((2,), (2, 3))
    """

    samples: FloatArray
    neurons: FloatArray
    risk: FloatArray
    train: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The mean excess risk over the draws."""
        return np.asarray(self.risk.mean(axis=1))

    @property
    def interval(self) -> FloatArray:
        """Half of the 95 % interval of that mean, by Student's t."""
        draws = self.risk.shape[1]
        spread = self.risk.std(axis=1, ddof=1) / math.sqrt(draws)
        return np.asarray(scipy.stats.t.ppf(0.975, draws - 1) * spread)

    def __repr__(self) -> str:
        rows = zip(self.samples, self.mean, self.interval, strict=True)
        shown = ", ".join(f"n={n:g}: {mean:.4g} ± {half:.2g}" for n, mean, half in rows)
        return f"RegressionDraws({shown})"


def kernel_ridge(
    kernel: Callable[[FloatArray], npt.ArrayLike] | Model,
    data: DataLaw,
    *,
    samples: npt.ArrayLike,
    neurons: npt.ArrayLike = math.inf,
    blocks: Sequence[str] | None = None,
    ridge: float = 0.0,
    noise: float = 0.0,
    draws: int = 8,
    test: int = 1000,
    rng: RNG = None,
    threads: int | None = None,
) -> RegressionDraws:
    """Measure the risk of f̂ = K(·, X)(K + ridge·I)⁻¹y on random draws, to compare with `regression_risk`.

    The matrix is solved by Cholesky; where it has no inverse and the ridge is 0, by its pseudoinverse, which
    is least squares of minimal norm. Of a model, K is the tangent kernel of its initial law: at infinite
    width, or of N neurons drawn afresh for each draw. So `neurons` passing the number at which their
    parameters are as many as the samples shows the double descent.

    Args:
        kernel: h, a vectorised function of the cosine, for k(x, x') = h(⟨x, x'⟩/d); or an `mf.Model` with an
            initial law, whose network, rates and law count, and whose f at t = 0 is left out.
        data: A law of inputs and of labels without noise.
        samples: n, or several.
        neurons: N, or several, each with its own n (or one for all); inf for infinitely many.
        blocks: Of a model, the trained blocks that count; ``"a"`` alone: random features.
        ridge: Added to the diagonal of K.
        noise: τ², the variance of Gaussian noise added to the labels of the samples.
        draws: Independent repetitions, of samples, noise, neurons and test inputs. At least 2.
        test: Fresh inputs of each draw, on which the risk is measured.
        rng: Seed. A smaller n has the first samples of a larger one.
        threads: Of the kernels; default `OMP_NUM_THREADS`, else the cores.

    Raises:
        ValueError: The data have noise of their own, or the kernel has values that are not finite, or is not
            positive: a matrix that Cholesky's method refuses has an eigenvalue below −10⁻⁹ of n times its
            largest entry.

    Examples:
        >>> import mfcore as mf
        >>> from mfcore import theory
        >>> data = mf.data.MultiIndex(20, [0.0, 1.0], 1, inputs="sphere")
        >>> found = theory.kernel_ridge(lambda u: u, data, samples=[10, 60], noise=0.1, draws=4, rng=0)
        >>> bool(found.mean[1] < 0.2 < found.mean[0])  # 60 samples determine 20 parameters
        True
    """
    check.instance(data, "data", DataLaw, "a data law")
    if math.isinf(data.d):
        raise ValueError(f"data must have inputs of finite dimension, which are drawn, got {data!r}")
    if data.noise_power() > 0:
        raise ValueError(f"data must have labels without noise (noise= adds some), got {data!r}")
    ridge, noise = (check.number(x, name, at_least=0) for x, name in ((ridge, "ridge"), (noise, "noise")))
    draws, test = check.integer(draws, "draws", at_least=2), check.integer(test, "test", at_least=2)
    counts, widths = _whole(samples, "samples"), _whole(neurons, "neurons", infinite=True)
    if len({len(counts), len(widths)} - {1}) > 1:
        raise ValueError(f"neurons must be one number or {len(counts)}, as samples, got {len(widths)}")
    counts, widths = np.broadcast_arrays(counts, widths)
    if not (isinstance(kernel, Model) or np.isinf(widths).all()):
        raise ValueError(f"neurons must be inf for a function of the cosine, got {neurons!r}")
    check.threads(threads)
    used = _Kernel(kernel, int(data.d), blocks, threads)
    most = int(counts.max())
    check.memory(24.0 * most * most, "samples", most)
    check.memory(24.0 * most * test, "test", test)
    check.memory(16.0 * len(counts) * draws, "draws", draws)
    if isinstance(kernel, Model) and np.isfinite(widths).any():
        widest = float(widths[np.isfinite(widths)].max())
        check.memory(16.0 * widest * int(data.d), "neurons", widest)
    seed = seed_of(rng)
    risk, train = np.empty((2, len(counts), draws))
    for k in range(draws):
        own = derive(seed, k)
        X, f = data.draw(most + test, rng=Seed(own))
        labels = f[:most] + math.sqrt(noise) * np.random.default_rng(own).normal(size=most)
        for width in np.unique(widths):
            _core.check_stop()
            rows = np.flatnonzero(widths == width)
            matrix, to_test = used(X[: int(counts[rows].max())], X[most:], width, own)
            for i in rows:
                n = int(counts[i])
                coefficients, fitted = _solved(matrix[:n, :n], labels[:n], ridge, used.rank(width))
                risk[i, k] = np.mean((to_test[:, :n] @ coefficients - f[most:]) ** 2)
                train[i, k] = np.mean((fitted - labels[:n]) ** 2)
    return RegressionDraws(counts.astype(float), widths.astype(float), risk, train)


class _Kernel:
    """Kernel matrices of samples, and of test inputs with them."""

    def __init__(
        self,
        kernel: Callable[[FloatArray], npt.ArrayLike] | Model,
        d: int,
        blocks: Sequence[str] | None,
        threads: int | None,
    ) -> None:
        self._kernel, self._d, self._blocks, self._threads = kernel, d, blocks, threads
        if isinstance(kernel, Model):
            if kernel.init is None:
                raise ValueError("kernel must be a model with an initial law, got init=None")
            if kernel.d != d:
                raise ValueError(f"data must be of dimension {kernel.d:g}, that of the model, got {d}")
            sizes = kernel.network.blocks(d)
            self._parameters = sum(
                sizes[block].stop - sizes[block].start
                for block, speed in zip("abw", chosen_speeds(kernel, blocks), strict=True)
                if speed > 0
            )
        elif not callable(kernel):
            raise TypeError(
                f"kernel must be a function of the cosine or an mf.Model, got {check.shown(kernel)}"
            )
        elif blocks is not None:
            raise ValueError(f"blocks must be None for a function of the cosine, got {blocks!r}")

    def rank(self, neurons: float) -> float:
        """The most that the rank of a matrix can be."""
        return neurons * self._parameters if isinstance(self._kernel, Model) else math.inf

    def __call__(
        self, X: FloatArray, other: FloatArray, neurons: float, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """K(X, X) and K(other, X)."""
        if isinstance(self._kernel, Model):
            model, theta = self._kernel, None
            assert model.init is not None
            if not math.isinf(neurons):
                theta = model.init.sample(model.network, self._d, int(neurons), rng=Seed(seed))
            options: dict[str, Any] = {"measure": theta, "blocks": self._blocks, "threads": self._threads}
            return (
                tangent_kernel(model, X, **options),
                tangent_kernel(model, other, X, **options),
            )
        return self._of_cosines(X, X), self._of_cosines(other, X)

    def _of_cosines(self, rows: FloatArray, X: FloatArray) -> FloatArray:
        """The function at the cosines of rows and samples, in blocks of rows, so that Ctrl-C is answered."""
        assert not isinstance(self._kernel, Model)
        out = np.empty((len(rows), len(X)))
        step = max(1, _BLOCK // len(X))
        for first in range(0, len(rows), step):
            _core.check_stop()
            inner = factors.product(rows[first : first + step], X.T) / self._d
            values = np.asarray(self._kernel(inner), dtype=np.float64)
            if values.shape != inner.shape or not np.isfinite(values).all():
                raise ValueError("kernel must return one finite number for each cosine, got others")
            out[first : first + step] = values
        return out


def _whole(values: npt.ArrayLike, name: str, infinite: bool = False) -> FloatArray:
    """One or several whole numbers >= 1, or inf."""
    entries = np.atleast_1d(np.asarray(values, dtype=object))
    if entries.ndim > 1 or not entries.size:
        raise ValueError(f"{name} must be a whole number >= 1, or several, got {check.shown(values)}")
    return np.array(
        [x if infinite and x == math.inf else check.count(x, name) for x in entries.tolist()], dtype=float
    )


def _solved(matrix: FloatArray, y: FloatArray, ridge: float, rank: float) -> tuple[FloatArray, FloatArray]:
    """(K + ridge)⁻¹y and the values of f̂ on the samples; without ridge by the pseudoinverse if need be."""
    n = len(y)
    if ridge > 0 or rank >= n:
        shifted = matrix + ridge * np.eye(n)
        norm = float(np.abs(shifted).sum(axis=0).max())
        factor = factors.cholesky(shifted)
        if factor is not None and (
            ridge > 0 or scipy.linalg.lapack.dpocon(factor, norm, uplo="L")[0] > n * np.finfo(float).eps
        ):
            coefficients = scipy.linalg.cho_solve((factor, True), y, check_finite=False)
            return coefficients, y - ridge * coefficients
    values, basis = factors.eigh(matrix)
    if values[0] < -_NOISE * n * float(np.abs(matrix).max()):
        raise ValueError(
            f"kernel must be positive, got one with the eigenvalue {values[0]:g} on {n} samples beside "
            f"{values[-1]:g}"
        )
    kept = values > n * np.finfo(float).eps * values[-1]
    parts = basis[:, kept].T @ y
    shrunk = parts / (values[kept] + ridge)
    return basis[:, kept] @ shrunk, basis[:, kept] @ (values[kept] * shrunk)
