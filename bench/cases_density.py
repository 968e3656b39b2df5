"""The limit itself: densities on grids with and without noise, and a Fokker–Planck equation by others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mfcore as mf
import numpy as np

from .harness import Case, Prepared, installed

TRUNCATED = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])


def density_1d(quick: bool) -> Iterator[Case]:
    """Upwind steps of the isotropic model: potential, flux and update, against the same in NumPy."""
    cells, steps = (50, 20) if quick else (400, 20_000)
    law = mf.data.IsotropicGaussians(d=320, delta=0.5)
    model = mf.Model(data=law, network=mf.Network(TRUNCATED), init=mf.init.Radial(0.4))
    reduced = model.reduce(nodes=32)  # 64 nodes, 32 of each class
    edges = np.linspace(0.0, 3.0, cells + 1)
    mass = _bump(edges, 1.0, 0.3)
    yield _steps("1-D upwind", reduced, (edges,), mass, steps, {"numpy": 10.0})


def density_2d(quick: bool) -> Iterator[Case]:
    """The same for the anisotropic model in (r1, r2), NumPy with the full table."""
    cells, steps = (20, 5) if quick else (200, 200)
    law = mf.data.AnisotropicGaussians(d=320, delta=0.5, s0=60)
    model = mf.Model(data=law, network=mf.Network(TRUNCATED))
    reduced = model.reduce(nodes=12)  # 12 norms for each of both blocks and classes
    edges = (np.linspace(0.0, 2.0, cells + 1), np.linspace(0.0, 2.0, cells + 1))
    mass = np.multiply.outer(_bump(edges[0], 1.0, 0.3), _bump(edges[1], 0.8, 0.2))
    yield _steps("2-D upwind", reduced, edges, mass, steps, {"numpy": 30.0})


def _bump(edges: np.ndarray, centre: float, width: float) -> np.ndarray:
    z = (edges[1:] + edges[:-1]) / 2
    mass = np.exp(-((z - centre) ** 2) / (2 * width**2))
    return np.asarray(mass / mass.sum())


def _steps(
    name: str,
    reduced: mf.ReducedModel,
    edges: tuple[np.ndarray, ...],
    mass: np.ndarray,
    steps: int,
    bars: dict[str, float],
) -> Case:
    dt, slow = 1e-6, max(1, steps // 100)

    def prepared(make: Callable[..., Callable[[int], np.ndarray]], count: int) -> Prepared:
        def ready() -> Callable[[], np.ndarray]:
            run = make(reduced, edges, mass.copy(), dt)
            return lambda: run(count)

        return Prepared(ready)

    shape = "×".join(map(str, mass.shape))
    return Case(
        f"{name}, {shape} cells, {len(reduced.weights)} nodes",
        {"mfcore": prepared(_ours, steps), "numpy": prepared(numpy_upwind, slow)},
        tolerance=None,
        checks={"mfcore": prepared(_ours, 20), "numpy": prepared(numpy_upwind, 20)},
        units={"mfcore": steps, "numpy": slow},
        bars=bars,
    )


def _ours(reduced: mf.ReducedModel, edges: tuple[np.ndarray, ...], mass: np.ndarray, dt: float) -> Any:
    kind = mf.steppers.FiniteVolume1D if len(edges) == 1 else mf.steppers.FiniteVolume2D
    where: Any = edges[0] if len(edges) == 1 else edges
    stepper = kind(reduced, where, mass, scheme="upwind")

    def run(steps: int) -> np.ndarray:
        stepper.run(dt, steps)
        return mass

    return run


def numpy_upwind(
    reduced: mf.ReducedModel, edges: tuple[np.ndarray, ...], mass: np.ndarray, dt: float
) -> Callable[[int], np.ndarray]:
    """f = Φᵀ M, Ψ = Φ p (f − y), v = −ΔΨ/Δ, upwind fluxes: one array operation each, all buffers reused."""
    centres = [(e[1:] + e[:-1]) / 2 for e in edges]
    grid = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, len(edges))
    table = np.ascontiguousarray(reduced.features(grid))
    p, y = reduced.weights, reduced.targets
    rho = mass.copy()
    widths = [float(e[1] - e[0]) for e in edges]

    def run(steps: int) -> np.ndarray:
        nonlocal rho
        for _ in range(steps):
            psi = (table @ (p * (rho.ravel() @ table - y))).reshape(rho.shape)
            change = np.zeros_like(rho)
            for axis, width in enumerate(widths):
                v = np.diff(psi, axis=axis) / -width
                lower = np.take(rho, range(rho.shape[axis] - 1), axis) if axis else rho[:-1]
                upper = np.take(rho, range(1, rho.shape[axis]), axis) if axis else rho[1:]
                flux = (np.maximum(v, 0) * lower + np.minimum(v, 0) * upper) * (dt / width)
                if axis:
                    change[:, :-1] -= flux
                    change[:, 1:] += flux
                else:
                    change[:-1] -= flux
                    change[1:] += flux
            rho = rho + change
        return rho

    return run


def fokker_planck(quick: bool) -> Iterator[Case]:
    """A linear Fokker–Planck equation (Ornstein–Uhlenbeck) from a narrow Gaussian to stationarity."""
    cells = 100 if quick else 2000
    ridge, temperature, horizon, half = 1.0, 0.5, 10.0, 6.0
    edges = np.linspace(-half, half, cells + 1)
    start = mf.Density(edges, _bump(edges, 1.0, math.sqrt(0.1)))
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[0.0],
        features=lambda z: np.zeros((len(z), 1)),
        ridge=ridge,
        temperature=temperature,
    )

    def ours() -> np.ndarray:
        method = mf.PDE(start=start)
        final: Any = mf.solve(model, method, horizon=horizon, save_at=[], risk=False).final
        return np.asarray(final.density)

    contenders: dict[str, Callable[[], Any]] = {"mfcore": ours}
    exact = np.exp(-((edges[1:] + edges[:-1]) ** 2) / (8 * temperature / ridge))

    def py_pde() -> Callable[[], np.ndarray]:
        import pde

        grid = pde.CartesianGrid([[-half, half]], cells)
        equation = pde.PDE({"c": f"{temperature}*laplace(c) + {ridge}*(c + x*d_dx(c))"}, bc={"derivative": 0})
        field = pde.ScalarField(grid, start.density)

        def theirs() -> np.ndarray:
            result: Any = equation.solve(field, t_range=horizon, solver="scipy", method="BDF", tracker=None)
            return np.asarray(result.data)

        return theirs

    if installed("pde"):
        contenders["py-pde"] = Prepared(py_pde)
    yield Case(
        f"Ornstein–Uhlenbeck to stationarity, {cells} cells",
        contenders,
        tolerance=1e-2 if quick else 1e-3,  # to the exact stationary law, in L1: what py-pde reaches
        distance=lambda density: _l1(density, exact),
        bars={"py-pde": 20.0},
    )


def _l1(density: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(density / density.sum() - exact / exact.sum()).sum())


CASES = (density_1d, density_2d, fokker_planck)
