"""Published rules against the rule of this library: as recursions, as PDEs, and as stationary laws."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore import conventions as cv

S, BETA, LAMBDA, KAPPA = 0.01, 7.0, 0.3, 1.7  # printed step, β, λ, and the curvature of V = κθ²/2

# Each rule as printed: (factor of decay·λ·s, factor of drift·s, variance of the noise), and its conversion.
RECURSIONS = {
    "mmn18": (2, 2, 2 * S / BETA, cv.mmn18(S, temperature_inverse=BETA, ridge=LAMBDA)),
    "mmm19": (2, 2, 2 * S * 0.5 / 4, cv.mmm19(S, temperature=0.5, dimension=4, ridge=LAMBDA)),
    "cargese": (0, 1, S / BETA, cv.cargese(S, temperature=1 / BETA)),  # s = ε/2: drift 2s = ε, noise 2Ts = Tε
    "simons": (0, 1, S / BETA, cv.simons(S, temperature_inverse=BETA)),
    "variance_rule": (2, 2, S / BETA, cv.variance_rule(S, temperature_inverse=BETA, ridge=LAMBDA)),
    "ito": (1, 1, 0.4**2 * S, cv.ito(0.4, step=S, ridge=LAMBDA)),
    "nws22, half": (2, 1, 2 * S / BETA, cv.nws22(S, temperature=1 / BETA, ridge=LAMBDA)),
    "nws22, square": (2, 2, 2 * S / BETA, cv.nws22(S, temperature=1 / BETA, ridge=LAMBDA, loss="square")),
    "gradient descent": (1, 2 / 50, 0, cv.gradient_descent(S, neurons=50, weight_decay=LAMBDA)),
    "ntk": (1, 1 / 50, 0, cv.ntk(S, neurons=50, weight_decay=LAMBDA)),
    "ntk, square": (1, 2 / 50, 0, cv.ntk(S, neurons=50, weight_decay=LAMBDA, loss="square")),
    "cob19": (0, 50, 0, cv.cob19(S, neurons=50, factor=1 / 50)),
    "cob19, roots": (0, 1, 0, cv.cob19(S, neurons=50, factor=50**-0.5)),
    "general": (
        3,
        5,
        11 * S / BETA,
        cv.general(S, drift=5, decay=3, noise=11, temperature_inverse=BETA, ridge=LAMBDA),
    ),
}


@pytest.mark.parametrize("rule", RECURSIONS)
def test_the_canonical_recursion_is_the_printed_one_term_by_term(rule):
    decay, drift, variance, c = RECURSIONS[rule]
    ridge = LAMBDA if decay else 0.0
    # θ + h(…) − hλθ + √(2h/β) g; tolerances are a few roundings of products of printed numbers.
    assert c.step == pytest.approx(drift * S, rel=1e-14)
    assert c.step * c.ridge == pytest.approx(decay * ridge * S, rel=1e-14)
    assert 2 * c.step * c.temperature == pytest.approx(variance, rel=1e-14)
    assert c.clock * S == pytest.approx(c.step, rel=1e-14)


@pytest.mark.parametrize("rule", RECURSIONS)
def test_the_stationary_variance_of_a_quadratic_potential_is_the_canonical_one(rule):
    decay, drift, variance, c = RECURSIONS[rule]
    rate = drift * KAPPA + decay * (LAMBDA if decay else 0.0)
    # As s → 0 the variance v = variance/(1 − (1 − rate·s)²) of θ⁺ = (1 − rate·s)θ + √variance·g tends to
    # (variance/s)/(2·rate), which is c_n/(2β(c_dκ + c_rλ)).
    assert variance / S / (2 * rate) == pytest.approx(c.temperature / (KAPPA + c.ridge), rel=1e-13)


# The coefficients of the printed PDE, ∂ρ = A∇·(ρ∇Ψ_λ) + BΔρ, on the printed clock.
PDES = {
    "mmn18": (2, 2 / BETA, cv.mmn18(S, temperature_inverse=BETA, noise="pde")),
    "mmm19": (2, 2 * 0.5 / 4, cv.mmm19(S, temperature=0.5, dimension=4, noise="pde")),
    "cargese": (1, 1 / BETA, cv.cargese(S, temperature=1 / BETA, noise="pde")),
    "simons": (1, 1 / BETA, cv.simons(S, temperature_inverse=BETA, noise="pde")),
    "ito": (1, 0.4**2 / 2, cv.ito(0.4)),
    "nws22": (1, 1 / BETA, cv.nws22(S, temperature=1 / BETA)),
}


@pytest.mark.parametrize("rule", PDES)
def test_the_canonical_pde_is_the_printed_one_on_its_clock(rule):
    drift, diffusion, c = PDES[rule]
    assert c.clock == drift
    assert c.clock * c.temperature == pytest.approx(diffusion, rel=1e-14)


def test_printed_gibbs_laws_keep_their_inverse_temperature():
    assert cv.variance_rule(S, temperature_inverse=BETA, noise="pde").beta == pytest.approx(BETA, rel=1e-15)
    assert cv.mmn18(S, temperature_inverse=BETA).beta == pytest.approx(2 * BETA, rel=1e-15)
    assert cv.variance_rule(S, temperature_inverse=BETA).beta == pytest.approx(4 * BETA, rel=1e-15)
    assert cv.ito(0.4).beta == pytest.approx(2 / 0.4**2, rel=1e-15)


def test_a_jko_step_on_the_full_risk_is_a_canonical_step_of_twice_the_length():
    c = cv.jko(0.05, temperature_inverse=BETA, ridge=LAMBDA)
    # Without data the mean obeys argmin λm² + (m − m₀)²/(2τ), m = m₀/(1 + 2λτ); canonically m₀/(1 + λh).
    assert 1 + c.step * c.ridge == pytest.approx(1 + 2 * LAMBDA * 0.05, rel=1e-15)
    # argmin R + … + W²/(2τ) = argmin [R/2 + λ∫|θ|²/2 + Ent/(2β)] + W²/(2·2τ)
    assert (c.step, c.ridge, c.temperature) == pytest.approx((2 * 0.05, LAMBDA, 1 / (2 * BETA)), rel=1e-15)


@given(s=st.floats(1e-8, 10), n=st.integers(1, 10**6))
def test_gradient_descent_on_all_neurons_is_slower_by_their_number(s, n):
    assert cv.gradient_descent(s, neurons=n).step == pytest.approx(2 * s / n, rel=1e-14)


def test_without_noise_the_temperature_is_zero_and_beta_infinite():
    for c in (
        cv.mmn18(S),
        cv.mmn18(S, temperature_inverse=math.inf),
        cv.mmm19(S),
        cv.cargese(S),
        cv.simons(S),
        cv.variance_rule(S),
        cv.ito(0.0),
        cv.nws22(S),
        cv.gradient_descent(S, neurons=3),
        cv.jko(S),
    ):
        assert c.temperature == 0.0
        assert c.beta == math.inf
    assert cv.ito(0.4).step is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cv.mmn18(0), "step must be > 0, got 0"),
        (lambda: cv.mmn18(S, temperature_inverse=0), "temperature_inverse must be > 0, got 0"),
        (lambda: cv.mmn18(S, ridge=-1), "ridge must be >= 0, got -1"),
        (lambda: cv.mmn18(S, noise="gibbs"), "noise must be one of 'recursion', 'pde', got 'gibbs'"),
        (lambda: cv.mmm19(S, dimension=0), "dimension must be >= 1, got 0"),
        (lambda: cv.cargese(S, temperature=-1), "temperature must be >= 0, got -1"),
        (lambda: cv.ito(-0.1), "noise must be >= 0, got -0.1"),
        (lambda: cv.nws22(S, loss="hinge"), "loss must be one of 'half-square', 'square', got 'hinge'"),
        (lambda: cv.gradient_descent(S, neurons=0), "neurons must be >= 1, got 0"),
        (lambda: cv.ntk(S, neurons=0), "neurons must be >= 1, got 0"),
        (
            lambda: cv.ntk(S, neurons=3, loss="hinge"),
            "loss must be one of 'half-square', 'square', got 'hinge'",
        ),
        (lambda: cv.cob19(S, neurons=3, factor=0.0), "factor must be > 0, got 0"),
    ],
)
def test_wrong_arguments_are_refused_with_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("power", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("convention", ["ntk", "cob19"])
def test_a_step_on_a_sum_of_neurons_is_a_canonical_step_of_the_network_of_that_scale(convention, power):
    """f = c Σσ* and its gradient written out, against `mf.GD` with the converted scale and step."""
    rng, m, eta = np.random.default_rng(0), 6, 0.3
    X, y, theta = rng.normal(size=(9, 3)), rng.normal(size=9), rng.normal(size=(m, 4))
    factor = m**-0.5 if convention == "ntk" else m**-power
    if convention == "ntk":
        c, decay = cv.ntk(eta, neurons=m, weight_decay=0.2), 0.2
    else:
        c, decay = cv.cob19(eta, neurons=m, factor=factor), 0.0
    a, s = theta[:, 0], np.tanh(X @ theta[:, 1:].T)
    residual = (factor * s @ a - y) / len(y)
    slopes = a * (1 - s**2) * residual[:, None]
    gradient = factor * np.column_stack([residual @ s, slopes.T @ X])
    speed = eta if convention == "ntk" else eta / factor**2
    want = theta - speed * gradient - eta * decay * theta
    network = mf.Network(mf.activations.tanh, output="trained", scale=c.scale)
    model = mf.Model(mf.data.Dataset(X, y), network, mf.init.Points(theta), ridge=c.ridge)
    run = mf.solve(model, mf.GD(m, step=c.step), horizon=c.step, save_at=[c.step])
    np.testing.assert_allclose(run.final, want, rtol=1e-13, atol=1e-14)  # roundings


def test_numbers_beyond_the_largest_one_are_refused():
    with pytest.raises(ValueError, match="temperature must be finite after conversion, got inf"):
        mf.conventions.mmn18(0.1, temperature_inverse=1e-320)


@pytest.mark.parametrize("factor", [1e-320, 1e-200, 1e200])
def test_factors_without_an_inverse_square_are_refused(factor):
    with pytest.raises(ValueError, match=r"factor must be >= 1e-150 and <= 1e\+150"):
        mf.conventions.cob19(0.1, neurons=2, factor=factor)


def test_numbers_of_neurons_beyond_those_of_the_core_are_refused():
    with pytest.raises(ValueError, match=r"neurons must be <= "):
        mf.conventions.ntk(0.1, neurons=10**400)
