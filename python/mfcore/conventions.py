"""Convert the update rules of publications to the conventions of this library (eq. (1.13)):
`mfcore.conventions`.

Here neurons follow θ ← θ + h[(y − f)∇σ* − λθ] + √(2h/β) g on the clock t = kh; 1/β is the temperature. The
literature multiplies drift, decay and noise by other constants (eq. (1.13)):

    θ ← (1 − c_r λ's)θ + c_d s (y − f)∇σ* + √(c_n s/β') g    ⇒    h = c_d s, λ = c_r λ'/c_d, β = 2 c_d β'/c_n.

Networks written as a sum with another factor than 1/N are of another scale, and their neurons have another
clock (eq. (11.9)): `ntk` and `cob19`.

Several sources print a recursion and a PDE (or a Gibbs law) of different temperatures. There `noise` chooses
which of the two is meant: what was run (``"recursion"``) or what was proved (``"pde"``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ._base import check

__all__ = [
    "Canonical",
    "cargese",
    "cob19",
    "general",
    "gradient_descent",
    "ito",
    "jko",
    "mmm19",
    "mmn18",
    "ntk",
    "nws22",
    "simons",
    "variance_rule",
]

NOISES = ("recursion", "pde")
LOSSES = ("half-square", "square")


@dataclass(frozen=True)
class Canonical:
    """A published rule in the conventions of this library: step, clock, ridge, temperature and scale.

    Attributes:
        step: h, for methods; None where the rule has no step.
        clock: Units of canonical time per unit of the source's time, which counts its steps s: t = clock·Σs.
        ridge: λ, for `Model`.
        temperature: 1/β, for `Model`; 0 without noise.
        scale: α, for `Network`: f = αN⁻¹Σσ*; 1 for means.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.mmn18(step=1e-6)
        Canonical(step=2e-06, clock=2.0, ridge=0.0, temperature=0.0, scale=1.0)
    """

    step: float | None
    clock: float = 1.0
    ridge: float = 0.0
    temperature: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be finite after conversion, got {value}")

    @property
    def beta(self) -> float:
        """β = 1/temperature, infinite without noise."""
        return 1.0 / self.temperature if self.temperature > 0 else math.inf


def general(
    step: float | None,
    *,
    drift: float = 1.0,
    decay: float = 1.0,
    noise: float = 2.0,
    temperature_inverse: float | None = None,
    ridge: float = 0.0,
) -> Canonical:
    """θ ← (1 − decay·λs)θ + drift·s(y − f)∇σ* + √(noise·s/β) g: any other rule.

    Args:
        step: s.
        drift: c_d, the factor of the gradient.
        decay: c_r, the factor of the weight decay.
        noise: c_n, the factor of the variance of the noise.
        temperature_inverse: β as the source means it; None for no noise.
        ridge: λ as the source means it.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.general(0.1, drift=2, decay=2, noise=2, temperature_inverse=10.0, ridge=0.5)
        Canonical(step=0.2, clock=2.0, ridge=0.5, temperature=0.05, scale=1.0)
    """
    drift = check.number(drift, "drift", above=0)
    decay = check.number(decay, "decay", at_least=0)
    noise = check.number(noise, "noise", at_least=0)
    ridge = check.number(ridge, "ridge", at_least=0)
    if temperature_inverse is None:
        beta = math.inf
    else:
        beta = check.number(temperature_inverse, "temperature_inverse", above=0, finite=False)
    return Canonical(
        step=None if step is None else drift * check.number(step, "step", above=0),
        clock=drift,
        ridge=decay * ridge / drift,
        temperature=noise / (2 * drift * beta),
    )


def mmn18(
    step: float, *, temperature_inverse: float | None = None, ridge: float = 0.0, noise: str = "recursion"
) -> Canonical:
    """Mei, Montanari, Nguyen (2018): θ ← (1 − 2λs)θ + 2s(y − f)∇σ* + √(2s/β) g.

    The recursion has the Gibbs law exp(−2βΨ_λ); the printed PDE 2ξ∇·(ρ∇Ψ_λ) + (2ξ/β)Δρ has exp(−βΨ_λ).

    Args:
        step: s_k = εξ(kε). The printed time Σs_k is half the canonical one.
        temperature_inverse: The printed β; None for no noise.
        ridge: The printed λ.
        noise: ``"recursion"`` (β doubles) or ``"pde"``.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.mmn18(1e-6, temperature_inverse=10.0, noise="pde").beta
        10.0
    """
    variance = 2.0 if check.choice(noise, "noise", NOISES) == "recursion" else 4.0
    beta = temperature_inverse
    return general(step, drift=2, decay=2, noise=variance, temperature_inverse=beta, ridge=ridge)


def mmm19(
    step: float,
    *,
    temperature: float = 0.0,
    dimension: int = 1,
    ridge: float = 0.0,
    noise: str = "recursion",
) -> Canonical:
    """Mei, Misiakiewicz, Montanari (2019): as `mmn18` with 1/β = τ/D, noise √(2sτ/D) g.

    Args:
        step: s_k.
        temperature: The printed τ.
        dimension: D, the length of a row.
        ridge: The printed λ.
        noise: ``"recursion"``, with which their SDE agrees, or ``"pde"``.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.mmm19(0.5, temperature=0.6, dimension=3).temperature
        0.1
    """
    tau = check.number(temperature, "temperature", at_least=0)
    dimension = check.count(dimension, "dimension")
    beta = dimension / tau if tau > 0 else None
    return mmn18(step, temperature_inverse=beta, ridge=ridge, noise=noise)


def cargese(step: float, *, temperature: float = 0.0, noise: str = "recursion") -> Canonical:
    """Montanari's Cargèse lecture (2018): θ ← θ + 2s(y − f)∇σ* + √(2Ts) g, s = ε/2, clock kε.

    Args:
        step: The printed ε = 2s: canonical already.
        temperature: The printed T.
        noise: ``"recursion"`` (canonical T/2), or ``"pde"`` for its PDE, free energy and Boltzmann law (T).

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.cargese(1e-3, temperature=0.2)
        Canonical(step=0.001, clock=1.0, ridge=0.0, temperature=0.1, scale=1.0)
    """
    temperature = check.number(temperature, "temperature", at_least=0)
    beta = 1 / temperature if temperature > 0 else None
    return simons(step, temperature_inverse=beta, noise=noise)


def simons(step: float, *, temperature_inverse: float | None = None, noise: str = "recursion") -> Canonical:
    """The Simons lecture: θ ← θ + ε(y − f)∇σ* + √(ε/β) g, F_β = R + β⁻¹∫ρ log ρ.

    The recursion minimises F_β = 2F, whose canonical inverse temperature is 2β; the printed PDE
    ∇·(ρ∇Ψ) + β⁻¹Δρ has β.

    Args:
        step: ε.
        temperature_inverse: The printed β; None for no noise.
        noise: ``"recursion"`` or ``"pde"``.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.simons(1e-3, temperature_inverse=5.0).beta
        10.0
    """
    variance = 1.0 if check.choice(noise, "noise", NOISES) == "recursion" else 2.0
    return general(step, noise=variance, temperature_inverse=temperature_inverse)


def variance_rule(
    step: float, *, temperature_inverse: float | None = None, ridge: float = 0.0, noise: str = "recursion"
) -> Canonical:
    """θ ← (1 − 2λη)θ + 2η(y − f)∇σ* + N(0, η/β), noise given by its variance.

    Args:
        step: η.
        temperature_inverse: The printed β; None for no noise.
        ridge: The printed λ.
        noise: ``"recursion"`` (canonical 4β), or ``"pde"`` for the Gibbs law exp(−βΨ_λ) printed with it.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.variance_rule(0.25, temperature_inverse=1.0)
        Canonical(step=0.5, clock=2.0, ridge=0.0, temperature=0.25, scale=1.0)
    """
    variance = 1.0 if check.choice(noise, "noise", NOISES) == "recursion" else 4.0
    beta = temperature_inverse
    return general(step, drift=2, decay=2, noise=variance, temperature_inverse=beta, ridge=ridge)


def ito(noise: float, *, step: float | None = None, ridge: float = 0.0) -> Canonical:
    """dθ = −∇Ψ_λ dt + η dB: β⁻¹ = η²/2, for the risk ½E(y − f)² an entropy of weight η²/2.

    Args:
        noise: η ≥ 0. Papers that write ½ηΔρ in the PDE mean η = √(noise coefficient).
        step: Time step of its Euler scheme, if any.
        ridge: λ.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.ito(0.2).temperature.__round__(12)
        0.02
    """
    eta = check.number(check.number(noise, "noise", at_least=0), "noise", at_most=1e150)
    return general(step, noise=eta**2, temperature_inverse=1.0, ridge=ridge)


def nws22(
    step: float, *, temperature: float = 0.0, ridge: float = 0.0, loss: str = "half-square"
) -> Canonical:
    """Nitanda, Wu, Suzuki (2022): θ ← θ − η∇(δF/δq) + √(2λη) g, F = Eℓ + λ'E|θ|² + λ∫q log q.

    Args:
        step: η.
        temperature: The printed λ, the weight of the entropy.
        ridge: The printed λ', the weight of E|θ|².
        loss: ``"half-square"`` for ℓ = ½(f − y)², ``"square"`` for ℓ = (f − y)².

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.nws22(0.1, temperature=0.02, ridge=0.05, loss="square")
        Canonical(step=0.2, clock=2.0, ridge=0.05, temperature=0.01, scale=1.0)
    """
    temperature = check.number(temperature, "temperature", at_least=0)
    drift = 1.0 if check.choice(loss, "loss", LOSSES) == "half-square" else 2.0
    beta = 1 / temperature if temperature > 0 else None
    return general(step, drift=drift, decay=2, noise=2, temperature_inverse=beta, ridge=ridge)


def gradient_descent(step: float, *, neurons: int, weight_decay: float = 0.0) -> Canonical:
    """θ ← θ − η∇L − η·weight_decay·θ, L = E(y − f_N)² as a function of all N neurons.

    Since ∇_{θ_i}L = (2/N)∇Ψ, one step is canonical of size 2η/N.

    Args:
        step: η, the learning rate.
        neurons: N.
        weight_decay: Its decay rate, as optimisers take it.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.gradient_descent(step=4.0, neurons=800)
        Canonical(step=0.01, clock=0.0025, ridge=0.0, temperature=0.0, scale=1.0)
    """
    n = check.count(neurons, "neurons")
    decay = check.number(weight_decay, "weight_decay", at_least=0)
    return general(step, drift=2 / n, decay=1, ridge=decay)


def jko(step: float, *, temperature_inverse: float | None = None, ridge: float = 0.0) -> Canonical:
    """ρ⁺ = argmin L(ρ) + W₂²(ρ, ρ')/(2τ) with L = R + λ∫|θ|²dρ + β⁻¹∫ρ log ρ, no ½ before the risk.

    L = 2F moves twice as fast as the canonical argmin F + W₂²/(2h).

    Args:
        step: τ.
        temperature_inverse: The printed β; None for no entropy.
        ridge: The printed λ, the weight of ∫|θ|²dρ.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.jko(0.01, temperature_inverse=5.0)
        Canonical(step=0.02, clock=2.0, ridge=0.0, temperature=0.1, scale=1.0)
    """
    return general(step, drift=2, decay=2, noise=2, temperature_inverse=temperature_inverse, ridge=ridge)


def ntk(step: float, *, neurons: int, loss: str = "half-square", weight_decay: float = 0.0) -> Canonical:
    """Neural tangent kernels: f = N^(−1/2) Σσ*(x; θ_i), θ ← θ − η∇L − η·weight_decay·θ.

    The scale is √N and ∇_{θ_i}L = ∇Ψ/N, so that one step is canonical of size η/N (eq. (11.9)).

    Args:
        step: η, the learning rate.
        neurons: N.
        loss: ``"half-square"`` for L = ½E(y − f)², ``"square"`` for L = E(y − f)².
        weight_decay: Its decay rate, as optimisers take it.

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.ntk(step=1.0, neurons=400)
        Canonical(step=0.0025, clock=0.0025, ridge=0.0, temperature=0.0, scale=20.0)
    """
    n = check.count(neurons, "neurons")
    decay = check.number(weight_decay, "weight_decay", at_least=0)
    return _of_sum(step, n, n**-0.5, 1.0, check.choice(loss, "loss", LOSSES), decay)


def cob19(step: float, *, neurons: int, factor: float, loss: str = "half-square") -> Canonical:
    """Chizat, Oyallon, Bach (2019): f = α(m) Σσ*(x; θ_i), i ≤ m, θ ← θ − η∇L/α(m)².

    The division by α(m)² makes the lazy limit one of finite time. In this library the scale is m·α(m): 1 for
    α(m) = 1/m (mean field), √m for α(m) = m^(−1/2) (tangent kernels); a step is of size η/(m α(m)²).

    Args:
        step: η.
        neurons: m.
        factor: α(m), the number.
        loss: ``"half-square"`` for L = ½E(y − f)², ``"square"`` for L = E(y − f)².

    Examples:
        >>> import mfcore as mf
        >>> mf.conventions.cob19(0.05 / 100, neurons=100, factor=1 / 100)
        Canonical(step=0.05, clock=100.0, ridge=0.0, temperature=0.0, scale=1.0)
    """
    n = check.count(neurons, "neurons")
    factor = check.number(factor, "factor", above=0)
    factor = check.number(factor, "factor", at_least=1e-150, at_most=1e150)  # has an inverse square
    return _of_sum(step, n, factor, factor**-2, check.choice(loss, "loss", LOSSES), 0.0)


def _of_sum(step: float, n: int, factor: float, speed: float, loss: str, decay: float) -> Canonical:
    """f = factor·Σσ* over n neurons, θ ← θ − s·speed·∇L − s·decay·θ (eq. (11.9))."""
    drift = speed / n * (1.0 if loss == "half-square" else 2.0)
    return replace(general(step, drift=drift, decay=1, ridge=decay), scale=n * factor)
