"""`theory.bounds`: what is listed for which model, and that it holds."""

import dataclasses
import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory
from mfcore.perturbations import _run_bounds
from problems import STEP, isotropic, waves


def by_name(found):
    return {theorem.name: theorem for theorem in found}


@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_neurons_of_random_measures_keep_the_promises(seed):
    """Draws may miss by 4.9 standard errors: once in a million."""
    rho = np.random.default_rng(seed).normal(size=(10, 2))
    model = waves(seed, 2)
    reach = mf.ReducedModel(
        coordinates=model.coordinates,
        weights=model.weights,
        targets=model.targets,
        features=model.features,
        gradients=model.gradients,
        temperature=0.1,
    )
    found = by_name(theory.bounds(reach, rho, neurons=7, replicas=40, rng=seed))
    assert set(found) == {"independent neurons", "greedy neurons"}  # points have no free energy
    assert all(theorem.holds for theorem in found.values())
    assert all(f"{theorem.name}: {theorem.statement}\n" in str(theorem) for theorem in found.values())


def test_the_convexity_gap_bounds_the_distance_to_the_optimum():
    model = isotropic(math.inf, STEP, delta=0.2).reduce()
    found = by_name(theory.bounds(model, [1.0], replicas=2))["convexity"]
    assert found.holds
    assert found.left == pytest.approx(mf.risk(model, [1.0]) - mf.optimum(model).risk, abs=1e-8)
    assert found.right == mf.certificate(model, [1.0]).gap


def test_relative_entropy_bounds_the_free_energy_from_both_sides():
    model = mf.ReducedModel(
        coordinates=["z"],
        weights=[0.5, 0.5],
        targets=[0.5, -1.0],
        ridge=0.5,
        temperature=0.4,
        features=lambda z: np.concatenate([np.tanh(2 * z), np.tanh(z - 0.5)], axis=1),
        gradients=lambda z: np.stack([2 / np.cosh(2 * z) ** 2, 1 / np.cosh(z - 0.5) ** 2], axis=1),
    )
    edges = np.linspace(-5, 5, 201)
    z = 0.5 * (edges[1:] + edges[:-1])
    mass = np.exp(-((z - 1) ** 2))
    found = by_name(theory.bounds(model, mf.Density(edges, mass / mass.sum()), neurons=4, replicas=5))
    below, above = found["relative entropy, below"], found["relative entropy, above"]
    assert below.holds
    assert above.holds
    assert 0 < below.left < below.right == above.left < above.right
    assert found["temperature"].holds is None
    assert found["temperature"].left > 0


def test_hypotheses_are_computed_where_they_are_known():
    network = mf.Network(mf.activations.relu, output="trained")
    model = mf.Model(mf.data.IsotropicGaussians(d=3, delta=0.5), network)
    found = by_name(theory.bounds(model, [[2.0, 1.0, 0.0, 0.0]], neurons=2, replicas=2))[
        "propagation of chaos"
    ]
    assert found.holds is None
    assert found.hypotheses["σ' Lipschitz"] == "no: kinks"
    assert "‖Σ‖ ≤ 2.25, ‖x‖_ψ2 ≤ 2.449" in found.hypotheses["inputs sub-Gaussian"]  # √(8/3)·1.5
    assert found.hypotheses["σ Lipschitz"] == "sup|σ'| = 1 (closed form)"
    assert "sup|a| = 2" in found.hypotheses["output weights bounded"]
    assert "not compared" in str(found)


