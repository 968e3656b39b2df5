"""E σ'(g)σ'(g') over pairs of correlated Gaussians, parallel ones included.

The core's pairs are made for gradients, in which the slopes of exactly parallel neurons are part of
another term for erf and for wide tanh, sigmoid and softplus: those are here.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._base.check import FloatArray
from ..activations import Activation

_WIDE = 15.9  # |w| beyond which the core takes means of closed forms: 16
_BLURRED = ("tanh", "sigmoid", "softplus")
_PARALLEL = 1e-12  # sines below are those of parallel rows
_MOST = 1 << 22  # nodes of one integral
_REACH, _STEP = 9.0, 0.1  # the Gaussian's tail is 1e-18; steps of σ's argument: error e^{−π²/0.1}


def pair_slopes(
    sigma: Activation, has_b: bool, rows: FloatArray, columns: FloatArray, threads: int
) -> FloatArray:
    """E σ'(b + ⟨w, x⟩)σ'(b' + ⟨w', x⟩) under x ~ N(0, I), for rows [b,] w."""
    if sigma.name == "erf":
        return _of_erf(has_b, rows, columns)
    core = _core.Network(sigma._core, output="one", bias="trained" if has_b else "none")
    out = _core.pair_slopes(core, rows, columns, threads)
    if sigma.name in _BLURRED:
        _correct_parallel(sigma, has_b, rows, columns, out)
    return out


def _of_erf(has_b: bool, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """(4/π) E exp(−g² − g'²): a Gaussian integral, by Σ = I + 2 Cov(g, g')."""
    shift, w = _split(has_b, rows)
    other_shift, other = _split(has_b, columns)
    one = 1 + 2 * np.sum(w**2, axis=1)[:, None]
    two = 1 + 2 * np.sum(other**2, axis=1)[None]
    inner = 2 * (w @ other.T)
    det = one * two - inner**2
    m, k = shift[:, None], other_shift[None]
    exponent = (two * m**2 - 2 * inner * m * k + one * k**2) / det
    return np.asarray(4 / math.pi * np.exp(-exponent) / np.sqrt(det))


def _correct_parallel(
    sigma: Activation, has_b: bool, rows: FloatArray, columns: FloatArray, out: FloatArray
) -> None:
    """Put in the slopes of wide parallel pairs, integrals over one number."""
    shift, w = _split(has_b, rows)
    other_shift, other = _split(has_b, columns)
    size, other_size = np.linalg.norm(w, axis=1), np.linalg.norm(other, axis=1)
    wide = np.flatnonzero(other_size > _WIDE)
    units = other[wide] / other_size[wide, None]
    for i in np.flatnonzero(size > _WIDE):
        unit = w[i] / size[i]
        apart, along = np.linalg.norm(units - unit, axis=1), np.linalg.norm(units + unit, axis=1)
        near = np.minimum(apart, along) <= _PARALLEL
        for j, sign in zip(wide[near], np.where(apart < along, 1.0, -1.0)[near], strict=True):
            step = _STEP / max(size[i], other_size[j])
            if 2 * _REACH / step > _MOST:
                raise ValueError(f"X must have standardised norms below 2e4 for {sigma!r}, got {size[i]:g}")
            g = np.arange(-_REACH, _REACH, step)
            one = sigma.derivative(shift[i] + size[i] * g)
            two = sigma.derivative(other_shift[j] + sign * other_size[j] * g)
            out[i, j] = step / math.sqrt(2 * math.pi) * float((one * two) @ np.exp(-g * g / 2))


def _split(has_b: bool, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    return (rows[:, 0], rows[:, 1:]) if has_b else (np.zeros(len(rows)), rows)
