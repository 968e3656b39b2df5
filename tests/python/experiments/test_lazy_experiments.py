"""The experiments on the lazy regime at tiny sizes: their numbers."""

from dataclasses import replace

import mfcore as mf
import numpy as np
import pytest
from mfcore.experiments import (
    Work,
    _relu_teacher,
    _scales,
    _stairs,
    kernel_staircase,
    lazy_transition,
    three_regimes,
)


def test_the_transition_has_the_slopes_of_the_theorem(tmp_path):
    size = replace(
        lazy_transition.QUICK,
        scales=(30.0, 300.0),
        neurons=20,
        draws=2,
        sizes=(0.1, 10.0),
        trials=2,
        teacher=_relu_teacher.Sizes(d=10, samples=60, test=100, neurons=20, steps=200),
    )
    report = mf.experiments.run("lazy-transition", size=size)
    slopes = [row for row in report.rows if row.quantity.startswith("slope")]
    assert len(slopes) == 8
    # Two scales, the smaller one 30: next orders are 1/30 of the value, 0.015 of the slope; times seven.
    assert all(abs(row.measured - row.expected) < 0.1 for row in slopes), report.table()
    (broken,) = [row for row in report.rows if "above their bound" in row.quantity]
    assert broken.measured == 0
    (ratio,) = [row for row in report.rows if row.quantity.startswith("test risk")]
    assert abs(ratio.measured - 1) < 0.01
    assert report.arrays["pairs/gap"].shape == (2, 2)
    assert {file.suffix for file in report.write(tmp_path)} == {".png", ".svg", ".npz", ".md"}


def test_neurons_move_by_the_power_of_their_number():
    report = mf.experiments.run("three-regimes", size=three_regimes.Size(neurons=(16, 64), draws=3))
    slopes = {row.quantity: row for row in report.rows if row.quantity.startswith("slope of displacement")}
    assert len(slopes) == 3
    # Widths of 16 and three draws vary by 0.1; the powers are 0, −1/4 and −1/2.
    assert all(abs(row.measured - row.expected) < 0.2 for row in slopes.values()), report.table()
    ordered = [report.arrays[f"{name}/displacement"][-1].mean() for name in three_regimes.POWERS]
    assert ordered == sorted(ordered, reverse=True)


def test_one_network_is_beside_itself_where_both_are_linear():
    """At a scale of 10⁴ the nonlinear run is the linearised one."""
    found = _scales.beside(Work(), 1e4, 10, draw=0)
    assert found.gap < 1e-4
    assert found.kernel < 1e-3
    assert found.test == pytest.approx(found.linear, rel=1e-3)


def test_regression_is_on_the_stairs():
    size = kernel_staircase.Size(
        dimensions=(8,),
        most=60,
        draws=3,
        moving=(1.25,),
        neurons=10,
        steps=20,
        networks=2,
        few=30,
        ratios=(0.2, 1.0, 5.0),
    )
    report = mf.experiments.run("kernel-staircase", size=size)
    known = [row for row in report.rows if "deterministic" in row.source.where]
    assert len(known) == 2
    # Three draws at d = 8: their spread, and terms of order 1/d.
    assert all(abs(row.measured - row.expected) < row.interval + 0.1 for row in known), report.table()
    stairs = [row for row in report.rows if "d = 10⁶" in row.quantity]
    assert len(stairs) == 4
    assert all(row.agrees for row in stairs), report.table()


def test_the_target_of_the_staircase_has_equal_power_in_three_degrees():
    np.testing.assert_allclose(_stairs.power(10**6)[1:4], 1 / 3, rtol=1e-4)
    for d in (8, 50):
        _, y = _stairs.law(d).draw(200_000, rng=0)
        # 5 standard errors of a mean of 2·10⁵ squares
        error = np.std(y**2) / np.sqrt(200_000)
        assert abs(_stairs.power(d).sum() - np.mean(y**2)) < 5 * error
