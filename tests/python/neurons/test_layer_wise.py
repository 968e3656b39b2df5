"""The first layer alone: small weights on a sphere, found ones clipped; then the second layer."""

import mfcore as mf
import numpy as np
import pytest
from mfcore._base.rng import Seed

SIGMA = mf.activations.hermite([0.0, 1.0, 1.0, 1.0, 1.0])
D, N, SIZE = 20, 6, 0.01


def model(sets=((0,), (0, 1)), d=D, **network):
    signs = np.sign(np.random.default_rng(0).normal(size=(N, d)))
    theta = np.column_stack([np.full(N, SIZE), signs / np.sqrt(d)])
    if network.get("bias", "none") != "none":
        theta = np.insert(theta, 1, np.linspace(-1, 1, N), axis=1)
    return mf.Model(
        mf.data.Staircase(d, list(sets)),
        mf.Network(SIGMA, output="fixed", **network),
        mf.init.Points(theta),
    )


def by_hand(problem, steps, h, seed, batch=1, reach=0.5, clip=1.0):
    """The algorithm with a loop over neurons and coordinates: eqs. (12.8) and (12.9)."""
    theta = np.array(problem.init.theta)
    w, a = theta[:, 1:], theta[:, 0]
    small = np.abs(w) < reach
    X, y = problem.data.draw(steps * batch, Seed(seed))
    for k in range(steps):
        at = slice(k * batch, (k + 1) * batch)
        f = np.mean([a[i] * SIGMA(X[at] @ w[i]) for i in range(N)], axis=0)
        moves = [
            h * np.mean((y[at] - f) * a[i] * SIGMA.derivative(X[at] @ w[i]) * X[at].T, axis=1)
            for i in range(N)
        ]
        for i in range(N):
            s = small[i]
            inside = moves[i][s] - (moves[i][s] @ w[i, s]) / (w[i, s] @ w[i, s]) * w[i, s]
            w[i, ~s] = np.clip(w[i, ~s] + moves[i][~s], -clip, clip)
            w[i, s] += inside
            w[i, s] /= np.linalg.norm(w[i, s])
            small[i] &= np.abs(w[i]) < reach
    return theta


@pytest.mark.parametrize("batch", [1, 5])
def test_steps_are_those_of_the_algorithm_written_out(batch):
    problem, h, steps = model(), 0.2, 300
    rung = mf.LayerWise(N, h, batch=batch).begin(problem, 7, 1)
    assert rung.advance(steps * h, 60.0).reached
    # sums in another order; a weight that is within rounding of the reach would differ more
    assert rung.measure() == pytest.approx(by_hand(problem, steps, h, 7, batch), abs=1e-9)


def test_small_weights_keep_their_norm_and_found_ones_stay_inside_the_clip():
    problem = model()
    run = mf.solve(problem, mf.LayerWise(N, 0.5, clip=0.8), horizon=800.0, risk=False, rng=0, keep="all")
    small = np.ones((N, D), dtype=bool)
    for t in run.t:
        w = run.kept[t][:, 1:]
        assert np.abs(w).max() <= 1.0
        assert (run.kept[t][:, 0] == SIZE).all()
    small = np.abs(run.final[:, 1:]) < 0.3
    assert run.meta["found"] >= N  # z_0, of every neuron
    assert small[:, 5:].any()


@pytest.mark.parametrize("sets", [[(0,), (0, 1)], [(0,), (0, 1, 2)]])
def test_coordinates_are_found_one_after_the_other(sets):
    problem = model(sets, d=40)
    steps = mf.LayerWise(N, 3e-4 / SIZE, batch=4)
    run = mf.solve(
        problem,
        steps,
        horizon=6.0 / SIZE,
        save_at=41,
        risk=False,
        rng=1,
        observe={"w": lambda theta: np.abs(theta[:, 1:4]).mean(axis=0)},
    )
    first, second = (run.t[np.argmax(run.observed["w"][:, j] > 0.7)] for j in (0, 1))
    assert 0 < first < second
    assert run.observed["w"][-1, : len(sets[1])].min() > 0.7


