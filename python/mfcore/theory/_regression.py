"""The risk of ridge regression with a kernel of the angle, predicted from its eigenvalues (eq. (11.12))."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt
import scipy

from .._base import check
from .._base.check import FloatArray
from ._spectrum import Spectrum

R = TypeVar("R", covariant=True)  # a number, or an array of them

_NOISE = 1e-9  # of eigenvalues times √m_k, relative to the trace: kernels are good to 1e-10


@dataclass(frozen=True)
class RegressionRisk(Generic[R]):
    """Risks of ridge regression with n samples, predicted: its deterministic equivalent, exact as d → ∞.

    Attributes:
        risk: Excess risk E(f̂ − f)² on labels without noise; an array if `samples` was one.
        train: Mean square error on the samples, noise included.
        effective_ridge: κ, below which eigenvalues are not learned.

    Examples:
        >>> from mfcore import theory
        >>> spectrum = theory.zonal_spectrum(lambda u: 1 + u, 10, degree=1)
        >>> found = theory.regression_risk(spectrum, [0.0, 1.0], samples=22, ridge=0.0, noise=1.0)
        >>> round(found.risk, 12)  # 11 parameters, 22 samples: noise · 11/(22 − 11)
        1.0
    """

    risk: R
    train: R
    effective_ridge: R


@overload
def regression_risk(
    spectrum: Spectrum, power: npt.ArrayLike, *, samples: float, ridge: float = 0.0, noise: float = 0.0
) -> RegressionRisk[float]: ...


@overload
def regression_risk(
    spectrum: Spectrum,
    power: npt.ArrayLike,
    *,
    samples: Sequence[float] | np.ndarray,
    ridge: float = 0.0,
    noise: float = 0.0,
) -> RegressionRisk[FloatArray]: ...


def regression_risk(
    spectrum: Spectrum,
    power: npt.ArrayLike,
    *,
    samples: npt.ArrayLike,
    ridge: float = 0.0,
    noise: float = 0.0,
) -> RegressionRisk[Any]:
    """Predict the risk of kernel ridge regression f̂ = K(·, X)(K + ridge·I)⁻¹y in high dimension.

    The effective ridge κ solves n = Σ_k m_kλ_k/(λ_k + κ) + (ridge + tail)/κ, and

        excess risk = [Σ_k c_k²(κ/(λ_k + κ))² + τ²]/(1 − n⁻¹Σ_k m_k(λ_k/(λ_k + κ))²) − τ²,

    the deterministic equivalent of the risk for inputs that are random. Degrees beyond the last count as
    ridge, and the target has none of them. The error on the samples is (ridge/nκ)²(excess risk + τ²).

    Args:
        spectrum: Of a positive kernel, by `zonal_spectrum`, or made by hand. Negative eigenvalues down to
            −10⁻⁹ of the trace over √m_k, which rounding and quadrature leave, count as 0, and so does a tail
            down to −10⁻⁹ of the trace times Σ√m_k.
        power: c_k², the squared norm of the target in degree k; degrees left out have none.
        samples: n, or several.
        ridge: Added to the diagonal of the kernel matrix.
        noise: τ², the variance of the noise of labels.

    Raises:
        ValueError: The kernel is not positive: an eigenvalue, or the tail, is below that.

    Examples:
        >>> from mfcore import theory
        >>> spectrum = theory.zonal_spectrum(lambda u: 1 + u + u**2, 20, degree=2)
        >>> few, many = theory.regression_risk(spectrum, [0, 1, 1], samples=[60, 600], noise=0.1).risk
        >>> bool(few > many)
        True
    """
    check.instance(spectrum, "spectrum", Spectrum, "a Spectrum")
    _require_positive(spectrum)
    ridge = check.number(ridge, "ridge", at_least=0)
    noise = check.number(noise, "noise", at_least=0)
    weights = check.array(power, "power", shape=(None,))
    if len(weights) > len(spectrum.eigenvalues):
        raise ValueError(
            f"power must have at most {len(spectrum.eigenvalues)} degrees, those of spectrum, "
            f"got {len(weights)}"
        )
    if (weights < 0).any():
        raise ValueError(f"power must be >= 0, got {weights.min()}")
    weights = np.pad(weights, (0, len(spectrum.eigenvalues) - len(weights)))
    wanted = check.array(samples, "samples")
    if not (wanted >= 1).all():
        raise ValueError(f"samples must be >= 1, got {wanted.min()}")
    found = np.array([_risk(spectrum, weights, float(n), ridge, noise) for n in wanted.ravel()])
    if wanted.ndim == 0:
        return RegressionRisk(*map(float, found[0]))
    return RegressionRisk(*(column.reshape(wanted.shape) for column in found.T))


def _require_positive(spectrum: Spectrum) -> None:
    """Refuse a kernel with a negative eigenvalue that is not rounding."""
    values, roots = spectrum.eigenvalues, np.sqrt(spectrum.multiplicities)
    allowed = _NOISE * (float(spectrum.multiplicities @ np.abs(values)) + abs(spectrum.tail))
    if (values * roots < -allowed).any():
        k = int(np.argmin(values * roots))
        raise ValueError(
            "spectrum must be of a positive kernel, with eigenvalues >= 0 but for rounding, got "
            f"{values[k]:g} in degree {k}"
        )
    if spectrum.tail < -allowed * float(roots.sum()):
        raise ValueError(
            "spectrum must be of a positive kernel, whose eigenvalues beyond the last degree have a sum >= 0 "
            f"but for rounding, got tail = {spectrum.tail:g}"
        )


def _risk(
    spectrum: Spectrum, power: FloatArray, n: float, ridge: float, noise: float
) -> tuple[float, float, float]:
    """Excess risk, error on the samples, and κ, for n samples."""
    eigenvalues = np.maximum(spectrum.eigenvalues, 0.0)  # those below 0 are rounding
    count, beyond = spectrum.multiplicities, ridge + max(spectrum.tail, 0.0)
    dimension = float(count[eigenvalues > 0].sum())
    if n > dimension and beyond == 0:  # more samples than dimensions: they determine all
        kappa, kept = 0.0, (eigenvalues > 0).astype(float)
    else:
        largest = float(count @ eigenvalues) + beyond  # n κ is at most the trace
        if largest == 0:
            return float(power.sum()), float(power.sum()) + noise, 0.0

        def surplus(log_kappa: float) -> float:
            kappa = math.exp(log_kappa)
            return float(count @ (eigenvalues / (eigenvalues + kappa))) + beyond / kappa - n

        high = math.log(largest / n)
        low = high - 1.0
        while surplus(low) < 0 and low > high - 700:
            low -= 2 * (high - low)
        kappa = math.exp(scipy.optimize.brentq(surplus, low, high + 1e-9, xtol=1e-14, rtol=1e-14))
        kept = eigenvalues / (eigenvalues + kappa)
    spread = 1 - float(count @ kept**2) / n
    if spread <= 0:  # as many samples as dimensions: the risk has its peak there
        return math.inf, 0.0, kappa
    total = (float(power @ (1 - kept) ** 2) + noise) / spread
    share = ridge / (n * kappa) if kappa > 0 else 1 - dimension / n
    train = share**2 * total if kappa > 0 else share * (float(power @ (1 - kept) ** 2) + noise)
    return total - noise, train, kappa
