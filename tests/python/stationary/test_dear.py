"""Searches that would take minutes are refused by an estimate, with what would not take so long."""

import mfcore as mf
import pytest
from mfcore import theory
from mfcore.stationary import _compact

ADVICE = r"model must have features of less work for .*: about .* minutes of one core or more with 1086 nodes"
ROW = [[1.0, 0.0, 0.5, 0.0, 0.0]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """A hundredth of the time that is spent otherwise."""
    monkeypatch.setattr(_compact, "MOST_SECONDS", 0.6)


def smooth(**more):
    """tanh in d = 3: features are averages that take 1 ms, or 10 ms at large weights."""
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    blocks = {"a": mf.init.Normal(0, 0.5), "b": mf.init.Normal(0, 0.5), "w": mf.init.Radial(0.5)}
    return mf.Model(mf.data.IsotropicGaussians(3, 0.5), network, mf.init.Product(**blocks), **more)


def test_a_minimum_over_measures_in_dear_coordinates_is_refused():
    with pytest.raises(ValueError, match=ADVICE):
        mf.certificate(smooth(), ROW)
    with pytest.raises(ValueError, match=ADVICE):
        mf.optimum(smooth(ridge=0.1))


def test_bounds_say_that_the_least_risk_was_not_searched():
    convexity = theory.bounds(smooth(), ROW, neurons=4, replicas=2)[2]
    assert convexity.name == "convexity"
    assert convexity.holds is None
    assert convexity.hypotheses["inf"].startswith("not searched: model must have features of less work")


def test_fewer_nodes_are_granted():
    reduced = smooth().reduce(nodes=10)
    assert mf.certificate(reduced, [[1.0, 0.0, 0.5]], extent=[(-1, 1), (-1, 1), (0, 2)]).gap >= 0
