"""Neurons that reach w = 0, where a kink of σ makes the potential a cone: eqs. (6.18) to (6.20)."""

import mfcore as mf
import numpy as np
import pytest
from mfcore.neurons._flow import system_of
from scipy.integrate import solve_ivp

RELU = mf.activations.relu
LAW = mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Radial(1.0))
STUDENT = mf.Network(RELU, output="trained")
TEACHER = mf.Model(mf.data.Teacher(mf.Network(RELU), 3 * np.eye(3, 5)), STUDENT, LAW)


def opposed(theta, **forces):
    """Neurons with a > 0 whose target is −|x₁|/2: a·h is positive in every direction."""
    data = mf.data.Teacher(STUDENT, [[-1.0, 1.0, 0.0, 0.0], [-1.0, -1.0, 0.0, 0.0]])
    return mf.Model(data, STUDENT, mf.init.Points(theta), **forces)


def invariants(theta):
    """a² − |w|² of every neuron, which the flow keeps without ridge."""
    return theta[:, 0] ** 2 - np.square(theta[:, 1:]).sum(axis=1)


def test_a_relu_network_with_trained_a_learns_a_teacher_while_neurons_rest_and_leave():
    run = mf.solve(TEACHER, mf.Particles(50), horizon=10.0, rng=0, save_at=41, keep="all")
    assert run.status == "completed"
    assert run.meta["steps"] < 1000
    size = np.array([np.linalg.norm(theta[:, 1:], axis=1) for theta in run.kept.values()])
    a = np.array([theta[:, 0] for theta in run.kept.values()])
    at_rest = size < 1e-9
    assert at_rest.any()
    assert not at_rest[-1].any()
    both = at_rest[1:] & at_rest[:-1]
    assert np.allclose(a[1:][both], a[:-1][both], rtol=1e-9)
    # rtol = 1e-6 a step, and δ² = 1.6e-5 for the neuron that rests
    first = invariants(run.kept[0.0])
    assert all(np.allclose(invariants(theta), first, atol=2e-5) for theta in run.kept.values())


def test_a_flow_with_neurons_at_rest_is_the_limit_of_gradient_descent():
    flow = mf.solve(TEACHER, mf.Particles(50), horizon=4.0, rng=0, save_at=9)
    errors = []
    for step in (4e-3, 2e-3):
        descent = mf.solve(TEACHER, mf.GD(50, step), horizon=4.0, rng=0, save_at=9)
        errors.append(descent.risk - flow.risk)
    # Order 1: the extrapolated rest is of order h² = 4e-6 times the second derivatives of the risk.
    assert np.abs(errors[0]).max() > 1e-3
    assert np.abs(2 * errors[1] - errors[0]).max() < 2e-5


@pytest.mark.parametrize("method", ["dopri5", "lsoda"])
def test_a_neuron_against_which_every_direction_pushes_rests_for_good(method):
    model = opposed([[1.5, 0.6, 0.8, 0.0]], ridge=0.0)
    run = mf.solve(model, mf.Particles(1, method=method), horizon=20.0, save_at=11, keep="all")
    assert run.status == "completed"
    a, size = run.final[0, 0], np.linalg.norm(run.final[0, 1:])
    assert size < 1e-9
    assert a == pytest.approx(np.sqrt(1.5**2 - 1.0), rel=1e-4)  # the invariant, to order δ²
    assert run.risk[-1] == pytest.approx(0.25, rel=1e-9)  # E x₁²/4: f = 0


