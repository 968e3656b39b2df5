"""The target and the kernels of `kernel_staircase`, and what theory says of both."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from .. import activations, data, init, theory
from .._base.check import FloatArray
from ..model import Model
from ..network import Network

NOISE = 0.05  # τ²
RIDGE = 1e-3
LINK = [0.0, *[3**-0.5] * 3]  # in orthonormal Hermite polynomials
NETWORK = Network(activations.relu, output="trained", bias="trained")
START = init.Product(a=init.Constant(1.0), b=init.Normal(0.0, 0.5), w=init.Radial(1.0))
DEGREE = 8  # the last one that counts by itself (at d = 10⁶: 4, by rounding); others count as ridge
FAR = 10**6  # the dimension in which plateaus are read


def model_of(d: int) -> Model:
    """ReLU neurons whose three blocks have kernels of one size: w at the rate 1/d, since |x|² = d."""
    return Model(law(d), NETWORK, START, rates={"w": 1.0 / d})


def law(d: int, noise: float = 0.0) -> data.MultiIndex:
    """The target, with a standard deviation of noise."""
    return data.MultiIndex(d, LINK, directions=1, inputs="sphere", noise=noise)


@cache
def power(d: int) -> FloatArray:
    """‖P_k f‖² for k = 0 … 3 (eq. (11.11))."""

    def link(u: FloatArray) -> FloatArray:
        z = math.sqrt(d) * u
        hermite = (z, (z**2 - 1) / math.sqrt(2), (z**3 - 3 * z) / math.sqrt(6))
        return np.asarray(LINK[1] * sum(hermite))

    found = theory.zonal_spectrum(link, d, degree=3)
    return np.asarray(found.multiplicities * found.eigenvalues**2)


@cache
def spectrum(d: int, blocks: str | None) -> theory.Spectrum:
    """Return the spectrum of the kernel of infinitely many neurons, one function of the cosine for all d."""

    def kernel(u: FloatArray) -> FloatArray:
        others = math.sqrt(2) * np.stack([u, np.sqrt((1 - u) * (1 + u))], axis=1)
        first = math.sqrt(2) * np.eye(1, 2)
        return np.asarray(theory.tangent_kernel(model_of(2), first, others, blocks=blocks)[0])

    return theory.zonal_spectrum(kernel, d, degree=DEGREE if d < FAR else 4)


def predicted(d: int, n: FloatArray, blocks: str | None) -> FloatArray:
    """The deterministic equivalent of the excess risk (eq. (11.12))."""
    found = theory.regression_risk(spectrum(d, blocks), power(d), samples=n, ridge=RIDGE, noise=NOISE)
    return np.asarray(found.risk)
