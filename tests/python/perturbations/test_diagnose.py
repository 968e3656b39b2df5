"""`theory.diagnose`: minima pass, what is missing is found, bounds hold."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from problems import STEP, isotropic

RELU = mf.Network(mf.activations.relu, output="trained")


def teacher(d=2, neurons=3):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(neurons, d + 1))
    return mf.Model(mf.data.Teacher(RELU, theta), RELU), theta


def test_a_teacher_is_its_own_minimum():
    model, theta = teacher()
    found = theory.diagnose(model, theta)
    assert found.homogeneous
    assert found.risk < 1e-14
    assert found.residual < 1e-7  # exact gradients of nearly parallel neurons
    assert found.depth < 1e-12
    assert abs(found.gap) < 1e-12


def test_a_missing_neuron_is_found_in_its_direction():
    model, theta = teacher()
    two = theta[:2] * np.sqrt(2 / 3)  # the mean of two is 2/3 of what the teacher has of them
    found = theory.diagnose(model, two)
    assert found.depth > 1e-3
    missing = theta[2] / np.linalg.norm(theta[2])
    toward = mf.psi(model, missing[None], two)
    assert toward[0] < 0  # lower than on the support
    assert found.lowest <= toward[0]
    assert np.sign(found.argmin[0]) == np.sign(theta[2, 0])
    assert found.argmin[1:] @ theta[2, 1:] > 0


def test_the_gap_of_homogeneous_networks_bounds_what_a_run_gains():
    model, _ = teacher()
    rng = np.random.default_rng(1)
    rows = 0.3 * rng.normal(size=(40, 3))
    run = mf.solve(
        model.replace(init=mf.init.Points(rows)), mf.Particles(40), horizon=30.0, save_at=4, keep="all"
    )
    sizes = [np.square(rho).sum(axis=1).mean() for rho in run.kept.values()]
    for rho, before in zip(run.kept.values(), run.risk, strict=True):
        found = theory.diagnose(model, rho, starts=8)
        allowed = [
            r for r, size in zip(run.risk, sizes, strict=True) if size <= np.square(rho).sum(axis=1).mean()
        ]
        assert before - min(allowed) <= found.gap + 1e-12


def test_the_start_of_two_dimensions_has_small_holes_and_one_neuron_a_large_one():
    model, _ = teacher()
    angles = np.linspace(0, 2 * math.pi, 12, endpoint=False)
    rows = np.concatenate([[[a, math.cos(t), math.sin(t)] for t in angles] for a in (1.0, -1.0)])
    assert theory.diagnose(model, rows, starts=1).hole == pytest.approx(math.pi / 12)
    assert theory.diagnose(model, rows[:12], starts=1).hole == pytest.approx(math.pi)
    assert math.isnan(theory.diagnose(teacher(d=3)[0], np.ones((1, 4)), starts=1).hole)


def test_in_reduced_coordinates_the_bound_is_the_certificate():
    model = isotropic(math.inf, STEP, delta=0.2).reduce()
    start, end = (theory.diagnose(model, [r]) for r in (1.0, 1.4616))
    assert not start.homogeneous
    assert start.gap == mf.certificate(model, [1.0]).gap
    assert start.depth > 0.1
    assert end.depth < 1e-6  # the printed digits of the optimum
    assert end.on_support[0] == end.on_support[2]
    assert start.lowest == pytest.approx(float(mf.psi(model, start.argmin[None], [1.0])[0]))


def test_without_reduction_and_homogeneity_nothing_is_proved():
    rng = np.random.default_rng(0)
    network = mf.Network(mf.activations.tanh, output="trained")
    law = mf.data.Dataset(rng.normal(size=(9, 5)), rng.normal(size=9))
    found = theory.diagnose(mf.Model(law, network, ridge=0.1), rng.normal(size=(4, 6)), starts=4)
    assert math.isnan(found.gap)
    assert found.certificate is None
    assert found.depth > 0
    assert found.lowest <= found.on_support[0]


def test_noise_and_wrong_numbers_are_refused():
    model, theta = teacher()
    with pytest.raises(ValueError, match="temperature 0 to be diagnosed"):
        theory.diagnose(model.replace(temperature=0.1), theta)
    with pytest.raises(ValueError, match="starts"):
        theory.diagnose(model, theta, starts=0)