def test_a_neuron_that_every_direction_pulls_leaves_at_once():
    """Its force is along it: the fold slows it nowhere, and errors are those of steps with rtol = 1e-6."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    data = mf.data.Dataset(X, np.maximum(X @ [1.5, 0.75], 0.0))
    theta = np.array([[0.5, 0.6, -0.3], [1.0, 1e-9, 0.0]])
    for _ in range(5):  # the direction in which the force points
        force = -mf.grad_psi(mf.Model(data, STUDENT), theta, theta)[1, 1:]
        theta[1, 1:] = 1e-9 * force / np.linalg.norm(force)
    model = mf.Model(data, STUDENT, mf.init.Points(theta))

    def velocity(_, z):
        return -mf.grad_psi(model, z.reshape(2, 3), z.reshape(2, 3)).ravel()

    want = solve_ivp(velocity, (0, 0.1), theta.ravel(), rtol=1e-10, atol=1e-13).y[:, -1].reshape(2, 3)
    run = mf.solve(model, mf.Particles(2), horizon=0.1, save_at=[0.1])
    assert np.linalg.norm(want[1, 1:]) > 0.05  # from 1e-9
    np.testing.assert_allclose(run.final, want, rtol=0, atol=1e-5)


def test_a_resting_neuron_decays_like_any_other():
    run = mf.solve(
        opposed([[1.5, 0.6, 0.8, 0.0]], ridge=0.1), mf.Particles(1), horizon=20.0, save_at=21, keep="all"
    )
    a = np.array([theta[0, 0] for theta in run.kept.values()])
    assert np.linalg.norm(run.final[0, 1:]) < 1e-9
    assert a[-1] / a[-6] == pytest.approx(np.exp(-0.1 * 5), rel=1e-5)  # rtol = 1e-6 a step


@pytest.mark.parametrize("rates", [None, {"b": 0.5}])
def test_biases_belong_to_the_cone(rates):
    size = mf.activations.piecewise_linear([0.0], [0.0], left_slope=-1.0, right_slope=1.0)
    network = mf.Network(size, output="trained", bias="trained")
    data = mf.data.Teacher(network, [[-1.0, 0.3, 1.0, 0.0, 0.0]])
    model = mf.Model(data, network, mf.init.Points([[2.0, 0.1, 0.6, 0.8, 0.0]]), rates=rates)
    run = mf.solve(model, mf.Particles(1), horizon=6.0)
    assert run.status == "completed"
    assert np.linalg.norm(run.final[0, 1:]) < 1e-9


@pytest.mark.parametrize("method", ["dopri5", "lsoda"])
def test_save_points_and_a_stop_change_no_bit_of_a_neuron_at_rest(method):
    method = mf.Particles(50, method=method)
    whole, stopped, resumed = (method.begin(TEACHER, 0, 1) for _ in range(3))
    for t in np.linspace(0.1, 2.5, 7):
        stopped.advance(t, np.inf)
    assert np.linalg.norm(stopped.measure()[:, 1:], axis=1).min() < 1e-8
    resumed.restore(stopped.state())
    for rung in (whole, stopped, resumed):
        rung.advance(4.0, np.inf)
    assert np.array_equal(stopped.measure(), whole.measure())
    assert np.array_equal(resumed.measure(), whole.measure())


@pytest.mark.parametrize(
    ("sigma", "bias", "rests"),
    [
        (RELU, "none", True),
        (RELU, "fixed", False),
        (mf.activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5]), "none", False),
        (mf.activations.piecewise_linear([0.5, 1.5], [-2.5, 7.5]), "trained", True),
        (mf.activations.tanh, "trained", False),
    ],
)
def test_a_cone_is_where_a_kink_meets_no_weight(sigma, bias, rests):
    network = mf.Network(sigma, output="trained", bias=bias)
    model = mf.Model(TEACHER.data, network, mf.init.Gaussian(1.0))
    system = system_of(model, 2, None, 1)
    assert (system.resting_radius(np.ones((2, model.row)), 1e-6) > 0) == rests


def test_atoms_of_a_single_index_model_rest_too():
    data = mf.data.MultiIndex(np.inf, lambda z: 2 * np.cos(z[:, 0]), directions=1)
    model = mf.Model(data, STUDENT, LAW)
    run = mf.solve(model, mf.Atoms(count=64, rtol=1e-6), horizon=2.0, save_at=5, keep="all")
    assert run.status == "completed"
    size = np.array([np.hypot(*cloud.points[:, 1:].T) for cloud in run.kept.values()])
    assert (size < 1e-9).any()
    fixed = mf.solve(model, mf.Atoms(count=64, method="rk4", step=2e-3), horizon=2.0)
    assert run.risk[-1] == pytest.approx(
        fixed.risk[-1], abs=2e-3
    )  # which bounces about 0 by steps of its size


def test_steps_that_collapse_end_the_run_and_name_the_neuron():
    # In one dimension both sides push towards w = 0, and nothing can turn.
    data = mf.data.Dataset([[1.0], [-1.0]], [-1.0, -1.0])
    model = mf.Model(data, STUDENT, mf.init.Points([[1.5, 0.6]]))
    run = mf.solve(model, mf.Particles(1), horizon=10.0, max_seconds=60)
    assert run.status == "diverged"
    assert "neuron 0, |w| = " in run.message
    assert "method='lsoda'" in run.message
