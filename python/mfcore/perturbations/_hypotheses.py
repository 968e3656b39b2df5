"""Collect the hypotheses of theorems about networks: constants of σ, the data, ∇V and ∇U, if known."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .._base.check import FloatArray
from ..activations import Activation
from ..expectations._evaluator import Evaluator
from ..expectations._nodes import Nodes
from ..model import Model

_REACH, _STEPS = 50.0, 100_001  # σ and its slopes are searched on [−50, 50]
_FAR = 1e3  # beyond which, times that, they must not have grown
_ATOMS, _FIELDS = 32, 8  # at so many atoms, and in the fields of so many, derivatives are searched
_TURNS = 8  # steps of the power method for the largest derivative at an atom
_STEP = 1e-4  # of differences, relative to 1 + |θ|

Map = Callable[[FloatArray], FloatArray]


def constants(
    model: Model,
    points: FloatArray,
    weights: FloatArray,
    evaluator: Evaluator,
    generator: np.random.Generator,
) -> dict[str, str]:
    """The constants in words, each with how it was found."""
    network, d, sigma = model.network, int(model.d), model.network.activation
    a = np.abs(points[:, 0]) if network.has_a else np.ones(len(points))
    norms = np.linalg.norm(points[:, network.row(0) :], axis=1)
    size, slope, bend = _of_activation(sigma)
    inputs, psi2 = _inputs(model, d)
    search = f"search on [−{_REACH:g}, {_REACH:g}]"
    within = "closed form" if sigma.pieces is not None else search
    known = {
        "σ bounded": _said("|σ|", size, search),
        "σ Lipschitz": _said("|σ'|", slope, within),
        "σ' Lipschitz": "no: kinks" if sigma.kinks else _said("|σ''|", bend, within),
        "output weights bounded": f"sup|a| = {a.max():.4g}, mean {weights @ a:.4g} on the measure",
        "weights": f"sup|w| = {norms.max():.4g} on the measure",
        "inputs sub-Gaussian": inputs,
    }
    if math.isfinite(psi2) and math.isfinite(slope):
        b = points[:, network.row(0) - 1] if network.has_b else np.zeros(len(points))
        whole = _of_gradient(model, size, slope, psi2, (a, sigma(b), norms))
        known["∇σ* sub-Gaussian"] = (
            f"‖∇σ*‖_ψ2 ≤ {network.scale * whole:.4g} on the measure, from the rows above"
        )
    return known | _of_potentials(model, points, weights, evaluator, generator)


def _said(what: str, most: float, how: str) -> str:
    """The supremum of |σ| or of a derivative in words."""
    return (
        f"sup{what} = {most:.4g} ({how})" if math.isfinite(most) else f"no: {what} grows ({how} and beyond)"
    )


def _of_activation(sigma: Activation) -> tuple[float, float, float]:
    """sup|σ| on the interval that is searched, sup|σ'| and sup|σ''|; inf of what is larger far beyond it."""
    size = _largest_on_line(sigma)
    if sigma.pieces is None:
        return size, _largest_on_line(sigma.derivative), _largest_on_line(sigma.second_derivative)
    slopes = sigma.pieces.left_slope + np.cumsum([0.0, *sigma.pieces.jumps])
    return size, float(np.abs(slopes).max()), 0.0


def _largest_on_line(function: Map) -> float:
    with np.errstate(all="ignore"):
        near = np.abs(function(np.linspace(-_REACH, _REACH, _STEPS))).max()
        far = np.abs(function(_FAR * np.array([-_REACH, _REACH]))).max()
    return float(near) if far <= near * (1 + 1e-6) else math.inf


def _of_gradient(
    model: Model, size: float, slope: float, psi2: float, atoms: tuple[FloatArray, FloatArray, FloatArray]
) -> float:
    """A bound of the sub-Gaussian norm of ∇(aσ) over what trains, at atoms of these |a|, σ(b) and |w|.

    Its parts are σ, aσ' and aσ'x; a number c has the norm |c|/√log 2, and |σ(z)| ≤ |σ(b)| + sup|σ'|·|⟨w, x⟩|.
    """
    a, at_bias, norms = atoms
    number, trained = 1 / math.sqrt(math.log(2)), model.network.trained
    parts = slope * a * (psi2 + (number if "b" in trained else 0.0))
    if "a" in trained:
        parts = parts + np.minimum(size * number, np.abs(at_bias) * number + slope * norms * psi2)
    return float(parts.max())


