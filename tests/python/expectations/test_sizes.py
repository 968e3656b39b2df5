"""Exact expectations of neurons with |w| from 1e-320 to 1e150: right, or refused in words."""

import mfcore as mf
import mpmath as mp
import numpy as np
import pytest
from sizes import KINDS, ONE, ZERO, Neuron, of_powers, pair, root2

SUBNORMAL = [(-158, -158), (-155, 0), (0, -161), (-160, -13), (-300, -300), (-320, 0)]
PLAIN, TWO_CLASSES = mf.data.Linear(np.zeros(3)), mf.data.IsotropicGaussians(3, 0.5)
# Promised are 1e-14 of the sizes of terms, of quadrature 1e-12; tails below 1e-304 may be 0. Numbers below
# 2e-308 have fewer digits the smaller they are: 1e-320 has three.
RIGHT, FEW_DIGITS, TAILS = 1e-11, 1e-2, 1e-300


def network(kind):
    return mf.Network(kind.sigma, output="trained", bias="trained")


def row(rng, exponent, a=1.5):
    w = rng.normal(size=3)
    return np.array([a, rng.choice([0.0, 0.3, -0.2]), *(10.0**exponent * w / np.linalg.norm(w))])


def neuron(kind, z):
    return Neuron(kind, z[0], z[1], z[2:])


def drawn(kind, rng):
    """Exponents of two neurons whose means are numbers, one of them small where the reference needs that."""
    most = 150 // kind.degree if kind is not KINDS["expression"] else 1
    one, two = (int(rng.integers(-320, most)) for _ in range(2))
    return (one, two) if kind.means is not None else (one, min(two, -13))


def assert_right(got, want, sizes, theta, other=(0.0, 0.0, 1.0), degree=1):
    norms = [np.abs(z[2:]).max() for z in (theta, other)]
    close = RIGHT if min(norms) > 1e-307 else FEW_DIGITS
    assert np.isfinite(got).all()
    missed = np.abs(got - want) > close * sizes + TAILS * max(1.0, *norms) ** degree
    assert not missed.any(), (got, want, sizes)


@pytest.mark.parametrize("name", KINDS)
def test_pairs_of_neurons_of_any_size_are_right(name):
    kind, rng = KINDS[name], np.random.default_rng(sum(map(ord, name)))
    model = mf.Model(PLAIN, network(kind))  # y = 0, V = 0
    cases = [drawn(kind, rng) for _ in range(2)]
    if kind.means is not None:
        cases.append(SUBNORMAL[rng.integers(len(SUBNORMAL))])
    for exponents in cases:
        theta, other = (row(rng, k) for k in exponents)
        want, sizes = pair(neuron(kind, theta), neuron(kind, other))
        assert_right(
            mf.U(model, theta[None], other[None])[0],
            theta[0] * want[:1],
            sizes[:1],
            theta,
            other,
            kind.degree,
        )
        grad = mf.grad_psi(model, theta[None], other[None])[0]
        assert_right(grad, want, sizes, theta, other, kind.degree)


@pytest.mark.parametrize("name", KINDS)
def test_v_and_its_gradient_are_right_at_any_size_for_labels_of_two_classes(name):
    kind, rng = KINDS[name], np.random.default_rng(sum(map(ord, name)))
    model = mf.Model(TWO_CLASSES, network(kind))
    for exponent in (*drawn(kind, rng), -158):
        theta = row(rng, exponent)
        want, sizes = np.zeros(5), np.zeros(5)
        for y, scale in ((1, 1.5), (-1, 0.5)):  # x | y ~ N(0, scale²)
            seen = neuron(kind, [1, theta[1], *(mp.mpf(scale) * mp.mpf(x) for x in theta[2:])])
            for out, size in ((want, False), (sizes, True)):
                mean, slope, bent = (seen.mean(k, size) for k in range(3))
                sign = 1 if size else -y
                terms = [mean, 1.5 * slope, *(1.5 * bent * scale**2 * mp.mpf(x) for x in theta[2:])]
                out += np.array([sign * mp.mpf(t) / 2 for t in terms], dtype=float)
        sizes[2:] = np.abs(sizes[2:]).max()
        assert_right(mf.V(model, theta[None]), 1.5 * want[:1], sizes[:1], theta, degree=kind.degree)
        nobody = np.array([[0.0, 0.0, 1.0, 0.0, 0.0]])  # a = 0
        grad = mf.grad_psi(model, theta[None], nobody)[0]
        assert_right(grad[1:], want[1:], sizes[1:], theta, degree=kind.degree)


