"""Noisy densities in time: exact solutions (eqs. (10.9) to (10.13)), and what is promised for every step."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from scipy import special


def centers(edges):
    return 0.5 * (edges[1:] + edges[:-1])


class Problem:
    """Nodes with features linear in z, f_q = ⟨w_q, mean⟩, on a tensor grid of one or two coordinates."""

    def __init__(self, edges, features, targets, ridge, temperature, *, rates=None, volumes=None):
        self.edges, self.temperature = edges, temperature
        self.z = np.stack(np.meshgrid(*map(centers, edges), indexing="ij"), axis=-1).reshape(-1, len(edges))
        self.features, self.targets = features, np.asarray(targets, float)
        self.decay = ridge * np.square(self.z).sum(axis=1) / 2
        self.rates = rates or [1.0] * len(edges)
        self.volumes = volumes or [0.0] * len(edges)
        logs = np.zeros(())
        for e, volume in zip(edges, self.volumes, strict=True):
            logs = np.add.outer(logs, _core.log_cell_volume(e[:-1], e[1:], volume))
        self.log_volume = logs.ravel()

    def table(self):
        """√p Φ with equal weights."""
        return self.features(self.z) / math.sqrt(len(self.targets))

    def potential(self):
        table, root_y = self.table(), self.targets / math.sqrt(len(self.targets))
        if len(self.edges) == 1:
            return _core.GridPotential(table, shift=root_y, floor=0.0, decay=self.decay)
        # b_k(i, j) from functions of one coordinate: 1 and z along each.
        z1, z2 = centers(self.edges[0]), centers(self.edges[1])
        first, second = np.stack([z1 * 0 + 1, z1], 1), np.stack([z2 * 0 + 1, z2], 1)
        probe = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        values = self.features(probe) / math.sqrt(len(self.targets))
        base, along2, along1, both = values
        core = np.stack([base, along2 - base, along1 - base, both - along1 - along2 + base])
        return _core.GridPotential(first, second=second, core=core, shift=root_y, floor=0.0, decay=self.decay)

    def start(self, mean, std):
        mass = np.ones(())
        for e, m, s in zip(self.edges, mean, std, strict=True):
            mass = np.multiply.outer(mass, np.diff(special.ndtr((e - m) / s)))
        return mass.ravel() / mass.sum()

    def flow(self, mass, **kwargs):
        axes = [
            _core.DiffusionAxis(e, rate=rate, volume=volume)
            for e, rate, volume in zip(self.edges, self.rates, self.volumes, strict=True)
        ]
        return _core.FokkerPlanck(
            self.potential(), axes, mass, temperature=self.temperature, **{"rtol": 1e-4, **kwargs}
        )

    def psi(self, mass):
        table = self.table()
        return table @ (mass @ table - self.targets / math.sqrt(len(self.targets))) + self.decay

    def free_energy(self, mass):
        table = self.table()
        residual = mass @ table - self.targets / math.sqrt(len(self.targets))
        there = mass > 0
        entropy = mass[there] @ (np.log(mass[there]) - self.log_volume[there])
        return residual @ residual / 2 + mass @ self.decay + self.temperature * entropy

    def moments(self, mass):
        mean = mass @ self.z
        return mean, (mass[:, None] * (self.z - mean)).T @ (self.z - mean)


def line(cells=200, ridge=1.0, temperature=0.5, slope=0.0, target=0.0, half=6.0):
    """OU with slope 0; else one node with Φ = slope·z, that is U = slope² z z'."""
    return Problem([np.linspace(-half, half, cells + 1)], lambda z: slope * z, [target], ridge, temperature)


def plane(
    cells=(60, 50), ridge=0.5, temperature=0.3, rates=None, slopes=((1.0, 0.5), (0.0, 1.0)), target=1.0
):
    slopes = np.array(slopes)
    edges = [np.linspace(-5, 5, n + 1) for n in cells]
    return Problem(edges, lambda z: z @ slopes.T, [target] * len(slopes), ridge, temperature, rates=rates)


def wells(cells=150, temperature=0.02, strength=5.0):
    """Steep features, and interactions hundreds of times as strong as the noise."""
    x = np.linspace(-3, 3, 12)
    return Problem(
        [np.linspace(-6, 6, cells + 1)],
        lambda z: strength * np.tanh(2 * (z + x)),
        strength / 2 * np.sin(x),
        0.1,
        temperature,
    )


