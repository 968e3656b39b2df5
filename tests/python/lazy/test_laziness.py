"""`laziness`: norms against dense matrices, bounds against runs."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import theory

SPEEDS = {"a": 2.0, "b": 0.3, "w": 1.7}


def problem(seed, scale=1.0, samples=6, neurons=8, **shape):
    rng = np.random.default_rng(seed)
    shape = {"output": "trained", "bias": "trained"} | shape
    network = mf.Network(mf.activations.tanh, scale=scale, **shape)
    rates = {block: SPEEDS[block] for block in network.trained}
    law = mf.data.Dataset(rng.normal(size=(samples, 3)), rng.normal(size=samples))
    start = rng.normal(size=(neurons, network.row(3)))
    return mf.Model(law, network, mf.init.Points(start), rates=rates), start


def dense_hessians(model, theta, X, step=1e-4):
    """√rate ∇²(α σ*) √rate of every neuron and input, by differences."""
    network, columns = model.network, theta.shape[1]
    root = np.zeros(columns)
    for block, where in network.blocks(3).items():
        root[where] = math.sqrt(SPEEDS[block]) if block in network.trained else 0.0
    out = np.zeros((len(theta), len(X), columns, columns))
    unit = step * np.eye(columns)
    for i, one in enumerate(theta):
        for j in range(columns):
            for k in range(columns):
                signs = [(s, t) for s in (1, -1) for t in (1, -1)]
                parts = [s * t * mf.predict(model, [one + s * unit[j] + t * unit[k]], X) for s, t in signs]
                out[i, :, j, k] = sum(parts) / (4 * step**2) * root[j] * root[k]
    return out


@pytest.mark.parametrize(
    "shape", [{}, {"output": "fixed"}, {"bias": "fixed"}, {"output": "one", "bias": "none"}], ids=str
)
def test_norms_are_those_of_dense_matrices(shape):
    model, theta = problem(0, scale=2.0, **shape)
    found = theory.laziness(model, theta)
    X, y = model.data.X, model.data.y
    values = np.linalg.eigvalsh(theory.tangent_kernel(model, X, measure=theta) / 6)
    assert math.isclose(found.smallest, values[0], rel_tol=1e-9)
    assert math.isclose(found.largest, values[-1], rel_tol=1e-12)
    residual = np.sqrt(np.mean((mf.predict(model, theta, X) - y) ** 2))
    assert math.isclose(found.residual, residual, rel_tol=1e-13)
    hessians = dense_hessians(model, theta, X)
    squares = np.einsum("iqjk,iqkl->ijl", hessians, hessians) / 6
    want = math.sqrt(max(np.linalg.eigvalsh(one)[-1] for one in squares))
    assert math.isclose(found.curvature, want, rel_tol=1e-5)  # second differences: 1e-16/1e-8
    assert math.isclose(found.kappa, residual * want / values[-1], rel_tol=1e-5)
    assert math.isclose(found.displacement, math.sqrt(values[-1]) / values[0] * residual, rel_tol=1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), scale=st.floats(0.1, 100.0), bias=st.sampled_from(["trained", "fixed"]))
def test_bounds_hold_for_linearised_neurons(seed, scale, bias):
    model, start = problem(seed, scale, bias=bias)
    found = theory.laziness(model, start)
    horizon = 3.0 / max(found.smallest, 1e-3 * found.largest)
    run = mf.solve(model, mf.Linearized(len(start)), horizon=horizon, save_at=7, keep="all")
    assert (run.risk <= found.risk_bound(run.t) * (1 + 1e-9)).all()
    for measure in run.kept.values():
        moved = measure.theta - measure.start
        square = sum(
            np.square(moved[:, where]).sum() / SPEEDS[block]
            for block, where in model.network.blocks(3).items()
            if block in model.network.trained
        )
        assert bias == "trained" or (moved[:, 1] == 0).all()
        assert math.sqrt(square / len(start)) <= found.displacement * (1 + 1e-9)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_features_drift_at_most_by_curvature_times_displacement(seed):
    """|Df(θ') − Df(θ)| ≤ sup ‖D²f‖·|θ' − θ|, the sup taken on the segment, at 40 of its points."""
    model, start = problem(seed)
    end = start + 0.1 * np.random.default_rng(seed).normal(size=start.shape)
    points = [start + s * (end - start) for s in np.linspace(0, 1, 40)]
    most = max(theory.laziness(model, p).curvature for p in points)
    X = model.data.X
    # |Df − Df'|² in L²(P) ⊗ Θ is the trace of K(θ, θ) − 2K(θ, θ') + K(θ', θ'), made here from both Jacobians
    blocks = model.network.blocks(3).items()
    speed = np.concatenate([np.full(w.stop - w.start, math.sqrt(SPEEDS[b])) for b, w in blocks])

    def jacobian(theta):
        a, b, w = theta[:, 0], theta[:, 1], theta[:, 2:]
        z = X @ w.T + b
        slope = a * (1 - np.tanh(z) ** 2)
        parts = np.concatenate(
            [np.tanh(z)[..., None], slope[..., None], slope[..., None] * X[:, None]], axis=2
        )
        return parts * speed

    drift = math.sqrt(np.square(jacobian(end) - jacobian(start)).sum() / len(start) / len(X))
    moved = math.sqrt(np.square((end - start) / speed).sum() / len(start))
    assert drift <= most * moved * 1.01  # 1 %: the sup lies between points of the segment


def largest_form(hessians, rng, starts=20, turns=60):
    """sup (n⁻¹Σ_q (uᵀH_q v)²)^½ over unit vectors, by turns in u and v from random starts."""
    best = 0.0
    for _ in range(starts):
        v = rng.normal(size=hessians.shape[-1])
        for _ in range(turns):
            rows = hessians @ (v / np.linalg.norm(v))
            size, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
            v = vectors[:, -1]
        best = max(best, math.sqrt(size[-1]))
    return best


@pytest.mark.parametrize("shape", [{}, {"output": "fixed"}, {"bias": "fixed"}], ids=str)
@pytest.mark.parametrize("samples", [2, 6, 12])
def test_kappa_is_an_upper_bound_of_that_in_operator_norms(samples, shape):
    model, theta = problem(0, scale=2.0, samples=samples, **shape)
    found, rng = theory.laziness(model, theta), np.random.default_rng(0)
    norm = max(largest_form(one, rng) for one in dense_hessians(model, theta, model.data.X))
    trained = model.network.row(3) - len(model.network.still)
    share = found.curvature / norm
    # 1.006 to 1.06 here, and the Hessians are good to 1e-5: it is not the operator norm
    assert 1.003 < share <= math.sqrt(min(samples, trained))
    kappa = found.residual * norm / found.largest
    assert math.isclose(found.kappa, share * kappa, rel_tol=1e-12)


def test_kappa_is_inverse_to_the_scale_where_f_is_zero():
    rng = np.random.default_rng(0)
    theta = np.repeat(rng.normal(size=(4, 5)), 2, axis=0)
    theta[1::2, 0] *= -1
    one, ten = (theory.laziness(problem(0, scale)[0], theta) for scale in (1.0, 10.0))
    assert math.isclose(one.kappa, 10 * ten.kappa, rel_tol=1e-9)
    assert math.isclose(one.displacement, 10 * ten.displacement, rel_tol=1e-6)


@pytest.mark.parametrize(("samples", "bias"), [(60, "trained"), (9, "fixed")])
def test_more_samples_than_trained_parameters_have_no_rate(samples, bias):
    # Two neurons have 2 · 5 parameters, of which 8 train where b is fixed.
    model, start = problem(0, samples=samples, neurons=2, bias=bias)
    found = theory.laziness(model, start)
    assert found.smallest == 0
    assert found.displacement == math.inf


@pytest.mark.parametrize("force", ["ridge", "temperature"])
def test_forces_under_which_the_bounds_do_not_hold_are_refused(force):
    model, start = problem(0)
    with pytest.raises(ValueError, match=rf"^model must have {force} 0 for laziness.*got 0.4"):
        theory.laziness(model.replace(**{force: 0.4}), start)
    assert theory.laziness(model, start).kappa > 0
    if force == "ridge":  # decay holds the linearised network away from the labels
        plain = model.replace(rates=None)
        held = mf.solve(plain.replace(ridge=0.4), mf.Linearized(8), horizon=1e3, save_at=[1e3])
        assert held.risk[0] > 100 * theory.laziness(plain, start).risk_bound(1e3)


def test_the_sphere_is_refused():
    model, start = problem(0)
    network = mf.Network(mf.activations.tanh, sphere=True)
    start = start[:, 2:] / np.linalg.norm(start[:, 2:], axis=1, keepdims=True)
    with pytest.raises(ValueError, match="sphere=False"):
        theory.laziness(mf.Model(model.data, network), start)
