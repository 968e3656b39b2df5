"""The ladder: identities of its budget, neurons and noise that its runs share, and the object it returns."""

from __future__ import annotations

import dataclasses
import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore._base.rng import Seed, derive, seed_of
from mfcore.atoms._atoms import Atoms
from mfcore.density._pde import PDE
from mfcore.neurons._independent import Nonlinear
from mfcore.theory import _runs
from scipy import stats


def gaussian_model(d=40, output="one", init=None, **options):
    law = mf.data.IsotropicGaussians(d, 0.5)
    return mf.Model(
        law, mf.Network(mf.activations.relu, output=output), init or mf.init.Radial(1.0), **options
    )


def small(model=None, **options):
    chosen = {"neurons": [8, 16], "step": [0.1, 0.05], "horizon": 0.4, "replicas": 2, "rng": 3}
    chosen |= {"save_at": 3, "threads": 1, "limit": Atoms(16)} | options
    return theory.ladder(model or gaussian_model(), **chosen)


@pytest.fixture(scope="module")
def budget():
    return small()


@pytest.mark.parametrize("quantity", ["risk", "norm"])
def test_the_gaps_sum_to_the_total_and_bound_it(budget, quantity):
    parts = np.array([budget.gap(name, quantity) for name in theory.GAPS])
    total = budget.gap("total", quantity)
    np.testing.assert_allclose(parts.sum(axis=0), total, atol=1e-14)  # rounding of numbers of order 1
    assert (np.abs(total) <= np.abs(parts).sum(axis=0) + 1e-14).all()
    largest = np.array([budget.suprema(name, quantity) for name in theory.GAPS])
    assert (budget.suprema("total", quantity) <= largest.sum(axis=0) + 1e-14).all()


def test_all_networks_start_from_the_same_neurons(budget):
    nd, pd, gd, sgd = (budget.risk[..., k, 0] for k in range(1, 5))
    assert np.array_equal(nd, pd)
    assert np.array_equal(pd, gd)
    assert np.array_equal(gd, sgd)
    assert (budget.distance[..., 0] == 0).all()
    assert (budget.w1[..., 1:, 0] == 0).all()
    assert len(np.unique(nd[:, 0])) == 4  # but those of other widths and replicas are others
    assert np.array_equal(nd[:, 0], nd[:, 1])


def test_each_rung_is_the_run_of_its_method(budget):
    model = gaussian_model()
    methods = [Nonlinear(16, Atoms(16)), mf.Particles(16), mf.GD(16, 0.05), mf.SGD(16, 0.05)]
    seed = Seed(derive(derive(seed_of(budget.meta["seed"]), 16), 1))
    for rung, method in enumerate(methods, start=1):
        run = mf.solve(model, method, horizon=0.4, save_at=budget.t, risk=mf.Exact(), rng=seed)
        np.testing.assert_allclose(budget.risk[1, 1, 1, rung], run.risk, rtol=1e-12)  # threads change no bit
        np.testing.assert_allclose(budget.norm[1, 1, 1, rung], run.observed["norm_mean"], rtol=1e-12)


def test_the_recorded_seed_repeats_the_ladder(budget):
    assert budget.meta["seed"] == 3
    one = small(neurons=8, step=0.1, rng=np.random.default_rng(0))
    assert np.array_equal(small(neurons=8, step=0.1, rng=one.meta["seed"]).risk, one.risk)


def test_more_widths_steps_and_replicas_leave_the_others_as_they_are(budget):
    less = small(neurons=16, step=0.1, replicas=1)
    for name in ("risk", "norm", "distance"):
        assert np.array_equal(getattr(less, name)[0, 0, 0], getattr(budget, name)[1, 0, 0]), name


