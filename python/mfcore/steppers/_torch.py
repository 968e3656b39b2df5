"""`mf.to_torch` and `mf.from_torch`: trained networks as modules of torch, and back."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .. import activations
from .._base import check
from .._base.check import FloatArray
from ..activations import Activation
from ..measures._measure import Cloud, as_measure
from ..model import Model
from ..network import Network
from ..runs._trajectory import Trajectory

_MODULES = {  # ours to names of torch.nn, where both are the same function
    activations.relu: "ReLU",
    activations.tanh: "Tanh",
    activations.sigmoid: "Sigmoid",
    activations.softplus: "Softplus",
    activations.gelu: "GELU",
    activations.linear: "Identity",
}
_FAR = 40.0  # softplus(t) − t is below 1e-17 beyond; torch leaves it out from 20 on, where it is 2e-9


def to_torch(source: Any, network: Network | None = None) -> Any:
    """Return a network as a `torch.nn.Sequential` in float64 with the same predictions.

    It is ``Linear(d, N), σ, Linear(N, 1, bias=False)``, with the w and b of the neurons in the first layer
    and αa/N in the second (αma for atoms of mass m), so that ``module(X)[:, 0]`` is f. An activation that
    torch does not have is a module of its own, with gradients. Trained further by torch, a moves (N/α)² times
    as fast beside w and b as it does here, since the weight of the second layer is αa/N.

    Args:
        source: A run of a network, whose end is taken, or its neurons: an (N, D) array, or a `Cloud`. Choose
            one of several replicas, such as ``run.final[0]``.
        network: The network that the neurons are of; a run knows it.

    Raises:
        ImportError: torch is not installed.
        ValueError: The measure is in reduced coordinates, and so no network of finite width.

    Examples:
        >>> import mfcore as mf
        >>> network = mf.Network(mf.activations.relu)
        >>> theta = [[3.0, 4.0], [0.0, 1.0]]
        >>> module = mf.to_torch(theta, network)  # doctest: +SKIP
        >>> back, rows = mf.from_torch(module)  # doctest: +SKIP
    """
    torch = _torch("mf.to_torch")
    if isinstance(source, Trajectory):
        model = source.meta.get("model")
        if not isinstance(model, Model) or model.row is None:
            raise ValueError(f"source must be a run of a network in finite d, got {source!r}")
        network, source, row = model.network, source.final, model.row
    else:
        check.instance(network, "network", Network, "the mf.Network of the neurons")
        row = None
    assert network is not None
    shape = source.points.shape if isinstance(source, Cloud) else np.shape(source)
    if not isinstance(source, np.ndarray | list | tuple | Cloud) or len(shape) != 2:
        raise TypeError(
            "source must be a run of one network, its neurons (N, D) or a Cloud of them, got "
            f"{check.shown(source)}"
        )
    row = max(shape[1], network.row(1)) if row is None else row
    if shape[1] != row:
        raise ValueError(
            f"source must have neurons of length {row}, got {shape[1]}: a measure in reduced coordinates is "
            "no network of finite width"
        )
    theta, masses = as_measure(source, "source", row)
    d = row - network.row(0)
    blocks = network.blocks(d)
    a = theta[:, blocks["a"]][:, 0] if "a" in blocks else np.ones(len(theta))
    inner = _linear(torch, theta[:, blocks["w"]], theta[:, blocks["b"]][:, 0] if "b" in blocks else None)
    outer = _linear(torch, (network.scale * masses * a)[np.newaxis], None)
    return torch.nn.Sequential(inner, _module(torch, network.activation), outer)


def from_torch(
    module: Any, *, activation: Activation | None = None, scale: float = 1.0
) -> tuple[Network, FloatArray]:
    """Read a two-layer module of torch as a network and its neurons, with the same predictions.

    The module has the layers ``Linear(d, N), σ, Linear(N, 1)``, in this order. Row i of θ is [a, b, w], with
    a = N·v/α for the weight v of the second layer: f = αN⁻¹Σ a·σ is v·σ summed. A bias of the second layer
    has no place in that form and must be 0 or absent. Steps of torch are those of the weights v, not of a:
    `mfcore.conventions` converts published rules.

    Args:
        module: A `torch.nn.Sequential`, or a module with these layers as its only children.
        activation: σ, for a module with two layers only, whose `forward` calls a function.
        scale: α of the network.

    Returns:
        The network, with ``output="trained"``, and θ, (N, D) in float64, for `mf.init.Points` and others.

    Examples:
        >>> import mfcore as mf
        >>> module = mf.to_torch([[3.0, 4.0]], mf.Network(mf.activations.tanh))  # doctest: +SKIP
        >>> network, theta = mf.from_torch(module)  # doctest: +SKIP
        >>> theta  # doctest: +SKIP
        array([[1., 3., 4.]])
    """
    torch = _torch("mf.from_torch")
    alpha = check.number(scale, "scale", above=0)
    layers = list(module.children()) if isinstance(module, torch.nn.Module) else []
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    between = [layer for layer in layers if not isinstance(layer, torch.nn.Linear)]
    if len(linear) != 2 or len(between) > 1 or (between and layers[1] is not between[0]):
        raise ValueError(f"module must have the layers Linear, activation, Linear, got {check.shown(module)}")
    if not between and activation is None:
        raise ValueError("activation must be given for a module with two layers alone, got None")
    sigma = _activation(between[0]) if activation is None else activation
    check.instance(sigma, "activation", Activation, "an activation from mfcore.activations")
    (w, b), (v, c) = (_weights(layer) for layer in linear)
    if v.shape != (1, len(w)):
        raise ValueError(f"module must have one output and as many weights as neurons, got {v.shape[::-1]}")
    if c is not None and c.any():
        raise ValueError(
            f"module must have no bias in its second layer, got {c[0]:g}: subtract it from the labels"
        )
    columns = [(len(w) / alpha) * v.T, *([] if b is None else [b[:, np.newaxis]]), w]
    network = Network(sigma, output="trained", bias="none" if b is None else "trained", scale=alpha)
    return network, np.concatenate(columns, axis=1)


def _torch(name: str) -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError(f"{name} needs torch: pip install torch") from None


def _linear(torch: Any, weight: FloatArray, bias: FloatArray | None) -> Any:
    rows, columns = weight.shape
    layer = torch.nn.Linear(columns, rows, bias=bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.array(weight)))
        if bias is not None:
            layer.bias.copy_(torch.from_numpy(np.array(bias)))
    return layer


def _weights(layer: Any) -> tuple[FloatArray, FloatArray | None]:
    """Weight and bias of a layer in float64."""
    arrays = [None if p is None else p.detach().cpu().numpy() for p in (layer.weight, layer.bias)]
    weight, bias = (None if p is None else np.array(p, dtype=np.float64) for p in arrays)
    assert weight is not None
    return weight, bias


def _module(torch: Any, sigma: Activation) -> Any:
    """σ as a module of torch, which remembers it."""
    name = _MODULES.get(sigma)
    if name is None:
        module = _entrywise(torch, sigma)
    else:
        module = getattr(torch.nn, name)(**({"threshold": _FAR} if name == "Softplus" else {}))
    module.mfcore_activation = sigma
    return module


def _activation(module: Any) -> Activation:
    """σ of a module of torch."""
    known = getattr(module, "mfcore_activation", None)
    if isinstance(known, Activation):
        return known
    kind = type(module).__name__
    found = next((ours for ours, theirs in _MODULES.items() if theirs == kind), None)
    other = getattr(module, "approximate", "none") != "none" or getattr(module, "beta", 1) != 1
    if found is None or other:
        raise ValueError(
            "module must have an activation that mfcore knows between its layers, got "
            f"{check.shown(module)}; activation= names another"
        )
    return found


def _entrywise(torch: Any, sigma: Activation) -> Any:
    """σ of mfcore as a module whose gradient is σ'."""
    function = _function(torch, sigma)
    members = {"forward": lambda _, z: function(z), "extra_repr": lambda _: repr(sigma)}
    return type("Activation", (torch.nn.Module,), members)()


def _function(torch: Any, sigma: Activation) -> Any:
    if sigma == activations.erf:
        return torch.erf

    def values(z: Any, function: Any) -> Any:
        return torch.from_numpy(np.asarray(function(z.detach().cpu().numpy()))).to(z)

    class Values(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, z: Any) -> Any:
            context.save_for_backward(z)
            return values(z, sigma)

        @staticmethod
        def backward(context: Any, slope: Any) -> Any:
            (z,) = context.saved_tensors
            return slope * values(z, sigma.derivative)

    return Values.apply
