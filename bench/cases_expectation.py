"""Monte-Carlo estimates of V and U, and the population gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mfcore as mf
import numpy as np

from .harness import Case, Prepared, installed


def tanh_problem(quick: bool, output: str) -> tuple[mf.Model, np.ndarray, np.ndarray, np.ndarray]:
    """Model, neurons, and samples (X, y): those of `mf.MonteCarlo(…, rng=0)`."""
    n, d, samples = (60, 10, 500) if quick else (1000, 100, 10_000)
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=d, delta=0.5),
        network=mf.Network(mf.activations.tanh, output=output),
        init=mf.init.Gaussian(std=1 / np.sqrt(d)),
    )
    theta = model.init.sample(model.network, d, n, rng=1)
    x, y = model.data.draw(samples, rng=0)
    return model, theta, x, y


def estimate(quick: bool) -> Iterator[Case]:
    """V and U with standard errors; ours draws its samples, numpy is given them and computes no errors."""
    model, w, x, y = tanh_problem(quick, "one")
    samples, n, d = len(y), len(w), w.shape[1]

    def ours() -> tuple[np.ndarray, np.ndarray]:
        e = mf.estimate(model, w, samples=samples, rng=0)
        return e.V, e.U

    def numpy() -> tuple[np.ndarray, np.ndarray]:
        s = np.tanh(x @ w.T)
        return -(y @ s) / samples, s.T @ s / samples

    flops = 2.0 * samples * n * d + 1.0 * samples * n * n
    yield Case(
        f"estimate V and U, tanh, N={n}, d={d}, {samples:,}",
        {"mfcore": ours, "numpy": numpy},
        flops=flops,
        bars={"numpy": 2.5},
        peak_bar=0.78,
    )


def gradient(quick: bool) -> Iterator[Case]:
    """One population gradient, a and w trained; ours draws its samples, the others are given them."""
    model, theta, x, y = tanh_problem(quick, "trained")
    n, d = theta.shape[0], theta.shape[1] - 1
    rule = mf.MonteCarlo(len(y), rng=0)
    yield Case(
        f"gradient of Psi, tanh, a and w, N={n}, d={d}, {len(y):,}",
        {
            "mfcore": lambda: mf.grad_psi(model, theta, theta, expectation=rule),
            **gradient_contenders(theta, x, y),
        },
        flops=4.0 * len(y) * n * d,
        bars={"numpy": 4.3, "jax": 3.0, "torch": 6.0},
        peak_bar=0.78,
    )


def gradient_contenders(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """∇Ψ of tanh neurons, a and w trained, in their own field, over given samples."""
    samples, n = len(y), len(theta)

    def formula(np: Any, theta: Any, x: Any, y: Any, join: Callable[[Any, Any], Any]) -> Any:
        """The gradient by hand in any array library."""
        a, w = theta[:, 0], theta[:, 1:]
        s = np.tanh(x @ w.T)
        e = (s @ a / n - y) / samples
        return join(e @ s, ((e[:, None] * (1 - s * s)).T @ x) * a[:, None])

    contenders: dict[str, Callable[[], Any]] = {
        "numpy": lambda: formula(np, theta, x, y, lambda a, w: np.column_stack([a, w]))
    }

    def jax() -> Callable[[], Any]:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        arguments = [jnp.asarray(v) for v in (theta, x, y)]

        @jax.jit
        def compiled(t: Any, x: Any, y: Any) -> Any:
            return formula(jnp, t, x, y, lambda a, w: jnp.concatenate([a[:, None], w], axis=1))

        return lambda: compiled(*arguments).block_until_ready()

    def torch() -> Callable[[], Any]:
        import torch

        t, tx, ty = (torch.from_numpy(np.array(v)) for v in (theta, x, y))
        return lambda: formula(torch, t, tx, ty, lambda a, w: torch.cat([a[:, None], w], dim=1))

    others = {"jax": Prepared(jax), "torch": Prepared(torch)}
    return contenders | {name: others[name] for name in installed(*others)}


CASES = (estimate, gradient)
