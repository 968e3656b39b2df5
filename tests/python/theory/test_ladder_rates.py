"""Rates of the ladder: regression and intervals, and the slopes that theory states, with their odds."""

from __future__ import annotations

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.atoms._atoms import Atoms
from mfcore.theory import _rates
from scipy import special

RELU = mf.activations.relu
QUICK = {"limit": Atoms(64, rtol=1e-6), "save_at": 2, "threads": 1, "rng": 0}
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
    few, many, count = 4, 200, 80
    budget = theory.ladder(signed_model(), [few, many], 0.1, horizon=0.1, replicas=count, **QUICK)
    np.testing.assert_allclose(budget.risk[..., 0, 0], 1.0, atol=1e-9)
    one, other = -budget.gap("PDE-ND")[:, 0, :, 0]
    # ρ₀: a ~ N(0, 1) independent of r, E r² = 1; f = 0. So
    # Ψ = V = −(a/2)(T(0, 1.5r) − T(0, 0.5r)) = −a r/(2√(2π)), and U(θ, θ) = a²r²(1.5² + 0.5²)/4.
    bias, variance = 2.5 / 4, 4 / (8 * math.pi)
    assert abs(one.mean() - bias / few) < 5 * one.std(ddof=1) / math.sqrt(count)  # 6e-7, were it Gaussian
    assert one.mean() > 0.5 * bias / few  # 2.9 standard errors below the mean: there is a bias at all
    # The standard error of a variance; kurtosis 3. Beside it Var R_N has at most 2(∫U(θ, θ))²/N².
    error = variance / many * math.sqrt(2 / count)
    assert abs(other.var(ddof=1) - variance / many) < 5 * error + 2 * (3 * bias / many) ** 2


def test_gaps_of_width_shrink_as_theory_says():
    """N^(−1/2) where Ψ varies over ρ, N^(−1) at a minimiser; neurons part as N^(−1/2)."""
    slopes = {}
    for delta in (0.5, 0.0):
        budget = theory.ladder(signed_model(delta=delta), [16, 256], 0.25, horizon=0.5, replicas=32, **QUICK)
        slopes[delta] = [budget.rates()[gap, "N"].slope for gap in ("PDE-ND", "ND-PD")]
        # -0.5 but for a maximum over more neurons; over 30 seeds -0.41 ± 0.03.
        assert budget.rates("distance")["ND-PD", "N"].slope == pytest.approx(-0.41, abs=0.12)
        assert budget.gap("total").shape == (2, 1, 32, 2)
    # Over 30 seeds: -0.51 ± 0.08 and -0.61 ± 0.10, at the minimiser -1.00 ± 0.05 and -1.10 ± 0.06; the bias
    # of sampling steepens them. Bounds are at least 2.8 standard deviations away: another seed fails in 1 of
    # 200.
    np.testing.assert_allclose(slopes[0.5], -0.58, atol=0.33)
    np.testing.assert_allclose(slopes[0.0], -1.07, atol=0.22)


def test_gaps_of_step_shrink_as_theory_says():
    budget = theory.ladder(signed_model(), 40, [0.04, 0.02, 0.01, 0.005], horizon=0.4, replicas=8, **QUICK)
    risk, distance = budget.rates(), budget.rates("distance")
    # Euler's error is h·(c + O(h)).
    for rates in (risk, distance):
        assert rates["PD-GD", "h"].slope == pytest.approx(1.0, abs=0.02)
    # Over 30 seeds 0.54 ± 0.03.
    assert distance["GD-SGD", "h"].slope == pytest.approx(0.54, abs=0.13)
    assert ("PDE-ND", "h") not in [(rate.gap, rate.variable) for rate in risk]  # they know no step


@pytest.mark.parametrize("output", ["fixed", "trained"])
def test_general_coefficients_have_the_slopes_of_fixed_ones(output):
    model = signed_model(output=output)
    rates = theory.ladder(model, [16, 256], [0.04, 0.01], horizon=0.4, replicas=8, **QUICK).rates("distance")
    # As above; the bounds are those of fixed coefficients at one step, and wider.
    assert rates["ND-PD", "N"].slope == pytest.approx(-0.41, abs=0.2)
    assert rates["PD-GD", "h"].slope == pytest.approx(1.0, abs=0.05)
    assert rates["GD-SGD", "h"].slope == pytest.approx(0.54, abs=0.2)


def test_only_gaps_of_step_grow_with_the_dimension():
    def budget(d):
        model = mf.Model(mf.data.IsotropicGaussians(d, 0.5), mf.Network(RELU), mf.init.Radial(1.0))
        return theory.ladder(model, 40, 0.02, horizon=0.4, replicas=8, **QUICK)

    ladders = [budget(d) for d in (20, 160)]
    risk, distance = (theory.rates_in_dimension(ladders, quantity) for quantity in ("risk", "distance"))
    # Over 30 seeds 0.01 ± 0.05, 0.00 ± 0.06, -0.02 ± 0.03 and 0.46 ± 0.02: five standard deviations each.
    for gap in ("PDE-ND", "ND-PD"):
        assert risk[gap, "D"].slope == pytest.approx(0.0, abs=0.3)
    assert distance["ND-PD", "D"].slope == pytest.approx(0.0, abs=0.2)
    assert distance["GD-SGD", "D"].slope == pytest.approx(0.45, abs=0.1)
    with pytest.raises(ValueError, match="ladders must have different D"):
        theory.rates_in_dimension([ladders[0], ladders[0]])
    with pytest.raises(ValueError, match="ladders must be at least 2, got 1"):
        theory.rates_in_dimension(ladders[:1])
