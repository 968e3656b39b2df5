"""Normals, activations, small problems and the time of an import."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import mfcore as mf
import numpy as np
from mfcore import _core
from scipy import special

from .harness import Case, Prepared


def normals(quick: bool) -> Iterator[Case]:
    """Counter-based normals against numpy's generator (ziggurat), one thread both."""
    n = 100_000 if quick else 1_000_000
    generator, out = np.random.default_rng(0), np.empty(n)
    for dtype, bar in (("float64", 5.0), ("float32", None)):
        single = out.astype(dtype)
        yield Case(
            f"normals {dtype}, {n:,}",
            {
                "mfcore": lambda dtype=dtype: _core.normals(0, "probe", 0, 0, n, dtype),
                "numpy": lambda dtype=dtype, single=single: generator.standard_normal(
                    dtype=dtype, out=single
                ),
            },
            threads=1,
            tolerance=None,
            bars={"numpy": bar} if bar else {},
        )


def activations(quick: bool) -> Iterator[Case]:
    """Values and slopes in cache, one thread, against numpy and SciPy."""
    n = 4096
    z = np.random.default_rng(0).normal(size=n) * 2
    references = {
        "tanh": lambda: (np.tanh(z), 1 - np.tanh(z) ** 2),
        "erf": lambda: (special.erf(z), 2 / np.sqrt(np.pi) * np.exp(-z * z)),
        "sigmoid": lambda: (special.expit(z), special.expit(z) * special.expit(-z)),
    }
    for name, reference in references.items():
        sigma = getattr(mf.activations, name)
        yield Case(
            f"{name}: value and slope, {n:,}",
            {"mfcore": lambda sigma=sigma: (sigma(z), sigma.derivative(z)), "numpy": reference},
            threads=1,
            tolerance=1e-14,
        )


def small(quick: bool) -> Iterator[Case]:
    """Two threads must never be slower than one: N = 10, d = 2 (the bar leaves 10 % for noise)."""
    model = mf.Model(
        data=mf.data.IsotropicGaussians(d=2, delta=0.5),
        network=mf.Network(mf.activations.tanh, bias="trained"),
        init=mf.init.Gaussian(std=1.0),
    )
    theta = np.random.default_rng(0).normal(size=(10, 3))
    rule = mf.MonteCarlo(1000, rng=0)
    yield Case(
        "two threads against one: grad psi, N=10, d=2",
        {
            "mfcore": lambda: mf.grad_psi(model, theta, theta, expectation=rule, threads=2),
            "1 thread": lambda: mf.grad_psi(model, theta, theta, expectation=rule, threads=1),
        },
        bars={"1 thread": 0.9},
    )
    yield Case(
        "two threads against one: estimate, N=10, d=2",
        {
            "mfcore": lambda: mf.estimate(model, theta, samples=1000, rng=0, threads=2).U,
            "1 thread": lambda: mf.estimate(model, theta, samples=1000, rng=0, threads=1).U,
        },
        bars={"1 thread": 0.9},
    )


def imports(quick: bool) -> Iterator[Case]:
    """What importing mfcore adds to numpy and SciPy's special functions: at most 0.15 s."""
    code = (
        "import time, numpy, scipy.special; t = time.perf_counter(); "
        "import mfcore; print(time.perf_counter() - t)"
    )

    def added() -> float:
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return float(out.stdout)

    def shortest() -> Callable[[], None]:
        best = min(added() for _ in range(2 if quick else 7))
        return lambda: time.sleep(best)

    yield Case(
        "import mfcore, after numpy and scipy.special",
        {"mfcore": Prepared(shortest), "0.15 s": lambda: time.sleep(0.15)},
        threads=1,
        tolerance=None,
        bars={"0.15 s": 1.0},
    )


CASES = (normals, activations, small, imports)