@pytest.mark.parametrize("size", [0.01, 1.0])
@pytest.mark.parametrize("output", ["one", "fixed", "trained"])
@pytest.mark.parametrize("bias", ["none", "fixed", "trained"])
@pytest.mark.parametrize("sigma", [mf.activations.tanh, mf.activations.relu, mf.activations.gelu], ids=str)
def test_gradients_in_what_trains_are_as_sub_gaussian_as_is_said(sigma, output, bias, size):
    """‖ξ‖_ψ2 is the least s with E exp(ξ²/s²) ≤ 2: along random directions, over a finite law."""
    rng = np.random.default_rng(1)
    # More than three parameters have no reduction, whose optimum would be searched.
    X = size * rng.normal(size=(20, 4))
    network = mf.Network(sigma, output=output, bias=bias, scale=2.0)
    model = mf.Model(mf.data.Dataset(X, X[:, 0]), network)
    rho = 3 * rng.normal(size=(4, network.row(4)))
    known = by_name(theory.bounds(model, rho, neurons=2, replicas=2))["propagation of chaos"].hypotheses
    said = float(known["∇σ* sub-Gaussian"].split("≤ ")[1].split()[0])
    # One sample at a time: −∇V of the label 1 is ∇(ασ*).
    slopes = np.array([mf.pull(network, rho, x[None], [1.0]) for x in X])
    slopes[..., list(network.still)] = 0.0
    ways = rng.normal(size=(300, network.row(4)))
    ways[:, list(network.still)] = 0.0
    xi = np.abs(slopes @ (ways / np.linalg.norm(ways, axis=1)[:, None]).T).reshape(len(X), -1)
    xi = xi[:, xi.any(axis=0)]  # of ReLUs that are on for some sample
    low, high = xi.max(axis=0) / 7, 2 * xi.max(axis=0)  # exp(49)/20 > 2, exp(1/4) < 2
    for _ in range(30):
        middle = 0.5 * (low + high)
        enough = np.exp((xi / middle) ** 2).mean(axis=0) <= 2
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found = float(high.max())
    assert 0.01 * said < found <= said  # the bound takes sup|σ'|, and the sup of |x| over all samples
    bounded = known["σ bounded"]
    assert bounded.startswith("sup|σ| = 1 " if sigma == mf.activations.tanh else "no: |σ| grows")


def test_lipschitz_constants_of_a_linear_network_are_those_of_its_covariance():
    """∇V = −E xy, ∇₁U(θ, θ') = Σθ', both constant in θ: U has the mixed derivative alone."""
    X = np.random.default_rng(0).normal(size=(6, 2))
    model = mf.Model(mf.data.Dataset(X, X @ [1.0, 2.0]), mf.Network(mf.activations.linear))
    rho = np.array([[3.0, 4.0], [0.0, 1.0]])
    known = by_name(theory.bounds(model, rho, neurons=2, replicas=2))["propagation of chaos"].hypotheses
    sigma = X.T @ X / 6
    assert known["∇V"].startswith(f"sup|∇V| = {np.linalg.norm(sigma @ [1.0, 2.0]):.4g}, Lipschitz ")
    assert known["∇U"].startswith(f"sup|∇₁U| = {np.linalg.norm(sigma @ rho.T, axis=0).max():.4g}, Lips")
    assert float(known["∇U"].split("Lipschitz ")[1].split()[0]) < 1e-9


def test_the_lipschitz_constant_of_a_product_is_found_by_search():
    """a·tanh(wx) on one sample (1, y): ∇V = −y(tanh w, a/cosh²w), its derivative a matrix of 2 by 2."""
    network = mf.Network(mf.activations.tanh, output="trained")
    model = mf.Model(mf.data.Dataset([[1.0]], [1.5]), network)
    a, w = 0.7, 0.4
    slope, bend = 1 / math.cosh(w) ** 2, -2 * math.tanh(w) / math.cosh(w) ** 2
    exact = 1.5 * np.abs(np.linalg.eigvalsh([[0.0, slope], [slope, a * bend]])).max()
    found = theory.bounds(model, [[a, w]], neurons=2, replicas=2)
    known = by_name(found)["propagation of chaos"].hypotheses["∇V"]
    assert float(known.split("Lipschitz ")[1].split()[0]) == pytest.approx(exact, rel=2e-3)


