"""Networks become modules of torch and come back, with the same predictions.

torch is of the extra bench: if it is there the tests run with it, too, else with a stand-in on NumPy alone.
"""

import importlib.util
import sys
from importlib import import_module

import mfcore as mf
import numpy as np
import pytest
import stand_in_torch
from problems import BENT

X = np.random.default_rng(0).normal(size=(50, 3)) * 4
MODULES = ["stand_in_torch", *(["torch"] if importlib.util.find_spec("torch") else [])]
SIGMAS = [
    *(mf.activations.get(name) for name in ("relu", "tanh", "sigmoid", "softplus", "gelu", "linear", "erf")),
    BENT,
    mf.activations.hermite([0.0, 1.0, 0.5]),
]


@pytest.fixture(params=MODULES)
def torch(request, monkeypatch):
    """torch, or what stands in for it."""
    module = import_module(request.param)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def networks(sigma):
    for output in ("one", "fixed", "trained"):
        for bias in ("none", "trained"):
            yield mf.Network(sigma, output=output, bias=bias, scale=1.0 if bias == "none" else 3.0)


def model_of(network):
    return mf.Model(mf.data.IsotropicGaussians(d=3, delta=0.5), network, mf.init.Gaussian(0.5))


def values(torch, module):
    return module(torch.from_numpy(X)).detach().numpy()


@pytest.mark.parametrize("sigma", SIGMAS, ids=repr)
def test_predictions_are_the_same_there_and_back(torch, sigma):
    for network in networks(sigma):
        model = model_of(network)
        theta = np.random.default_rng(1).normal(size=(40, network.row(3)))
        cloud = mf.Cloud(theta, np.random.default_rng(2).dirichlet(np.ones(40)))
        for measure in (theta, cloud):
            f = mf.predict(model, measure, X)
            module = mf.to_torch(measure, network)
            # Sums of 40 products in another order, and values of σ that differ in the last places.
            tolerance = 1e-13 * np.abs(mf.predict(model, measure, 3 * X)).max()
            np.testing.assert_allclose(values(torch, module), f[:, None], rtol=0, atol=tolerance)
            back, rows = mf.from_torch(module, scale=network.scale)
            assert back.activation == sigma
            assert back.layout == ("a, b, w…" if network.has_b else "a, w…")
            again = mf.predict(model_of(back), rows, X)
            np.testing.assert_allclose(again, f, rtol=0, atol=tolerance)


def test_a_run_becomes_a_module_and_its_rows_come_back(torch):
    network = mf.Network(mf.activations.relu, output="trained", bias="trained", scale=2.0)
    run = mf.solve(model_of(network), mf.SGD(32, 0.01), steps=20, rng=0)
    module = mf.to_torch(run)
    np.testing.assert_allclose(values(torch, module)[:, 0], mf.predict(run, X), rtol=0, atol=1e-13)
    back, theta = mf.from_torch(module, scale=2.0)
    assert back == network
    np.testing.assert_allclose(theta, run.final, rtol=1e-15)  # N/α and its inverse are rounded


def test_a_module_of_float32_and_one_with_a_function_are_read(torch):
    first, second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1, bias=False)
    network, theta = mf.from_torch(torch.nn.Sequential(first, torch.nn.Tanh(), second))
    w, b, v = (p.detach().numpy() for p in (first.weight, first.bias, second.weight))
    assert theta.dtype == np.float64
    assert np.array_equal(theta, np.column_stack([4.0 * v[0].astype(float), b, w]))
    other, same = mf.from_torch(torch.nn.Sequential(first, second), activation=mf.activations.erf)
    assert (network.activation, other.activation) == (mf.activations.tanh, mf.activations.erf)
    assert np.array_equal(theta, same)


def test_what_is_no_network_of_two_layers_is_refused_in_words(torch):
    nn = torch.nn
    first, second = nn.Linear(3, 4), nn.Linear(4, 1, bias=False)
    biased, several = nn.Linear(4, 1), nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        biased.bias.copy_(torch.from_numpy(np.array([0.5], dtype=np.float32)))
    for layers, message in (
        ((first, nn.Tanh()), "module must have the layers Linear, activation, Linear"),
        ((first, second, nn.Tanh()), "module must have the layers Linear, activation, Linear"),
        ((first, second), "activation must be given for a module with two layers alone"),
        ((first, nn.GELU(approximate="tanh"), second), "module must have an activation that mfcore knows"),
        ((first, nn.Softplus(beta=2.0), second), "module must have an activation that mfcore knows"),
        ((first, nn.Sequential(), second), "module must have an activation that mfcore knows"),
        ((first, nn.Tanh(), biased), "module must have no bias in its second layer, got 0.5"),
        ((first, nn.Tanh(), several), "module must have one output"),
    ):
        with pytest.raises(ValueError, match=message):
            mf.from_torch(nn.Sequential(*layers))
    with pytest.raises(ValueError, match="module must have the layers"):
        mf.from_torch(3)


def test_what_is_no_network_of_finite_width_is_refused(torch):
    model = model_of(mf.Network(mf.activations.relu, output="trained"))
    limit = mf.solve(model, mf.Atoms(10), horizon=0.1, save_at=2)
    replicas = mf.solve(model, mf.SGD(8, 0.01, replicas=2), steps=2, rng=0)
    for arguments, error, message in (
        (
            (limit,),
            ValueError,
            "source must have neurons of length 4, got 2: a measure in reduced",
        ),
        ((replicas,), TypeError, "source must be a run of one network, its neurons"),
        ((np.ones((2, 4)),), TypeError, "network must be the mf.Network of the neurons, got None"),
        ((np.ones((2, 1)), model.network), ValueError, "source must have neurons of length 2, got 1"),
        ((mf.Density([0, 1], [1.0]), model.network), TypeError, "source must be a run of one network"),
    ):
        with pytest.raises(error, match=message):
            mf.to_torch(*arguments)


def test_without_torch_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (lambda: mf.to_torch([[1.0]], mf.Network(mf.activations.relu)), lambda: mf.from_torch(None)):
        with pytest.raises(ImportError, match="needs torch: pip install torch"):
            call()


def test_gradients_go_through_activations_that_torch_does_not_have(torch):
    if torch is stand_in_torch:  # which has no gradients; what is asked of it is covered above
        return
    for sigma in SIGMAS:
        z = torch.linspace(-2.05, 3.1, 40, dtype=torch.float64, requires_grad=True)
        module = mf.to_torch([[1.0, 1.0]], mf.Network(sigma, output="trained"))
        (slope,) = torch.autograd.grad(module[1](z).sum(), z)
        # Where σ' of the core has errors of a few units in the last place.
        np.testing.assert_allclose(
            slope.numpy(), sigma.derivative(z.detach().numpy()), rtol=1e-12, atol=1e-13
        )
