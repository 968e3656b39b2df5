"""Eigenvalues of kernels of the angle, and the risk of kernel ridge regression that they tell."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore import theory
from scipy.linalg import cho_factor, cho_solve


def arc_cosine(u):
    """The tangent kernel of ReLU at infinite width, for inputs of length 1."""
    u = np.clip(u, -1, 1)
    angle = np.arccos(u)
    return (np.sin(angle) + 2 * (np.pi - angle) * u) / (2 * np.pi)


@given(st.integers(2, 200), st.integers(0, 8))
def test_powers_of_the_cosine_have_the_moments_of_the_sphere(d, n):
    # E u^n = Γ((n + 1)/2)Γ(d/2)/(√π Γ((n + d)/2)) for even n
    spectrum = theory.zonal_spectrum(lambda u: u**n, d, degree=n)
    want = 0.0
    if n % 2 == 0:
        logs = math.lgamma((n + 1) / 2) + math.lgamma(d / 2) - math.lgamma((n + d) / 2)
        want = math.exp(logs) / math.sqrt(math.pi)
    assert abs(spectrum.eigenvalues[0] - want) < 1e-13
    assert abs(spectrum.tail) < 1e-11  # of a trace of 1: a polynomial of degree n has no more


@pytest.mark.parametrize("inputs", ["sphere", "hypercube"])
def test_polynomials_that_reproduce_have_one_eigenvalue(inputs):
    d = 7
    rows = [lambda u: np.ones_like(u), lambda u: u]
    rows.append(lambda u: (d * u**2 - 1) / (d - 1))
    for k, row in enumerate(rows):
        found = theory.zonal_spectrum(row, d, degree=3, inputs=inputs)
        want = np.zeros(4)
        want[k] = 1 / found.multiplicities[k]
        assert np.abs(found.eigenvalues - want).max() < 1e-14
        assert abs(found.tail) < 1e-13


def test_the_hypercube_agrees_with_an_enumeration_of_its_corners():
    d = 6
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1).T
    kernel = np.exp(corners @ corners.T / d)
    values = np.linalg.eigvalsh(kernel / len(corners))
    spectrum = theory.zonal_spectrum(np.exp, d, degree=d, inputs="hypercube")
    want = np.sort(np.repeat(spectrum.eigenvalues, spectrum.multiplicities.astype(int)))
    assert np.abs(values - want).max() < 1e-13
    assert spectrum.multiplicities.tolist() == [math.comb(d, k) for k in range(d + 1)]


def test_the_risk_is_that_of_draws():
    # 40 draws each; the mean is within 5 standard errors of the equivalent plus its own error of order 1/n,
    # which is below 5 % here (measured with 4000 draws): odds of a false alarm below 1e-5
    d, ridge, noise = 20, 1e-3, 0.1
    rng = np.random.default_rng(0)
    spectrum = theory.zonal_spectrum(arc_cosine, d, degree=6)
    found = theory.regression_risk(spectrum, [0.0, 1.0, 1.0], samples=[60, 200], ridge=ridge, noise=noise)
    for n, risk, train in zip((60, 200), found.risk, found.train, strict=True):
        drawn, errors = [], []
        for _ in range(40):
            X = rng.normal(size=(n + 1000, d))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            # E (√d x_1)² = 1; (x_1² − 1/d)² has mean 2(d − 1)/(d²(d + 2))
            f = math.sqrt(d) * X[:, 0] + (X[:, 1] ** 2 - 1 / d) / math.sqrt(2 * (d - 1) / (d**2 * (d + 2)))
            y = f[:n] + math.sqrt(noise) * rng.normal(size=n)
            K = arc_cosine(X @ X[:n].T)
            weights = cho_solve(cho_factor(K[:n] + ridge * np.eye(n)), y)
            drawn.append(np.mean((K[n:] @ weights - f[n:]) ** 2))
            errors.append(np.mean((K[:n] @ weights - y) ** 2))
        for sample, want in ((drawn, risk), (errors, train)):
            spread = np.std(sample, ddof=1) / math.sqrt(len(sample))
            assert abs(np.mean(sample) - want) < 5 * spread + 0.05 * want


def test_ridge_without_end_learns_nothing_and_samples_without_end_everything():
    spectrum = theory.zonal_spectrum(lambda u: 1 + u + u**2, 10, degree=2)
    power = [1.0, 2.0, 3.0]
    assert math.isclose(
        theory.regression_risk(spectrum, power, samples=5, ridge=1e12).risk, 6.0, rel_tol=1e-9
    )
    assert theory.regression_risk(spectrum, power, samples=10**7, ridge=1e-6).risk < 1e-12


def test_without_ridge_and_noise_dimensions_are_learned_one_for_one_and_noise_peaks_at_their_number():
    # least squares with m parameters: noise m/(n − m)
    spectrum = theory.Spectrum(np.array([1.0]), np.array([10.0]), 0.0)
    found = theory.regression_risk(spectrum, [1.0], samples=[5, 9, 10, 11, 40], noise=0.5)
    assert math.isinf(found.risk[2])
    assert np.allclose(found.risk[3:], [0.5 * 10 / 1, 0.5 * 10 / 30], rtol=1e-12)
    assert np.allclose(found.train[3:], [0.5 * 1 / 11, 0.5 * 30 / 40], rtol=1e-12)
    # fewer samples: minimum norm, (1 − n/m) of the target and noise n/(m − n)
    want = [(1 - n / 10) + 0.5 * n / (10 - n) for n in (5, 9)]
    assert np.allclose(found.risk[:2], want, rtol=1e-9)


def test_mistakes_name_argument_rule_and_value():
    spectrum = theory.zonal_spectrum(np.exp, 5, degree=1)
    with pytest.raises(ValueError, match=r"^d must be >= 2, got 1"):
        theory.zonal_spectrum(np.exp, 1, degree=1)
    with pytest.raises(ValueError, match=r"^degree must be"):
        theory.zonal_spectrum(np.exp, 5, degree=6, inputs="hypercube")
    for inputs, d, at in (("hypercube", 5000, 162), ("sphere", 10**6, 68)):
        with pytest.raises(ValueError, match=rf"^degree must be < {at} for d = {d}, .* got 4000"):
            theory.zonal_spectrum(np.exp, d, degree=4000, inputs=inputs)
    with pytest.raises(ValueError, match=r"^kernel must be finite on"):
        theory.zonal_spectrum(lambda u: np.where(u < 1, 1.0, np.inf), 5, degree=1)
    with pytest.raises(ValueError, match=r"^kernel must map shape"):
        theory.zonal_spectrum(lambda u: 1.0, 5, degree=1)
    with pytest.raises(ValueError, match=r"^power must have at most 2 degrees"):
        theory.regression_risk(spectrum, [1, 1, 1], samples=5)
    with pytest.raises(ValueError, match=r"^samples must be >= 1, got 0"):
        theory.regression_risk(spectrum, [1], samples=0)


def test_kernels_that_are_not_positive_are_refused():
    # u³ = 3u/(d + 2) + a degree 3, so that a kernel with −u³ has a negative eigenvalue there.
    spectrum = theory.zonal_spectrum(lambda u: u - 0.8 * u**3, 10, degree=3)
    assert spectrum.eigenvalues[3] < -1e-3
    with pytest.raises(
        ValueError, match=r"^spectrum must be of a positive kernel.* got -0.00285714 in degree 3"
    ):
        theory.regression_risk(spectrum, [0.0, 1.0], samples=50)
    with pytest.raises(ValueError, match=r"^spectrum must be of a positive kernel.* got tail = -0.6"):
        theory.regression_risk(
            theory.zonal_spectrum(lambda u: u - 0.8 * u**3, 10, degree=1), [0.0, 1.0], samples=50
        )
    data = mf.data.MultiIndex(10, [0.0, 1.0], 1, inputs="sphere")
    for ridge in (0.0, 1e-3):
        with pytest.raises(ValueError, match=r"^kernel must be positive, got one with the eigenvalue -"):
            theory.kernel_ridge(
                lambda u: u - 0.8 * u**3, data, samples=50, ridge=ridge, draws=2, test=10, rng=0
            )


@pytest.mark.parametrize(("d", "degree"), [(3, 60), (12, 20), (50, 20), (200, 20)])
def test_rounding_of_positive_kernels_is_not_refused(d, degree):
    # Eigenvalues from degree 3 on are rounding, with millions of millions of them in the tail.
    spectrum = theory.zonal_spectrum(lambda u: 1 + u + u**2, d, degree=degree)
    assert spectrum.eigenvalues.min() < 0
    assert 0 < theory.regression_risk(spectrum, [0.0, 1.0], samples=50, ridge=1e-3).risk < 1


def test_the_effective_ridge_counts_the_samples():
    spectrum = theory.zonal_spectrum(np.exp, 20, degree=6)
    found = theory.regression_risk(spectrum, [0.0, 1.0], samples=[15, 60], ridge=0.2)
    for n, kappa in zip((15, 60), found.effective_ridge, strict=True):
        learned = spectrum.multiplicities @ (spectrum.eigenvalues / (spectrum.eigenvalues + kappa))
        assert learned + (0.2 + spectrum.tail) / kappa == pytest.approx(n, rel=1e-10)  # of a root of log κ
