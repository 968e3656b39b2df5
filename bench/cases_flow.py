"""Population dynamics of finite networks: a velocity from held samples, and from closed-form pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mfcore as mf
import numpy as np
from scipy.special import ndtr, owens_t

from .cases_expectation import gradient_contenders, tanh_problem
from .harness import Case, Prepared


def velocity(quick: bool) -> Iterator[Case]:
    """One right-hand side of particle dynamics, a and w trained, over a fixed set of samples."""
    model, theta, x, y = tanh_problem(quick, "trained")
    n, d = theta.shape[0], theta.shape[1] - 1

    def ours() -> Callable[[], np.ndarray]:
        stepper = mf.steppers.Flow(model, theta.copy(), expectation=mf.MonteCarlo(len(y), rng=0))
        return lambda: -stepper.velocity()

    yield Case(
        f"PD velocity, tanh, a and w, N={n}, d={d}, {len(y):,}",
        {"mfcore": Prepared(ours), **gradient_contenders(theta, x, y)},
        flops=4.0 * len(y) * n * d,
        bars={"numpy": 4.3, "jax": 3.0, "torch": 6.0},
        peak_bar=0.78,
    )


def pairs(quick: bool) -> Iterator[Case]:
    """The exact gradient of ReLU neurons under Gaussian inputs, N² pairs in closed form, memory O(N d)."""
    n, d = (100, 10) if quick else (4000, 50)
    teacher = np.eye(d)[:1]
    model = mf.Model(
        data=mf.data.Teacher(mf.Network(mf.activations.relu), teacher),
        network=mf.Network(mf.activations.relu),
    )
    w = np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d)

    def numpy(tile: int = 500) -> np.ndarray:
        """∇_w U = |v|/(2π)[sin θ·w/|w| + (π − θ)·v/|v|], tile by tile."""
        out = np.empty_like(w)
        for first in range(0, n, tile):
            rows = w[first : first + tile]
            out[first : first + tile] = _relu_pairs(rows, w) / n - _relu_pairs(rows, teacher)
        return out

    yield Case(
        f"exact ReLU pairs, N={n}, d={d}",
        {"mfcore": lambda: mf.grad_psi(model, w, w), "numpy": numpy},
        bars={"numpy": 6.0},
    )


def kinked_pairs(quick: bool) -> Iterator[Case]:
    """The exact gradient of neurons with knots, two Gaussian classes, against Owen's function in SciPy."""
    n, d = (60, 10) if quick else (1000, 40)
    knots, jumps = np.array([0.5, 1.5]), np.array([10.0, -10.0])
    sigma = mf.activations.piecewise_linear(knots=knots, values=[-2.5, 7.5])
    model = mf.Model(data=mf.data.IsotropicGaussians(d=d, delta=0.5), network=mf.Network(sigma))
    w = 0.8 * np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d)

    def numpy() -> np.ndarray:
        """½ Σ_± s ∇U(s w_i, s w_j), s = 1 ± ½, less the pull of the labels ±1."""
        out = np.zeros_like(w)
        for scale, label in ((1.5, 1.0), (0.5, -1.0)):
            v = scale * w
            size = np.linalg.norm(v, axis=1)
            density = np.exp(-((knots / size[:, None]) ** 2) / 2) / np.sqrt(2 * np.pi)
            pull = label * (density @ jumps / size)[:, None] * v
            out += 0.5 * scale * (_kinked_pairs(v, knots, jumps, -2.5) / n - pull)
        return out

    yield Case(
        f"exact pairs with two knots, N={n}, d={d}",
        {"mfcore": lambda: mf.grad_psi(model, w, w), "numpy": numpy},
        bars={"numpy": 80.0},
    )


def _kinked_pairs(w: np.ndarray, knots: np.ndarray, jumps: np.ndarray, offset: float) -> np.ndarray:
    """Σ_j ∇_w U(w_i, w_j) for σ(t) = offset + Σ_k jump_k (t − t_k)_+, x ~ N(0, I), by Stein's lemma.

    E[σ'σ'] is a sum of quadrant probabilities, two Owen's functions each, and E[σ''σ] of conditional means.
    """
    size = np.linalg.norm(w, axis=1)
    rho = np.clip(w @ w.T / np.outer(size, size), -1, 1)
    s = np.sqrt((1 - rho) * (1 + rho))
    np.fill_diagonal(s, 1.0)  # the diagonal is replaced below
    slopes, along = np.zeros_like(rho), np.zeros_like(rho)
    diagonal = np.zeros(len(w))
    for t1, jump1 in zip(knots, jumps, strict=True):
        h = (t1 / size)[:, None]
        f = np.exp(-h * h / 2) / np.sqrt(2 * np.pi)
        on_knot = np.full_like(rho, offset)
        for t2, jump2 in zip(knots, jumps, strict=True):
            k = (t2 / size)[None, :]
            k_of_h, h_of_k = (k - rho * h) / s, (h - rho * k) / s
            owen = owens_t(h, k_of_h / h) + owens_t(k, h_of_k / k)
            slopes += jump1 * jump2 * (0.5 * (ndtr(-h) + ndtr(-k)) - owen)
            density = np.exp(-k_of_h * k_of_h / 2) / np.sqrt(2 * np.pi)
            on_knot += jump2 * size * (s * density - k_of_h * s * ndtr(-k_of_h))
            diagonal += jump1 * jump2 * ndtr(-np.maximum(h[:, 0], k[0]))
        at_knot = offset + jumps @ np.maximum(t1 - knots, 0)
        np.fill_diagonal(on_knot, at_knot)
        along += jump1 * f * on_knot
    np.fill_diagonal(slopes, diagonal)
    return (along.sum(axis=1) / size)[:, None] * w + slopes @ w