def after(flow, t):
    assert flow.advance(t) is _core.End.reached
    return flow.values()


def test_ornstein_uhlenbeck_is_second_order_in_space():
    mean, std, ridge, temperature, t = 1.5, 0.6, 1.0, 0.5, 0.7
    errors = []
    for cells in (60, 120, 240):
        problem = line(cells, ridge, temperature)
        mass = after(problem.flow(problem.start([mean], [std]), rtol=1e-7), t)
        m, c = problem.moments(mass)
        decayed = math.exp(-2 * ridge * t)
        exact = std**2 * decayed + temperature / ridge * (1 - decayed)
        errors.append([m[0] - mean * math.exp(-ridge * t), c[0, 0] - exact])
    errors = np.abs(errors)
    assert errors[-1].max() < 1e-3
    # Orders 2 within what is left of the next one; errors of time, 1e-7, do not show.
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4, rtol=0.12)


@pytest.mark.parametrize(
    ("order", "coupling"), [(1, "lagged"), (1, "implicit"), (2, "lagged"), (2, "implicit")]
)
@pytest.mark.parametrize("make", [lambda: line(80, slope=2.0, target=1.0), lambda: plane((24, 20))])
def test_fixed_steps_have_the_order_they_state(order, coupling, make):
    problem = make()
    k = len(problem.edges)
    start = problem.start([-1.0, 0.5][:k], [0.7, 0.5][:k])
    exact = after(problem.flow(start, rtol=1e-8), 0.5)
    errors = []
    for step in (1 / 64, 1 / 128, 1 / 256):
        flow = problem.flow(start, step=step, order=order, coupling=coupling)
        errors.append(np.abs(after(flow, 0.5) - exact).sum())
        assert flow.steps == round(0.5 / step)
        assert flow.t == 0.5
    ratios = np.divide(errors[:-1], errors[1:])
    # 2^order up to terms of the next order, which steps of 1/64 still feel.
    np.testing.assert_allclose(ratios, 2**order, rtol=0.2)


def test_the_error_of_adaptive_steps_is_proportional_to_the_tolerance():
    problem = line(100, slope=2.0, target=1.0)
    start = problem.start([-1.0], [0.7])
    exact = after(problem.flow(start, rtol=1e-8), 1.0)
    errors = {rtol: np.abs(after(problem.flow(start, rtol=rtol), 1.0) - exact).sum() for rtol in (1e-3, 1e-5)}
    for rtol, error in errors.items():
        assert error < 20 * rtol  # what about 100 steps gather, being better than their estimates
    assert 30 < errors[1e-3] / errors[1e-5] < 300


@pytest.mark.parametrize("kappa", [0.5, 4.0, 100.0])
def test_quadratic_interaction_has_its_exact_mean_and_variance(kappa):
    """Solution 3 with −κ: Ψ = −κ/2 ∫(z−z')²ρ(dz') + (λ+κ)z²/2 is U = κ z z' and decay λ."""
    ridge, temperature, t, mean, std = 1.0, 0.5, 0.4, 1.2, 0.5
    found = []
    for cells in (400, 800):
        problem = line(cells, ridge, temperature, slope=math.sqrt(kappa))
        m, c = problem.moments(after(problem.flow(problem.start([mean], [std]), rtol=1e-6), t))
        found.append([m[0], c[0, 0]])
    decayed = math.exp(-2 * ridge * t)
    exact = [mean * math.exp(-(ridge + kappa) * t), std**2 * decayed + temperature * (1 - decayed)]
    # Errors fall with Δ²: what the two grids say of Δ = 0 has errors of Δ⁴, which matter at κ = 100, where
    # the drift crosses a cell up to three times as fast as the noise, and those of the steps, 1e-6 each.
    finest = np.array(found[1]) + np.subtract(found[1], found[0]) / 3
    np.testing.assert_allclose(finest, exact, atol=1e-3 if kappa == 100 else 2e-5)


