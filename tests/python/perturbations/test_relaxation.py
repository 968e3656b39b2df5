"""`theory.relaxation`: exact spectra, and the return of a density that is set off."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory


def linear(ridge=1.0, temperature=0.5, coupling=1.0):
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[0.0],
        ridge=ridge,
        temperature=temperature,
        features=lambda z: math.sqrt(coupling) * z,
        gradients=lambda z: np.full((len(z), 1, 1), math.sqrt(coupling)),
    )


def gauss(variance, cells, reach=6.0):
    edges = np.linspace(-reach, reach, cells + 1) * math.sqrt(variance)
    z = 0.5 * (edges[1:] + edges[:-1])
    rho = np.exp(-(z**2) / (2 * variance))
    return mf.Density(edges, rho / rho.sum())


def test_without_data_the_rates_are_those_of_ornstein_and_uhlenbeck():
    found = theory.relaxation(linear(0.7, 0.3, 1e-30), gauss(0.3 / 0.7, 400), lowest=4)
    assert np.allclose(found.rates, 0.7 * np.arange(1, 5), rtol=1e-3)  # (Δ/sd)² = 1e-3, times 1/12 and more
    assert found.residual < 1e-12
    assert found.covered > 1 - 1e-10


def test_the_error_is_of_second_order_in_the_cells():
    off = [
        abs(theory.relaxation(linear(1.0, 1.0, 0.0), gauss(1.0, n), lowest=2).rate - 1.0) for n in (50, 100)
    ]
    assert 3.5 < off[0] / off[1] < 4.5


def test_data_make_the_mean_faster_and_nothing_slower():
    """Ψ = m z moves the mean at λ + 1; even modes do not see it."""
    alone, coupled = (
        theory.relaxation(linear(coupling=c), gauss(0.5, 400), lowest=5).rates for c in (0.0, 1.0)
    )
    assert np.allclose(np.sort(coupled)[:3], [2.0, 2.0, 3.0], rtol=2e-3)
    assert (coupled >= alone - 1e-12).all()


def test_modes_conserve_mass():
    found = theory.relaxation(linear(), gauss(0.5, 200))
    assert np.abs(found.modes.sum(axis=1)).max() < 1e-14
    assert np.allclose(np.abs(found.modes).sum(axis=1), 1.0)


@pytest.mark.parametrize("first", [True, False])
def test_what_rests_keeps_its_masses_and_adds_no_rates(first):
    """With features z of (a, z) and a at rest the overall mean moves at λ + 1, differences of slices at λ."""
    place = 1 if first else 0
    model = mf.ReducedModel(
        coordinates=["a", "z"] if first else ["z", "a"],
        weights=[1.0],
        targets=[0.0],
        ridge=1.0,
        temperature=0.5,
        rates=[0.0, 1.0] if first else [1.0, 0.0],
        features=lambda z: z[:, place : place + 1],
        gradients=lambda z: np.eye(2)[place] * np.ones((len(z), 1, 1)),
    )
    line, masses = gauss(0.5, 120), np.array([0.2, 0.0, 0.5, 0.3])
    mass, edges = np.multiply.outer(masses, line.mass), (np.arange(5.0), line.edges[0])
    density = mf.Density(edges, mass) if first else mf.Density(edges[::-1], mass.T)
    found = theory.relaxation(model, density, lowest=6)
    assert np.allclose(found.rates, [1.0, 1.0, 2.0, 2.0, 2.0, 2.0], rtol=4e-3)  # (Δ/sd)² = 1e-2, over 3
    assert found.rate == found.rates[0]
    assert np.abs(found.modes.sum(axis=1 + place)).max() < 1e-14
    edges, mass = (np.arange(3.0), np.arange(2.0)), np.full((2, 1), 0.5)
    apart = mf.Density(edges, mass) if first else mf.Density(edges[::-1], mass.T)
    with pytest.raises(ValueError, match="at least 2 cells between which it moves, got 2 cells apart"):
        theory.relaxation(model, apart)


@pytest.mark.parametrize("exponent", [0.0, 4.0])
def test_rates_are_those_of_the_jacobian_of_the_fluxes(exponent):
    """The Scharfetter–Gummel fluxes of eq. (7.8) written out, differentiated at rest by differences."""
    beta, ridge = 2.5, 0.5
    edges = np.linspace(0.0 if exponent else -3.0, 3.0, 41)
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[0.5, 0.5],
        targets=[0.5, -1.0],
        ridge=ridge,
        temperature=1 / beta,
        features=lambda z: np.concatenate([np.tanh(2 * z), np.tanh(z - 0.5)], axis=1),
        volume=[exponent],
        nonnegative=[exponent > 0],
    )
    z = 0.5 * (edges[1:] + edges[:-1])
    width, phi = np.diff(edges), model.features(z[:, None])
    volume = np.diff(edges ** (exponent + 1)) / (exponent + 1)

    def psi(mass):
        return phi @ (model.weights * (mass @ phi - model.targets)) + 0.5 * ridge * z**2

    def bernoulli(x):
        return x / np.expm1(x)

    def change(mass):
        delta = beta * np.diff(psi(mass)) - np.diff(np.log(volume / width))
        flux = bernoulli(delta) * (mass / width)[:-1] - bernoulli(-delta) * (mass / width)[1:]
        flux = np.concatenate([[0.0], flux / (beta * np.diff(z)), [0.0]])
        return -np.diff(flux)

    rest = volume / volume.sum()
    for _ in range(500):  # the damped fixed point of the Gibbs law on these cells
        gibbs = volume * np.exp(-beta * psi(rest))
        rest = 0.7 * rest + 0.3 * gibbs / gibbs.sum()
    h = 1e-6
    jacobian = np.array([(change(rest + h * e) - change(rest - h * e)) / (2 * h) for e in np.eye(40)]).T
    want = np.sort(-np.linalg.eigvals(jacobian).real)[1:7]
    found = theory.relaxation(model, mf.Density(edges, rest / rest.sum()))
    assert found.residual < 1e-12
    assert np.allclose(found.rates, want, rtol=1e-6)  # rounding over h


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="temperature > 0"):
        theory.relaxation(linear(temperature=0.0), gauss(0.5, 20))
    with pytest.raises(TypeError, match=r"density must be an mf\.Density"):
        theory.relaxation(linear(), [0.0])
    with pytest.raises(ValueError, match="lowest"):
        theory.relaxation(linear(), gauss(0.5, 20), lowest=0)
