"""Kernels of the angle alone: their eigenvalues by degree (eq. (11.11)).

On the sphere of radius √d in R^d, or on the hypercube {−1, 1}^d, a kernel k(x, x') = h(⟨x, x'⟩/d) has one
eigenvalue λ_k per degree k, with the harmonic polynomials (or monomials) of that degree as eigenfunctions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._base import check
from .._base.check import FloatArray
from ..init import Points
from ..lazy._kernel import tangent_kernel
from ..model import Model

_PANELS = 256  # of the angle; the densities are smooth there
_REACH = 14.0  # standard deviations of the cosine, beyond which nothing is left
_NODES = np.polynomial.legendre.leggauss(16)

_MOST_DEGREE = 10_000  # far beyond what is not rounding


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a kernel of the angle, by degree.

    Attributes:
        eigenvalues: λ_0, λ_1, …, λ_K.
        multiplicities: m_k, the dimension of the space of degree k.
        tail: h(1) − Σ_k λ_k m_k, what the degrees beyond K have together.

    Examples:
        >>> from mfcore import theory
        >>> theory.zonal_spectrum(lambda u: 1 + u, 10, degree=2)
        Spectrum(eigenvalues=[1, 0.1, 0], multiplicities=[1, 10, 54], tail=0)
    """

    eigenvalues: FloatArray
    multiplicities: FloatArray
    tail: float

    def __repr__(self) -> str:
        floor = 1e-15 * float(np.abs(self.eigenvalues * self.multiplicities).sum() + abs(self.tail))
        shown = [0.0 if abs(x) <= floor else x for x in self.eigenvalues]
        tail = 0.0 if abs(self.tail) <= 8 * floor else self.tail
        return (
            f"Spectrum(eigenvalues=[{', '.join(f'{x:.6g}' for x in shown)}], "
            f"multiplicities=[{', '.join(f'{m:.6g}' for m in self.multiplicities)}], tail={tail:.6g})"
        )


def zonal_spectrum(
    kernel: Callable[[FloatArray], npt.ArrayLike] | Model,
    d: int,
    *,
    degree: int,
    inputs: str = "sphere",
    blocks: Sequence[str] | None = None,
) -> Spectrum:
    """Compute the eigenvalues, by degree, of a kernel k(x, x') = h(⟨x, x'⟩/d) on the sphere or the hypercube.

    λ_k = E h(u)P_k(u), u = ⟨x, x'⟩/d for two independent inputs, P_k the orthogonal polynomial of degree k
    (Legendre's in dimension d, or Krawtchouk's) with P_k(1) = 1; and h(1) = Σ_k λ_k m_k.

    Args:
        kernel: h, a vectorised function of the cosine in [−1, 1]; of an `mf.Model` the tangent kernel of
            infinitely many neurons.
        d: Dimension; at least 2.
        degree: The largest degree K wanted; on the hypercube at most d.
        inputs: ``"sphere"`` or ``"hypercube"``.
        blocks: Of a model, the trained blocks that count, as in `tangent_kernel`; ``"a"``: random features.

    Returns:
        Eigenvalues and multiplicities of degrees 0 … K, and the trace beyond.

    Raises:
        ValueError: If the kernel does not return one finite number for each cosine.

    Examples:
        >>> from mfcore import theory
        >>> theory.zonal_spectrum(lambda u: u**2, 5, degree=3)
        Spectrum(eigenvalues=[0.2, 0, 0.0571429, 0], multiplicities=[1, 5, 14, 30], tail=0)
    """
    d = check.integer(d, "d", at_least=2)
    inputs = check.choice(inputs, "inputs", ("sphere", "hypercube"))
    degree = check.integer(degree, "degree", at_least=0, at_most=_MOST_DEGREE if inputs == "sphere" else d)
    if isinstance(kernel, Model):
        kernel = _of_model(kernel, d, blocks)
    elif blocks is not None:
        raise ValueError(f"blocks must be None for a function of the cosine, got {blocks!r}")
    u, p = _sphere_rule(d) if inputs == "sphere" else _cube_rule(d)
    values, at_one = np.split(_checked(kernel, np.append(u, 1.0)), [len(u)])
    weighted = p * values
    counts = _counts(d, degree, inputs)
    found = np.array([weighted @ row for row in _polynomials(u, d, degree, inputs)])
    return Spectrum(found, counts, float(at_one[0] - found @ counts))


