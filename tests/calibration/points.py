"""Compute true and stated errors of runs of random problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import mfcore as mf
import numpy as np
from mfcore.atoms._starts import _block_curve

from .models import Problem

RUNGS = ("Atoms", "JKO", "PDE")
_ROUNDING = 1e-13  # of the risk's terms: below this nothing can be compared


@dataclass(frozen=True)
class Point:
    """A save point of a run: the error stated, the true one, and how well the latter is known."""

    rung: str
    family: str
    number: int
    kind: str
    t: float
    risk: float
    stated: float
    true: float
    known_to: float

    @property
    def held(self) -> bool:
        """Whether the interval risk ± stated contains the true risk, as far as that is known."""
        return self.true <= self.stated + self.known_to

    @property
    def ratio(self) -> float:
        """stated/true; NaN where the true error is not known to a fifth."""
        return self.stated / self.true if self.true > 5 * self.known_to else float("nan")


def points_of(problem: Problem, rungs: Sequence[str] = RUNGS, seconds: float = 60.0) -> list[Point]:
    """All comparisons of one problem, as far as runs and references come in so many seconds each."""
    found: list[Point] = []
    runs: list[tuple[str, Any, Any]] = []
    if "Atoms" in rungs:
        runs.append(("Atoms", problem.model, problem.atoms))
    for name, method in (("JKO", problem.jko), ("PDE", problem.pde)):
        if name in rungs and method is not None:
            runs.append((name, problem.model, method))
            if problem.warm is not None:
                runs.append((name, problem.warm, method))
    for name, model, method in runs:
        times: dict[str, Any] = {"horizon": problem.horizon, "save_at": list(problem.times), "rng": 0}
        try:
            run = mf.solve(model, method, **times, max_seconds=seconds)
            best, known_to = _truth(model, run.t, seconds)
        except TimeoutError:  # not even begun
            continue
        kind = problem.kind + (", with noise" if model.temperature else "")
        for t, risk, stated, true, within in zip(run.t, run.risk, run.error, best, known_to, strict=False):
            if np.isfinite(stated):  # not where time was over before the coarser runs had come so far
                numbers = [float(x) for x in (t, risk, stated, abs(risk - true), within)]
                found.append(Point(name, problem.family, problem.number, kind, *numbers))
    return found


def _truth(model: mf.ReducedModel, t: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """R(ρ_t) at these times from much finer runs, and twice the difference of the two finest."""
    if t[-1] == 0:
        t = np.append(t, 1e-6)
    times: dict[str, Any] = {"horizon": float(t[-1]), "save_at": t.tolist(), "rng": 0, "max_seconds": seconds}
    runs = [mf.solve(model, method, **times) for method in _references(model)]
    n = min(len(run.risk) for run in runs)
    best, other = runs[0].risk[:n], runs[1].risk[:n]
    scale = 1 + float(model.weights @ model.targets**2)
    return best, 2 * np.abs(best - other) + _ROUNDING * scale


def _references(model: mf.ReducedModel) -> tuple[Any, Any]:
    """The finest run and one that is less fine."""
    if model.temperature > 0:
        return mf.PDE(cells=1600, error=False), mf.PDE(cells=800, error=False)
    blocks = getattr(model.initial, "_blocks", (model.initial,))
    free = [b for b in blocks if len(b.quadrature(2)[0]) > 1]
    if len(blocks) == 1 and hasattr(model.initial, "_blocks"):
        return mf.Atoms(16384, rtol=1e-12, atol=1e-14), mf.Atoms(8192, rtol=1e-11, atol=1e-13)
    few, many = {1: (30, 40), 2: (2, 3), 3: (2, 2)}[len(free)]
    if len(free) == 2 and len(model.weights) < 64:  # features that cost little
        few, many = 5, 6
    rtol = {1: 1e-12, 2: 1e-9, 3: 1e-9}[len(free)]
    fine, less = (16, 16) if len(free) < 3 else (12, 9)
    finest = mf.Atoms(start=_cloud(blocks, many, fine), rtol=rtol, atol=1e-2 * rtol)
    return finest, mf.Atoms(start=_cloud(blocks, few, less), rtol=10 * rtol, atol=0.1 * rtol)


def _cloud(blocks: Sequence[Any], panels: int, nodes: int) -> mf.Cloud:
    """The product of composite Gauss–Legendre rules, with so many panels for each random coordinate."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    rules = []
    for block in blocks:
        curve = _block_curve(block)
        if curve is None:
            rules.append(block.quadrature(1))
            continue
        low, high, density, points = curve
        edges = np.linspace(low, high, panels + 1)
        at = (edges[:-1, None] + np.diff(edges)[:, None] * (1 + x) / 2).ravel()
        mass = density(at) * (np.diff(edges)[:, None] / 2 * w).ravel()
        rules.append((points(at), mass / mass.sum()))

    def product(one: Any, two: Any) -> Any:
        (z, m), (y, n) = one, two
        both = np.concatenate([np.repeat(z, len(y), axis=0), np.tile(y, (len(z), 1))], axis=1)
        return both, np.multiply.outer(m, n).ravel()

    points_, masses = reduce(product, rules)
    kept = masses > 1e-15 * masses.max()
    return mf.Cloud(points_[kept], masses[kept] / masses[kept].sum())
