"""One implicit Scharfetter–Gummel step, against dense matrices in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core


def bernoulli(x):
    return np.where(x == 0, 1.0, x / np.expm1(np.where(x == 0, 1.0, x)))


def generator(edges, rate, log_volume, temperature, psi):
    """The matrix L of dM/dt = −L M along one line of cells, entry by entry from the fluxes of eq. (7.8)."""
    width, center = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    L = np.zeros((len(width), len(width)))
    for i in range(len(width) - 1):
        delta = (psi[i + 1] - psi[i]) / temperature - (log_volume[i + 1] - log_volume[i])
        delta += np.log(width[i + 1] / width[i])  # of densities, where widths differ
        scale = rate * temperature / (center[i + 1] - center[i])
        out, back = scale * bernoulli(delta) / width[i], scale * bernoulli(-delta) / width[i + 1]
        L[i, i] += out
        L[i + 1, i] -= out
        L[i + 1, i + 1] += back
        L[i, i + 1] -= back
    return L


def reference_step(axes, temperature, psi, dt, mass):
    """One solve with dense matrices along each coordinate after the other."""
    for c, (edges, rate, e) in enumerate(axes):
        log_volume = _core.log_cell_volume(edges[:-1], edges[1:], e)
        lines, heights = np.moveaxis(mass, c, -1), np.moveaxis(psi, c, -1)
        solved = np.empty_like(lines)
        for at in np.ndindex(lines.shape[:-1]):
            L = generator(edges, rate, log_volume, temperature, heights[at])
            solved[at] = np.linalg.solve(np.eye(len(L)) + dt * L, lines[at])
        mass = np.moveaxis(solved, -1, c)
    return mass


def step(axes, temperature, psi, dt, mass, threads=0):
    core = [_core.DiffusionAxis(edges, rate=rate, volume=e) for edges, rate, e in axes]
    return _core.diffuse(core, temperature, psi.ravel(), dt, mass.ravel(), threads).reshape(mass.shape)


def gibbs(axes, temperature, psi):
    logs = np.zeros(())
    for edges, _, e in axes:
        logs = np.add.outer(logs, _core.log_cell_volume(edges[:-1], edges[1:], e))
    logs = logs - psi / temperature
    law = np.exp(logs - logs.max())
    return law / law.sum()


@settings(deadline=None, max_examples=50)
@given(
    cells=st.lists(st.integers(1, 19), min_size=1, max_size=2),
    e=st.sampled_from([0.0, 1.0, 4.5, 30.0]),
    log_dt=st.floats(-4, 3),
    even=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_step_is_what_dense_matrices_make_of_the_fluxes(cells, e, log_dt, even, seed):
    rng = np.random.default_rng(seed)
    axes = []
    for n in cells:
        edges = np.linspace(0, 2, n + 1) if even else np.cumsum(rng.uniform(0.3, 1, n + 1)) / n
        axes.append((edges, rng.uniform(0.1, 2), e))
        e = 0.0  # the other coordinates are flat
    psi, mass = 3 * rng.random(cells), rng.random(cells)
    mass /= mass.sum()
    got = step(axes, 0.3, psi, 10**log_dt, mass)
    # The reference solves matrices of condition up to 1e3 · rates of about 1e4: 1e-16 · 1e7.
    np.testing.assert_allclose(got, reference_step(axes, 0.3, psi, 10**log_dt, mass), rtol=1e-8, atol=1e-9)


@given(
    cells=st.lists(st.integers(1, 70), min_size=1, max_size=2),
    log_dt=st.floats(-5, 3),
    height=st.floats(0, 500),
    seed=st.integers(0, 2**32 - 1),
)
def test_masses_stay_positive_and_their_sum_for_every_time_step(cells, log_dt, height, seed):
    rng = np.random.default_rng(seed)
    axes = [(np.linspace(0, 1, n + 1), 1.0, 9.0 * c) for c, n in enumerate(cells)]
    mass = rng.random(cells) ** 8
    mass /= mass.sum()
    got = step(axes, 0.1, height * rng.random(cells), 10**log_dt, mass)
    assert got.min() >= 0
    # No subtractions: each mass has a relative error, a few roundings for each of at most 70 cells a line.
    assert abs(got.sum() - 1) < 1e-13


@pytest.mark.parametrize("shape", [(1,), (2,), (9,), (2000,), (40, 33), (1, 7), (7, 1)])
@pytest.mark.parametrize("dt", [1e-3, 1.0, 1e9])
def test_the_discrete_gibbs_law_is_stationary(shape, dt):
    rng = np.random.default_rng(7)
    axes = [(np.linspace(0.5, 2, n + 1), 1.0 + c, 319.0 * (c == 0)) for c, n in enumerate(shape)]
    psi = 0.1 * rng.random(shape) + np.add.outer(np.square(axes[0][0][1:]), np.zeros(shape[1:]))
    law = gibbs(axes, 1 / 300, psi)
    # Each ratio of fluxes is exact to a few 1e-16, and such errors add up along 2000 cells.
    np.testing.assert_allclose(step(axes, 1 / 300, psi, dt, law), law, rtol=1e-11, atol=1e-13)
    assert np.abs(step(axes, 1 / 300, psi, dt, law) - law).sum() < 1e-13


def test_one_long_step_reaches_the_gibbs_law():
    axes = [(np.linspace(0, 3, 41), 1.0, 2.0), (np.linspace(-2, 2, 31), 0.5, 0.0)]
    z = [0.5 * (edges[1:] + edges[:-1]) for edges, _, _ in axes]
    psi = np.add.outer(z[0] ** 2, np.cos(3 * z[1]))
    mass = np.full(psi.shape, 1 / psi.size)
    # A potential without products of the coordinates: one solve along each suffices. Error: 1 / (dt · gap).
    assert np.abs(step(axes, 0.5, psi, 1e10, mass) - gibbs(axes, 0.5, psi)).sum() < 1e-8


@pytest.mark.parametrize("shape", [(500,), (70, 50)])
def test_kullback_leibler_distance_to_the_gibbs_law_decreases_for_every_step(shape):
    rng = np.random.default_rng(1)
    axes = [(np.linspace(0, 2, n + 1), 1.0, 3.0) for n in shape]
    psi = np.sin(5 * np.linspace(0, 2, int(np.prod(shape)))).reshape(shape)
    law, mass = gibbs(axes, 0.2, psi), rng.random(shape)
    mass /= mass.sum()
    before = np.inf
    for dt in (1e-5, 1e-3, 0.1, 10.0, 1e-3):
        after = float((mass * np.log(mass / law)).sum())
        assert after < before
        before, mass = after, step(axes, 0.2, psi, dt, mass)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit_of_a_step(threads):
    rng = np.random.default_rng(threads)
    axes = [(np.linspace(0, 2, n + 1), 1.0, 0.0) for n in (160, 150)]
    psi, mass = rng.random((160, 150)), rng.random((160, 150))
    assert np.array_equal(step(axes, 0.2, psi, 0.1, mass, 1), step(axes, 0.2, psi, 0.1, mass, threads))


@pytest.mark.parametrize("e", [0.0, 0.5, 4.0, 319.0, 1e4])
def test_volumes_of_cells_are_integrals_of_powers_in_logarithms(e):
    low, high = np.array([0.0, 0.1, 1.0, 1.0, 50.0]), np.array([0.1, 0.2, 1.0 + 1e-6, 3.0, 51.0])
    got = _core.log_cell_volume(low, high, e)
    # Gauss–Legendre in the logarithm of the integrand; the first cell is z^(e+1)/(e+1).
    x, w = np.polynomial.legendre.leggauss(200)
    for k in range(1, 5):
        z = 0.5 * (low[k] + high[k]) + 0.5 * (high[k] - low[k]) * x
        logs = e * np.log(z)
        want = logs.max() + np.log(w @ np.exp(logs - logs.max()) * 0.5 * (high[k] - low[k]))
        assert got[k] == pytest.approx(want, rel=1e-11, abs=1e-9)  # rounding of 1 + 1e-6 in the third
    assert got[0] == pytest.approx((e + 1) * np.log(0.1) - np.log(e + 1), rel=1e-13)


def test_what_is_no_grid_is_refused():
    def attempt(edges, temperature=1.0, **kwargs):
        return _core.diffuse(
            [_core.DiffusionAxis(edges, **kwargs)], temperature, np.zeros(2), 0.1, np.ones(2) / 2
        )

    for arguments, message in [
        (([0.0, 1.0, 1.0],), "edges must be finite and increase strictly"),
        (([0.0, 1.0, 2.0], 0.0), "temperature must be finite and > 0"),
        (([0.0, 1.0, np.inf],), "edges must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            attempt(*arguments)
    with pytest.raises(ValueError, match="volume must be finite and > -1, got inf"):
        attempt([0.0, 1.0, 2.0], volume=np.inf)
    with pytest.raises(ValueError, match="edges must be >= 0 where there is a volume factor"):
        attempt([-1.0, 0.0, 1.0], volume=2.0)
    with pytest.raises(ValueError, match="rate must be finite and >= 0"):
        attempt([-1.0, 0.0, 1.0], rate=-1.0)