def test_linear_networks_follow_their_exact_means_covariances_and_free_energy():
    """Eqs. (10.10), (10.11), in two coordinates that Σ couples."""
    slopes = np.array([[1.0, 0.5], [0.0, 1.0]])
    ridge, temperature, t, target = 0.5, 0.3, 0.8, 1.0
    sigma = slopes.T @ slopes / 2  # Σ p_q x_q x_qᵀ
    teacher = np.linalg.solve(sigma, slopes.T @ [target, target] / 2)
    start_mean, std = np.array([-1.0, 0.5]), np.array([0.7, 0.5])
    matrix = sigma + ridge * np.eye(2)
    limit = np.linalg.solve(matrix, sigma @ teacher)
    values, vectors = np.linalg.eigh(matrix)
    mean = limit + vectors @ (np.exp(-t * values) * (vectors.T @ (start_mean - limit)))
    decayed = math.exp(-2 * ridge * t)
    cov = np.diag(decayed * std**2 + temperature / ridge * (1 - decayed))
    errors = []
    for cells in (40, 80):
        problem = plane((cells, cells), ridge, temperature, slopes=slopes, target=target)
        flow = problem.flow(problem.start(start_mean, std), rtol=1e-6)
        m, c = problem.moments(after(flow, t))
        risk = (mean - teacher) @ sigma @ (mean - teacher)
        second = mean @ mean + np.trace(cov)
        free = risk / 2 + ridge / 2 * second
        free -= temperature * (math.log(2 * math.pi * math.e) + 0.5 * math.log(np.linalg.det(cov)))
        errors.append([*(m - mean), *(c - cov).ravel(), flow.risk - risk, flow.free_energy - free])
    errors = np.abs(errors)
    assert errors[1].max() < 5e-3
    big = errors[0] > 1e-4
    assert (errors[0] / errors[1])[big] == pytest.approx(4, rel=0.15)


def test_coordinates_have_rates_of_their_own():
    rates, ridge, temperature, t = [0.4, 2.0], 1.0, 0.3, 0.6
    mean, std = np.array([1.0, -1.5]), np.array([0.6, 0.5])
    found = []
    for n in (50, 100):
        problem = plane((n, n), ridge, temperature, rates, slopes=[[0.0, 0.0]], target=0.0)
        m, c = problem.moments(after(problem.flow(problem.start(mean, std), rtol=1e-6), t))
        assert abs(c[0, 1]) < 1e-10
        found.append([*m, *np.diag(c)])
    exact = [m * math.exp(-rate * ridge * t) for m, rate in zip(mean, rates, strict=True)]
    for s, rate in zip(std, rates, strict=True):
        decayed = math.exp(-2 * rate * ridge * t)
        exact.append(s**2 * decayed + temperature / ridge * (1 - decayed))
    # Errors fall with Δ², from 2e-2 on cells of width 1/5: what the two grids say of Δ = 0 is off by Δ⁴.
    np.testing.assert_allclose(np.array(found[1]) + np.subtract(found[1], found[0]) / 3, exact, atol=5e-4)


@pytest.mark.parametrize("d", [2, 5, 320])
def test_stationary_radial_laws_are_those_of_gaussians(d):
    """Ψ = λr²/2 at temperature 1/β: r is χ_d/√(βλ)."""
    ridge, temperature = 1.0, 1.0 / d
    errors = []
    for cells in (75, 150):
        low, high = (0.0, 4.0) if d < 20 else (0.7, 1.3)
        edges = np.linspace(low, high, cells + 1)
        problem = Problem([edges], np.zeros_like, [0.0], ridge, temperature, volumes=[d - 1.0])
        flow = problem.flow(problem.start([1.2], [0.05]), tolerance=1e-9)
        assert flow.advance(1e6) is _core.End.stationary
        exact = np.diff(special.gammainc(d / 2, edges**2 * ridge / temperature / 2))
        errors.append(np.abs(flow.values() - exact / exact.sum()).sum())
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize(("coupling", "sign"), [("lagged", 1), ("implicit", -1)])
@pytest.mark.parametrize("step", [1e-3, 0.05, 1.0])
def test_the_free_energy_changes_by_what_the_identity_says(coupling, sign, step):
    """F' − F = G(ρ') − G(ρ) ± ½ Σ p (f' − f)², with Ψ before the step (+) or after it (−)."""
    problem = line(120, slope=1.5, target=1.0, temperature=0.2)
    before = problem.start([-1.0], [0.7])
    flow = problem.flow(before, step=step, order=1, coupling=coupling)
    start = flow.free_energy
    now = after(flow, step)
    psi = problem.psi(before if coupling == "lagged" else now)

    def bracket(mass):
        logs = np.log(np.maximum(mass, 1e-300)) - problem.log_volume
        return mass @ psi + problem.temperature * mass @ logs

    moved = (now - before) @ problem.table()
    fall = bracket(now) - bracket(before)
    assert fall < 0
    # Rounding, and for the implicit step the residual of its fixed point, 1e-8 of the way f has moved.
    assert flow.free_energy - start == pytest.approx(
        fall + sign * moved @ moved / 2, abs=1e-13 + 1e-8 * moved @ moved
    )
    assert start == pytest.approx(problem.free_energy(before), abs=1e-13)
    assert flow.free_energy == pytest.approx(problem.free_energy(now), abs=1e-13)


