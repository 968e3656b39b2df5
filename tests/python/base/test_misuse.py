"""Numbers too large, and arguments of the wrong kind, are refused by name."""

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory

MODEL = mf.Model(
    mf.data.IsotropicGaussians(40, 0.5),
    mf.Network(mf.activations.relu, output="trained"),
    mf.init.Gaussian(1.0),
)
RADIAL = mf.Model(mf.data.IsotropicGaussians(40, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(1.0))


def by_hand(**changes):
    arguments = {"coordinates": ["z"], "weights": [1.0], "targets": [1.0], "features": lambda z: z}
    return mf.ReducedModel(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"d": "a"}, TypeError, "d must be a real number, got 'a'"),
        ({"d": 0.0}, ValueError, r"d must be > 0, got 0\.0"),
        ({"node_error": "x"}, TypeError, "node_error must be a real number, got 'x'"),
        ({"nonnegative": (3,)}, TypeError, "nonnegative must be True or False, got 3"),
        ({"decays": (1.0,)}, TypeError, r"decays must be True or False, got 1\.0"),
        ({"volume": (-3,)}, ValueError, r"volume must be > -1, .* got \[-3\.0\]"),
        ({"volume": "a"}, TypeError, "volume must be a sequence with one entry per coordinate, got 'a'"),
        ({"rates": ("a",)}, TypeError, "rates must be a real number, got 'a'"),
    ],
)
def test_the_fields_of_a_reduced_model_are_checked_when_it_is_made(changes, error, message):
    with pytest.raises(error, match=message):
        by_hand(**changes)


@pytest.mark.parametrize("temperature", [1e300, 1e-300])
def test_a_stationary_law_has_a_temperature_that_its_ridge_can_confine(temperature):
    with pytest.raises(ValueError, match=r"temperature must be between 1e-100 and 1e\+100 times"):
        mf.gibbs(by_hand(ridge=1.0, temperature=temperature))


@pytest.mark.parametrize("step", [1e9, 1e300])
def test_a_modified_flow_that_leaves_the_range_of_floats_blames_the_step(step):
    with pytest.raises(
        ValueError, match=r"step must be so small that .* stays finite up to horizon = 1, got 1e"
    ):
        theory.modified_flow(RADIAL, step, horizon=1.0)


@pytest.mark.parametrize(("rng", "error"), [(-1, ValueError), ("a", TypeError), (True, TypeError)])
def test_directions_of_a_sliced_distance_take_the_seeds_of_everything_else(rng, error):
    with pytest.raises(error, match="rng must be"):
        mf.distance(np.zeros((2, 2)), np.ones((2, 2)), method="sliced", rng=rng)


def test_a_grid_has_at_most_four_million_cells():
    for cells in (10**9, (10**9, 2)):
        with pytest.raises(ValueError, match=r"cells.* must be <= 4194304, got 1000000000"):
            mf.PDE(cells)
    assert mf.PDE((2000, 2000)).cells == (2000, 2000)
    with pytest.raises(ValueError, match="cells must be at most 4194304 in all, got 3000×3000"):
        mf.solve(MODEL, mf.PDE(3000), horizon=1.0)