def test_with_a_horizon_flows_measure_chaos_and_the_lemmas_of_the_tangent_kernel():
    """Networks of scale 20 on 5 points are nearly linear: all three lemmas hold."""
    rng = np.random.default_rng(0)
    model = mf.Model(
        mf.data.Dataset(rng.normal(size=(5, 3)), rng.normal(size=5)),
        mf.Network(mf.activations.tanh, output="trained", scale=20.0),
    )
    rho = rng.normal(size=(60, 4))
    found = by_name(theory.bounds(model, rho, neurons=30, replicas=3, horizon=0.01, rng=1))
    lemmas = [found[f"tangent kernel, {what}"] for what in ("risk", "displacement", "gradients")]
    assert all(lemma.holds for lemma in lemmas)
    assert all(0 < lemma.left <= lemma.right for lemma in lemmas)
    chaos = found["propagation of chaos"]
    assert chaos.left > 0
    assert math.isnan(chaos.right)
    assert "left/err" in chaos.hypotheses["constant"]
    assert found["propagation of chaos, dimension-free"].left == chaos.left


def test_theorems_about_all_measures_are_not_compared_where_a_coordinate_rests():
    model = mf.ReducedModel(
        coordinates=["a", "z"],
        weights=[1.0],
        targets=[0.3],
        ridge=1.0,
        temperature=0.5,
        rates=[0.0, 1.0],
        features=lambda z: z[:, :1] * np.tanh(z[:, 1:]),
    )
    density = mf.Density((np.linspace(-1, 1, 4), np.linspace(-2, 2, 6)), np.full((3, 5), 1 / 15))
    found = by_name(theory.bounds(model, density, neurons=5, replicas=3))
    for name in ("relative entropy, below", "relative entropy, above"):
        assert found[name].holds is None
        assert "rate 0 for a" in found[name].hypotheses["F*"]
    still = dataclasses.replace(model, temperature=0.0)
    convexity = by_name(theory.bounds(still, density, neurons=5, replicas=3))["convexity"]
    assert convexity.holds is None
    assert "rate 0 for a" in convexity.hypotheses["inf"]


def test_lemmas_that_do_not_apply_say_why():
    model = mf.Model(mf.data.Dataset([[1.0], [-2.0]], [1.0, 0.0]), mf.Network(mf.activations.relu), ridge=0.1)
    found = by_name(theory.bounds(model, [[1.0], [-1.0]], neurons=2, replicas=2, horizon=0.1))
    lemma = found["tangent kernel, risk"]
    assert lemma.holds is None
    assert "without ridge" in lemma.hypotheses["not known"]


def test_wrong_numbers_are_named():
    with pytest.raises(ValueError, match="replicas"):
        theory.bounds(waves(0, 1), [0.0], replicas=1)
    with pytest.raises(ValueError, match="horizon"):
        theory.bounds(waves(0, 1), [0.0], horizon=0.0)
    with pytest.raises(ValueError, match="neurons"):
        theory.bounds(waves(0, 1), [0.0], neurons=0)


def ends(monkeypatch, status):
    """Let each flow be stopped halfway, with that status."""
    solved = _run_bounds.solve

    def cut(model, method, **options):
        run = solved(model, method, **options)
        half = {"t": run.t[:4], "risk": None if run.risk is None else run.risk[:4]}
        return dataclasses.replace(run, status=status, message="of the test", **half)

    monkeypatch.setattr(_run_bounds, "solve", cut)
    law = mf.data.Dataset([[1.0, 0.5], [-1.0, 0.2]], [1.0, -1.0])
    model = mf.Model(law, mf.Network(mf.activations.tanh, output="trained"))
    return theory.bounds(model, [[1.0, 0.5, 0.0], [0.0, 1.0, 0.5]], neurons=3, replicas=2, horizon=0.1)


def test_ctrl_c_in_a_flow_is_no_flow_that_is_compared(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        ends(monkeypatch, "interrupted")


def test_a_flow_that_does_not_reach_the_horizon_is_said_and_not_compared(monkeypatch):
    found = by_name(ends(monkeypatch, "diverged"))
    chaos = found["propagation of chaos"]
    assert math.isnan(chaos.left)
    assert "horizon must be a time that flows reach, got 0.1: of the test" in chaos.hypotheses["measured"]
    assert "of the test" in found["tangent kernel, risk"].hypotheses["not known"]