def test_distances_are_the_largest_over_neurons_and_w1_is_at_most_the_largest(budget):
    assert (budget.w1[..., 1:, :] <= budget.distance + 1e-14).all()  # |w| is 1-Lipschitz
    seed = Seed(derive(derive(seed_of(budget.meta["seed"]), 8), 0))
    one, two = (
        mf.solve(gaussian_model(), method, horizon=0.4, rng=seed, risk=False).final
        for method in (mf.Particles(8), mf.GD(8, 0.1))
    )
    expected = max(math.dist(a, b) for a, b in zip(one, two, strict=True))
    assert budget.gap("PD-GD", "distance")[0, 0, 0, -1] == pytest.approx(expected, rel=1e-12)


def test_w1_from_a_density_is_that_of_scipy():
    rng = np.random.default_rng(0)
    points, sample, masses = rng.normal(size=30), np.sort(rng.normal(size=11)), rng.dirichlet(np.ones(30))
    expected = stats.wasserstein_distance(points, sample, masses)
    assert _runs._w1(points, masses, sample) == pytest.approx(expected, rel=1e-12)
    budget = small(limit=None, replicas=1, neurons=8, step=0.1)
    assert isinstance(budget.meta["limit"], PDE)
    assert np.isfinite(budget.w1).all()
    assert np.isnan(small(replicas=1, neurons=8, step=0.1).w1[..., 0, :]).all()  # atoms are no sample


def test_gd_of_many_steps_is_interpolated_to_second_order():
    model, steps = gaussian_model(), [0.1, 0.0125]
    exact, short = (small(model, step=steps, gd_steps=most) for most in (1000, 4))
    assert np.array_equal(exact.risk[:, 0], short.risk[:, 0])  # 4 steps of 0.1
    gap = exact.gap("PD-GD")[:, 1, :, -1]
    # Euler's error is h·(c + O(H)): it is off by a share of about H = 0.1.
    np.testing.assert_allclose(short.gap("PD-GD")[:, 1, :, -1], gap, rtol=0.2)
    assert (gap != 0).all()
    assert (short.meta["gd_step"], exact.meta["gd_step"] < 0.0125) == (pytest.approx(0.1), True)
    known = [[(rate.gap, rate.variable) for rate in one.rates()] for one in (exact, short)]
    assert [("PD-GD", "h") in names for names in known] == [True, False]  # one that was not measured


@pytest.mark.parametrize("output", ["fixed", "trained"])
def test_output_weights_may_be_fixed_or_trained(output):
    init = mf.init.Product(a=mf.init.Normal(0.5, 0.5), w=mf.init.Radial(1.0))
    budget = small(gaussian_model(10, output, init), limit=None, replicas=1, neurons=8, step=0.1)
    assert np.isfinite(budget.risk).all()
    assert isinstance(budget.meta["limit"], Atoms if output == "trained" else PDE | Atoms)


def noisy(**options):
    model = gaussian_model(20, temperature=2e-3, ridge=0.1)
    return small(model, limit=PDE(100, error=False), **options)


def test_with_noise_all_rungs_share_their_increments():
    budget = noisy(step=[0.1, 0.05, 0.025], neurons=16, replicas=4)
    # Two independent paths would be √(4·temperature·d·t) = 0.25 apart.
    assert budget.gap("PD-GD", "distance").max() < 0.01
    rates = budget.rates("distance")
    # Over 40 seeds these slopes were 1.02 ± 0.05 and 0.52 ± 0.08: more than 3.6 standard deviations.
    assert rates["PD-GD", "h"].slope == pytest.approx(1.0, abs=0.25)
    assert rates["GD-SGD", "h"].slope == pytest.approx(0.5, abs=0.3)


def test_sgd_that_diverged_is_not_a_number_and_does_not_spoil_the_rest():
    model = gaussian_model(output="trained", init=mf.init.Gaussian(1.0))
    budget = small(model, step=[0.4], horizon=40.0, replicas=1, neurons=8, gd_steps=100)
    assert np.isnan(budget.risk[..., 4, -1]).all()
    assert np.isfinite(budget.risk[..., 1, :]).all()
    assert "diverged" in budget.table()