def _of_model(model: Model, d: int, blocks: Sequence[str] | None) -> Callable[[FloatArray], FloatArray]:
    """The tangent kernel of infinitely many neurons as a function of the cosine of inputs of norm √d."""
    if model.d != d:
        raise ValueError(f"d must be {model.d:g}, that of the model, got {d}")
    if model.init is None or isinstance(model.init, Points):
        raise ValueError(
            f"kernel must have an initial law whose w has no preferred direction, got init={model.init!r}"
        )

    def of_cosine(u: FloatArray) -> FloatArray:
        first, others = np.zeros((1, d)), np.zeros((len(u), d))
        first[0, 0] = 1.0
        others[:, 0], others[:, 1] = u, np.sqrt((1 - u) * (1 + u))
        rows = math.sqrt(d) * first, math.sqrt(d) * others
        return np.asarray(tangent_kernel(model, *rows, blocks=blocks)[0])

    return of_cosine


def _checked(kernel: Callable[[FloatArray], npt.ArrayLike], u: FloatArray) -> FloatArray:
    if not callable(kernel):
        raise TypeError(f"kernel must be a function of the cosine or an mf.Model, got {check.shown(kernel)}")
    values = np.asarray(kernel(u.copy()), dtype=np.float64)
    if values.shape != u.shape:
        raise ValueError(f"kernel must map shape {u.shape} to {u.shape}, got {values.shape}")
    if not np.isfinite(values).all():
        at = u[np.argmin(np.isfinite(values))]
        raise ValueError(f"kernel must be finite on [−1, 1], got {kernel(np.array([at]))} at {at}")
    return values


def _sphere_rule(d: int) -> tuple[FloatArray, FloatArray]:
    """Cosines u of two random points and weights, by Gauss panels of the angle φ, of density sin^{d−2}φ."""
    reach = min(math.pi / 2, _REACH / math.sqrt(d))
    edges = math.pi / 2 + np.linspace(-reach, reach, _PANELS + 1)
    half = np.diff(edges)[:, None] / 2
    angle = (edges[:-1, None] + half * (1 + _NODES[0])).ravel()
    log_density = (d - 2) * np.log(np.sin(angle))
    weights = (half * _NODES[1]).ravel() * np.exp(log_density - log_density.max())
    return np.cos(angle), weights / weights.sum()


def _cube_rule(d: int) -> tuple[FloatArray, FloatArray]:
    """Cosines 1 − 2j/d of two random corners that differ in j coordinates, and their probabilities."""
    j = np.arange(d + 1)
    logs = np.array([math.lgamma(d + 1) - math.lgamma(i + 1) - math.lgamma(d - i + 1) for i in j])
    weights = np.exp(logs - logs.max())
    return 1 - 2 * j / d, weights / weights.sum()


def _counts(d: int, degree: int, inputs: str) -> FloatArray:
    """The multiplicities of degrees 0 … `degree`."""
    found: list[float] = []
    for k in range(degree + 1):
        try:
            found.append(harmonics(d, k) if inputs == "sphere" else float(math.comb(d, k)))
        except OverflowError:
            raise ValueError(
                f"degree must be < {k} for d = {d}, as no float holds the multiplicities from there on, "
                f"got {degree}"
            ) from None
    return np.array(found)


def harmonics(d: int, k: int) -> float:
    """The number of spherical harmonics of degree k in dimension d."""
    return float(math.comb(d + k - 1, k) - (math.comb(d + k - 3, k - 2) if k >= 2 else 0))


def _polynomials(u: FloatArray, d: int, degree: int, inputs: str) -> list[FloatArray]:
    """P_0(u) … P_degree(u) with P_k(1) = 1: Legendre's in dimension d, or Krawtchouk's on {−1, 1}^d."""
    rows = [np.ones_like(u), u]
    for k in range(1, degree):
        if inputs == "sphere":
            rows.append(((2 * k + d - 2) * u * rows[k] - k * rows[k - 1]) / (k + d - 2))
        else:
            rows.append((d * u * rows[k] - k * rows[k - 1]) / (d - k))
    return rows[: degree + 1]
