"""Errors that densities state: the index of three grids, records of it in between, runs that fail or rest."""

import itertools
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore.density._companions import Solvers, convergence_index
from mfcore.density._pde import PDE
from mfcore.runs._ends import End, Ended
from problems import isotropic, shift


def three(power, error=1e-3):
    """Risks on all, half and a quarter of the cells with errors of order cells^−power."""
    return [0.7 + error * 2.0 ** (power * k) for k in range(3)]


@pytest.mark.parametrize("order", [1, 2])
def test_at_the_order_of_the_scheme_the_error_is_stated_with_a_quarter_more(order):
    assert convergence_index(three(order), order) == pytest.approx(1.25e-3)


def test_at_another_order_the_error_is_stated_threefold_with_the_observed_order():
    assert convergence_index(three(1.0), 2) == pytest.approx(3e-3)
    assert convergence_index(three(1.2), 2) == pytest.approx(3e-3)
    # Slower than first order: what order 1 makes of the last difference.
    assert convergence_index(three(0.3), 1) == pytest.approx(3e-3 * (2**0.3 - 1))
    # Faster than the scheme: not believed, the last difference counts for a quarter of the one before.
    before = 1e-3 * 8 * 7
    assert convergence_index(three(3.0), 2) == pytest.approx(3 * before / 4 / 3)


def test_the_index_of_differences_that_vanish_is_finite():
    assert convergence_index([1.0, 1.0, 1.0], 2) == 0.0
    assert convergence_index([1.0, 1.0, 1.4], 2) == pytest.approx(3 * 0.1 / 3)  # small by chance
    assert convergence_index([1.4, 1.0, 1.0], 2) == pytest.approx(3 * 0.4)  # no order at all


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
    st.sampled_from([1, 2]),
    st.sampled_from([0.25, 0.5, 2.0, 4.0]),  # which change no digit
)
def test_the_index_scales_with_the_risks_and_is_at_least_the_safe_extrapolation(risks, order, scale):
    found = convergence_index(risks, order)
    scaled = convergence_index([scale * r for r in risks], order)
    assert scaled == pytest.approx(scale * found, rel=1e-12, abs=1e-300)
    assert found >= 1.25 * abs(risks[0] - risks[1]) / (2**order - 1) * (1 - 1e-12)


@pytest.mark.parametrize("cells", [40, 80])
def test_steps_without_noise_are_one_relaxation_time_over_the_cells(cells):
    """Ψ = z·z̄: all mass moves by −z̄, which decays at rate 1 and is small: h = 1/cells, and T = 2."""
    model = shift(0.0, initial=mf.ReducedInit([mf.init.Normal(0.1, 0.5)]))
    run = mf.solve(model, PDE(cells, error=False), horizon=2.0, save_at=2)
    assert run.meta["steps"] == pytest.approx(2 * cells, abs=3)  # growth of the first steps, and the last
    assert run.risk[-1] == pytest.approx(0.01 * math.exp(-4), rel=0.01)  # order 2 in h


def test_records_of_the_error_do_not_depend_on_save_points_and_survive_a_restart():
    model, method = isotropic(), PDE(60)
    few, many, resumed = (method.begin(model, 0, 1) for _ in range(3))
    assert few.advance(3.0, math.inf).reached
    for t in (0.0, 1e-9, 2.0**-20, 0.25, 0.3, 1.0, 1.1):
        assert many.advance(t, math.inf).reached
    resumed.restore(many.state())
    for rung in (many, resumed):
        assert rung.advance(3.0, math.inf).reached
        assert rung.risk() == few.risk()
        assert rung.meta() == few.meta()


@pytest.mark.parametrize("noise", [{}, {"temperature": 0.01, "ridge": 0.1}])
def test_time_limits_change_no_bit_of_a_density_or_its_error_while_the_grid_grows(noise, monkeypatch):
    whole, parts = (PDE(40).begin(isotropic(norm=0.2, **noise), 0, 1) for _ in range(2))
    assert whole.advance(3.0, math.inf).reached
    assert whole.meta()["grown"] > 0
    follow, asked = Solvers.follow, itertools.count()
    # The time is over whenever coarser grids are about to follow, and they do when asked again.
    late = lambda *args: End.out_of_time if next(asked) % 2 == 0 else follow(*args)  # noqa: E731
    monkeypatch.setattr(Solvers, "follow", late)
    while not (ended := parts.advance(3.0, math.inf)).reached:
        assert ended == Ended(End.out_of_time)
    assert parts.risk() == whole.risk()
    assert parts.meta() == whole.meta()


def test_the_error_recorded_last_counts_until_the_next_but_one():
    rung = PDE(60).begin(isotropic(temperature=0.01, ridge=0.1), 0, 1)
    assert rung.advance(2.0**-4, math.inf).reached
    then = rung.risk()[1]  # at a record
    for t, counts in ((1.5 * 2**-4, True), (2.0**-3, True), (1.9 * 2**-3, True)):
        assert rung.advance(t, math.inf).reached
        assert (rung.risk()[1] >= then) is counts
    assert rung.advance(1e3, math.inf).reached
    assert rung.risk()[1] < then


def lost_beyond(end):
    """Ψ = −4z up to `end`, and not a number from there on."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[5.0],
        features=lambda z: np.where(z > end, np.nan, z),
        gradients=lambda z: np.where(z > end, np.nan, 1.0)[:, :, None],
    )


@pytest.mark.parametrize("times", [[0.0, 0.04, 0.25, 0.5], np.linspace(0, 1, 101), [1.0]])
def test_features_that_turn_nan_end_the_run_before_they_are_recorded(times):
    start = mf.Density(np.linspace(0, 1, 41), np.full(40, 1 / 40))
    run = mf.solve(lost_beyond(1.5), PDE(start=start), horizon=1.0, save_at=times)
    assert run.status == "diverged"
    assert "the state was no longer finite at step" in run.message
    assert np.isfinite(run.risk).all()
    assert np.isfinite(run.error).all()
    assert run.meta["steps"] > 0
    assert np.isfinite(run.final.mass).all()
    assert run.final.mass.sum() == pytest.approx(1)


@pytest.mark.parametrize("scheme", ["muscl", "upwind"])
def test_rounding_at_rest_does_not_shorten_steps(scheme):
    """All mass comes to rest; then moments change by rounding alone, which once made steps of 1e-5."""
    model = isotropic(320, mf.activations.relu, 1.0)
    run = mf.solve(model, PDE(50, scheme=scheme, error=False), horizon=1e5, save_at=[10.0, 1e5])
    assert run.meta["steps"] < 40_000  # measured: 12 000 and 1 000; it was 3 000 000 to t = 1e3
    assert abs(run.risk[1] - run.risk[0]) < 1e-6


def test_movements_state_an_error_after_their_first_step():
    """The companion has made no step of 2τ then: its risk is half way to where that step ends."""
    model = isotropic()
    times = np.array([0.05, 0.1, 0.15, 0.2])
    run = mf.solve(model, mf.JKO(0.05, count=50), horizon=0.2, save_at=times)
    true = mf.solve(model, mf.Atoms(), horizon=0.2, save_at=times)
    made = np.abs(run.risk - true.risk)
    assert made[0] > 0.05
    assert (made <= run.error).all()
    assert (run.error < 6 * made).all()  # 2.5 times the difference to steps of 2τ is stated
