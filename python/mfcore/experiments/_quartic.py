"""Targets, kernels and the least risks of `quartic_sphere`: even polynomials of degree 4 on the sphere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from scipy import optimize

from .. import activations, data, init
from .._base.check import FloatArray
from ..model import Model
from ..network import Network
from ..theory._regression import regression_risk
from ..theory._spectrum import Spectrum, harmonics

DEGREES = (0, 2, 4)
GAMMA2, RATIO = 0.3, 2.0  # γ₂ and γ₄/γ₂² of the networks
RIDGES = 10.0 ** np.arange(-6, 1)


def legendre(d: int, k: int) -> FloatArray:
    """Coefficients in u = cos of the Legendre polynomial of degree k in dimension d, 1 at u = 1."""
    last, now = np.array([1.0]), np.array([0.0, 1.0])
    if k == 0:
        return last
    for j in range(1, k):
        last, now = (
            now,
            ((2 * j + d - 2) * polynomial.polymulx(now) - j * np.append(last, [0, 0])) / (j + d - 2),
        )
    return np.asarray(now)


def polynomial_of(d: int, hat: tuple[float, float, float]) -> FloatArray:
    """Coefficients in z = √d·u of Σ ĥ_k √m_k P_k(u), orthonormal polynomials on the sphere of radius √d."""
    c = np.zeros(5)
    for h, k in zip(hat, DEGREES, strict=True):
        c[: k + 1] += h * math.sqrt(harmonics(d, k)) * legendre(d, k)
    return c / math.sqrt(d) ** np.arange(5)


def model(d: int, gamma2: float, gamma4: float) -> Model:
    """Neurons on the sphere with σ̂₀ = σ̂₂ = σ̂₄ = 1, and a target with ĥ = (1, γ₂, γ₄)."""
    link = polynomial_of(d, (1.0, gamma2, gamma4))
    return Model(
        data=data.MultiIndex(d, lambda z: polynomial.polyval(z, link), directions=1, inputs="sphere"),
        network=Network(activations.polynomial(polynomial_of(d, (1.0, 1.0, 1.0))), sphere=True),
        init=init.Sphere(1.0),
    )


def kernel_risk(d: int, n: int) -> float:
    """The excess risk of ridge regression on n samples with the kernel Σ P_k, the best of several ridges."""
    counts = np.array([harmonics(d, k) for k in range(5)])
    values = np.array([1 / counts[k] if k in DEGREES else 0.0 for k in range(5)])
    spectrum = Spectrum(eigenvalues=values, multiplicities=counts, tail=0.0)
    power = [0.0, 0.0, GAMMA2**2, 0.0, (RATIO * GAMMA2**2) ** 2]
    return min(float(regression_risk(spectrum, power, samples=n, ridge=ridge).risk) for ridge in RIDGES)


def _at(d: int, s: float) -> FloatArray:
    """(P₂(s), P₄(s)), what neurons with cosine s give."""
    return np.array([float(polynomial.polyval(s, legendre(d, k))) for k in (2, 4)])


def least(d: int, gamma2: float, gamma4: float) -> float:
    """The least squared distance of (γ₂, γ₄) to E (P₂(s), P₄(s)) over laws of s.

    These means fill what lies between the curve s ↦ (P₂, P₄), below, and its chord from s = 0 to 1, above.
    """
    goal, start, end = np.array([gamma2, gamma4]), _at(d, 0.0), _at(d, 1.0)
    along = end - start
    share = float(np.clip((goal - start) @ along / (along @ along), 0.0, 1.0))
    if gamma4 > top(d, gamma2):
        return float(((goal - start - share * along) ** 2).sum())
    if gamma4 >= border(d, gamma2) * gamma2**2:
        return 0.0
    options: Any = {"xatol": 1e-12}
    found = optimize.minimize_scalar(
        lambda s: float(((goal - _at(d, s)) ** 2).sum()), bounds=(0.0, 1.0), method="bounded", options=options
    )
    return float(found.fun)


def border(d: int, gamma2: float) -> float:
    """The least γ₄/γ₂² that some neurons fit: that of neurons with one cosine."""
    s = optimize.brentq(lambda s: float(_at(d, s)[0]) - gamma2, 0.0, 1.0)
    return float(_at(d, s)[1]) / gamma2**2


def top(d: int, gamma2: float) -> float:
    """The largest γ₄ that some neurons fit: that of neurons with cosines 0 and 1."""
    start, along = _at(d, 0.0), _at(d, 1.0) - _at(d, 0.0)
    return float(start[1] + (gamma2 - start[0]) / along[0] * along[1])
