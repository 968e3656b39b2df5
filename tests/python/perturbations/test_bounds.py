"""`theory.bounds`: what is listed for which model, and that it holds."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from problems import STEP, isotropic, waves


def by_name(found):
    return {theorem.name: theorem for theorem in found}


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_neurons_of_random_measures_keep_the_promises(seed):
    """Draws may miss by 4.9 standard errors: once in a million."""
    rho = np.random.default_rng(seed).normal(size=(10, 2))
    model = waves(seed, 2)
    reach = mf.ReducedModel(
        coordinates=model.coordinates,
        weights=model.weights,
        targets=model.targets,
        features=model.features,
        gradients=model.gradients,
        temperature=0.1,
    )
    found = by_name(theory.bounds(reach, rho, neurons=7, replicas=40, rng=seed))
    assert set(found) == {"independent neurons", "greedy neurons"}  # points have no free energy
    assert all(theorem.holds for theorem in found.values())


def test_the_convexity_gap_bounds_the_distance_to_the_optimum():
    model = isotropic(math.inf, STEP, delta=0.2).reduce()
    found = by_name(theory.bounds(model, [1.0], replicas=2))["convexity"]
    assert found.holds
    assert found.left == pytest.approx(mf.risk(model, [1.0]) - mf.optimum(model).risk, abs=1e-8)
    assert found.right == mf.certificate(model, [1.0]).gap


def test_relative_entropy_bounds_the_free_energy_from_both_sides():
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[0.5, 0.5],
        targets=[0.5, -1.0],
        ridge=0.5,
        temperature=0.4,
        features=lambda z: np.concatenate([np.tanh(2 * z), np.tanh(z - 0.5)], axis=1),
        gradients=lambda z: np.stack([2 / np.cosh(2 * z) ** 2, 1 / np.cosh(z - 0.5) ** 2], axis=1),
    )
    edges = np.linspace(-5, 5, 201)
    z = 0.5 * (edges[1:] + edges[:-1])
    mass = np.exp(-((z - 1) ** 2))
    found = by_name(theory.bounds(model, mf.Density(edges, mass / mass.sum()), neurons=4, replicas=5))
    below, above = found["relative entropy, below"], found["relative entropy, above"]
    assert below.holds
    assert above.holds
    assert 0 < below.left < below.right == above.left < above.right
    assert found["temperature"].holds is None
    assert found["temperature"].left > 0


def test_hypotheses_are_computed_where_they_are_known():
    network = mf.Network(mf.activations.relu, output="trained")
    model = mf.Model(mf.data.IsotropicGaussians(d=3, delta=0.5), network)
    found = by_name(theory.bounds(model, [[2.0, 1.0, 0.0, 0.0]], neurons=2, replicas=2))[
        "propagation of chaos"
    ]
    assert found.holds is None
    assert found.hypotheses["σ' Lipschitz"] == "no: kinks"
    assert found.hypotheses["inputs sub-Gaussian"] == "Gaussian parts, ‖Σ‖ ≤ 2.25"
    assert "sup|a| = 2" in found.hypotheses["output weights bounded"]
    assert "not compared" in str(found)


def test_wrong_numbers_are_named():
    with pytest.raises(ValueError, match="replicas"):
        theory.bounds(waves(0, 1), [0.0], replicas=1)
    with pytest.raises(ValueError, match="neurons"):
        theory.bounds(waves(0, 1), [0.0], neurons=0)
