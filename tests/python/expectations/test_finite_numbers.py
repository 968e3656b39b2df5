"""Numbers that are not finite never leave silently: they are an error, or a status with a message."""

import math

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import activations, steppers
from mfcore.steppers import FiniteVolume1D

SMOOTH = ["tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "sin", "cos"]
NAMES = [*SMOOTH, "relu", "linear"]
SIZES = st.integers(-150, 150).map(lambda k: 10.0**k)
REFUSED = (ValueError, FloatingPointError)


def model(name="tanh", d=3, output="one", bias="none", init=None, **options):
    network = mf.Network(getattr(activations, name), output=output, bias=bias)
    return mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), network, init, **options)


def numbers(shape, seed, size):
    """Normal numbers of a size, some of them 0 and some of size 1."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * rng.choice([0.0, 1.0, size, size], size=shape)


# --- steppers


@pytest.mark.parametrize("rows", [1, 20, 60])
def test_an_update_that_overflows_is_taken_back(rows):
    network = mf.Network(activations.relu, output="trained")
    theta = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    before = theta.copy()
    sgd = steppers.SGD(network, theta, threads=1)
    X, y = np.full((rows, 2), 1e200), np.zeros(rows)
    with pytest.raises(FloatingPointError, match="no longer finite at step 0"):
        sgd.step(X, y, 1.0)
    with pytest.raises(FloatingPointError, match="no longer finite at step 0"):
        sgd.run(X, y, 1.0)
    assert np.array_equal(theta, before)
    assert sgd.steps == 0


def test_an_update_that_is_large_and_fits_is_made():
    theta = np.array([[1.0, 1.0]])
    steppers.SGD(mf.Network(activations.relu, output="trained"), theta).step([1e150], 0.0, 1e-10)
    np.testing.assert_allclose(theta, [[-1e290, -1e290]], rtol=1e-15)


def test_noise_and_decay_that_overflow_are_taken_back():
    network = mf.Network(activations.tanh)
    for options, h in [({"temperature": 1e308}, 1e308), ({"ridge": 1e300}, 1e10)]:
        theta = np.full((3, 2), 1e5)
        before = theta.copy()
        with pytest.raises(FloatingPointError):
            steppers.SGD(network, theta, rng=0, **options).step([1.0, 0.0], 1.0, h)
        assert np.array_equal(theta, before)


def test_on_the_sphere_every_step_ends_on_it_and_zero_stays():
    network = mf.Network(activations.linear, sphere=True)
    theta = np.array([[1e200, 1e200], [1e-200, 0.0], [0.0, 0.0]])
    steppers.SGD(network, theta).step([0.0, 0.0], 1.0, 0.1)
    np.testing.assert_allclose(theta, [[math.sqrt(0.5)] * 2, [1.0, 0.0], [0.0, 0.0]], rtol=1e-15)


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    output=st.sampled_from(["one", "trained"]),
    bias=st.sampled_from(["none", "trained"]),
    rows=st.sampled_from([1, 3, 40, 120]),
    sizes=st.tuples(SIZES, SIZES, SIZES, SIZES),
    noise=st.one_of(st.just(0.0), SIZES),
    ridge=st.one_of(st.just(0.0), SIZES),
    rate=SIZES,
    run=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_sgd_leaves_finite_neurons_or_raises_and_leaves_the_last(
    name, output, bias, rows, sizes, noise, ridge, rate, run, seed
):
    network = mf.Network(getattr(activations, name), output=output, bias=bias)
    theta = numbers((5, network.row(3)), seed, sizes[0])
    X, y = numbers((rows, 3), seed + 1, sizes[1]), numbers(rows, seed + 2, sizes[2])
    sgd = steppers.SGD(network, theta, temperature=noise, ridge=ridge, rates={"w": rate}, rng=seed, threads=1)
    for _ in range(3):
        before, steps = theta.copy(), sgd.steps
        try:
            (sgd.run if run else sgd.step)(X, y, sizes[3])
        except FloatingPointError:
            if sgd.steps == steps:
                assert np.array_equal(theta, before)
        assert np.isfinite(theta).all()


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    size=SIZES,
    h=SIZES,
    ridge=st.one_of(st.just(0.0), SIZES),
    rate=SIZES,
    seed=st.integers(0, 2**32 - 1),
)
def test_flows_leave_finite_neurons_or_raise_and_leave_the_last(name, size, h, ridge, rate, seed):
    theta = numbers((4, 3), seed, size)
    flow = steppers.Flow(model(name, ridge=ridge, rates={"w": rate}), theta, threads=1)
    for act in (lambda: flow.velocity(), lambda: flow.step(h), lambda: flow.step(h)):
        try:
            result = act()
        except REFUSED:
            continue
        finally:
            assert np.isfinite(theta).all()
        assert result is None or np.isfinite(result).all()


def test_a_grid_of_features_without_squares_is_refused():
    steep = mf.ReducedModel(
        coordinates=["z"], weights=[1.0], targets=[1.0], features=lambda z: 1e300 * z,
        gradients=lambda z: np.full((len(z), 1, 1), 1e300),
    )  # fmt: skip
    mass = np.full(8, 1 / 8)
    with pytest.raises(ValueError, match="edges must be where the squares of the features are finite"):
        FiniteVolume1D(steep, np.linspace(0, 1, 9), mass)
    assert np.array_equal(mass, np.full(8, 1 / 8))


# --- functions, estimates and runs


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    bias=st.sampled_from(["none", "trained"]),
    size=SIZES,
    other=SIZES,
    ridge=st.one_of(st.just(0.0), SIZES),
    seed=st.integers(0, 2**32 - 1),
)
def test_functions_are_finite_or_refuse(name, bias, size, other, ridge, seed):
    of = model(name, bias=bias, ridge=ridge)
    row = of.network.row(3)
    theta, rho = numbers((4, row), seed, size), numbers((3, row), seed + 1, other)
    calls = {
        "V": lambda: mf.V(of, theta),
        "U": lambda: mf.U(of, theta, rho),
        "psi": lambda: mf.psi(of, theta, rho),
        "grad_psi": lambda: mf.grad_psi(of, theta, rho),
        "risk": lambda: mf.risk(of, rho),
        "predict": lambda: mf.predict(of, rho, numbers((2, 3), seed, size)),
    }
    for what, call in calls.items():
        try:
            assert np.isfinite(call()).all()
        except ValueError:  # nothing but fourth powers, of U and a risk, is refused below these
            assert max(size, other, ridge) > 1e45, what


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), size=SIZES, gradient=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_estimates_are_finite_or_refuse(name, size, gradient, seed):
    theta = numbers((3, 3), seed, size)
    try:
        e = mf.estimate(model(name), theta, samples=100, rng=seed, gradient=gradient, threads=1)
    except ValueError:
        assert size > 1e70
        return
    for value in (e.V, e.V_error, e.U, e.U_error, e.grad_V, e.grad_V_error):
        assert value is None or np.isfinite(value).all()


def test_estimates_at_sizes_without_squares_are_refused_by_name():
    with pytest.raises(
        ValueError, match=r"theta must be of a size at which the .* of [VU] is finite, got .* 1e\+200"
    ):
        mf.estimate(model("relu"), [[1e200, 0.0, 0.0]], samples=100, rng=0)


@pytest.mark.parametrize(
    "method",
    [mf.Particles(neurons=8), mf.GD(neurons=8, step=0.1), mf.SGD(neurons=8, step=0.1), mf.PDE(), mf.Atoms()],
)
def test_runs_from_huge_weights_have_finite_risks(method):
    run = mf.solve(model(d=40, init=mf.init.Radial(1e5)), method, horizon=0.1, save_at=2, rng=0)
    assert run.status == "completed"
    assert np.isfinite(run.risk).all()


def test_runs_at_a_huge_temperature_have_finite_risks():
    # At |w| = 1e7 sigmoids are steps: E (y - f)² = 1 + E f², and E f² = 1/4 + 1/(4·200) but for the angles
    # between neurons, which add (√2/200)(1/√40)/2π = 2e-4 times a normal number: five of these.
    of = model("sigmoid", d=40, temperature=1e16, init=mf.init.Gaussian(std=1.0))
    run = mf.solve(of, mf.GD(neurons=200, step=1e-3), horizon=0.1, save_at=3, rng=0, risk=mf.Exact())
    assert run.status == "completed"
    assert abs(run.risk[-1] - (1.25 + 1 / 800)) < 1e-3


def test_a_run_whose_risk_is_not_finite_says_so():
    start = mf.init.Points(np.full((4, 3), 1e160))
    run = mf.solve(
        model("relu", init=start), mf.SGD(neurons=4, step=1e-300), horizon=1e-299, save_at=3, rng=0
    )
    assert run.status == "diverged"
    assert "no longer finite at t = 0: risk" in run.message
    assert len(run.t) == 1


def test_what_an_observer_of_the_user_returns_is_theirs():
    run = mf.solve(
        model(init=mf.init.Gaussian(std=1.0)), mf.SGD(neurons=4, step=0.1), horizon=1.0, save_at=3, rng=0,
        observe={"mine": lambda theta: math.nan},
    )  # fmt: skip
    assert run.status == "completed"
    assert np.isnan(run.observed["mine"]).all()


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    method=st.sampled_from(["sgd", "float32", "gd", "particles"]),
    init=SIZES,
    step=SIZES,
    ridge=st.one_of(st.just(0.0), SIZES),
    temperature=st.one_of(st.just(0.0), SIZES),
)
def test_runs_of_networks_are_finite_or_say_where_they_stopped_being_so(
    name, method, init, step, ridge, temperature
):
    flow = method == "particles"
    of = model(name, init=mf.init.Gaussian(std=init), ridge=ridge, temperature=0.0 if flow else temperature)
    made = {
        "sgd": mf.SGD(neurons=5, step=step),
        "float32": mf.SGD(neurons=5, step=step, precision="float32"),
        "gd": mf.GD(neurons=5, step=step),
        "particles": mf.Particles(neurons=5),
    }[method]
    try:
        run = mf.solve(of, made, horizon=3 * step, save_at=3, rng=0, max_seconds=2, threads=1)
    except ValueError:
        return
    assert np.isfinite(run.final).all()
    if run.status == "diverged":
        assert any(words in run.message for words in ("finite", "step size fell", "times its scale"))
        return
    assert np.isfinite(run.risk).all()
    assert all(np.isfinite(value).all() for value in run.observed.values())
