"""Streaming Monte-Carlo estimates of V, U and ∇V with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check
from .._base.check import FloatArray
from .._base.rng import RNG, seed_of
from ..model import Model
from ._place import rows_of
from ._results import require_finite


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means over `samples` fresh samples, each beside its standard error.

    Attributes:
        V: −E[y σ*(x; θ_i)], shape (N,).
        U: E[σ*(x; θ_i) σ*(x; θ_j)], shape (N, N), exactly symmetric.
        grad_V: ∇V(θ_i) with respect to every entry of the row, shape (N, D); None unless asked for.
        V_error, U_error, grad_V_error: Standard errors, from the spread of the means of blocks of samples
            (20 blocks or more); infinite for a single sample.
        samples: Samples used. Fewer than asked for after Ctrl-C.
        status: ``"completed"`` or ``"interrupted"``.
    """

    V: FloatArray
    V_error: FloatArray
    U: FloatArray | None
    U_error: FloatArray | None
    grad_V: FloatArray | None
    grad_V_error: FloatArray | None
    samples: int
    status: str

    def __repr__(self) -> str:
        return f"Estimate(N={len(self.V)}, samples={self.samples}, status={self.status!r})"


def estimate(
    model: Model,
    theta: npt.ArrayLike,
    *,
    samples: int,
    rng: RNG = None,
    interactions: bool = True,
    gradient: bool = False,
    chunk: int | None = None,
    threads: int | None = None,
) -> Estimate:
    """Estimate V, U and ∇V at the rows of `theta` from a stream of fresh samples, without bias.

    Memory does not depend on `samples`. The result has the same bits for any `threads` and `chunk`.

    Args:
        model: Its data law is sampled; any law and any activation will do.
        theta: Neurons, shape (N, D). Not modified.
        samples: Number of samples, > 0.
        rng: None, int, SeedSequence or Generator.
        interactions: Estimate U, too (N² numbers, twice).
        gradient: Estimate ∇V, too.
        chunk: Samples held in memory at a time; default about 2.5 MB of activations.
        threads: Threads to use; default `OMP_NUM_THREADS`, else the cores.

    Raises:
        ValueError: A mean or a standard error, whose square is formed, is not finite: entries beyond about
            1e75, of bounded activations beyond 1e150.

    Returns:
        Means and standard errors. Ctrl-C returns those of the samples drawn so far; before the first chunk
        is done it raises KeyboardInterrupt.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=3, delta=0.5),
        ...     network=mf.Network(mf.activations.tanh, bias="trained"),
        ...     init=mf.init.Gaussian(std=1.0),
        ... )
        >>> e = mf.estimate(model, [[0.5, 1.0, 0.0, 0.0]], samples=10_000, rng=0)
        >>> bool(abs(e.V[0] - mf.V(model, [[0.5, 1.0, 0.0, 0.0]])[0]) < 5 * e.V_error[0])
        True
    """
    check.instance(model, "model", Model, "an mf.Model")
    rows = rows_of(model, theta, "theta")
    count = check.count(samples, "samples")
    size = 0 if chunk is None else check.count(chunk, "chunk")
    check.memory(8.0 * min(size, count) * (len(rows) + model.d), "chunk", chunk)
    if check.boolean(interactions, "interactions"):
        check.memory(24.0 * len(rows) ** 2, "theta", rows)
    result = _core.estimate(
        model.network._core,
        rows,
        model.data._iid_sampler,
        seed_of(rng),
        count,
        chunk=size,
        interactions=bool(interactions),
        gradient=check.boolean(gradient, "gradient"),
        threads=check.threads(threads),
    )
    if result["samples"] == 0:
        raise KeyboardInterrupt
    scale = model.network.scale
    for name, values in result.items():
        if scale != 1 and isinstance(values, np.ndarray):
            values *= scale**2 if name.startswith("U") else scale
    for name in ("V", "U", "grad_V"):
        if name in result:
            require_finite(result[name], f"the mean of {name}", theta=rows)
            if result["samples"] > 1:  # of a single one the error is not known
                require_finite(result[f"{name}_error"], f"the standard error of {name}", theta=rows)
    return Estimate(
        V=result["V"],
        V_error=result["V_error"],
        U=result.get("U"),
        U_error=result.get("U_error"),
        grad_V=result.get("grad_V"),
        grad_V_error=result.get("grad_V_error"),
        samples=result["samples"],
        status="completed" if result["samples"] == count else "interrupted",
    )