def test_ctrl_c_keeps_the_replicas_that_are_done(monkeypatch):
    whole, run, calls = small(), _runs.Runs.replica, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 3:  # the second width of the second replica
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(_runs.Runs, "replica", interrupted)
    part = small()
    assert (part.replicas, part.meta["status"]) == (1, "interrupted")
    assert np.array_equal(part.risk, whole.risk[:, :, :1])
    calls += [1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        small()


def test_a_file_holds_the_whole_ladder(budget, tmp_path):
    budget.save(tmp_path / "ladder.npz")
    again = theory.Ladder.load(tmp_path / "ladder.npz")
    for entry in dataclasses.fields(budget):
        one, other = getattr(budget, entry.name), getattr(again, entry.name)
        assert np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else one == other
    mf.solve(gaussian_model(), mf.SGD(3, 0.1), horizon=0.1, rng=0).save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"path must be a file written by Ladder\.save"):
        theory.Ladder.load(tmp_path / "run.npz")


def test_to_xarray_names_widths_steps_rungs_and_gaps(budget):
    data = budget.to_xarray()
    value = data.risk.sel(neurons=16, step=0.05, rung="GD").isel(replica=1, t=2)
    assert float(value) == budget.risk[1, 1, 1, 3, 2]
    assert (
        float(data.distance.sel(neurons=8, step=0.1, gap="PD-GD").isel(replica=0, t=2))
        == (budget.gap("PD-GD", "distance")[0, 0, 0, 2])
    )


def test_tables_have_the_means_of_the_largest_gaps(budget):
    lines = budget.table().splitlines()
    assert lines[0].split("|")[1:-1] == [" N ", " h ", *(f" {name} " for name in theory.GAPS), " total "]
    mean = budget.suprema("GD-SGD").mean(axis=-1)[1, 0]
    assert lines[4].startswith("| 16 | 0.1 | ")
    assert f"{mean:.3g} ±" in lines[4]
    assert budget.rates().table() in str(budget)
    assert repr(budget) == (
        "Ladder(neurons=(8, 16), step=(0.1, 0.05), replicas=2, t=[0, 0.4], limit=Atoms(count=16))"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"step": [0.1, 0.03]},
            r"step must divide the largest, 0\.1, .* got 0\.03; 0\.025 and 0\.03333",
        ),
        (
            {"step": [0.1, 0.1]},
            r"step must be a number or several different ones, got \[0\.1, 0\.1\]",
        ),
        ({"step": []}, r"step must be a number or several different ones, got \[\]"),
        ({"neurons": []}, r"neurons must be a number or several different ones, got \[\]"),
        ({"neurons": [8, 0]}, "neurons must be >= 1, got 0"),
        ({"step": 0.5}, r"step must be <= horizon = 0\.4, got 0\.5"),
        ({"save_at": [0.0, 0.5]}, r"save_at must be >= 0 and <= horizon = 0\.4, got 0\.5 at \[1\]"),
        ({"save_at": [0.01]}, r"save_at must have a time of at least the largest step, 0\.1"),
        ({"replicas": 0}, "replicas must be >= 1, got 0"),
    ],
)
def test_misuse_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        small(**change)


@pytest.mark.parametrize("risk", [False, True, 3, mf.Exact])
def test_the_rule_of_the_risk_is_an_expectation_or_none(risk):
    with pytest.raises(
        TypeError, match=r"risk must be mf\.Exact\(\), mf\.MonteCarlo\(samples\) or None, got"
    ):
        small(risk=risk)


def test_a_network_is_no_limit(budget):
    for wrong in (3, "pde", PDE):
        with pytest.raises(TypeError, match=r"limit must be a method of the limit, such as mf\.PDE\(\), got"):
            small(limit=wrong)
    with pytest.raises(TypeError, match=r"limit must be a method of the limit, such as mf\.PDE\(\)"):
        small(limit=mf.GD(10, 0.1))
    with pytest.raises(ValueError, match="name must be one of"):
        budget.gap("PDE-SGD")
    with pytest.raises(ValueError, match="quantity must be one of"):
        budget.gap("total", "loss")
