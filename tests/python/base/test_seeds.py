"""The seed that a run records: given as `rng`, it repeats the run."""

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import same

METHOD = mf.SGD(neurons=20, step=0.01)
MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.tanh, output="trained"),
    init=mf.init.Gaussian(std=0.5),
)


def kinds_of_rng(number):
    sequence = np.random.SeedSequence(number)
    return [number, None, sequence, sequence.spawn(1)[0], np.random.default_rng(number)]


@settings(max_examples=5, deadline=None)
@given(number=st.integers(0, 2**70), kind=st.integers(0, 4))
def test_the_seed_of_a_run_repeats_it(number, kind):
    options = {"horizon": 0.1, "save_at": 2, "max_seconds": 60}
    run = mf.solve(MODEL, METHOD, rng=kinds_of_rng(number)[kind], **options)
    again = mf.solve(MODEL, METHOD, rng=run.meta["seed"], **options)
    assert same(run, again)
    assert again.meta["seed"] == run.meta["seed"]
    if kind == 0:
        assert run.meta["seed"] == number


@pytest.mark.parametrize("kind", range(5))
def test_a_seed_outlives_checkpoints_and_files(kind, tmp_path):
    options = {"horizon": 0.1, "save_at": 2}
    rng = kinds_of_rng(3)[kind]
    part = mf.solve(MODEL, METHOD, rng=rng, checkpoint=tmp_path / "part", max_seconds=0, **options)
    resumed = mf.resume(tmp_path / "part")
    assert resumed.meta["seed"] == part.meta["seed"]
    resumed.save(tmp_path / "run")
    seed = mf.load(tmp_path / "run").meta["seed"]
    assert same(resumed, mf.solve(MODEL, METHOD, rng=seed, **options))
