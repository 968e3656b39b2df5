"""The bias of SGD with a finite step: the modified flow, and steps proposed for a wanted bias."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.atoms._atoms import Atoms
from mfcore.theory import _steps
from scipy import stats

STEEP = mf.activations.piecewise_linear([0.0, 0.5, 1.5], [-2.5, -4.0, 7.5])


def steep_model(d=320, **options):
    return mf.Model(mf.data.IsotropicGaussians(d, 0.5), mf.Network(STEEP), mf.init.Radial(0.4), **options)


def norms(model, h, horizon=0.05):
    return theory.modified_flow(model, h, horizon=horizon, save_at=2).observed["norm_mean"][-1]


@pytest.mark.parametrize("options", [{}, {"ridge": 2.0}, {"rates": {"w": 2.0}}])
def test_without_a_step_the_modified_flow_is_the_limit(options):
    model = steep_model(**options)
    flow = theory.modified_flow(model, 0.0, horizon=0.1, save_at=5)
    limit = mf.solve(model, Atoms(), horizon=0.1, save_at=5)
    # A hundred cells of ρ₀ and a relative error of 1e-5 per step.
    np.testing.assert_allclose(flow.risk, limit.risk, rtol=3e-5)
    np.testing.assert_allclose(flow.observed["norm_mean"], limit.observed["norm_mean"], rtol=3e-5)
    np.testing.assert_allclose(flow.observed["norm_std"], limit.observed["norm_std"], rtol=2e-3)


def test_the_modified_flow_has_its_reference_values():
    """Of an independent computation, to four digits."""
    model = steep_model()
    np.testing.assert_allclose(
        [norms(model, h) for h in (0.0, 2.5e-6, 1e-5)], [0.6658, 0.6736, 0.6950], atol=6e-5
    )


@pytest.mark.parametrize("h", [0.0, 1e-5])
def test_a_rate_of_w_is_a_longer_step_and_a_faster_clock(h):
    """SGD moves w by h·rate: rate 2 and step h to time T are rate 1 and step 2h to 2T. Steps of the same
    integrator: its relative error per step, 1e-6.
    """
    fast = theory.modified_flow(steep_model(rates={"w": 2.0}), h, horizon=0.025, save_at=3)
    plain = theory.modified_flow(steep_model(), 2 * h, horizon=0.05, save_at=3)
    np.testing.assert_allclose(fast.risk, plain.risk, rtol=1e-5)
    for name in ("norm_mean", "norm_std"):
        np.testing.assert_allclose(fast.observed[name], plain.observed[name], rtol=1e-5)


def test_sgd_follows_the_modified_flow_and_not_the_limit():
    model, h = steep_model(), 1e-5
    run = mf.solve(model, mf.SGD(400, h, replicas=2), horizon=0.05, save_at=2, risk=False, rng=0)
    got = run.observed["norm_mean"][-1].mean()
    # Over 20 seeds 0.6931 ± 0.0026, beside 0.6950 of the flow and 0.6658 of the limit: four standard
    # deviations.
    assert got == pytest.approx(norms(model, h), abs=0.0125)
    assert got > norms(model, 0.0) + 0.015


def test_the_mean_square_of_the_slope_is_that_of_sampled_directions():
    d, count = 12, 200_000
    x = np.random.default_rng(0).normal(size=(count, d))
    u = x[:, 0] / np.linalg.norm(x, axis=1)
    mean = _steps._mean_square(STEEP, d, 4.0)
    for scale in (0.3, 1.7, 4.0):
        values = np.square(STEEP.derivative(scale * u)) * (1 - u * u)
        error = values.std() / np.sqrt(count)
        assert abs(mean(scale) - values.mean()) < 5 * error  # false alarm 6e-7 each


@pytest.mark.parametrize("bias", [0.01, 0.1])
def test_the_proposed_step_has_the_wanted_bias_in_the_modified_flow(bias):
    model = steep_model(40)
    proposal = theory.propose_step(model, bias, horizon=0.1)
    limit, biased = (theory.modified_flow(model, h, horizon=0.1) for h in (0.0, proposal.step))
    assert np.abs(biased.risk / limit.risk - 1).max() == pytest.approx(bias, rel=0.03)
    assert proposal.bias == pytest.approx(bias, rel=0.03)


def test_sgd_with_the_proposed_step_is_no_further_off():
    """The law's bias lowers the risk, and fluctuations of f take back a part of it."""
    model, bias, horizon = steep_model(), 0.1, 0.1
    step = horizon / np.ceil(horizon / theory.propose_step(model, bias, horizon=horizon).step)
    risks, radii = [], []
    for h in (step, step / 8):
        method, held_out = mf.SGD(100, h, replicas=4), mf.MonteCarlo(5000, rng=1)
        run = mf.solve(model, method, horizon=horizon, save_at=2, risk=held_out, rng=0)
        risks.append(run.risk[-1].mean())
        radii.append(run.observed["norm_mean"][-1].mean())
    limit = theory.modified_flow(model, 0.0, horizon=horizon).risk[-1]
    # Over 20 seeds -0.063 ± 0.013: the bounds are 3.7 standard deviations away.
    assert -1.1 * bias < (risks[0] - risks[1]) / limit < -0.15 * bias
    moved = norms(model, step, horizon) - norms(model, step / 8, horizon)
    # Over 20 seeds 0.0373 ± 0.0013, beside 0.0403 of the flow: of first order in h, and N = 100.
    assert radii[0] - radii[1] == pytest.approx(moved, rel=0.25)


