"""The dimension-free limit of `merged_staircase` without the library: eq. (9) of the publication."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import integrate, special

from .._base.check import FloatArray

SHIFT, NODES = 0.5, 16
_Z = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
_TARGET = np.cumprod(_Z, axis=1).sum(axis=1)  # z₁ + z₁z₂ + z₁z₂z₃ + z₁z₂z₃z₄
_G, _MASS = np.polynomial.hermite_e.hermegauss(NODES)


def risk_at(time: float, atoms: int) -> float:
    """R at a time with the printed constants: a ~ U[−1, 1], equal speeds, s = 1 and u = 0 at the start.

    ȧ = E eσ, u̇ = a E eσ'z, ṡ = a E eσ'G, with e = h − ∫a σ(⟨u, z⟩ + sG − ½); all z, Gauss nodes of G and a.
    """
    a, mass = np.polynomial.legendre.leggauss(atoms)
    mass, normal = mass / 2, _MASS / _MASS.sum()

    def parts(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        a, u, s = y[:atoms], y[atoms:-atoms].reshape(atoms, 4), y[-atoms:]
        value = special.expit((u @ _Z.T)[..., None] + s[:, None, None] * _G - SHIFT)  # (atoms, z, G)
        mean = value @ normal
        return a, value, mean, _TARGET - (mass * a) @ mean

    def force(_: float, y: FloatArray) -> FloatArray:
        a, value, mean, e = parts(y)
        slope = value * (1 - value)
        along = slope @ normal * e / len(_Z)
        across = slope @ (normal * _G) @ e / len(_Z)
        return np.concatenate([mean @ e / len(_Z), (a[:, None] * (along @ _Z)).ravel(), a * across])

    start = np.concatenate([a, np.zeros(4 * atoms), np.ones(atoms)])
    found = integrate.solve_ivp(force, (0.0, time), start, "DOP853", rtol=1e-8, atol=1e-10)
    return float(np.mean(parts(found.y[:, -1])[3] ** 2))
