"""Steps of finite volumes against a plain reference."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore import _core
from mfcore.steppers import FiniteVolume1D, FiniteVolume2D

MOST, DUST = 1 - 2.0**-20, 1e-250  # of a cell's mass leaves in one step; less mass stays where it is


def leaving(psi, mass, width, conductance, muscl):
    """Mass per time that leaves each cell to lower and higher indices, along the first axis."""
    column = (-1,) + (1,) * (mass.ndim - 1)
    width, conductance = width.reshape(column), conductance.reshape(column)
    density = mass / width
    velocity = conductance * (psi[:-1] - psi[1:])
    half = np.zeros_like(mass)
    if muscl:
        jump = np.where(conductance > 0, np.diff(density, axis=0), 0.0)
        a, b = jump[:-1], jump[1:]
        with np.errstate(all="ignore"):
            half[1:-1] = np.where(a * b > 0, a * b / (a + b), 0.0)
    density = np.where(mass > DUST, density, 0.0)
    low, high = np.zeros_like(mass), np.zeros_like(mass)
    high[:-1] = np.maximum(velocity, 0) * (density + half)[:-1]
    low[1:] = np.maximum(-velocity, 0) * (density - half)[1:]
    return low, high


def euler(potential, mass, axes, dt, muscl):
    psi, out = potential(mass), []
    for c, (width, conductance) in enumerate(axes):
        pair = leaving(np.moveaxis(psi, c, 0), np.moveaxis(mass, c, 0), width, conductance, muscl)
        out.append([dt * np.moveaxis(x, 0, c) for x in pair])
    total = sum(x for pair in out for x in pair)
    with np.errstate(all="ignore"):
        scale = np.where(total > MOST * mass, MOST * mass / total, 1.0)
    new = mass.copy()
    for c, pair in enumerate(out):
        low, high = (np.moveaxis(scale * x, c, 0) for x in pair)
        view = np.moveaxis(new, c, 0)
        view -= low + high
        view[1:] += high[:-1]
        view[:-1] += low[1:]
    return new


def reference(potential, mass, axes, dt, scheme):
    """One step, straight from eqs. (7.1) to (7.4)."""
    first = euler(potential, mass, axes, dt, scheme == "muscl")
    if scheme == "upwind":
        return first
    return 0.5 * (mass + euler(potential, first, axes, dt, True))


def problem(shape, seed, closed=False):
    """Random factors, cells of random widths, masses of very different sizes: core potential, plain one."""
    rng = np.random.default_rng(seed)
    cells, rank = math.prod(shape), int(rng.integers(1, 9))
    shift, decay = rng.normal(size=rank), rng.normal(size=cells)
    if len(shape) == 1:
        basis = rng.normal(size=(cells, rank))
        core = _core.GridPotential(basis, shift=shift, floor=0.5, decay=decay)
    else:
        first, second = (rng.normal(size=(n, int(rng.integers(1, 7)))) for n in shape)
        mixed = rng.normal(size=(first.shape[1] * second.shape[1], rank))
        core = _core.GridPotential(first, second=second, core=mixed, shift=shift, floor=0.5, decay=decay)
        basis = np.einsum("ia,jb->ijab", first, second).reshape(cells, -1) @ mixed

    def potential(mass):
        return (basis @ (basis.T @ mass.ravel() - shift) + decay).reshape(shape)

    axes = []
    for n in shape:
        width = rng.uniform(0.5, 1.5, n)
        conductance = rng.uniform(0.5, 2.0, n - 1)  # rate over distance
        if closed:
            conductance[rng.random(n - 1) < 0.2] = 0.0
        axes.append((width, conductance))
    mass = rng.random(shape) * 10.0 ** rng.uniform(-20, 0, shape)
    return core, potential, axes, mass / mass.sum()


def stepper(core, axes, scheme):
    return _core.GridStepper(
        core, [_core.GridAxis(width, conductance) for width, conductance in axes], scheme
    )


sizes = st.one_of(st.tuples(st.integers(1, 150)), st.tuples(st.integers(1, 40), st.integers(1, 30)))


@given(
    shape=sizes,
    seed=st.integers(0, 2**32 - 1),
    closed=st.booleans(),
    scheme=st.sampled_from(["upwind", "muscl"]),
)
def test_a_step_is_that_of_the_plain_reference(shape, seed, closed, scheme):
    core, potential, axes, mass = problem(shape, seed, closed)
    step = stepper(core, axes, scheme)
    bound = step.bound(mass)
    dt = 0.9 * bound if math.isfinite(bound) else 1.0
    want, got = reference(potential, mass, axes, dt, scheme), mass.copy()
    assert step.run(got, dt, 1) == (1, bound)
    # Potentials of size 10^2 are sums in another order; masses move by parts of themselves.
    assert np.abs(got - want).max() < 1e-13


@given(
    shape=sizes,
    seed=st.integers(0, 2**32 - 1),
    scheme=st.sampled_from(["upwind", "muscl"]),
    factor=st.floats(0.01, 1.0),
)
def test_masses_stay_nonnegative_and_their_sum_stays(shape, seed, scheme, factor):
    core, _, axes, mass = problem(shape, seed)
    step = stepper(core, axes, scheme)
    for _ in range(5):
        before = mass.sum()
        bound = step.bound(mass)
        step.run(mass, factor * bound if math.isfinite(bound) else 1.0, 1)
        assert mass.min() >= 0
        assert abs(mass.sum() - before) < 1e-15 * (10 + len(mass.ravel()))  # rounding of the sum itself


@given(shape=sizes, seed=st.integers(0, 2**32 - 1), scheme=st.sampled_from(["upwind", "muscl"]))
def test_cells_without_mass_do_not_restrict_the_step_and_yet_stay_nonnegative(shape, seed, scheme):
    core, potential, axes, mass = problem(shape, seed)
    mass[mass < 1e-3] *= 1e-14  # below what counts
    mass /= mass.sum()
    step = stepper(core, axes, scheme)
    bound = step.bound(mass)
    if not math.isfinite(bound):
        return
    got = mass.copy()
    step.run(got, bound, 1)
    assert got.min() >= 0
    assert np.abs(got - reference(potential, mass, axes, bound, scheme)).max() < 1e-13


@given(seed=st.integers(0, 2**32 - 1), scheme=st.sampled_from(["upwind", "muscl"]))
def test_the_energy_falls_by_what_the_flow_dissipates(seed, scheme):
    core, potential, axes, mass = problem((60,), seed)
    step = stepper(core, axes, scheme)
    dt = 1e-7 * step.bound(mass)
    psi, after = potential(mass), mass.copy()
    step.run(after, dt, 1)
    # To first order in dt, R/2 + decay changes by ∫Ψ_λ d(ρ' − ρ), which no upwinded flux makes positive.
    assert psi @ (after - mass) <= 1e-15 * np.abs(psi).max()


def quadratic(k=1, rates=()):
    """Ψ_λ = |∫z dρ|·z + λ|z|²/2 in k coordinates: the node q sees coordinate q."""
    return mf.ReducedModel(
        coordinates=["x", "y"][:k],
        weights=np.full(k, 1 / k),
        targets=np.zeros(k),
        features=lambda z: z * math.sqrt(k),
        ridge=0.5,
        rates=rates,
    )


def test_the_stepper_moves_the_callers_masses_with_their_rates():
    edges = (np.linspace(-1, 1, 31), np.linspace(0, 1, 21))
    mass = np.random.default_rng(0).random((30, 20))
    mass /= mass.sum()
    reduced = quadratic(2, rates=(1.0, 3.0))
    own = FiniteVolume2D(reduced, edges, mass, scheme="upwind")
    centers = [0.5 * (e[1:] + e[:-1]) for e in edges]
    mean = mf.Density(edges, mass).as_cloud()
    m = mean.weights @ mean.points
    psi = np.add.outer(m[0] * centers[0] + centers[0] ** 2 / 4, m[1] * centers[1] + centers[1] ** 2 / 4)
    assert np.abs(own.psi - psi).max() < 1e-12  # the features are compressed to 1e-12
    assert abs(own.risk - (m**2).sum()) < 1e-12
    axes = [(np.diff(e), rate / np.diff(c)) for e, c, rate in zip(edges, centers, (1.0, 3.0), strict=True)]
    dt = 0.5 * own.bound
    want = euler(lambda _: psi, mass, axes, dt, False)
    own.step(dt)
    assert own.mass is mass
    assert np.abs(mass - want).max() < 1e-13
    assert own.t == dt


def test_the_stepper_refuses_what_it_cannot_do():
    edges, mass = np.linspace(-1, 1, 11), np.full(10, 0.1)
    own = FiniteVolume1D(quadratic(), edges, mass)
    with pytest.raises(ValueError, match="dt must be at most bound = "):
        own.step(2 * own.bound)
    assert np.array_equal(mass, np.full(10, 0.1))
    with pytest.raises(ValueError, match="dt must be >= 0, got -1"):
        own.step(-1)
    with pytest.raises(ValueError, match="mass must be >= 0"):
        FiniteVolume1D(quadratic(), edges, np.linspace(-0.1, 0.3, 10))
    with pytest.raises(ValueError, match=r"mass must have shape \(10,\), got \(9,\)"):
        FiniteVolume1D(quadratic(), edges, np.full(9, 1 / 9))
    with pytest.raises(TypeError, match="mass must be a float64 NumPy array"):
        FiniteVolume1D(quadratic(), edges, [0.1] * 10)
    with pytest.raises(ValueError, match=r"model must have 2 coordinate\(s\), all moving"):
        FiniteVolume2D(quadratic(), (edges, edges), np.full((10, 10), 0.01))
