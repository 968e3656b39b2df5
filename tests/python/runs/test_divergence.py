"""A run that has blown up is diverged, never completed; growth on the way to a good end is not."""

import mfcore as mf
import numpy as np
import pytest
from mfcore.runs import _clock

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=10, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Radial(0.5),
)


@pytest.mark.parametrize("options", [{}, {"save_at": []}, {"save_at": [], "risk": False}, {"save_at": [1.0]}])
@pytest.mark.parametrize("replicas", [1, 3])
def test_relu_with_a_large_step_of_sgd_is_diverged(options, replicas):
    run = mf.solve(MODEL, mf.SGD(10, 0.5, replicas=replicas), horizon=100.0, rng=0, **options)
    assert run.status == "diverged"
    assert "more than 1e+06 times its scale" in run.message
    assert "Try a smaller step" in run.message


def test_it_ends_at_the_first_save_point_beyond_the_bound():
    run = mf.solve(MODEL, mf.SGD(10, 0.5), horizon=100.0, save_at=201, rng=0)
    assert (run.risk[:-1] <= 1e6).all()
    assert run.risk[-1] > 1e6
    assert run.t[-1] == run.meta["t"] < 100


@pytest.mark.parametrize("options", [{"save_at": []}, {"save_at": [80.0]}, {"risk": False, "save_at": 2}])
def test_between_save_points_it_ends_within_a_fiftieth_of_the_horizon(options):
    known = mf.solve(MODEL, mf.SGD(10, 0.5), horizon=100.0, save_at=201, rng=0).meta["t"]
    run = mf.solve(MODEL, mf.SGD(10, 0.5), horizon=100.0, rng=0, **options)
    assert run.status == "diverged"
    # The risk of a look is that of 16 samples, here some times more or less than R: a few steps of growth.
    assert known - 2 <= run.meta["t"] <= known + 2 * 2
    assert len(run.t) == ("risk" in options)  # what was recorded before: nothing, or t = 0


@pytest.mark.parametrize("temperature", [0.0, 0.01])
def test_looking_between_save_points_changes_no_bit(temperature, monkeypatch):
    model = MODEL.replace(temperature=temperature)

    def final():
        return mf.solve(model, mf.SGD(10, 1e-3), horizon=0.313, save_at=[], rng=0).final

    looked_at = final()
    monkeypatch.setattr(_clock, "LOOKS", 1)  # at the end only
    assert np.array_equal(looked_at, final())


def test_gradient_descent_with_a_large_step_is_diverged():
    model = MODEL.replace(
        network=mf.Network(mf.activations.relu, output="trained"), init=mf.init.Gaussian(1.0)
    )
    run = mf.solve(model, mf.GD(20, 8.0), horizon=400.0, rng=0)
    assert run.status == "diverged"


def test_a_start_far_out_is_no_divergence():
    model = MODEL.replace(init=mf.init.Radial(1e5))
    run = mf.solve(model, mf.SGD(10, 1e-4), horizon=0.01, rng=0)
    assert run.risk[0] > 1e6
    assert run.status == "completed"


def test_growth_that_settles_is_no_divergence():
    # Large steps catapult a wide network: the risk grows a hundredfold before it settles lower.
    with pytest.warns(UserWarning, match="the risk has risen .* step = 8 is too large"):
        run = mf.solve(MODEL, mf.GD(20, 8.0), horizon=80.0, rng=0)
    assert run.status == "completed", run.message


def test_hot_noise_spreads_without_being_divergence():
    model = MODEL.replace(
        network=mf.Network(mf.activations.relu, output="trained"), init=mf.init.Gaussian(0.1)
    )
    run = mf.solve(model.replace(temperature=100.0), mf.GD(10, 1e-4), horizon=0.1, rng=0)
    assert run.status == "completed", run.message


def test_a_resumed_run_is_judged_by_the_risk_it_began_with(tmp_path):
    whole = mf.solve(MODEL, mf.SGD(10, 0.5), horizon=100.0, save_at=[50.0, 100.0], rng=0)
    file = tmp_path / "run.npz"
    mf.solve(
        MODEL, mf.SGD(10, 0.5), horizon=100.0, save_at=[50.0, 100.0], rng=0, checkpoint=file, max_seconds=0
    )
    run = mf.resume(file)
    assert (run.status, run.message) == (whole.status, whole.message) == ("diverged", whole.message)
    assert np.array_equal(run.final, whole.final)