def test_interruptions_and_resumed_runs_change_no_bit(tmp_path):
    problem, method = model(bias="fixed"), mf.LayerWise(N, 0.7, batch=3)
    whole = mf.solve(problem, method, horizon=100.0, risk=False, rng=3)
    rung, other = (method.begin(problem, 5, 1) for _ in range(2))
    for one in (rung, other):
        one.clock.end = 100.0
    rung.advance(100.0, 60.0)
    while not other.advance(100.0, 0.0).reached:
        again = method.begin(problem, 5, 1)
        again.clock.end = 100.0
        again.restore(other.state())
        other = again
    assert np.array_equal(rung.measure(), other.measure())
    assert rung.t == other.t == 100.0
    assert whole.t[-1] == 100.0
    assert rung.meta()["steps"] == 143  # 142 whole steps of 0.7 and a shortened one


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda: mf.LayerWise(0, 0.1), "neurons"),
        (lambda: mf.LayerWise(2, 0.0), "step"),
        (lambda: mf.LayerWise(2, 0.1, reach=0.5, clip=0.4), "clip"),
        (lambda: mf.solve(model().replace(ridge=0.1), mf.LayerWise(N, 0.1), horizon=1.0), "ridge"),
        (
            lambda: mf.solve(
                mf.Model(model().data, mf.Network(SIGMA, sphere=True), mf.init.Sphere(1.0)),
                mf.LayerWise(N, 0.1),
                horizon=1.0,
            ),
            "sphere",
        ),
    ],
)
def test_misuse_is_answered_with_argument_and_rule(change, match):
    with pytest.raises(ValueError, match=match):
        change()


def test_a_step_that_is_too_large_is_a_status():
    fast = model().replace(rates={"w": 1e300})
    run = mf.solve(fast, mf.LayerWise(N, 1e10), horizon=1e12, risk=False, rng=0, save_at=3)
    assert run.status == "diverged"
    assert np.isfinite(run.final).all()


def test_the_second_layer_is_the_minimiser_of_the_quadratic():
    problem = model(bias="fixed")
    theta = problem.init.sample(problem.network, D, N, rng=0)
    found = mf.theory.second_layer(problem, theta, samples=500, ridge=0.1, rng=4)
    assert np.array_equal(found[:, 1:], theta[:, 1:])
    X, y = problem.data.draw(500, 4)

    def loss(a):
        there = found.copy()
        there[:, 0] = a
        return np.mean((y - mf.predict(problem, there, X)) ** 2) + 0.1 * np.mean(a**2)

    at = loss(found[:, 0])
    rng = np.random.default_rng(1)
    # the minimum of a quadratic: any change of size 1e-3 costs at least 0.1·1e-6/N
    assert all(loss(found[:, 0] + 1e-3 * rng.normal(size=N)) > at for _ in range(10))
    plain = mf.Model(problem.data, mf.Network(SIGMA))
    with pytest.raises(ValueError, match='output="fixed"'):
        mf.theory.second_layer(plain, np.ones((2, D)), samples=10)


def test_a_finite_dataset_is_passed_through_and_infinite_dimension_is_refused():
    X, y = model().data.draw(30, 0)
    problem = model().replace(data=mf.data.Dataset(X, y))
    run = mf.solve(problem, mf.LayerWise(N, 0.1, batch=10), horizon=2.0, rng=0)
    assert run.status == "completed"
    endless = mf.Model(mf.data.Staircase(np.inf, [(0,)]), mf.Network(SIGMA, output="fixed"))
    for call in (
        lambda: mf.solve(endless, mf.LayerWise(N, 0.1), horizon=1.0),
        lambda: mf.theory.second_layer(endless, np.ones((2, 3)), samples=10),
        lambda: mf.theory.second_layer(problem, np.full((2, D + 1), 1e200), samples=10),
    ):
        with pytest.raises(ValueError, match=r"^[a-z]"):
            call()
