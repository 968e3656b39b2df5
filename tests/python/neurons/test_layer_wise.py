"""The first layer alone: small weights on a sphere, found ones clipped; then the second layer."""

import mfcore as mf
import numpy as np
import pytest
from mfcore._base.rng import Seed

SIGMA = mf.activations.hermite([0.0, 1.0, 1.0, 1.0, 1.0])
D, N, SIZE = 20, 6, 0.01


def model(sets=((0,), (0, 1)), d=D, neurons=N, **network):
    signs = np.sign(np.random.default_rng(0).normal(size=(neurons, d)))
    theta = np.column_stack([np.full(neurons, SIZE), signs / np.sqrt(d)])
    if network.get("bias", "none") != "none":
        theta = np.insert(theta, 1, np.linspace(-1, 1, neurons), axis=1)
    return mf.Model(
        mf.data.Staircase(d, list(sets)),
        mf.Network(SIGMA, output="fixed", **network),
        mf.init.Points(theta),
    )


def by_hand(problem, steps, h, seed, batch=1, reach=0.5, clip=1.0):
    """The algorithm with a loop over neurons and coordinates: eqs. (12.8) and (12.9)."""
    theta = np.array(problem.init.theta)
    w, a = theta[:, problem.network.row(0) :], theta[:, 0]
    b = theta[:, 1] if problem.network.has_b else np.zeros(len(a))
    small, norms = np.abs(w) < reach, np.linalg.norm(w, axis=1)
    X, y = problem.data.draw(steps * batch, Seed(seed))
    for k in range(steps):
        at = slice(k * batch, (k + 1) * batch)
        z = [X[at] @ w[i] + b[i] for i in range(len(a))]
        f = np.mean([a[i] * SIGMA(z[i]) for i in range(len(a))], axis=0)
        pulls = [(y[at] - f) * a[i] * SIGMA.derivative(z[i]) for i in range(len(a))]
        moves = [h * np.mean(pull * X[at].T, axis=1) for pull in pulls]
        for i in np.flatnonzero(small.any(axis=1)):
            s = small[i]
            inside = moves[i][s] - (moves[i][s] @ w[i, s]) / (w[i, s] @ w[i, s]) * w[i, s]
            w[i, s] += inside
            w[i, s] *= norms[i] / np.linalg.norm(w[i, s])
        for i in range(len(a)):
            w[i, ~small[i]] = np.clip(w[i, ~small[i]] + moves[i][~small[i]], -clip, clip)
            small[i] &= np.abs(w[i]) < reach
    return theta


# One tile of each width, several, the last one full or not; batches of less, as many and more than a chunk.
@pytest.mark.parametrize(
    ("neurons", "d", "batch", "bias"),
    [(6, 20, 1, "none"), (6, 20, 5, "none"), (13, 7, 3, "fixed"), (24, 9, 64, "none"), (61, 5, 150, "fixed")],
)
def test_steps_are_those_of_the_algorithm_written_out(neurons, d, batch, bias):
    problem, h, steps = model(d=d, neurons=neurons, bias=bias), 1.0, 150
    rung = mf.LayerWise(neurons, h, batch=batch).begin(problem, 7, 1)
    assert rung.advance(steps * h, 60.0).reached
    assert rung.meta()["found"] > 0
    # sums in another order; after 300 steps neurons tear such differences apart to 1e-4
    assert rung.measure() == pytest.approx(by_hand(problem, steps, h, 7, batch), abs=1e-9)


@pytest.mark.parametrize(("neurons", "batch"), [(6, 1), (100, 40), (700, 150)])
def test_threads_change_no_bit(neurons, batch):
    problem = model(d=60, neurons=neurons, bias="fixed")
    found = []
    for threads in (1, 2, 3):
        rung = mf.LayerWise(neurons, 0.5, batch=batch).begin(problem, 2, threads)
        rung.advance(20.0, 60.0)
        found.append(rung.measure())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_a_resumed_run_ends_with_the_same_bits_and_takes_no_other_state(tmp_path):
    problem, method = model(), mf.LayerWise(N, 0.7, batch=3)
    options = {"horizon": 300.0, "risk": False, "rng": 3, "save_at": 7}
    whole = mf.solve(problem, method, **options)
    file = tmp_path / "run.npz"

    def stop_late(theta):
        if theta is not None and np.abs(theta[:, 1]).min() > 0.3:
            raise KeyboardInterrupt

    part = mf.solve(
        problem, method, **options, checkpoint=file, observe={"stop": lambda t: stop_late(t) or 0.0}
    )
    assert part.status == "interrupted"
    again = mf.resume(file, observe={"stop": lambda theta: 0.0})
    assert np.array_equal(again.final, whole.final)
    assert again.meta["found"] == whole.meta["found"] > 0
    rung = method.begin(problem, 1, 1)
    for name in ("theta", "norms", "small", "step"):
        with pytest.raises(ValueError, match="neurons" if name == "theta" else name):
            rung.restore({**rung.state(), name: np.zeros(2)})
    with pytest.raises(ValueError, match="step"):
        rung.restore({**rung.state(), "step": np.array([-1])})


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
    # f of the first step is finite, squares of what it would move by are not: the start is what is left
    rung = mf.LayerWise(N, 1e200).begin(model(), 0, 1)
    ended = rung.advance(3e200, 60.0)
    assert ended.end.name == "diverged"
    assert "smaller step" in ended.message
    assert np.array_equal(rung.measure(), model().init.theta)


def test_a_sampler_in_python_that_is_interrupted_leaves_whole_steps():
    problem = model()
    asked = []

    def slow(z):
        asked.append(len(z))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return z[:, 0]

    slow_model = problem.replace(data=mf.data.MultiIndex(D, slow, 1, inputs="hypercube"))
    rung = mf.LayerWise(N, 0.1, batch=5000).begin(slow_model, 0, 1)
    before = len(asked)
    ended = rung.advance(100.0, 60.0)
    assert ended.end.name == "interrupted"
    assert len(asked) > before
    assert rung.t == pytest.approx(0.1 * rung.meta()["steps"])


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
