"""Arrays that are written may be rows with gaps between them, and tensors of other libraries on the CPU."""

import re

import jax
import mfcore as mf
import numpy as np
import pytest
from mfcore._base.output import output


class Tensor:
    """Stands for a tensor on the CPU: shares its memory by DLPack, and is no NumPy array."""

    def __init__(self, array, readonly=False):
        self.array, self.shape = array, array.shape
        self._shown = array.view()
        self._shown.flags.writeable = not readonly

    def __dlpack__(self, **keywords):
        return self._shown.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._shown.__dlpack_device__()


class OldTensor(Tensor):
    """Also has `__array__`: the way to writable memory where NumPy takes what DLPack brings for read-only."""

    def __init__(self, array):
        super().__init__(array, readonly=True)

    def __array__(self, dtype=None, copy=None):
        return self.array


def frozen(array):
    array.flags.writeable = False
    return array


def test_an_output_array_must_be_usable_as_it_is():
    out = np.zeros((2, 3))
    unaligned = np.zeros(2, dtype=np.dtype([("tag", "i1"), ("value", "f8")]))["value"]
    assert output(out, "out", (2, 3)) is out
    for bad, shape, error, message in (
        ([[0.0]], (1, 1), TypeError, "out must be a float64 NumPy array, got list"),
        (out.astype(np.float32), (2, 3), TypeError, "out must be a float64 NumPy array, got float32"),
        (Tensor(out.astype(np.float32)), (2, 3), TypeError, "out must be a float64 NumPy array, got float32"),
        (out.astype(">f8"), (2, 3), TypeError, "out must be a float64 NumPy array, got >f8"),
        (np.ma.array(out), (2, 3), TypeError, "out must be a float64 NumPy array, got a masked array"),
        (out, (3, 2), ValueError, "out must have shape (3, 2), got (2, 3)"),
        (frozen(np.zeros(2)), (2,), ValueError, "out must be writable, got a read-only array; np.array(out)"),
        (Tensor(out, True), (2, 3), ValueError, "out must be writable, got a read-only Tensor"),
        (unaligned, (2,), ValueError, "out must be aligned, got aligned=False"),
    ):
        with pytest.raises(error, match="^" + re.escape(message)):
            output(bad, "out", shape)


def test_an_array_of_jax_is_refused_for_what_it_is():
    with jax.enable_x64(True):
        theta = jax.numpy.zeros((3, 2))
    message = r"theta must be writable, got a read-only ArrayImpl; np.array\(theta\) copies it"
    with pytest.raises(ValueError, match=message):
        mf.steppers.SGD(mf.Network(mf.activations.linear), theta)


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
def test_results_and_steps_are_written_into_the_memory_of_a_tensor(kind):
    network = mf.Network(mf.activations.tanh)
    model = mf.Model(mf.data.IsotropicGaussians(d=2, delta=0.5), network, mf.init.Gaussian(1.0))
    theta = np.random.default_rng(0).normal(size=(6, 2))
    memory = np.zeros((6, 2))
    into = kind(memory)
    assert mf.grad_psi(model, theta, theta, out=into) is into
    assert np.array_equal(memory, mf.grad_psi(model, theta, theta))
    plain, shared = theta.copy(), theta.copy()
    for neurons in (plain, kind(shared)):
        mf.steppers.SGD(network, neurons).step(np.eye(2), [1.0, -1.0], 0.1)
    assert np.array_equal(plain, shared)
    assert not np.array_equal(plain, theta)


def test_a_tensor_of_torch_is_written():
    torch = pytest.importorskip("torch", reason="of the extra bench; others stand in for it above")
    theta = torch.zeros((3, 2), dtype=torch.float64)
    mf.steppers.SGD(mf.Network(mf.activations.linear), theta).step([1.0, 2.0], 1.0, 0.5)
    assert theta.tolist() == [[0.5, 1.0]] * 3


@pytest.mark.parametrize("samples", [1, 3, 200, 5000])  # each is a way of its own through the core
@pytest.mark.parametrize("neurons", [5, 300])
def test_steps_on_rows_with_gaps_have_the_same_bits_and_write_no_gap(samples, neurons):
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(neurons, 7))
    before, plain = wide.copy(), wide[:, 1:5].copy()
    network = mf.Network(mf.activations.tanh, output="trained", bias="trained")
    X, y = rng.normal(size=(samples, 2)), rng.normal(size=samples)
    for theta in (plain, wide[:, 1:5]):
        sgd = mf.steppers.SGD(network, theta, ridge=0.1, temperature=0.01, rng=3)
        sgd.step(X, y, 0.1)
        quiet = mf.steppers.SGD(network, theta, ridge=0.1)
        quiet.run(X[:200], y[:200], 0.01)
        quiet.forward(X[:1])
        quiet.backward([0.5], 0.1)
    assert np.array_equal(wide[:, 1:5], plain)
    assert np.array_equal(wide[:, [0, 5, 6]], before[:, [0, 5, 6]])


def test_results_may_be_put_into_any_layout():
    model = mf.Model(
        mf.data.IsotropicGaussians(d=2, delta=0.5), mf.Network(mf.activations.relu), mf.init.Gaussian(1.0)
    )
    theta = np.random.default_rng(0).normal(size=(4, 2))
    expected = mf.grad_psi(model, theta, theta)
    wide = np.full((4, 5), 7.0)
    for out in (np.empty((4, 2), order="F"), wide[:, 1:4:2], np.empty((8, 2))[::2]):
        mf.grad_psi(model, theta, theta, out=out)
        assert np.array_equal(out, expected)
    assert (wide[:, [0, 2, 4]] == 7.0).all()
    flow, rows = mf.steppers.Flow(model, wide[:, :2]), theta.copy()
    wide[:, :2] = theta
    flow.step(0.1)
    mf.steppers.Flow(model, rows).step(0.1)
    assert np.array_equal(wide[:, :2], rows)
