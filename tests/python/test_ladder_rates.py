"""Rates of the ladder: regression and intervals, and the slopes that theory states, with their odds."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.atoms import Atoms
from mfcore.theory import _rates
from scipy import special

RELU = mf.activations.relu
SIGNED = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))


def signed_model(d=40, delta=0.5, output="fixed"):
    """Output weights of both signs: Ψ = a·ψ(r) varies over ρ₀, except for delta = 0, where Ψ = 0."""
    return mf.Model(mf.data.IsotropicGaussians(d, delta), mf.Network(RELU, output=output), SIGNED)


def made(samples, neurons, step, row=10):
    """A ladder by hand, all of whose gaps in risk at its one time are `samples`, (N, step, replica)."""
    samples = np.asarray(samples)
    risk = -samples[..., None, None] * np.arange(5.0)[:, None]
    init = mf.init.Radial(1.0)
    model = mf.Model(mf.data.IsotropicGaussians(row, 0.5), mf.Network(RELU), init, temperature=0.1)
    rest = np.zeros((*samples.shape, 4, 1))
    meta = {"model": model}
    return theory.Ladder(
        np.ones(1), neurons, step, risk, np.zeros_like(risk), risk, rest[..., 1:, :], rest, meta
    )


def test_power_laws_have_their_slopes_and_no_interval():
    n, h = np.array([10, 40, 90]), np.array([0.1, 0.05])
    samples = (3 * n[:, None] ** -0.5 * h**0.75)[..., None] * np.ones(4)
    rates = made(samples, tuple(n.tolist()), tuple(h.tolist())).rates()
    for gap in (*theory.GAPS, "total"):
        for variable, slope in (("N", -0.5), ("h", 0.75)):
            rate = rates[gap, variable]
            np.testing.assert_allclose([rate.slope, rate.low, rate.high], slope, atol=1e-12)
    assert len(rates) == 10
    with pytest.raises(KeyError, match="none of"):
        rates["PDE-ND", "D"]


def test_the_jackknife_of_a_mean_is_students_interval():
    x = np.random.default_rng(0).normal(size=9)
    value, half = _rates.jackknife(x, lambda part: float(part.mean()))
    assert value == pytest.approx(x.mean())
    assert half == pytest.approx(special.stdtrit(8, 0.975) * x.std(ddof=1) / 3)
    assert np.isclose(_rates.interval(x)[1], half)
    assert math.isnan(_rates.jackknife(x[:1], lambda part: float(part.mean()))[1])


def test_nineteen_of_twenty_intervals_have_the_slope():
    """Gaps as propagation of chaos has them, |Gaussian| N^(-1/2), and starts shared by two steps."""
    rng, n = np.random.default_rng(0), np.array([10, 40, 160])
    inside = 0
    for _ in range(300):
        samples = np.abs(rng.normal(size=(3, 1, 8))) * (n**-0.5)[:, None, None] * np.ones((1, 2, 1))
        rates = made(samples, (10, 40, 160), (0.1, 0.05)).rates()
        inside += -0.5 in rates["ND-PD", "N"]
    # 285 expected; weights that know the samples cost some. Below 250 is ten standard deviations away.
    assert inside >= 250


def test_weights_are_inverse_variances_of_logarithms():
    """Against numpy's weighted fit of the logarithms."""
    rng, n = np.random.default_rng(1), np.array([10.0, 30.0, 100.0, 500.0])
    samples = rng.lognormal(0.0, [0.1, 0.5, 0.2, 0.9], size=(6, 4))
    mean = samples.mean(axis=0)
    relative = samples.std(axis=0, ddof=1) / mean / math.sqrt(6)
    weights = 1 / np.sqrt(relative**2 + 0.02**2)
    expected = np.polyfit(np.log(n), np.log(mean), 1, w=weights)[0]
    assert _rates._pooled(n, samples[..., None]) == pytest.approx(expected, rel=1e-12)


def test_the_bound_covers_what_was_measured_with_the_smallest_constant():
    rng = np.random.default_rng(2)
    samples = rng.uniform(1.0, 2.0, size=(2, 2, 50))
    budget = made(samples / 4, (100, 400), (0.01, 0.04))
    bound = budget.bound(z=1.0)
    for i, n in enumerate((100, 400)):
        for j, h in enumerate((0.01, 0.04)):
            free = (math.sqrt(math.log(n)) + 1) / math.sqrt(n)
            free += (math.sqrt(10 + math.log(n)) + 1) * math.sqrt(h)
            assert bound.err[i, j] == pytest.approx(free)
            covered = (samples[i, j] <= bound.measured[i, j] + 1e-12).mean()
            assert 1 - math.exp(-1) <= covered <= 1 - math.exp(-1) + 0.04
            general = math.sqrt(max(1 / n, h)) * (math.sqrt(10 + math.log(n / h)) + 1)
            assert budget.bound(dimension_free=False).err[i, j] == pytest.approx(general)
    assert bound.ratio.max() == pytest.approx(1.0)
    assert "constant=" in repr(bound)


def test_sampling_from_the_law_has_the_bias_and_variance_of_theory():
    """Of PDE-ND at t = 0: E R_N − R = (∫U(θ, θ)dρ − ∫∫U)/N exactly, and N·Var R_N → 4 Var_ρ Ψ."""
    model, n, count = signed_model(), 50, 300
    budget = theory.ladder(
        model, n, 0.1, horizon=0.1, save_at=2, replicas=count, limit=Atoms(64, rtol=1e-3), threads=1, rng=0
    )
    gaps = -budget.gap("PDE-ND")[0, 0, :, 0]
    # ρ₀: a ~ N(0, 1) independent of r. f = 0, so Ψ = V = −(a/2)(T(1.5r) − T(0.5r)) = −a r/(2√(2π)), and
    # U(θ, θ) = a²r²(1.5² + 0.5²)/4; E r² = 1.
    bias, variance = 2.5 / 4 / n, 4 / (8 * math.pi) / n
    assert np.allclose(budget.risk[0, 0, 0, 0, 0], 1.0)
    # Five standard errors each: false alarm 6e-7. Var R_N has terms of order 1/N² beside: at most
    # 2(∫U² + …)/N² < 6/N², which is 0.0024 of 0.0032.
    spread = gaps.std(ddof=1)
    assert abs(gaps.mean() - bias) < 5 * spread / math.sqrt(count)
    kurtosis = np.mean((gaps - gaps.mean()) ** 4) / spread**4
    assert abs(spread**2 - variance) < 5 * variance * math.sqrt((kurtosis - 1) / count) + 6 / n**2
