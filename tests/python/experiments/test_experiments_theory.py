"""Experiments of our own on what the limit proves, at tiny sizes: their numbers."""

from dataclasses import replace

import mfcore as mf
import numpy as np
import pytest
from mfcore.experiments import (
    approximation,
    fluctuations,
    geometry,
    global_convergence,
    noisy_convergence,
)


def test_the_risk_is_convex_in_one_geometry_and_not_in_the_other(tmp_path):
    size = replace(geometry.QUICK, points=11)
    report = mf.experiments.run("geometry", size=size)
    assert all(row.agrees for row in report.rows), report.table()
    assert (np.diff(report.arrays["mirror/share"]) > 0).all()
    assert (np.diff(report.arrays["jko/r"]) > -1e-7).all()  # the end is met to the tolerance of a step
    assert report.write(tmp_path)[0].name == "geometry.png"


def test_the_closed_risk_of_a_radius_is_that_of_the_model():
    for r in (0.25, 1.0, 3.0):
        assert geometry.closed(r) == pytest.approx(mf.risk(geometry.MODEL, [r]), rel=1e-12)


def test_neurons_stand_for_a_measure_as_theory_says(tmp_path):
    """Intervals hold 19 times in 20; here with one seed."""
    size = replace(approximation.QUICK, neurons=(1, 4, 16, 64), replicas=40, side=8, starts=2)
    report = mf.experiments.run("approximation", size=size)
    exact = [row for row in report.rows if row.interval == 0]
    assert len(exact) == 7
    assert all(row.agrees for row in exact), report.table()
    slopes = [row for row in report.rows if row.quantity.startswith("slope")]
    assert abs(slopes[0].measured - slopes[0].expected) < 4.9 * slopes[0].error
    assert report.unexplained() == [], report.table()
    assert report.write(tmp_path)[0].name == "approximation.png"


def test_networks_fluctuate_as_theory_says(tmp_path):
    """Forty networks of 60 neurons: 4.9 standard errors, and 20 % for terms of order 1/N."""
    size = replace(fluctuations.QUICK, neurons=(60,), runs=40, atoms=36, points=3)
    report = mf.experiments.run("fluctuations", size=size)
    assert all(row.agrees for row in report.rows[:2]), report.table()
    for row in report.rows[2:]:
        assert abs(row.measured - row.expected) < 4.9 * row.error + 0.2 * row.expected, report.table()
    assert report.write(tmp_path)[0].name == "fluctuations.png"


def test_noise_brings_the_free_energy_down_between_its_bounds(tmp_path):
    size = replace(noisy_convergence.QUICK, cells=100, points=13, temperatures=3)
    report = mf.experiments.run("noisy-convergence", size=size)
    assert all(row.agrees for row in report.rows[:4]), report.table()
    # What is cooled lags behind the law of its temperature by what its speed and the relaxation rate predict.
    assert [row.outcome for row in report.rows[-2:]] == ["differs", "differs"]
    assert report.unexplained() == [], report.table()
    excess = report.arrays["excess"]
    assert 0 < excess[1] < excess[0]
    assert report.write(tmp_path)[0].name == "noisy-convergence.png"


def test_wide_networks_find_the_minimum_more_often_than_narrow_ones(tmp_path):
    size = replace(global_convergence.QUICK, neurons=(2, 24), replicas=3, horizon=40.0, atoms=(4, 20))
    report = mf.experiments.run("global-convergence", size=size)
    assert all(row.agrees for row in (*report.rows[:3], report.rows[5])), report.table()
    assert report.rows[4].measured < 0.03  # after 4000 steps
    assert (report.arrays["excess"][0] > 0.1).all()  # four atoms cannot be five spikes
    risks = report.arrays["risk"]
    assert np.median(risks[1]) < 0.1 * np.median(risks[0])  # two neurons cannot be four
    assert report.write(tmp_path)[0].name == "global-convergence.png"
