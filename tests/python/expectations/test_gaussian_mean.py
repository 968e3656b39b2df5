"""`gaussian_mean`: E σ(m + R G) as the user calls it."""

import math

import mfcore as mf
import mpmath as mp
import numpy as np
import pytest
from mfcore.activations import gaussian_mean


@pytest.mark.parametrize(
    ("sigma", "value"),
    [
        (mf.activations.relu, lambda t: max(t, mp.mpf(0))),
        (mf.activations.tanh, mp.tanh),
        (mf.activations.silu, lambda t: t / (1 + mp.exp(-t))),
        (mf.activations.cos, mp.cos),
        (mf.activations.hermite([0.1, 0.0, 0.5]), lambda t: mp.mpf("0.1") + (t * t - 1) / (2 * mp.sqrt(2))),
        (mf.activations.expression("max(z, 0)**2"), lambda t: max(t, mp.mpf(0)) ** 2),
    ],
    ids=repr,
)
def test_it_is_the_integral_over_a_normal_law(sigma, value):
    m, R = np.array([[-0.7], [0.4]]), np.array([0.0, 0.3, 2.5])
    got = gaussian_mean(sigma, m, R)
    assert got.shape == (2, 3)
    for (i, j), mean in np.ndenumerate(got):
        shift, scale = mp.mpf(m[i, 0]), mp.mpf(R[j])
        cut = [0 if scale == 0 else -shift / scale]
        want = mp.quad(
            lambda u, s=shift, r=scale: value(s + r * u) * mp.npdf(u), sorted([-12, -4, 4, 12, *cut])
        )
        assert mean == pytest.approx(float(want), abs=1e-13 * (1 + R[j] ** 2))


def test_two_numbers_give_a_number_and_samples_agree():
    got = gaussian_mean(mf.activations.erf, 0.3, 2.0)
    assert isinstance(got, float)
    draws = mf.activations.erf(0.3 + 2.0 * np.random.default_rng(0).normal(size=100_000))
    assert abs(got - draws.mean()) < 4 * draws.std() / math.sqrt(1e5)  # missed once in 16 000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("relu", 0.0, 1.0), "activation must be"),
        ((mf.activations.relu, 0.0, -1.0), "scale must be >= 0, got -1.0"),
        (
            (mf.activations.relu, [0.0, 1.0], [1.0, 2.0, 3.0]),
            r"scale must have a shape that broadcasts with \(2,\)",
        ),
        ((mf.activations.relu, np.nan, 1.0), "mean must be finite"),
        ((mf.activations.tanh, 0.0, 1e200), r"scale must be of a size at which E σ\(m \+ R G\) is finite"),
    ],
)
def test_what_has_no_mean_is_refused_in_words(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        gaussian_mean(*arguments)