LABELS = {
    "linear": (mf.data.Linear([0.6, 0.0, -0.8]), KINDS["linear"], [0.6, 0.0, -0.8]),
    "index": (
        mf.data.MultiIndex(3, [0.0, 0.0, 1.0], 1),  # h_2 = (t² − 1)/√2
        of_powers(None, -1 / root2, ZERO, 1 / root2),
        [1.0, 0.0, 0.0],
    ),
    "teacher": (
        mf.data.Teacher(mf.Network(mf.activations.erf), [[1e-157, 1e-157, 0.0]]),
        KINDS["erf"],
        [1e-157, 1e-157, 0.0],
    ),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("of", ["relu", "even", "erf", "tanh", "softplus"])
def test_v_is_right_at_any_size_for_labels_along_directions(name, of):
    law, labels, w = LABELS[name]
    kind, rng = KINDS[of], np.random.default_rng(sum(map(ord, name + of)))
    model = mf.Model(law, network(kind))
    theta = row(rng, rng.choice([-320, -200, -161, -157, -13, 0]))
    want, sizes = pair(neuron(kind, theta), Neuron(labels, ONE, ZERO, w))
    assert_right(mf.V(model, theta[None]), -theta[0] * want[:1], theta[0] * sizes[:1], theta)
    nobody = np.array([[0.0, 0.0, 1.0, 0.0, 0.0]])
    grad = mf.grad_psi(model, theta[None], nobody)[0]
    assert_right(grad[1:], -want[1:], sizes[1:], theta)


@pytest.mark.parametrize("name", ["even", "hermite"])
@pytest.mark.parametrize("exponents", [(-158, -158), (-320, 0), (-9, -200), (0, -5)])
def test_on_the_sphere_polynomials_are_right_at_any_size(name, exponents):
    law = mf.data.MultiIndex(3, [0.0, 1.0], 1, inputs="sphere")
    kind, rng = KINDS[name], np.random.default_rng(0)
    theta, other = (row(rng, k) for k in exponents)
    with mp.workdps(700):  # sums of Gauss's rule cancel to the size of w
        one, two = neuron(kind, theta), neuron(kind, other)
        want, size = [mp.mpf(0)] * 5, [mp.mpf(0)] * 5
        for z, p in ((mp.sqrt(mp.mpf(3) / 7 + s * mp.sqrt(mp.mpf(24) / 245)), q) for s, q in _rule()):
            for k in range(16):  # degree 7 in z, 15 in the angle
                for z_k in (z, -z):
                    angle, r = mp.pi * (k + mp.mpf(1) / 3) / 8, mp.sqrt(1 - z * z)
                    x = [mp.sqrt(3) * c for c in (r * mp.cos(angle), r * mp.sin(angle), z_k)]
                    g, h = (n.b + sum(c * w for c, w in zip(x, n.w, strict=True)) for n in (one, two))
                    f, slope, partner = *(kind.orders[i](g) for i in (0, 1)), two.a * kind.orders[0](h) - x[0]
                    terms = [f * partner, 1.5 * slope * partner, *(1.5 * slope * partner * c for c in x)]
                    want = [t + p / 64 * term for t, term in zip(want, terms, strict=True)]
                    size = [t + p / 64 * abs(term) for t, term in zip(size, terms, strict=True)]
    model = mf.Model(law, network(kind))
    grad = mf.grad_psi(model, theta[None], other[None])[0]
    assert_right(grad, np.array(want, dtype=float), np.array(size, dtype=float), theta, other)


def _rule():
    """Signs of the roots in Gauss's nodes z² = 3/7 ± √(24/245) of degree 7, and the weights of ± together."""
    return ((s, 1 - s * mp.sqrt(mp.mpf(30)) / 18) for s in (1, -1))


@pytest.mark.parametrize("d", [1, 5, np.inf])
def test_reduced_potentials_have_the_slope_of_small_radii(d):
    # ∂_r V = −½ Σ_y y τ² r E u² σ''(0) for x = τu, E u² = 1: the next order is r³
    network = mf.Network(mf.activations.softplus, output="trained")
    model = mf.Model(mf.data.IsotropicGaussians(d, 0.5), network).reduce()
    radii = np.array([1e-6, 1e-9, 1e-158, 1e-300])
    slopes = mf.grad_psi(model, np.stack([np.ones(4), radii], axis=1), mf.Cloud([[0.0, 1.0]]))[:, 1]
    np.testing.assert_allclose(slopes, -0.25 * radii, rtol=1e-11)  # ½(1.5² − 0.5²)/4


def test_a_run_whose_neurons_die_out_ends():
    # |w|² becomes subnormal on the way
    model = mf.Model(
        mf.data.IsotropicGaussians(3, 0.5),
        mf.Network(mf.activations.polynomial([0.1, 0.0, 0.2])),
        mf.init.Gaussian(std=1.0),
        ridge=1.0,
    )
    run = mf.solve(model, mf.SGD(4, 0.1), horizon=600.0, save_at=601, rng=0)
    assert run.meta["risk"] == "exact"
    assert np.isfinite(run.risk).all()
    assert 0 < np.abs(run.final).max() < 1e-160


def said(call, rows):
    """What a call returns, or the message with which it refuses."""
    try:
        return call(rows)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_no_number_is_refused_in_words(name):
    kind, rng = KINDS[name], np.random.default_rng(sum(map(ord, name)))
    model = mf.Model(TWO_CLASSES, network(kind))
    theta = np.array([row(rng, int(k)) for k in rng.integers(-320, 308, 6)])
    for call in (
        lambda z: mf.V(model, z),
        lambda z: mf.U(model, z, z),
        lambda z: mf.grad_psi(model, z, z),
        lambda z: mf.risk(model, z),
    ):
        for rows in (theta, *theta[:, None]):
            answer = said(call, rows)
            assert (
                "must be of a size at which" in answer
                if isinstance(answer, str)
                else np.isfinite(answer).all()
            )
