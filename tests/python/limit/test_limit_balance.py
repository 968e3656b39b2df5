"""Balances along runs of the limit: the weak form against test functions, and −dF/dt, from kept measures."""

from dataclasses import replace
from itertools import pairwise

import mfcore as mf
import numpy as np
import pytest
from mfcore.init._blocks import Scalar
from problems import isotropic
from scipy.integrate import simpson

T = 0.5
TIMES = np.linspace(0, T, 81)  # Simpson's rule in time is good to 1e-6 of the whole change


def waves(temperature=0.0):
    """Features sin(⟨v_q, z⟩ + c_q) in two coordinates of different speed, the second one a radius in R³."""
    rng = np.random.default_rng(4)
    v, c = rng.normal(0, 1, (6, 2)), rng.uniform(0, 6, 6)
    return mf.ReducedModel(
        coordinates=["y", "r"],
        weights=np.full(6, 1 / 6),
        targets=rng.normal(0, 2, 6),
        features=lambda z: np.sin(z @ v.T + c),
        gradients=lambda z: np.cos(z @ v.T + c)[:, :, None] * v,
        rates=[1.0, 0.6],
        volume=[0.0, 2.0],
        nonnegative=[False, True],
        initial=mf.ReducedInit([Scalar(mf.init.Normal(0.2, 0.4)), Scalar(mf.init.Normal(2.5, 0.3))]),
        ridge=0.3,
        temperature=temperature,
    )


MODELS = {
    "line": isotropic().reduce(),
    "noisy line": isotropic(temperature=0.01, ridge=0.1).reduce(),
    "plane": waves(),
    "noisy plane": waves(0.2),
}


def run_of(model, method):
    run = mf.solve(model, method, horizon=T, save_at=TIMES, keep="all", threads=1, rng=0)
    assert run.status == "completed"
    return run


def cloud(measure):
    return measure.as_cloud() if isinstance(measure, mf.Density) else measure


def waves_along(run, seed=0):
    """Frequencies v and phases c of 5 random test functions sin(⟨v, z⟩ + c), at the scale of the run."""
    rng = np.random.default_rng(seed)
    ends = np.array([np.ptp(cloud(m).points, axis=0) for m in (run.kept[0.0], run.final)]).max(axis=0)
    return rng.normal(0, 2, (5, len(ends))) / ends, rng.uniform(0, 6, 5)


def weak_residuals(model, run):
    """∫φρ_T − ∫φρ_0 − ∫∫Lφ ρ_t dt for test functions φ, and the total variations of ∫φρ_t.

    Lφ = −Σ_c rate_c (∂_cφ (∂_cΨ_λ − β⁻¹e_c/z_c) − β⁻¹∂_c²φ).
    """
    v, c = waves_along(run)
    free, e, rates = replace(model, temperature=0.0), np.array(model.volume), np.array(model.rates)
    values, slopes = [], []
    for measure in run.kept.values():
        z, weights = cloud(measure).points, cloud(measure).weights
        drift = -mf.grad_psi(free, z, measure, threads=1)
        if model.temperature:
            drift += model.temperature * e / np.where(e > 0, np.maximum(z, 1e-300), 1.0)
        phase = z @ v.T + c
        change = np.cos(phase) * ((rates * drift) @ v.T) - model.temperature * np.sin(phase) * (v**2 @ rates)
        values.append(weights @ np.sin(phase))
        slopes.append(weights @ change)
    residuals = values[-1] - values[0] - simpson(slopes, x=TIMES, axis=0)
    return residuals, np.abs(np.diff(values, axis=0)).sum(axis=0)


def weak_residual(model, run):
    """The largest residual over the largest variation."""
    residuals, variations = weak_residuals(model, run)
    return float(np.abs(residuals).max() / variations.max())


def energy_residual(model, run):
    """|F_T − F_0 + ∫D dt| over F_0 − F_T, with D = −dF/dt from each measure alone."""
    free = [mf.free_energy(model, measure, threads=1) for measure in run.kept.values()]
    lost = simpson([mf.dissipation(model, measure, threads=1) for measure in run.kept.values()], x=TIMES)
    assert free[-1] < free[0]
    assert np.diff(free).max() < 2e-3 * (free[0] - free[-1])  # merging cells as a grid grows costs a little
    return abs(free[-1] - free[0] + lost) / (free[0] - free[-1])


def halving(values, factor):
    """Each value is smaller than the one before by the factor, unless it is next to nothing."""
    return all(b < a / factor or b < 3e-5 for a, b in pairwise(values))


def upwind(cells):
    """On a grid that need not grow: its first order is seen without the changes of the width of cells."""
    return mf.PDE(cells, scheme="upwind", extent={"r": (0.0, 2.0)}, error=False)


# Model, methods of doubled effort, factor by which residuals fall at least, the last weak residual and the
# last residual of the energy, both about twice those measured. Grids that grow do so by different factors,
# which change the width of their cells by up to a half: less than 2^order is left of each halving.
LADDERS = {
    "muscl": ("line", [mf.PDE(n, error=False) for n in (100, 200, 400)], 1.5, 3e-4, 1.5e-4),
    "upwind": ("line", [upwind(n) for n in (100, 200, 400)], 1.9, 9e-3, 3e-4),
    "noisy": ("noisy line", [mf.PDE(n, error=False) for n in (100, 200, 400)], 1.7, 1.1e-3, 5e-5),
    "plane": ("plane", [mf.PDE(n, error=False) for n in (30, 60, 120)], 2.0, 7e-4, 4e-4),
    "noisy plane": ("noisy plane", [mf.PDE(n, error=False) for n in (30, 60)], 2.0, 9e-3, 1.2e-3),
    "movements": ("line", [mf.JKO(tau, count=50) for tau in (T / 40, T / 80)], 1.6, 3.3e-2, 4e-2),
    "noisy movements": (
        "noisy line",
        [mf.JKO(tau, count=100) for tau in (T / 40, T / 80)],
        1.5,
        3.3e-2,
        5e-2,
    ),
}


@pytest.mark.parametrize("name", LADDERS)
def test_the_weak_form_and_the_balance_of_energy_hold_and_improve_with_refinement(name):
    model, methods, factor, weak, energy = LADDERS[name]
    model = MODELS[model]
    runs = [run_of(model, method) for method in methods]
    for residual, last in ((weak_residual, weak), (energy_residual, energy)):
        values = [residual(model, run) for run in runs]
        assert halving(values, factor), (residual.__name__, values)
        assert values[-1] < last, (residual.__name__, values)


@pytest.mark.parametrize("name", ["line", "plane"])
def test_atoms_fulfil_the_weak_form_and_the_balance_of_energy(name):
    model = MODELS[name]
    run = run_of(model, mf.Atoms(256))
    assert weak_residual(model, run) < 2e-5
    assert energy_residual(model, run) < 2e-5


@pytest.mark.parametrize("name", ["noisy line", "noisy plane"])
def test_noisy_atoms_fulfil_the_weak_form_up_to_their_martingale(name):
    """∫φρ_T has a martingale of variance ∫∫2β⁻¹Σ rate_c(∂_cφ)²ρ dt/N, at most 2β⁻¹T|v|²max(rate)/N."""
    model, n = MODELS[name], 2000
    run = run_of(model, mf.Atoms(n, method="heun", step=T / 80))
    v, _ = waves_along(run)
    std = np.sqrt(2 * model.temperature * T * (v**2).sum(axis=1) / n)
    residuals, _ = weak_residuals(model, run)
    assert (np.abs(residuals) < 5 * std).all()  # 5 Gaussian numbers: odds 3e-6
