"""The neurons of `time_scales` at d = ∞ without the library: their closed equations in a and s."""

from __future__ import annotations

import math

import numpy as np
import scipy

from .._base.check import FloatArray

PHI = (1.0, -1.0, 2 / 3)  # of the target in orthonormal Hermite polynomials, as published


def closed_system(epsilon: float, a: FloatArray, times: FloatArray) -> FloatArray:
    """R/2 at some times, by the equations of a and s = ⟨w, e⟩ for zonal kernels, from s = 0; by LSODA.

    εȧ_i = V(s_i) − (1/m)Σ a_j U(s_i s_j) and ṡ_i = a_i(1 − s_i²)(V'(s_i) − (1/m)Σ a_j s_j U'(s_i s_j)), with
    U(s) = (√(1 − s²) + s(π − arccos s))/2π and V = Σ φ_k σ_k s^k.
    """
    sigma = np.array([1 / math.sqrt(2 * math.pi), 0.5, 1 / (2 * math.sqrt(math.pi))])
    V = np.polynomial.Polynomial(np.array(PHI) * sigma)
    m = len(a)

    def kernel(s: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = np.clip(np.outer(s, s), -1.0, 1.0)
        angle = math.pi - np.arccos(u)
        return (np.sqrt(1 - u * u) + u * angle) / (2 * math.pi), angle / (2 * math.pi)

    def force(_: float, z: FloatArray) -> FloatArray:
        a, s = z[:m], z[m:]
        U, slope = kernel(s)
        da = (V(s) - U @ a / m) / epsilon
        return np.concatenate([da, a * (1 - s * s) * (V.deriv()(s) - slope @ (a * s) / m)])

    start = np.concatenate([a, np.zeros(m)])
    found = scipy.integrate.solve_ivp(
        force, (0.0, times[-1]), start, "LSODA", t_eval=times, rtol=1e-9, atol=1e-11
    )
    square = float(np.square(PHI).sum())
    values = [
        0.5 * square - np.mean(z[:m] * V(z[m:])) + 0.5 * z[:m] @ kernel(z[m:])[0] @ z[:m] / m**2
        for z in found.y.T
    ]
    return np.array(values)
