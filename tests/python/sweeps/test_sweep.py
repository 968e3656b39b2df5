"""Many runs: the same numbers whoever computes them, nothing lost, failures reported."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import mfcore as mf
import numpy as np
import pytest
from sweep_functions import dies, dies_once, fails_at_two, final_risk

GRID = {"neurons": [5, 10], "delta": [0.2, 0.4, 0.6]}


def test_processes_threads_and_this_process_compute_the_same_numbers():
    alone = mf.sweep(final_risk, GRID, workers=1)
    assert alone["value"].dims == ("neurons", "delta")
    assert not alone["failed"].any()
    pool = mf.sweep(final_risk, GRID, workers=2)
    with ThreadPoolExecutor(2) as client:
        given = mf.sweep(final_risk, GRID, client=client)
    assert alone.identical(pool)
    assert alone.identical(given)


def test_the_seed_of_a_case_depends_on_the_case_and_not_on_its_place():
    seeds = mf.sweep(lambda x, rng: rng, {"x": [1, 2, 3]}, workers=1)["value"]
    again = mf.sweep(lambda x, rng: rng, [{"x": 3}], workers=1)["value"]
    assert len(set(seeds.values.tolist())) == 3
    assert int(again[0]) == int(seeds.sel(x=3))
    other = mf.sweep(lambda x, rng: rng, {"x": [3]}, workers=1, rng=1)["value"]
    assert int(other[0]) != int(again[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_that_fails_is_reported_and_the_others_go_on(workers):
    with pytest.warns(UserWarning, match="1 of 3 cases failed; the first, x=2: RuntimeError: two is not"):
        result = mf.sweep(fails_at_two, {"x": [1, 2, 3]}, workers=workers)
    np.testing.assert_array_equal(result["double"], [2, np.nan, 6])
    np.testing.assert_array_equal(result["failed"], [False, True, False])
    # Shorter arrays are filled up.
    np.testing.assert_array_equal(
        result["powers"], [[0, np.nan, np.nan], [np.nan, np.nan, np.nan], [0, 1, 2]]
    )
    assert result.attrs["failures"] == "x=2: RuntimeError: two is not allowed"


def test_a_worker_that_dies_costs_one_more_try_and_then_its_case_alone(tmp_path):
    result = mf.sweep(dies_once, {"x": [1], "marker": [str(tmp_path / "here")]}, workers=2)
    assert result["value"].values.tolist() == [[1]]
    with pytest.warns(UserWarning, match="worker died"):
        assert mf.sweep(dies, {"x": [1]}, workers=2)["failed"].all()


def test_a_sweep_that_starts_again_takes_what_is_there(tmp_path):
    calls = []

    def run(x, rng):
        calls.append(x)
        if x == 3 and len(calls) == 3:
            raise KeyboardInterrupt
        return float(x + rng % 7)

    with pytest.warns(UserWarning, match="2 of 4 cases failed; the first, x=3: not done: interrupted"):
        part = mf.sweep(run, {"x": [1, 2, 3, 4]}, workers=1, folder=tmp_path / "results")
    assert calls == [1, 2, 3]
    assert part["failed"].values.tolist() == [False, False, True, True]
    whole = mf.sweep(run, {"x": [1, 2, 3, 4]}, workers=1, folder=tmp_path / "results")
    assert calls == [1, 2, 3, 3, 4]
    calls.append(0)
    assert whole.identical(mf.sweep(run, {"x": [1, 2, 3, 4]}, workers=1))


def test_results_of_another_function_or_seed_are_not_taken(tmp_path):
    mf.sweep(fails_at_two, {"x": [1]}, workers=1, folder=tmp_path)
    with pytest.raises(ValueError, match=r"folder must be new or hold results of this sweep.*run: "):
        mf.sweep(dies, {"x": [1]}, workers=1, folder=tmp_path)
    with pytest.raises(ValueError, match=r"rng: 0 there, 1 given"):
        mf.sweep(fails_at_two, {"x": [1]}, workers=1, folder=tmp_path, rng=1)


def test_trajectories_lie_side_by_side_over_their_clock():
    def run(neurons, rng):
        model = mf.Model(
            mf.data.IsotropicGaussians(4, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(1.0)
        )
        return mf.solve(model, mf.GD(neurons, step=0.1), horizon=0.4, save_at=[0.0, 0.2, 0.4], rng=rng)

    result = mf.sweep(run, {"neurons": [3, 6]}, workers=1)
    assert result["risk"].dims == ("neurons", "t")
    assert result["t"].values.tolist() == [0.0, 0.2, 0.4]
    assert set(result["status"].values) == {"completed"}


def test_cases_may_be_listed_and_hold_objects():
    cases = [{"sigma": mf.activations.relu, "x": 1}, {"sigma": mf.activations.tanh, "x": 2}]
    result = mf.sweep(lambda sigma, x: float(sigma(x)), cases, workers=1)
    np.testing.assert_allclose(result["value"], [1.0, np.tanh(2.0)], rtol=1e-15)
    assert result["sigma"].dims == ("case",)
    assert result["x"].values.tolist() == [1, 2]


def test_bisection_finds_a_threshold_for_each_other_case():
    search = mf.Bisection("x", 0.0, 3.0, lambda r: r["far"] > 0, 1e-6, each={"y": [1.0, 4.0, 100.0]})
    result = mf.sweep(lambda x, y: {"far": x * x - y}, search, workers=1)
    assert result["bracket_y"].values.tolist() == [100.0, 1.0, 4.0]
    assert result["bracket_message"].values.tolist() == ["crossed is False at both ends", "found", "found"]
    for k, root in ((1, 1.0), (2, 2.0)):
        low, high = result["bracket_low"][k], result["bracket_high"][k]
        assert low <= root <= high <= low + 1e-6
    assert result.sizes["case"] == 6 + 2 * 22  # 3/2^22 < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cases": 3}, "cases must be a dict of lists"),
        ({"cases": {"x": 3}}, "cases must have a list of values for 'x', got 3"),
        ({"cases": {"x": [1, 1]}}, "cases must not repeat a value of 'x'"),
        ({"cases": [{"x": 1}, {"y": 1}]}, "cases must all have the same names"),
        ({"cases": {"x": [object()]}}, "cases must hold numbers, words"),
        ({"cases": {"x": [1]}, "workers": 0}, "workers must be >= 1, got 0"),
        ({"cases": {"x": [1]}, "threads": 0}, "threads must be >= 1, got 0"),
        ({"cases": {"x": [1]}, "client": 7}, "client must have a method submit"),
        ({"run": 5, "cases": {"x": [1]}}, "run must be a function, got 5"),
    ],
)
def test_misuse_is_answered_with_the_rule(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mf.sweep(**{"run": fails_at_two, **arguments})


def test_an_empty_grid_and_single_values_are_cases_too():
    assert mf.sweep(fails_at_two, {"x": []}, workers=1).sizes == {"x": 0}
    assert mf.sweep(lambda: 3.0, {}, workers=1)["value"].item() == 3.0


def test_a_closure_is_refused_by_other_processes_with_advice(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with pytest.raises(TypeError, match="run must be a function of a module"):
        mf.sweep(lambda x: x, {"x": [1, 2]}, workers=2)


def test_all_public_objects_of_a_run_travel_between_processes():
    import pickle

    model = mf.Model(mf.data.IsotropicGaussians(4, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(1.0))
    methods = (mf.SGD(3, step=0.1), mf.Particles(3), mf.PDE(cells=20), mf.Atoms(), mf.JKO(0.05, count=20))
    runs = [mf.solve(model, method, horizon=0.1, rng=0) for method in methods]
    for thing in itertools.chain([model, model.reduce(), mf.Exact()], methods, runs):
        there = pickle.loads(pickle.dumps(thing))
        assert type(there) is type(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(runs[0])).final.tobytes() == runs[0].final.tobytes()


@pytest.mark.parametrize(
    ("change", "word"), [({"name": float("inf")}, "name"), ({"name": ""}, "name"), ({"each": 3}, "each")]
)
def test_a_bisection_of_what_is_no_argument_is_refused(change, word):
    given = {"name": "x", "low": 0.0, "high": 1.0, "crossed": bool, "tolerance": 0.1} | change
    with pytest.raises(TypeError, match=f"^{word} must be "):
        mf.Bisection(**given)
