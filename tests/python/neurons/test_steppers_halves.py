"""Halves of a step: a network split over several steppers is the whole network."""

import mfcore as mf
import numpy as np
import pytest

WHOLE = {
    "plain": (mf.Network(mf.activations.tanh), {}),
    "all blocks": (mf.Network(mf.activations.erf, output="trained", bias="trained"), {"rates": {"a": 3.0}}),
    "fixed blocks": (mf.Network(mf.activations.relu, output="fixed", bias="fixed"), {"ridge": 0.3}),
    "scale": (mf.Network(mf.activations.tanh, output="trained", scale=2.5), {"ridge": 0.2}),
    "noise": (mf.Network(mf.activations.tanh, output="trained"), {"temperature": 0.4, "rng": 5}),
    "sphere": (mf.Network(mf.activations.relu, sphere=True), {"temperature": 0.1, "rng": 5}),
}


@pytest.mark.parametrize(("network", "options"), WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("cuts", [(), (1,), (3, 4)])
def test_a_network_in_pieces_is_the_whole_network(network, options, cuts):
    rng = np.random.default_rng(1)
    n, d = 7, 3
    start = rng.normal(size=(n, network.row(d)))
    if network.sphere:
        start /= np.linalg.norm(start, axis=1, keepdims=True)
    theta, pieces = start.copy(), np.split(start.copy(), cuts)
    whole = mf.steppers.SGD(network, theta, **options)
    firsts = [0, *cuts]
    parts = [
        mf.steppers.SGD(network, piece, first_neuron=first, total=n, **options)
        for piece, first in zip(pieces, firsts, strict=True)
    ]
    for batch in (1, 5, 40):
        X, y = rng.normal(size=(batch, d)), rng.normal(size=batch)
        f = sum(part.forward(X) for part in parts)
        # Sums of seven numbers of size one, in another order.
        np.testing.assert_allclose(f, whole.predict(X), rtol=1e-13, atol=1e-14)
        for part in parts:
            part.backward(y - f, 0.1)
        whole.step(X, y, 0.1)
        np.testing.assert_allclose(np.concatenate(pieces), theta, rtol=1e-12, atol=1e-13)
    assert [part.steps for part in parts] == [3] * len(parts)


def test_noise_has_the_address_of_its_neuron_to_the_bit():
    network, options = mf.Network(mf.activations.linear), {"temperature": 1.0, "rng": 3}
    theta = np.zeros((6, 2))
    whole = mf.steppers.SGD(network, theta, **options)
    whole.forward([[0.0, 0.0]])
    whole.backward([0.0], 0.5)
    part = np.zeros((2, 2))
    half = mf.steppers.SGD(network, part, first_neuron=3, total=6, **options)
    half.forward([[0.0, 0.0]])
    half.backward([0.0], 0.5)
    assert np.array_equal(part, theta[3:5])


def test_the_pull_is_the_step_of_the_network():
    network = mf.Network(mf.activations.tanh, output="trained", scale=3.0)
    rng = np.random.default_rng(0)
    theta, X, y = rng.normal(size=(5, 4)), rng.normal(size=(9, 3)), rng.normal(size=9)
    stepped = theta.copy()
    mf.steppers.SGD(network, stepped).step(X, y, 0.01)
    model = mf.Model(mf.data.Dataset(X, y), network)
    residual = y - mf.predict(model, theta, X)
    moved = theta + 0.01 * mf.pull(model, theta, X, residual)
    np.testing.assert_allclose(moved, stepped, rtol=1e-13, atol=1e-14)
    out = np.empty_like(theta)
    assert mf.pull(network, theta, X, residual, out=out) is out
    assert np.array_equal(out, mf.pull(model, theta, X, residual))


def test_the_pull_is_the_derivative_of_the_half_mean_square_error():
    network = mf.Network(mf.activations.gelu, output="trained", bias="trained")
    rng = np.random.default_rng(2)
    theta, X, y = rng.normal(size=(2, 5)), rng.normal(size=(6, 3)), rng.normal(size=6)
    model = mf.Model(mf.data.Dataset(X, y), network)

    def half(rows):
        return 0.5 * np.mean((y - mf.predict(model, rows, X)) ** 2)

    slopes = np.empty_like(theta)
    for at in np.ndindex(*theta.shape):
        step = np.zeros_like(theta)
        step[at] = 1e-5
        slopes[at] = (half(theta + step) - half(theta - step)) / 2e-5
    # The derivative of the mean over two neurons; central differences: 1e-10.
    pulled = mf.pull(model, theta, X, y - mf.predict(model, theta, X))
    np.testing.assert_allclose(-pulled / 2, slopes, atol=1e-9)


def test_halves_in_the_wrong_order_and_whole_steps_of_a_part_are_refused():
    theta = np.ones((2, 3))
    sgd = mf.steppers.SGD(mf.Network(mf.activations.tanh), theta, first_neuron=1, total=4)
    with pytest.raises(ValueError, match="backward must come after forward"):
        sgd.backward([1.0], 0.1)
    for call in (sgd.step, sgd.run):
        with pytest.raises(ValueError, match="total must be the number of neurons of theta"):
            call(np.ones((1, 3)), [1.0], 0.1)
    sgd.forward(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"residual must have shape \(2,\), got \(1,\)"):
        sgd.backward([1.0], 0.1)
    for options, message in (
        ({"first_neuron": 1}, "total must be given with first_neuron"),
        ({"first_neuron": 3, "total": 4}, "total must be >= 5, got 4"),
        ({"first_neuron": -1, "total": 4}, "first_neuron must be >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            mf.steppers.SGD(mf.Network(mf.activations.tanh), theta, **options)


def test_an_update_beyond_the_largest_number_leaves_the_state():
    theta = np.ones((2, 3))
    sgd = mf.steppers.SGD(mf.Network(mf.activations.relu), theta)
    sgd.forward(np.full((1, 3), 1e200))
    with pytest.raises(FloatingPointError, match="theta holds the state"):
        sgd.backward([1e200], 1.0)
    assert np.array_equal(theta, np.ones((2, 3)))
    assert sgd.steps == 0