def made(bias, step=(0.02, 0.01), spread=0.0):
    """A ladder by hand, in which SGD has the given relative bias."""
    rng = np.random.default_rng(0)
    risk = np.ones((1, len(step), 6, 5, 3))
    noise = spread * rng.normal(size=(len(step), 6))
    risk[0, :, :, 4, 1:] += np.array([bias(h) for h in step])[:, None, None] + noise[..., None]
    rest = np.zeros((1, len(step), 6, 4, 3))
    return theory.Ladder(np.arange(3.0), (10,), step, risk, risk * 0, risk, rest[..., 1:, :], rest)


def test_a_ladder_proposes_the_step_of_the_upper_end_of_its_bias():
    exact = theory.propose_step(made(lambda h: -4 * h, spread=1e-9), 0.02)
    assert exact.step == pytest.approx(0.005, rel=1e-6)
    noisy = theory.propose_step(made(lambda h: 4 * h, spread=0.02), 0.02)
    assert 0.001 < noisy.step < 0.005
    assert theory.propose_step(made(lambda h: 1e-6 * h, spread=1e-9), 0.02).step == 0.02  # no further


def test_the_proposed_step_takes_the_upper_end_of_the_interval_of_one_step():
    """One step, bias 0.04 ± half: h·wanted/(|mean| + half), the half interval from Student's t of six."""
    ladder = made(lambda h: 4 * h, step=(0.01,), spread=0.06)
    risk = ladder.risk[0, 0, :, 4, 1] - 1  # R_PD = 1, and SGD off by the same at both later times
    half = stats.t.ppf(0.975, 5) * risk.std(ddof=1) / np.sqrt(6)
    assert half > 0.3 * abs(risk.mean())
    wanted = 0.5 * abs(risk.mean())
    want = 0.01 * wanted / (abs(risk.mean()) + half)
    assert theory.propose_step(ladder, wanted).step == pytest.approx(want, rel=1e-9)


def test_misuse_is_refused():
    model = steep_model(40)
    with pytest.raises(ValueError, match="horizon must be given with a model"):
        theory.propose_step(model)
    with pytest.raises(ValueError, match="horizon must be left out with a ladder"):
        theory.propose_step(made(lambda h: h), horizon=1.0)
    with pytest.raises(ValueError, match="bias must be > 0 and < 1"):
        theory.propose_step(model, 0.0, horizon=1.0)
    for other in (
        model.replace(temperature=0.1),
        model.replace(data=mf.data.IsotropicGaussians(np.inf, 0.5)),
        model.replace(network=mf.Network(STEEP, bias="trained"), init=mf.init.Gaussian(1.0)),
    ):
        with pytest.raises(ValueError, match=r"propose_step\(ladder\) measures the bias instead"):
            theory.propose_step(other, horizon=1.0)
