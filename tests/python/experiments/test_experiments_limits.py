"""Published figures of the limit's rungs at tiny sizes: their numbers."""

import math
from dataclasses import replace

import mfcore as mf
import numpy as np
import pytest
from mfcore.experiments import anisotropic_gaussians, noisy, phase_transition


@pytest.fixture(scope="module")
def anisotropic():
    """The limits at one Δ, and twenty thousand steps of one network of 200 neurons."""
    size = replace(
        anisotropic_gaussians.QUICK,
        limits=(0.6,),
        steps=20_000,
        neurons=200,
        replicas=1,
        points=6,
        held_out=5_000,
        atoms=32,
        cells=(70, 60),
    )
    return mf.experiments.run("anisotropic-gaussians", size=size)


def test_the_published_pde_is_that_of_infinite_d_and_the_networks_follow_that_of_finite_d(anisotropic):
    fitted = [row for row in anisotropic.rows if row.source.fitted]
    (networks,) = [row for row in anisotropic.rows if "SGD, digitised" in row.source.where]
    assert len(fitted) == 7
    # Reading, and the time of the fall, which depends on the initial atoms, of which there are 32 here.
    assert all(abs(row.measured - row.expected) < 0.1 for row in [*fitted, networks]), anisotropic.table()
    assert [row.outcome for row in fitted].count("fitted") == 6, anisotropic.table()
    assert all(row.agrees for row in anisotropic.rows if row.source.kind == "exact")


def test_networks_follow_the_atoms_of_anisotropic_gaussians(anisotropic):
    sgd, atoms = anisotropic.runs["sgd-0.6"], anisotropic.runs["atoms-0.6"]
    assert sgd.meta["steps"] == 20_000
    # One network, on 5000 held-out samples: standard error 0.03 of a risk that falls from 2.1 to 1.1.
    assert np.abs(sgd.risk - np.interp(sgd.t, atoms.t, atoms.risk)).max() < 0.25
    for name in ("a_mean", "b_mean", "r1_mean"):
        gap = sgd.observed[name] - np.interp(sgd.t, atoms.t, atoms.observed[name])
        assert np.abs(gap).max() < 0.1, name


def test_optima_are_those_of_a_quadratic_programme_and_networks_are_above_by_their_number():
    size = replace(
        phase_transition.QUICK,
        deltas=(0.2, 0.8),
        flown=(0.8,),
        near=2,
        trained=(0.4,),
        step=4e-4,
        neurons=100,
        held_out=5_000,
    )
    report = mf.experiments.run("phase-transition", size=size)
    least = [row for row in report.rows if row.quantity.startswith("least risk")]
    assert len(least) == 12  # at three d
    assert all(row.agrees for row in least), report.table()
    assert report.unexplained() == [], report.table()
    assert all(report.arrays[f"optimum/{d}/gap"].max() < 1e-8 for d in phase_transition.DIMENSIONS)
    (network,) = [row for row in report.rows if row.quantity.startswith("risk of SGD")]
    # 1/N: 3.5/100 measured at finer steps; the coarse one here adds about as much.
    assert 0.0 < network.measured - network.expected < 0.15
    assert network.outcome == "differs"


def test_the_threshold_of_infinite_d_is_that_of_the_closed_form():
    assert phase_transition.closed_form() == pytest.approx(0.474219, abs=1e-6)
    low, high = phase_transition.threshold(math.inf, width=1e-4)
    assert low - 2e-5 < phase_transition.closed_form() < high + 2e-5


def test_noise_leads_to_the_gibbs_law_under_its_certificate():
    size = replace(noisy.QUICK, cells=200, step=4e-4, until=4.0, neurons=100)
    report = mf.experiments.run("noisy", size=size)
    rows = [row for row in report.rows if row.source.kind == "exact"]
    assert len(rows) == 6
    assert all(row.agrees for row in rows[:5]), report.table()
    assert rows[5].outcome == "differs"  # a slope below 1 that comes nearer
    # N = 100 and a step ten times the full one: the risk is above the range that the row states for
    # small steps.
    (risk,) = [row for row in report.rows if row.quantity.startswith("risk of SGD")]
    assert 1.0 < (risk.measured - risk.expected) / risk.because.low < 1.5, report.table()
    excess, certified, entropy = (report.arrays[name] for name in ("excess", "certified", "entropy"))
    assert excess[0] > 0.9  # far away at the start
    assert (entropy <= excess + 1e-12).all()
    assert (excess <= certified + 1e-12).all()
    assert np.isfinite(certified).all()  # from the start
    assert (np.diff(report.arrays["price"]) > 0).all()