def _relu_pairs(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Σ_j ∇_w U(w_i, v_j) for ReLU without bias, x ~ N(0, I)."""
    a, b = np.linalg.norm(w, axis=1), np.linalg.norm(v, axis=1)
    cosine = np.clip(w @ v.T / np.outer(a, b), -1, 1)
    angle = np.arccos(cosine)
    along = (np.sqrt(1 - cosine * cosine) @ b) / a
    return (along[:, None] * w + (np.pi - angle) @ v) / (2 * np.pi)


def teacher_atoms(quick: bool) -> Iterator[Case]:
    """∇Ψ of atoms of a ReLU teacher of three neurons in R^20 by eq. (5.15): what one step takes six times."""
    n, d = (60, 20) if quick else (300, 20)
    relu = mf.activations.relu
    data = mf.data.Teacher(mf.Network(relu), 3 * np.eye(3, d))
    reduced = mf.Model(data, mf.Network(relu, output="trained")).reduce()
    assert reduced.pairs is not None
    z = np.random.default_rng(0).uniform(0.2, 1.0, (n, 5))
    masses, count = np.full(n, 1 / n), reduced.pairs.cosines
    i = np.arange(1, count)
    jacobi = np.sqrt(i * (i + d - 6) / ((2 * i + d - 5) * (2 * i + d - 7)))  # d − 3 dimensions across
    u, vectors = np.linalg.eigh(np.diag(jacobi, 1) + np.diag(jacobi, -1))
    teacher = 3 * np.eye(3, 5)

    def numpy() -> np.ndarray:
        """Partners (s, r u, r √(1 − u²)) of every atom, cosine by cosine."""
        w = np.pad(z[:, 1:], ((0, 0), (0, 1)))
        value, slope = np.zeros(n), np.zeros((n, 5))
        for cosine, share in zip(u, vectors[0] ** 2, strict=True):
            partner = w.copy()
            partner[:, 3], partner[:, 4] = z[:, 4] * cosine, z[:, 4] * np.sqrt(1 - cosine**2)
            found, pull = _relu_sums(w, partner, share * z[:, 0] / n)
            value, slope = value + found, slope + pull
        found, pull = _relu_sums(w, teacher, np.full(3, 1 / 3))
        return np.column_stack([value - found, z[:, :1] * (slope - pull)[:, :4]])

    yield Case(
        f"atoms of a ReLU teacher, K=3, d={d}, {n} atoms, {count} cosines",
        {"mfcore": lambda: reduced.grad_psi(z, z, masses), "numpy": numpy},
        bars={"numpy": 3.0},
    )


def resting_particles(quick: bool) -> Iterator[Case]:
    """ReLU neurons with trained a, some of which rest at w = 0, against gradient descent in NumPy."""
    n, d, step = (10, 5, 1e-2) if quick else (50, 5, 1e-3)
    horizon = 1.0 if quick else 10.0
    relu = mf.activations.relu
    teacher = 3 * np.eye(3, d)
    init = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
    model = mf.Model(mf.data.Teacher(mf.Network(relu), teacher), mf.Network(relu, output="trained"), init)

    def ours() -> np.ndarray:
        run = mf.solve(model, mf.Particles(n), horizon=horizon, save_at=[0.0, horizon], rng=0)
        return np.asarray(run.risk[-1:])

    def numpy() -> np.ndarray:
        theta = mf.solve(
            model, mf.GD(n, step=step), horizon=step, save_at=[0.0, step], rng=0, keep="all"
        ).kept[0]
        a, w = theta[:, 0].copy(), theta[:, 1:].copy()
        for _ in range(round(horizon / step)):
            own, pull = _relu_sums(w, w, a / n)
            wanted, along = _relu_sums(w, teacher, np.full(3, 1 / 3))
            a, w = a - step * (own - wanted), w - step * a[:, None] * (pull - along)
        power = np.full(3, 1 / 3) @ _relu_sums(teacher, teacher, np.full(3, 1 / 3))[0]
        fit = _relu_sums(w, w, a / n)[0] - 2 * _relu_sums(w, teacher, np.full(3, 1 / 3))[0]
        return np.array([power + (a / n) @ fit])

    yield Case(
        f"ReLU particles to t = {horizon:g}, N={n}, d={d}",
        {"mfcore": ours, "numpy": numpy},
        bars={"numpy": 3.0},
        tolerance=1e-2,
    )


def _relu_sums(w: np.ndarray, v: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ_j c_j E[(⟨w_i, x⟩)_+ (⟨v_j, x⟩)_+] and its gradient in w_i, x ~ N(0, I)."""
    a, b = np.linalg.norm(w, axis=1), np.linalg.norm(v, axis=1)
    cosine = np.clip(w @ v.T / np.maximum(np.outer(a, b), 1e-300), -1, 1)
    sine, angle = np.sqrt(1 - cosine * cosine), np.pi - np.arccos(cosine)
    value = a * ((sine + angle * cosine) @ (c * b)) / (2 * np.pi)
    along = (sine @ (c * b)) / np.maximum(a, 1e-300)
    return value, (along[:, None] * w + angle @ (c[:, None] * v)) / (2 * np.pi)


CASES = (velocity, pairs, kinked_pairs, teacher_atoms, resting_particles)
