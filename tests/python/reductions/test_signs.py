"""Weights of either sign: particles that attract each other, against the exact solution, and refusals."""

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory

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


def ring():
    """Ψ(z) = −∫cos(z − z')dρ: an attraction on a circle, the same wherever it gathers."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[-1.0, -1.0],
        targets=[0.0, 0.0],
        features=lambda z: np.concatenate([np.cos(z), np.sin(z)], axis=1),
        gradients=lambda z: np.stack([-np.sin(z), np.cos(z)], axis=1),
    )


def mixed(**options):
    """Features tanh z with a weight > 0 and z with one < 0, so that Σ p y² < 0."""
    given = {
        "weights": [0.8, -0.9],
        "targets": [0.3, 2.0],
        "features": lambda z: np.column_stack([np.tanh(z[:, 0]), z[:, 0]]),
        "gradients": lambda z: np.stack([1 - np.tanh(z) ** 2, np.ones_like(z)], axis=1),
        "initial": mf.ReducedInit([mf.init.Normal(0, 1)]),
    }
    return attraction(**given | options)


@pytest.mark.parametrize("method", [mf.Atoms(), mf.Atoms(start=mf.Cloud([[-1.0], [0.5]], [0.4, 0.6]))])
def test_targets_whose_power_is_negative_run_and_state_their_error(method):
    model = mixed()
    assert model.weights @ model.targets**2 < 0
    run = mf.solve(model, method, horizon=1.0, save_at=3, keep="all")
    start = run.kept[0.0] if method.start else mf.Cloud(*model.initial.quadrature(64))
    best = mf.solve(model, mf.Atoms(start=start, rtol=1e-11), horizon=1.0, save_at=3)
    assert run.status == "completed"
    assert (np.abs(run.risk - best.risk) <= run.error).all()
    assert run.error.max() < 1e-4


def test_the_error_of_nodes_counts_predictions_that_the_risk_does_not_show():
    """R = (f² − f²)/2 = 0 whatever f is; nodes that err by 1e-3 of f make 1e-3(2|f| + |f|²) of it."""
    one = np.ones((3, 2, 1))
    model = attraction(
        weights=[0.5, -0.5],
        targets=[0.0, 0.0],
        features=lambda z: np.column_stack([z[:, 0], z[:, 0]]),
        gradients=lambda z: one[: len(z)],
        ridge=0.0,
        node_error=1e-3,
    )
    run = mf.solve(model, mf.Atoms(start=mf.Cloud([[10.0]])), horizon=1.0, save_at=2)
    assert run.risk[0] == pytest.approx(0.0, abs=1e-12)
    assert run.error[0] == pytest.approx(1e-3 * (2 * 10 + 100), rel=1e-9)


def test_a_risk_that_rises_from_zero_is_no_divergence():
    """Features z and z³, each even measure with R = 0: rounding grows by 8e7, and the exact R stays 0."""
    model = attraction(
        weights=[-1.0, 1.0],
        targets=[0.0, 0.0],
        features=lambda z: np.concatenate([z, z**3], axis=1),
        gradients=lambda z: np.stack([np.ones_like(z), 3 * z**2], axis=1),
        ridge=0.0,
    )
    start = mf.Cloud([[-0.5], [0.5 + 1e-7]])
    run = mf.solve(model, mf.Atoms(start=start), horizon=20.0, save_at=3)
    assert abs(run.risk[-1]) > 1e6 * abs(run.risk[0])
    assert run.status == "completed"


def test_a_cluster_that_can_be_anywhere_is_neither_stable_nor_unstable():
    """Translations are neutral: their eigenvalue is 0 up to the stated error, not −4.6e-14 and a saddle."""
    found = theory.stability(ring(), [[0.3]])
    assert found.stable is None
    assert abs(found.rate) <= found.error < 1e-11
    assert found.spread[0, 0] == pytest.approx(1.0)
    apart = theory.stability(ring(), [[0.3], [0.3 + np.pi]])  # on opposite sides: no force, and a saddle
    assert apart.residual < 1e-15
    assert apart.stable is False
    held = theory.stability(attraction(ridge=2 * KAPPA), [[0.0]])
    assert held.stable is True


def test_fluctuations_of_either_sign_have_a_norm_that_is_none():
    """‖f_N − f‖² weighs with |p|; the offset is E R_N − R itself, at the start the gap (13.9)."""
    rho = mf.Cloud([[-1.0], [0.5], [2.0]], [0.2, 0.3, 0.5])
    found = theory.fluctuations(mixed(), 0.5, [0.0, 0.5], start=rho)
    phi = mixed().features(rho.points)
    spread = rho.weights @ (phi - rho.weights @ phi) ** 2
    assert found.output[0] == pytest.approx(np.abs(mixed().weights) @ spread, rel=1e-6)
    gap = mixed().weights @ spread
    assert theory.approximation_gap(mixed(), rho) == pytest.approx(gap, rel=1e-12)
    assert found.offset[0] == pytest.approx(gap, rel=1e-6)  # rounding over ε²
    assert gap < 0 < found.output.min()


def test_the_risk_between_two_measures_is_concave_where_weights_are_negative():
    """f is linear along mixtures, so that R = −κf² is a parabola that opens downwards."""
    path = theory.along(attraction(), [-1.0], [3.0], points=5)
    f = np.linspace(-1.0, 3.0, 5)
    np.testing.assert_allclose(path.risk, -KAPPA * f**2, atol=1e-14)


def test_what_rests_on_convexity_is_refused():
    model = attraction(initial=mf.ReducedInit([mf.init.Normal(0, 1)]))
    edges = np.linspace(-3, 3, 7)
    rho = mf.Density(edges, np.full(6, 1 / 6))
    for call in (
        lambda: mf.solve(model, mf.PDE(), horizon=1.0),
        lambda: mf.solve(model, mf.JKO(0.1), horizon=1.0),
        lambda: mf.gibbs(attraction(temperature=0.1)),
        lambda: mf.optimum(model),
        lambda: mf.certificate(model, [[0.1]]),
        lambda: theory.relaxation(attraction(temperature=0.1), rho),
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
