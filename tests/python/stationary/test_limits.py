"""Searches end when their time is up, say where they are, and give an answer at any temperature."""

import sys
from unittest.mock import Mock

import mfcore as mf
import numpy as np
import pytest

CALLS = {
    "mf.gibbs": lambda model, **options: mf.gibbs(model, **options),
    "mf.gibbs_path": lambda model, **options: mf.gibbs_path(model, [1.0, 0.5], **options),
    "mf.optimum": lambda model, **options: mf.optimum(model, **options),
}


def model(**changes):
    arguments = {
        "coordinates": ["z"],
        "weights": [0.5, 0.5],
        "targets": [0.0, 1.0],
        "features": lambda z: np.concatenate([np.sin(z), np.cos(3 * z)], axis=1),
        "gradients": lambda z: np.stack([np.cos(z), -3 * np.sin(3 * z)], axis=1),
        "ridge": 0.5,
        "temperature": 0.1,
    }
    return mf.ReducedModel(**{**arguments, **changes})


@pytest.mark.parametrize("call", CALLS)
def test_a_search_without_time_raises_and_says_what_to_do(call):
    name = "mf.gibbs" if call == "mf.gibbs_path" else call
    with pytest.raises(TimeoutError, match=rf"max_seconds = 0 passed .* before {name} had a result"):
        CALLS[call](model(), max_seconds=0)


@pytest.mark.parametrize("call", CALLS)
def test_limits_change_no_bit_and_leave_nothing_behind(call):
    free, bounded = (CALLS[call](model(), **options) for options in ({}, {"max_seconds": 1e6}))
    assert repr(free) == repr(bounded)
    assert repr(CALLS[call](model())) == repr(free)  # no deadline is left for the next search


@pytest.mark.parametrize("call", CALLS)
def test_progress_names_the_search_and_its_rounds(call, monkeypatch):
    bar = Mock()
    monkeypatch.setitem(sys.modules, "tqdm.auto", Mock(tqdm=bar))
    CALLS[call](model(), progress=True)
    search = "mf.optimum: " if call == "mf.optimum" else "mf.gibbs: "
    shown = bar.return_value
    assert shown.set_description.call_args.args[0].startswith(search)
    assert shown.update.call_count == shown.set_description.call_count
    assert shown.close.called


@pytest.mark.parametrize("call", CALLS)
def test_misuse_of_limits_names_the_argument(call):
    with pytest.raises(ValueError, match="max_seconds must be >= 0, got -1"):
        CALLS[call](model(), max_seconds=-1)
    with pytest.raises(TypeError, match="progress must be True or False, got 'yes'"):
        CALLS[call](model(), progress="yes")


@pytest.mark.parametrize(
    ("temperature", "stiffness", "accuracy"),
    # Near 0 data soften the ridge 1 by σ''(0)(1.5² − .5²)/2; far out they matter little beside heat.
    [(100.0, 1.0, 0.2), (1e-12, 1 - np.sqrt(2 / np.pi), 2e-3)],
)
def test_smooth_activations_have_a_stationary_law_at_extreme_temperatures(temperature, stiffness, accuracy):
    """Large radii took minutes of quadrature, small ones had panels halved for the rounding of features."""
    law = mf.data.IsotropicGaussians(5, 0.5)
    problem = mf.Model(law, mf.Network(mf.activations.gelu), ridge=1.0, temperature=temperature)
    found = mf.gibbs(problem.reduce(nodes=24), cells=200)
    mean = found.measure.mass @ np.square(found.measure.centers[0])
    assert mean == pytest.approx(5 * temperature / stiffness, rel=accuracy)  # on 200 cells
    assert found.error < 1e-7 * max(1.0, temperature)
