"""A network that is split over ranks, here threads of one process, is the whole network."""

import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore._base.archive import write_archive
from mfcore.neurons._sgd import start_of
from mfcore.runs import _pieces
from mfcore.runs._ranks import RankFailed

from .ranks import on_ranks

LAW = mf.data.IsotropicGaussians(d=10, delta=0.5)
PLAIN = mf.Model(LAW, mf.Network(mf.activations.relu), mf.init.Radial(0.5))
NOISY = PLAIN.replace(temperature=0.01, ridge=0.1)
BLOCKS = mf.Network(mf.activations.tanh, output="trained", bias="trained", sphere=True, scale=2.0)
SPHERE = mf.Model(LAW, BLOCKS, mf.init.Gaussian(1.0), rates={"a": 3.0}, temperature=0.01)
FINITE = mf.Model(
    mf.data.Dataset(*LAW.draw(300, rng=3)), mf.Network(mf.activations.tanh), mf.init.Gaussian(1.0)
)
SAMPLES = mf.MonteCarlo(20_000, rng=1)  # two messages for each velocity
RUN = {"horizon": 0.5, "save_at": [0.0, 0.3, 0.5], "rng": 0, "threads": 1}

METHODS = {
    "sgd": (PLAIN, mf.SGD(21, 0.07, batch=5)),
    "sgd, schedule and noise": (NOISY, mf.SGD(21, 0.07, 3, lambda t: 1 / (1 + t), coupled=True)),
    "sgd on the sphere": (SPHERE, mf.SGD(21, 0.07, batch=5, coupled=True)),
    "sgd on a dataset": (FINITE, mf.SGD(21, 0.07, batch=5)),
    "gd with noise": (NOISY, mf.GD(21, 0.07, expectation=SAMPLES)),
    "gd on a dataset": (FINITE, mf.GD(21, 0.07)),
    "heun on the sphere": (SPHERE, mf.Particles(21, method="heun", step=0.07, expectation=SAMPLES)),
    "rk4": (FINITE, mf.Particles(21, method="rk4", step=0.07)),
}


def split(method, comm):
    """The same method on the ranks of a communicator."""
    fields = {name: getattr(method, name) for name in method.__dataclass_fields__}
    return type(method)(**{**fields, "comm": comm})


def split_run(size, model, method, **options):
    """The run on each rank, and the gathered one."""

    def task(comm):
        run = mf.solve(model, split(method, comm), **{**RUN, **options})
        return run, mf.gather(run, comm)

    results = on_ranks(size, task)
    for result in results:
        if isinstance(result, Exception):
            raise result
    assert all(gathered is None for _, gathered in results[1:])
    return [run for run, _ in results], results[0][1]


