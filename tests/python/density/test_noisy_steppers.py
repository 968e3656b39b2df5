"""`FiniteVolume1D` and `FiniteVolume2D` at a temperature: exact solutions, orders, bits, refusals."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.steppers import FiniteVolume1D, FiniteVolume2D
from scipy.special import ndtr

RIDGE, HEAT = 0.8, 0.3


def pulled(k=1, rates=None, **options):
    """Features that are 0 leave dz = -rate ridge z dt + sqrt(2 rate T) dB, Ornstein-Uhlenbeck processes."""
    return mf.ReducedModel(
        coordinates=["x", "y"][:k],
        weights=[1.0],
        targets=[0.0],
        features=lambda z: np.zeros((len(z), 1)),
        gradients=lambda z: np.zeros((len(z), 1, k)),
        ridge=RIDGE,
        temperature=HEAT,
        rates=rates,
        **options,
    )


def normal_masses(edges, mean, std):
    mass = np.diff(ndtr((edges - mean) / std))
    return mass / mass.sum()


def moments(mass, edges):
    centers = (edges[1:] + edges[:-1]) / 2
    mean = float(mass @ centers)
    return mean, float(mass @ (centers - mean) ** 2)


def exact(t, mean, std, rate=1.0):
    decay = math.exp(-RIDGE * rate * t)
    return mean * decay, HEAT / RIDGE + (std**2 - HEAT / RIDGE) * decay**2


def after(cells, dt, steps, mean=0.7, std=0.4):
    edges = np.linspace(-5, 5, cells + 1)
    mass = normal_masses(edges, mean, std)
    FiniteVolume1D(pulled(), edges, mass).run(dt, steps)
    return mass, edges


def test_ornstein_uhlenbeck_is_of_second_order_in_the_width_of_cells():
    """Variances of masses at centres lack width²/12, which the start has, too; steps are 1e-2."""
    errors = []
    for cells in (50, 100, 200):
        mass, edges = after(cells, 0.01, 100)
        width = edges[1] - edges[0]
        mean, variance = moments(mass, edges)
        wanted = exact(1.0, 0.7, 0.4)
        errors.append([abs(mean - wanted[0]), abs(variance - width**2 / 12 - wanted[1])])
    assert np.all(np.array(errors[:-1]) / errors[1:] > 3.5)
    assert np.all(np.array(errors[-1]) < 3e-4)


def test_ornstein_uhlenbeck_is_of_second_order_in_the_step():
    best = moments(*after(100, 0.1 / 64, 640))
    gaps = [np.subtract(moments(*after(100, 1.0 / n, n)), best) for n in (10, 20, 40)]
    ratios = np.abs(gaps[:-1]) / np.abs(gaps[1:])
    assert np.all((ratios > 3.4) & (ratios < 4.6)), ratios


def test_the_end_is_the_gibbs_law_whatever_the_step():
    mass, edges = after(200, 100.0, 40)
    np.testing.assert_allclose(moments(mass, edges), (0.0, HEAT / RIDGE), atol=1e-3)  # of the width of cells
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    assert FiniteVolume1D(pulled(), edges, mass).bound == math.inf


def test_a_radius_has_the_volume_of_its_sphere():
    """In R^5 and from a shell, E r² = 5 T/ridge + (1 - 5 T/ridge) e^(-2 ridge t)."""
    model = pulled(nonnegative=(True,), volume=(4.0,))
    edges = np.linspace(0, 5, 401)
    mass = np.zeros(400)
    mass[79:81] = 0.5  # r = 1
    stepper = FiniteVolume1D(model, edges, mass)
    stepper.run(0.01, 100)
    centers = (edges[1:] + edges[:-1]) / 2
    limit = 5 * HEAT / RIDGE
    wanted = limit + (1 - limit) * math.exp(-2 * RIDGE * stepper.t)
    assert float(mass @ centers**2) == pytest.approx(wanted, rel=2e-3)  # order 2 in cells of 1/80


def test_coordinates_in_the_plane_have_rates_of_their_own():
    rates = (1.0, 3.0)
    edges = np.linspace(-5, 5, 101)
    starts = [(0.7, 0.4), (-0.5, 0.5)]
    mass = np.ascontiguousarray(np.multiply.outer(*[normal_masses(edges, *start) for start in starts]))
    stepper = FiniteVolume2D(pulled(2, rates), (edges, edges), mass)
    stepper.run(0.02, 30)
    for axis, (start, rate) in enumerate(zip(starts, rates, strict=True)):
        found = moments(mass.sum(axis=1 - axis), edges)
        # Order 2 in cells of 0.1: 8e-4 of the variance at the start.
        np.testing.assert_allclose(found, exact(0.6, *start, rate), atol=2e-3)


def noisy_model():
    return mf.Model(
        mf.data.IsotropicGaussians(d=10, delta=0.5),
        mf.Network(mf.activations.softplus),
        ridge=0.1,
        temperature=0.02,
    )


def test_threads_change_no_bit_and_a_loop_over_steps_rounding_alone():
    edges = np.linspace(0, 4, 121)
    states = []
    for threads, runs in ((1, [7]), (3, [7]), (1, [1] * 7)):
        mass = normal_masses(edges, 1.0, 0.3)
        stepper = FiniteVolume1D(noisy_model(), edges, mass, threads=threads)
        for steps in runs:
            stepper.run(0.05, steps)
        assert stepper.t == pytest.approx(0.35)
        states.append(mass)
    assert np.array_equal(states[0], states[1])
    np.testing.assert_allclose(states[0], states[2], rtol=1e-12)  # each call adds up the mass anew


def test_steps_lower_the_free_energy():
    model, edges = noisy_model(), np.linspace(0, 4, 121)
    mass = normal_masses(edges, 1.0, 0.3)
    stepper = FiniteVolume1D(model, edges, mass)
    energies = []
    for dt in (0.01, 0.1, 1.0, 10.0):
        energies.append(mf.free_energy(model.reduce(), mf.Density(edges, mass)))
        stepper.step(dt)
    energies.append(mf.free_energy(model.reduce(), mf.Density(edges, mass)))
    assert np.all(np.diff(energies) < 0)


def test_what_the_temperature_does_not_allow_is_refused():
    edges, mass = np.linspace(-5, 5, 11), np.full(10, 0.1)
    with pytest.raises(ValueError, match=r"scheme must be 'scharfetter-gummel' .* 0\.3, got 'muscl'"):
        FiniteVolume1D(pulled(), edges, mass, scheme="muscl")
    stepper = FiniteVolume1D(pulled(), edges, mass)
    assert stepper.scheme == "scharfetter-gummel"
    stepper.step(0.0)
    assert (mass == 0.1).all()
    mass[3] = -0.1
    with pytest.raises(ValueError, match=r"mass must be >= 0, got -0\.1"):
        stepper.step(0.1)
    mass[3] = math.nan
    with pytest.raises(ValueError, match="mass must be >= 0, got nan"):
        stepper.step(0.1)
    mass[3] = math.inf
    before = mass.copy()
    with pytest.raises(FloatingPointError, match="mass must stay finite"):
        stepper.step(0.1)
    assert np.array_equal(mass, before)
    assert stepper.t == 0
