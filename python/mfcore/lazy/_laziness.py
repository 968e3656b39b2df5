"""`laziness`: how far from linear training is, by bounds that hold and one number (eqs. (11.7), (11.8))."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from .._base import check, factors
from .._base.check import FloatArray
from ..expectations._rules import Expectation
from ..measures._place import rows_of
from ..model import Model
from ._linearized import nodes_of
from ._neurons import of_neurons

_CHUNK = 1 << 20  # numbers of one pass over neurons and inputs
_DENSE = 3  # numbers of parameters up to which Lanczos' method has no room


@dataclass(frozen=True)
class Laziness:
    """Results of `laziness`, in mean-field norms: means over nodes and neurons, |δθ_c|² over the rate of c.

    Attributes:
        smallest: ν, the smallest eigenvalue of the tangent kernel on the nodes, over their number.
        largest: The largest one, ‖Df‖².
        residual: ‖f − y‖, the root of the risk on the nodes.
        displacement: (√largest/smallest)·‖f − y‖: linearised neurons never move further; inf where ν = 0.
        curvature: sup ‖D²f(v, ·)‖ over ‖v‖ = 1, in the Hilbert–Schmidt norm: how fast Df changes, which
            (11.7) needs. At least ‖D²f‖, the operator norm sup ‖D²f(u, v)‖ over ‖u‖ = ‖v‖ = 1, and at most
            √min(n, D) times it, for n nodes and D trained parameters of a neuron.
        kappa: residual·curvature/largest: an upper bound of the relative scale κ = ‖f − y‖·‖D²f‖/‖Df‖² in
            operator norms, and at most √min(n, D) times it. Training is lazy where it is small; inf where
            Df = 0.
    """

    smallest: float
    largest: float
    residual: float
    displacement: float
    curvature: float
    kappa: float

    def risk_bound(self, t: npt.ArrayLike) -> FloatArray:
        """e^{−2νt}‖f − y‖²: the risk of linearised neurons on the nodes is never larger."""
        times = check.array(t, "t")
        if times.min() < 0:
            raise ValueError(f"t must be >= 0, got {times.min():g}")
        return np.asarray(np.exp(-2 * self.smallest * times) * self.residual**2)


def laziness(
    model: Model,
    theta: npt.ArrayLike,
    *,
    expectation: Expectation | None = None,
    threads: int | None = None,
) -> Laziness:
    """Measure how near to linear the training of these neurons is: bounds of its path, and of the scale κ.

    Bounds and relative scale are those of Chizat, Oyallon and Bach. The bounds of risk and displacement hold
    for `mf.Linearized`, and for the nonlinear flow as long as its kernel stays within them. Kinks of σ, where
    it has no second derivative, are left out of D²f. No matrix over parameters is made.

    Args:
        model: Its data need nodes, or an `expectation` of samples.
        theta: Neurons, shape (N, D).
        expectation: For laws without nodes `mf.MonteCarlo(samples, rng)`.
        threads: Default `OMP_NUM_THREADS`, else the cores. They change no bit of the kernel.

    Raises:
        ValueError: The model has ridge or noise, under which the bounds do not hold, the network is on the
            sphere, or the data have no nodes.

    Examples:
        >>> import numpy as np, mfcore as mf
        >>> from mfcore import theory
        >>> rng = np.random.default_rng(0)
        >>> law = mf.data.Dataset(rng.normal(size=(5, 3)), rng.normal(size=5))
        >>> nets = [mf.Network(mf.activations.tanh, output="trained", scale=scale) for scale in (1, 10)]
        >>> theta = np.repeat(rng.normal(size=(20, 4)), 2, axis=0) * ([[1, 1, 1, 1], [-1, 1, 1, 1]] * 20)
        >>> one, ten = (theory.laziness(mf.Model(law, net), theta).kappa for net in nets)
        >>> round(one / ten, 6)  # κ ∝ 1/scale where f = 0
        10.0
    """
    check.instance(model, "model", Model, "an mf.Model")
    rows = rows_of(model, theta, "theta")
    if model.network.sphere:
        raise ValueError(
            "network must have sphere=False for laziness: its second derivatives are those of R^d"
        )
    for name, value in (("ridge", model.ridge), ("temperature", model.temperature)):
        if value > 0:
            raise ValueError(
                f"model must have {name} 0 for laziness, whose bounds are those of a gradient flow of the "
                f"risk, got {value:g}; κ is that of model.replace({name}=0)"
            )
    count = check.threads(threads)
    X, y = nodes_of(model, expectation)
    check.memory(24.0 * len(X) ** 2, "data" if expectation is None else "samples", len(X))
    f = model.network.scale * _core.predict(model.network._core, rows, None, X, count)
    residual = float(np.sqrt(np.mean((f - y) ** 2)))
    kernel = of_neurons(model, rows, None, X, None, count) / len(X)
    if not (math.isfinite(residual) and np.isfinite(kernel).all()):
        size = float(np.abs(rows).max())
        raise ValueError(f"theta must be of a size at which the kernel is finite, got entries up to {size:g}")
    values = factors.eigvalsh(kernel)
    largest = float(values[-1])
    smallest = smallest_of(model, values, len(rows))
    bound = math.sqrt(largest) / smallest * residual if smallest > 0 else math.inf
    curvature = curvature_of(model, rows, X)
    kappa = residual * curvature / largest if largest > 0 else math.inf
    return Laziness(smallest, largest, residual, bound if residual > 0 else 0.0, curvature, kappa)


def smallest_of(model: Model, values: FloatArray, neurons: int) -> float:
    """The smallest eigenvalue of a kernel on nodes; 0 below rounding, or of fewer trained parameters than
    nodes.
    """
    rounding = len(values) * np.finfo(float).eps * float(values[-1])
    parameters = neurons * int(np.count_nonzero(model._entry_speeds))
    return float(values[0]) if values[0] > rounding and len(values) <= parameters else 0.0


def curvature_of(model: Model, theta: FloatArray, X: FloatArray) -> float:
    """The largest Hilbert–Schmidt norm of D²f(v, ·) over ‖v‖ = 1, eq. (11.8)."""
    return math.sqrt(_largest_of(_Curvature(model, theta, X), theta.size))


class _Curvature:
    """v ↦ α² Σ_q p_q H(x_q)²v, neuron by neuron: H the Hessian of σ* in directions √rate_c·v_c."""

    def __init__(self, model: Model, theta: FloatArray, X: FloatArray) -> None:
        network, row = model.network, model.network.row(0)
        self._network, self._X, self._row = network, X, row
        self._a = theta[:, 0] if network.has_a else np.ones(len(theta))
        self._b = theta[:, row - 1] if network.has_b else np.zeros(len(theta))
        self._w = theta[:, row:]
        self._root = {block: math.sqrt(speed) for block, speed in model._speeds.items()}
        self._scale = network.scale**2 / len(X)
        self._shape = theta.shape

    def __call__(self, vector: FloatArray) -> FloatArray:
        v = vector.reshape(self._shape)
        out = np.zeros(self._shape)
        step = max(1, _CHUNK // len(self._X))
        for i in range(0, len(v), step):
            out[i : i + step] = self._block(slice(i, i + step), v[i : i + step])
        return out.ravel()

    def _block(self, at: slice, v: FloatArray) -> FloatArray:
        network, root, row, X = self._network, self._root, self._row, self._X
        z = X @ self._w[at].T + self._b[at]
        slope = root["a"] * network.activation.derivative(z)  # ∂_a∂_z, and ∂_z² below
        bend = self._a[at] * network.activation.second_derivative(z)
        size = root["w"] ** 2 * np.sum(X**2, axis=1)[:, None] + root["b"] ** 2
        along = root["w"] * (X @ v[:, row:].T)  # the direction of z
        if network.has_b:
            along += root["b"] * v[:, row - 1]
        of_a = v[:, 0] if network.has_a else 0.0
        # H v = (slope·along, gain·∂z), gain = slope v_a + bend·along; then H once more.
        gain = slope * of_a + bend * along
        value = slope * along
        twice = self._scale * (slope * value + bend * gain * size)
        out = np.zeros((v.shape[0], self._shape[1]))
        out[:, row:] = root["w"] * (twice.T @ X)
        if network.has_b:
            out[:, row - 1] = root["b"] * twice.sum(axis=0)
        if network.has_a:
            out[:, 0] = self._scale * (slope * gain * size).sum(axis=0)
        return out


def _largest_of(apply: _Curvature, size: int) -> float:
    """The largest eigenvalue of a symmetric map ⪰ 0, by Lanczos' method."""
    from scipy.sparse import linalg  # takes long to import

    if size <= _DENSE:
        matrix = np.array([apply(unit) for unit in np.eye(size)])
        return max(0.0, float(factors.eigvalsh(matrix)[-1]))
    start = np.random.default_rng(0).normal(size=size)  # the same every time
    if not apply(start).any():
        return 0.0
    operator = linalg.LinearOperator((size, size), matvec=apply, dtype=np.float64)
    found = linalg.eigsh(operator, k=1, v0=start, return_eigenvectors=False, tol=1e-10)
    return max(0.0, float(found[0]))