@pytest.mark.parametrize(("model", "method"), METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("size", [1, 3])
def test_a_split_network_moves_as_the_whole_one(size, model, method):
    test = LAW.draw(20, rng=9)
    whole = mf.solve(model, method, keep=[0.3], test=test, **RUN)
    runs, gathered = split_run(size, model, method, keep=[0.3], test=test)
    # Sums of a thousand numbers of size one in another order, over ten steps: 1e-15 becomes 1e-13 at most.
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(gathered.final, whole.final, **close)
    np.testing.assert_allclose(gathered.kept[0.3], whole.kept[0.3], **close)
    for run in runs:
        assert (run.status, run.message) == (whole.status, whole.message)
        assert np.array_equal(run.t, whole.t)
        assert np.array_equal(run.risk, runs[0].risk)
        np.testing.assert_allclose(run.risk, whole.risk, **close)
        assert run.observed.keys() == whole.observed.keys()
        for name, values in whole.observed.items():
            np.testing.assert_allclose(run.observed[name], values, **close)
        # Of methods that descend fixed samples: the risk of all neurons on them.
        own, of_whole = (r.meta.get("training_risk", math.nan) for r in (run, whole))
        np.testing.assert_allclose(own, of_whole, **close)
    assert [run.meta["first_neuron"] for run in runs] == [21 * k // size for k in range(size)]


def test_initial_neurons_are_those_of_the_whole_to_the_bit():
    whole = mf.solve(PLAIN, mf.SGD(21, 0.1), keep=[0.0], **RUN)
    _, gathered = split_run(3, PLAIN, mf.SGD(21, 0.1), keep=[0.0])
    assert np.array_equal(gathered.kept[0.0], whole.kept[0.0])


def test_noise_has_the_address_of_its_neuron_to_the_bit():
    """With output weights 0 that do not move nothing else moves w."""
    network = mf.Network(mf.activations.relu, output="fixed")
    init = mf.init.Product(a=mf.init.Constant(0.0), w=mf.init.Radial(0.5))
    model, method = mf.Model(LAW, network, init, temperature=0.3), mf.SGD(21, 0.05, coupled=True)
    finals = [split_run(size, model, method)[1].final for size in (1, 2, 5)]
    assert all(np.array_equal(final, finals[0]) for final in finals)
    # The compiled step may round once where this one rounds twice.
    np.testing.assert_allclose(finals[0], mf.solve(model, method, **RUN).final, rtol=1e-13, atol=1e-15)


def test_ranks_exchange_only_function_values():
    counts = []

    def task(comm):
        options = {"horizon": 1.0, "save_at": [], "risk": False, "rng": 0, "threads": 1}
        for steps in (100, 200):
            comm.bytes = comm.messages = 0
            mf.solve(PLAIN, mf.SGD(200, 1 / steps, batch=256, comm=comm), **options)
            counts.append((comm.bytes, comm.messages))

    on_ranks(1, task)
    (one, first), (two, second) = counts
    assert (two - one) / 100 == 256 * 8 + 3 * 48
    assert (second - first) / 100 == 4


def test_a_large_network_is_measured_without_gathering_it():
    """10⁴ neurons are too many for pairs: the risk is that of the held-out samples of every rung."""
    method, options = mf.SGD(10_000, 0.25, batch=4), {"horizon": 0.5, "save_at": [0.5]}
    whole = mf.solve(PLAIN, method, **{**RUN, **options})
    _, gathered = split_run(2, PLAIN, method, **options)
    assert gathered.meta["risk"] == whole.meta["risk"] == "10000 held-out samples"
    np.testing.assert_allclose([gathered.risk, gathered.error], [whole.risk, whole.error], rtol=1e-12)


def test_a_rank_that_fails_stops_the_others_in_words(tmp_path):
    state = {}

    def task(comm):
        def observer(_):
            if comm.Get_rank() == 1 and state.get("fails", True) and len(calls) == 1:
                raise ZeroDivisionError("of the user's")
            calls.append(0)
            return 0.0

        calls = []
        return mf.solve(
            PLAIN,
            mf.SGD(21, 0.1, batch=2, comm=comm),
            observe={"mine": observer},
            checkpoint=tmp_path / "state.npz",
            **RUN,
        )

    errors = on_ranks(3, task)
    assert [type(error) for error in errors] == [RankFailed, ZeroDivisionError, RankFailed]
    words = "rank 1 of 3 has failed, and so this one stops: ZeroDivisionError: of the user's"
    assert str(errors[0]) == str(errors[2]) == words
    # What was done until then is whole, and any number of ranks goes on with it.
    assert len(list(tmp_path.iterdir())) == 4
    whole = mf.solve(PLAIN, mf.SGD(21, 0.1, batch=2), **RUN)
    results = on_ranks(
        2,
        lambda comm: mf.gather(
            mf.resume(
                tmp_path / "state.npz",
                method=mf.SGD(21, 0.1, batch=2, comm=comm),
                observe={"mine": lambda _: 0.0},
                threads=1,
            ),
            comm,
        ),
    )
    np.testing.assert_allclose(results[0].final, whole.final, rtol=0, atol=1e-13)
    np.testing.assert_allclose(results[0].risk, whole.risk, rtol=0, atol=1e-13)
    assert list(tmp_path.iterdir()) == []


def test_ranks_stop_together_when_one_of_them_is_answered(tmp_path):
    def task(comm):
        method = mf.SGD(21, 0.1, batch=2, comm=comm)

        def stop(run):  # by the neurons of one rank
            return run.meta["rank"] == 1 and run.t[-1] >= 0.3

        part = mf.solve(PLAIN, method, **RUN, checkpoint=tmp_path / "state.npz", stop=stop)
        return part, mf.resume(tmp_path / "state.npz", method=method)

    whole, _ = split_run(3, PLAIN, mf.SGD(21, 0.1, batch=2))
    for (part, run), straight in zip(on_ranks(3, task), whole, strict=True):
        assert (part.status, part.t.tolist()) == ("stopped", straight.t[:2].tolist())
        assert np.array_equal(run.final, straight.final)
        assert np.array_equal(run.risk, straight.risk)


def interrupted(tmp_path, size=3, **options):
    """A checkpoint of a run that had no time."""

    def task(comm):
        method = mf.SGD(21, 0.1, batch=2, comm=comm)
        state = {"checkpoint": tmp_path / "state.npz", "max_seconds": 0.0, "keep": "all", **options}
        return mf.solve(PLAIN, method, **RUN, **state)

    runs = on_ranks(size, task)
    assert {run.status for run in runs} == {"out of time"}
    return tmp_path / "state.npz"


@pytest.mark.parametrize("size", [1, 3, 4])
def test_any_number_of_ranks_goes_on_from_a_checkpoint(tmp_path, size):
    file = interrupted(tmp_path)
    resumed = on_ranks(size, lambda comm: mf.resume(file, method=mf.SGD(21, 0.1, batch=2, comm=comm)))
    straight, _ = split_run(size, PLAIN, mf.SGD(21, 0.1, batch=2), keep="all")
    for run, other in zip(resumed, straight, strict=True):
        assert np.array_equal(run.final, other.final)
        assert np.array_equal(run.risk, other.risk)
        assert all(np.array_equal(run.kept[t], rows) for t, rows in other.kept.items())
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_replaced_piece_by_piece(tmp_path):
    """Pieces of an earlier state go once the manifest of a later one is there."""
    file = interrupted(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    on_ranks(2, lambda comm: mf.resume(file, method=mf.SGD(21, 0.1, batch=2, comm=comm), max_seconds=0.0))
    after = {path.name for path in tmp_path.iterdir()}
    assert before & after == {"state.npz"}
    assert (len(before), len(after)) == (4, 3)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    file = interrupted(tmp_path)
    with pytest.raises(ValueError, match="method must be split, as the network of the checkpoint"):
        mf.resume(file)
    piece = next(path for path in tmp_path.iterdir() if path.name.endswith(".2"))
    piece.rename(tmp_path / "elsewhere")
    errors = on_ranks(3, lambda comm: mf.resume(file, method=mf.SGD(21, 0.1, batch=2, comm=comm)))
    assert [type(error) for error in errors] == [RankFailed, RankFailed, ValueError]
    assert "checkpoint must have its pieces beside it" in str(errors[0])
    other = tmp_path / "whole.npz"
    mf.solve(PLAIN, mf.SGD(21, 0.1), checkpoint=other, max_seconds=0.0, **RUN)
    (error,) = on_ranks(1, lambda comm: mf.resume(other, method=mf.SGD(21, 0.1, comm=comm)))
    assert "method must be not split, as the network of the checkpoint" in str(error)


def test_a_piece_that_cannot_be_written_is_an_error_of_all_ranks(tmp_path, monkeypatch):
    def full(path, *arguments):
        if str(path).endswith(".1"):
            raise OSError("no space is left")
        return write_archive(path, *arguments)

    monkeypatch.setattr(_pieces, "write_archive", full)
    file = tmp_path / "state.npz"
    with pytest.warns(RuntimeWarning, match="the checkpoint could not be written: rank 1 of 2"):
        errors = on_ranks(2, lambda comm: mf.solve(PLAIN, mf.SGD(21, 0.1, comm=comm), checkpoint=file, **RUN))
    assert [str(error) for error in errors] == ["rank 1 of 2: no space is left"] * 2
    assert not file.exists()


def test_ranks_with_other_arguments_are_refused():
    def task(comm):
        return mf.solve(PLAIN, mf.SGD(21 + comm.Get_rank(), 0.1, comm=comm), **RUN)

    errors = on_ranks(2, task)
    assert str(errors[1]).startswith("all ranks must do the same run, got on rank 1 other arguments; ")
    assert "method.neurons: 21 there, 22 given" in str(errors[1])
    assert isinstance(errors[0], RankFailed)


def test_fresh_randomness_is_that_of_rank_0():
    runs = on_ranks(2, lambda comm: mf.solve(PLAIN, mf.SGD(21, 0.1, comm=comm), **{**RUN, "rng": None}))
    assert runs[0].meta["seed"] == runs[1].meta["seed"]
    assert np.array_equal(runs[0].risk, runs[1].risk)


def test_all_ranks_diverge_together():
    """One neuron starts where its own update overflows: the ranks that are well stop at the same step."""
    start = np.full((6, 10), 0.1)
    start[5] = 1e154
    model = mf.Model(LAW, mf.Network(mf.activations.relu), mf.init.Points(start), ridge=1.0)
    runs = on_ranks(3, lambda comm: mf.solve(model, mf.SGD(6, 1e160, comm=comm), horizon=1e161, rng=0))
    assert {run.status for run in runs} == {"diverged"}
    assert len({run.meta["steps"] for run in runs}) == 1
    assert all(np.isfinite(run.final).all() for run in runs)


def test_a_time_limit_of_one_rank_ends_the_run_of_all():
    def task(comm):
        slow = {"wait": lambda _: time.sleep(0.05 if comm.Get_rank() == 1 else 0.0) or 0.0}
        limit = 0.02 if comm.Get_rank() == 1 else math.inf
        options = {**RUN, "save_at": 50, "max_seconds": limit if limit < math.inf else None}
        return mf.solve(PLAIN, mf.SGD(21, 0.01, comm=comm), observe=slow, **options)

    runs = on_ranks(2, task)
    assert {run.status for run in runs} == {"out of time"}
    assert runs[0].meta["t"] == runs[1].meta["t"]


def test_functions_of_the_user_are_given_the_neurons_of_their_rank():
    runs, _ = split_run(2, PLAIN, mf.SGD(21, 0.1), observe={"count": len})
    assert [run.observed["count"][0] for run in runs] == [10, 11]


def test_a_saved_run_is_read_without_its_communicator(tmp_path):
    runs, _ = split_run(2, PLAIN, mf.SGD(21, 0.1))
    runs[1].save(tmp_path / "run.npz")
    run = mf.load(tmp_path / "run.npz")
    assert run.meta["method"] == mf.SGD(21, 0.1)
    assert run.meta["method"].comm is None
    assert np.array_equal(run.final, runs[1].final)


REFUSED = {
    "comm must be a communicator": lambda comm: mf.SGD(21, 0.1, comm=3),
    "replicas must be 1": lambda comm: mf.SGD(21, 0.1, replicas=2, comm=comm),
    "precision must be 'float64'": lambda comm: mf.SGD(21, 0.1, precision="float32", comm=comm),
    "coupled must be True": lambda comm: mf.solve(NOISY, mf.SGD(21, 0.1, comm=comm), **RUN),
    "neurons must be >= 2": lambda comm: mf.solve(PLAIN, mf.SGD(1, 0.1, comm=comm), **RUN),
    "tolerance must be None": lambda comm: mf.GD(21, 0.1, tolerance=1e-3, comm=comm),
    "expectation must be mf.MonteCarlo": lambda comm: mf.solve(PLAIN, mf.GD(21, 0.1, comm=comm), **RUN),
    "method must be 'euler', 'heun' or 'rk4'": lambda comm: mf.Particles(21, comm=comm),
    "driver must be a network of one process": lambda comm: mf.solve(
        FINITE, mf.Nonlinear(9, mf.GD(21, 0.1, comm=comm)), **RUN
    ),
    "run must be of a network that was split": lambda comm: mf.gather(
        mf.solve(PLAIN, mf.SGD(21, 0.1), **RUN), comm
    ),
}


@pytest.mark.parametrize(("words", "call"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_split_is_refused(words, call):
    errors = on_ranks(2, call)
    assert all(isinstance(error, ValueError | TypeError) for error in errors), errors
    assert all(str(error).startswith(words) for error in errors), errors


def test_without_a_communicator_nothing_is_gathered():
    run = mf.solve(PLAIN, mf.SGD(21, 0.1, comm=None), **RUN)
    assert mf.gather(run, None) is run


@pytest.mark.parametrize("rows", [(0, 10), (0, 3), (3, 7), (7, 10)])
@pytest.mark.parametrize("pairs", [False, True])
def test_ranks_draw_their_rows_of_the_whole_to_the_bit(rows, pairs):
    law = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
    network = mf.Network(mf.activations.tanh, output="trained")
    model = mf.Model(LAW, network, mf.init.Paired(law) if pairs else law)
    whole = start_of(model, 10, seed=3)
    np.testing.assert_array_equal(start_of(model, 10, seed=3, rows=rows), whole[slice(*rows)])