@pytest.mark.parametrize("step", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("make", [line, plane, wells, lambda: line(slope=10.0, target=1.0)])
def test_implicit_steps_of_any_size_lower_the_free_energy(step, make):
    problem = make()
    k = len(problem.edges)
    flow = problem.flow(problem.start([-1.0] * k, [0.5] * k), step=step, coupling="implicit")
    values = [flow.free_energy]
    for n in range(1, 6):
        mass = after(flow, n * step)
        assert mass.min() >= 0
        assert mass.sum() == pytest.approx(1, abs=1e-13)
        values.append(flow.free_energy)
    assert np.diff(values).max() <= 1e-13 * max(1, abs(values[0]))  # rounding, once it is stationary
    assert flow.largest_rise == pytest.approx(np.diff(values).max(), abs=1e-13)


@settings(deadline=None, max_examples=25)
@given(
    cells=st.integers(2, 90),
    log_temperature=st.floats(-3, 0),
    slope=st.floats(0, 30),
    log_step=st.floats(-4, 3),
    coupling=st.sampled_from(["lagged", "implicit", "automatic"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_masses_stay_positive_and_their_sum_whatever_the_step(
    cells, log_temperature, slope, log_step, coupling, seed
):
    problem = line(cells, temperature=10**log_temperature, slope=slope, target=1.0)
    start = np.random.default_rng(seed).random(cells) ** 6
    step = 10**log_step
    flow = problem.flow(start / start.sum(), step=step, coupling=coupling)
    end = flow.advance(3 * step)
    if end is _core.End.reached or coupling != "implicit":  # there a fixed point may not be found
        mass = flow.values()
        assert mass.min() >= 0
        assert abs(mass.sum() - 1) < 1e-12


@pytest.mark.parametrize("make", [line, plane, wells])
def test_adaptive_runs_lower_the_free_energy_at_every_step(make):
    problem = make()
    k = len(problem.edges)
    flow = problem.flow(problem.start([-1.0] * k, [0.5] * k))
    values = [flow.free_energy]
    for t in np.geomspace(1e-3, 1e3, 30):
        mass = after(flow, t)
        assert flow.free_energy == pytest.approx(problem.free_energy(mass), abs=1e-12)
        values.append(flow.free_energy)
    # A step takes 1e-14 of the sizes of its terms, about 10, for rounding, and there are up to a hundred of
    # them between two of these times.
    assert np.diff(values).max() <= 1e-11
    assert flow.largest_rise <= 2e-13


def test_the_dissipation_is_the_rate_at_which_the_free_energy_falls():
    problem = plane((40, 40))
    start = problem.start([-1.0, 0.5], [0.7, 0.5])
    for t in (0.05, 0.5):
        values = [problem.flow(start, rtol=1e-7) for _ in range(3)]
        for flow, shift in zip(values, (-1e-3, 0.0, 1e-3), strict=True):
            after(flow, t + shift)
        rate = (values[0].free_energy - values[2].free_energy) / 2e-3
        # Central differences of step 1e-3, of numbers with errors of 1e-8 from the steps in time.
        assert values[1].dissipation == pytest.approx(rate, rel=2e-4)


@pytest.mark.parametrize("make", [line, wells, lambda: line(slope=100.0, target=1.0)])
def test_nine_decades_of_time_cost_hundreds_of_steps(make):
    problem = make()
    flow = problem.flow(problem.start([-1.0], [0.5]))
    mass = after(flow, 1e6)
    assert flow.steps + flow.rejected < 1500
    assert flow.evaluations < 15000
    # The end is stationary: the potential of the masses has them as its Gibbs law.
    if make is not wells:  # where barriers are crossed for longer
        logs = problem.log_volume - problem.psi(mass) / problem.temperature
        law = np.exp(logs - logs.max())
        assert np.abs(law / law.sum() - mass).sum() < 1e-6


@pytest.mark.parametrize("make", [lambda: line(90, slope=2.0), lambda: plane((20, 30)), wells])
@pytest.mark.parametrize("step", [0.0, 0.03])
def test_where_a_run_is_looked_at_changes_no_bit(make, step):
    problem = make()
    k = len(problem.edges)
    start = problem.start([-1.0] * k, [0.5] * k)
    whole, parts = problem.flow(start, step=step), problem.flow(start, step=step)
    for t in (1e-7, 0.013, 0.0131, 0.4, 0.77):
        after(parts, t)
        after(problem.flow(start, step=step), t)
    assert np.array_equal(after(whole, 1.5), after(parts, 1.5))
    assert whole.free_energy == parts.free_energy
    assert (whole.steps, whole.evaluations, whole.largest_rise) == (
        parts.steps,
        parts.evaluations,
        parts.largest_rise,
    )


@pytest.mark.parametrize("make", [lambda: line(90, slope=2.0), lambda: plane((20, 30)), wells])
def test_restored_runs_go_on_to_the_same_bits(make):
    problem = make()
    k = len(problem.edges)
    start = problem.start([-1.0] * k, [0.5] * k)
    flow, other = problem.flow(start), problem.flow(np.full(len(start), 1 / len(start)))
    after(flow, 0.37)
    other.restore(flow.state())
    assert other.t == 0.37
    assert np.array_equal(flow.values(), other.values())
    assert np.array_equal(after(flow, 40.0), after(other, 40.0))
    assert np.array_equal(flow.state()["numbers"], other.state()["numbers"])


def test_states_between_steps_are_as_accurate_as_those_at_them():
    problem = line(100, slope=2.0, target=1.0)
    start = problem.start([-1.0], [0.7])
    coarse, fine = problem.flow(start, rtol=1e-3), problem.flow(start, rtol=1e-8)
    for t in np.linspace(0.05, 2, 25):
        mass = after(coarse, t)
        assert mass.min() > 0
        assert np.abs(mass - after(fine, t)).sum() < 2e-2


def test_mass_at_watched_cells_ends_a_run():
    problem = line(100, ridge=0.0)
    axis = _core.DiffusionAxis(problem.edges[0], watched=[0, 99])
    start = problem.start([0.0], [0.3])
    flow = _core.FokkerPlanck(
        problem.potential(), [axis], start, temperature=1.0, rtol=1e-4, most_watched=1e-6
    )
    assert flow.advance(100.0) is _core.End.open_end
    mass = flow.values()
    assert 1e-6 < mass[0] + mass[99] < 1e-4
    assert 0 < flow.t < 2


def test_a_stationary_law_is_noticed_at_once():
    problem = line(100)
    law = np.exp(problem.log_volume - problem.decay / problem.temperature)
    flow = problem.flow(law / law.sum(), tolerance=1e-6)
    assert flow.advance(1.0) is _core.End.stationary
    assert (flow.steps, flow.t) == (0, 0.0)


@pytest.mark.parametrize("make", [lambda: line(300), lambda: plane((150, 150))])
def test_threads_change_no_bit_of_a_run(make):
    problem = make()
    k = len(problem.edges)
    start = problem.start([-1.0] * k, [0.5] * k)
    one, two = problem.flow(start, threads=1, step=0.1), problem.flow(start, threads=2, step=0.1)
    assert np.array_equal(after(one, 0.3), after(two, 0.3))


def test_parameters_out_of_range_are_named():
    problem = line(20)
    start = problem.start([0.0], [1.0])
    for kwargs, message in [
        ({"rtol": 0.0}, "rtol must be > 0, got 0"),
        ({"step": -1.0}, "step must be >= 0, got -1"),
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"coupling": "none"}, "coupling must be lagged, implicit or automatic, got none"),
    ]:
        with pytest.raises(ValueError, match=message):
            problem.flow(start, **kwargs)
    with pytest.raises(ValueError, match=rf"start must have {len(start)} entries, got {len(start) - 1}"):
        problem.flow(start[1:])