def _inputs(model: Model, d: int) -> tuple[str, float]:
    """Sub-Gaussian norm of ⟨u, x⟩ over unit vectors u: √(8/3) of the standard deviation, or sup|x|/√log 2."""
    parts = model.data._parts()
    if parts is not None:
        roots = [float(np.linalg.norm(part.root(np.eye(d)), 2)) for part in parts]
        means = [0.0 if part.mean is None else float(np.linalg.norm(part.mean)) for part in parts]
        psi2 = max(
            math.sqrt(8 / 3) * root + mean / math.sqrt(math.log(2))
            for root, mean in zip(roots, means, strict=True)
        )
        shifted = f", |means| ≤ {max(means):.4g}" if any(means) else ""
        return f"Gaussian parts, ‖Σ‖ ≤ {max(roots) ** 2:.4g}{shifted}, ‖x‖_ψ2 ≤ {psi2:.4g}", psi2
    nodes = model.data._node_sampler
    if nodes is None:
        return "not known", math.nan
    X, y = nodes.draw(0, 0, nodes.size)
    reach = float(np.linalg.norm(X, axis=1).max())
    psi2 = reach / math.sqrt(math.log(2))
    return f"finite: sup|x| = {reach:.4g}, ‖x‖_ψ2 ≤ {psi2:.4g}, sup|y| = {np.abs(y).max():.4g}", psi2


def _of_potentials(
    model: Model,
    points: FloatArray,
    weights: FloatArray,
    evaluator: Evaluator,
    generator: np.random.Generator,
) -> dict[str, str]:
    """Sizes and Lipschitz constants of ∇V and ∇₁U, searched at the atoms of most mass."""
    network = model.network
    moving: FloatArray = (model._entry_speeds > 0).astype(np.float64)
    order = np.argsort(-weights, kind="stable")[:_ATOMS]
    theta, nothing = points[order], np.zeros(1)

    def pull(rows: FloatArray) -> FloatArray:  # ∇V: the field of a measure without mass
        return evaluator.grad_psi(rows, theta[:1], nothing) * moving

    def push(rows: FloatArray, other: FloatArray) -> FloatArray:
        return evaluator.grad_psi(rows, other, np.ones(1)) * moving - pull(rows)

    where = f"search at {len(theta)} atoms; between them nothing is known"
    kinks = bool(network.activation.kinks) and isinstance(evaluator, Nodes)
    words = {"∇V": f"sup|∇V| = {_largest(pull(theta)):.4g}", "∇U": ""}
    others = [theta[j : j + 1] for j in range(min(_FIELDS, len(theta)))]
    words["∇U"] = f"sup|∇₁U| = {max(_largest(push(theta, other)) for other in others):.4g}"
    if kinks:
        return {
            name: f"{said}; not Lipschitz: kinks on finite data ({where})" for name, said in words.items()
        }
    steep = _steepest(pull, theta, moving, generator)
    bent = max(_steepest(partial(push, other=other), theta, moving, generator) for other in others)
    return {
        "∇V": f"{words['∇V']}, Lipschitz {steep:.4g} ({where})",
        "∇U": f"{words['∇U']}, Lipschitz {bent:.4g} in the first argument ({where})",
    }


def _largest(rows: FloatArray) -> float:
    return float(np.linalg.norm(rows, axis=1).max())


def _steepest(gradient: Map, theta: FloatArray, moving: FloatArray, generator: np.random.Generator) -> float:
    """The largest |derivative of the gradient| at the rows, by the power method on central differences."""
    v = generator.normal(size=theta.shape) * moving
    e = _STEP * (1 + np.linalg.norm(theta, axis=1))[:, None]
    size = np.zeros((len(theta), 1))
    for _ in range(_TURNS):
        norm = np.linalg.norm(v, axis=1)[:, None]
        v = np.divide(v, norm, out=np.zeros_like(v), where=norm > 0)
        v = (gradient(theta + e * v) - gradient(theta - e * v)) / (2 * e)
        size = np.linalg.norm(v, axis=1)[:, None]
    return float(size.max())
