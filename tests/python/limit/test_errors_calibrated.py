"""Stated errors of random models that no factor was chosen on; `python -m tests.calibration` runs sixty."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def points():
    """True and stated errors at the save points of the models held out that are quick."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    try:
        models = importlib.import_module("tests.calibration.models")
        measured = importlib.import_module("tests.calibration.points")
    finally:
        sys.path.pop(0)
    return [p for k in NUMBERS for p in measured.points_of(models.problem("held out", k))]


NUMBERS = (0, 2, 3, 8, 10, 11, 16, 18, 20, 21)


@pytest.mark.parametrize("rung", ["Atoms", "JKO", "PDE"])
def test_stated_errors_contain_the_true_risk_of_models_that_nothing_was_tuned_on(rung, points):
    """On sixty models 99 % of the points hold: of some fifty, more than three fail with odds of 1 in 600.

    The models are the same every time, so that what passed once fails only after a change.
    """
    mine = [p for p in points if p.rung == rung]
    assert len(mine) >= 30
    assert sum(not p.held for p in mine) <= 3


@pytest.mark.parametrize(("rung", "median"), [("Atoms", 30), ("JKO", 5), ("PDE", 5)])
def test_stated_errors_are_not_absurd(rung, median, points):
    """About two times what they are on sixty models."""
    ratios = np.array([p.ratio for p in points if p.rung == rung])
    assert 1 < np.nanmedian(ratios) < median
