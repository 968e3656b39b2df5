"""Weights of either sign: particles that attract each other, against the exact solution, and refusals."""

import mfcore as mf
import numpy as np
import pytest

KAPPA = 0.7


def attraction(**options):
    """Ψ_λ(z) = ½κz² − κz∫z'dρ: the attraction ½κ∫(z − z')²ρ(dz') without a constant."""
    given = {
        "coordinates": ["z"],
        "weights": [-KAPPA],
        "targets": [0.0],
        "features": lambda z: z,
        "gradients": lambda z: np.ones((len(z), 1, 1)),
        "ridge": KAPPA,
    }
    return mf.ReducedModel(**given | options)


def test_attracting_particles_keep_their_mean_and_gather_exponentially():
    start = mf.Cloud([[-1.0], [0.5], [2.0]], [0.2, 0.3, 0.5])
    run = mf.solve(attraction(), mf.Atoms(start=start), horizon=2.0, save_at=[2.0])
    mean = start.weights @ start.points[:, 0]
    want = mean + (start.points[:, 0] - mean) * np.exp(-2 * KAPPA)
    np.testing.assert_allclose(run.final.points[:, 0], want, atol=1e-7)  # rtol 1e-8 per step
    assert run.risk[0] == pytest.approx(-KAPPA * mean**2)
    assert run.error[0] < 1e-6


def test_the_energy_of_either_sign_falls_at_the_rate_of_dissipation():
    model = attraction(
        coordinates=["z"],
        weights=[0.8, -0.5],
        targets=[1.0, 0.2],
        features=lambda z: np.column_stack([np.tanh(z[:, 0]), z[:, 0] ** 2]),
        gradients=lambda z: np.stack([1 - np.tanh(z) ** 2, 2 * z], axis=1),
    )
    z = np.array([[0.3], [-0.4], [0.9]])
    step = 1e-5 * mf.grad_psi(model, z, z)
    change = (mf.free_energy(model, z + step) - mf.free_energy(model, z - step)) / 2e-5
    assert change == pytest.approx(mf.dissipation(model, z), rel=1e-8)  # eps² by central differences


def test_what_rests_on_convexity_is_refused():
    model = attraction(initial=mf.ReducedInit([mf.init.Normal(0, 1)]))
    edges = np.linspace(-3, 3, 7)
    for call in (
        lambda: mf.solve(model, mf.PDE(), horizon=1.0),
        lambda: mf.solve(model, mf.JKO(0.1), horizon=1.0),
        lambda: mf.gibbs(attraction(temperature=0.1)),
        lambda: mf.optimum(model),
        lambda: mf.certificate(model, [[0.1]]),
        lambda: mf.steppers.FiniteVolume1D(model, edges, np.full(6, 1 / 6)),
    ):
        with pytest.raises(
            ValueError, match=r"weights must be > 0 for .*, which rests on a convex risk, got -0.7"
        ):
            call()


def test_weights_of_one_sign_must_sum_to_one_and_none_may_be_zero():
    with pytest.raises(ValueError, match="weights must be > 0 and sum to 1, or of either sign without 0"):
        attraction(weights=[0.5])
    with pytest.raises(ValueError, match="without 0, got smallest -1"):
        attraction(weights=[-1.0, 0.0], targets=[0.0, 0.0])
