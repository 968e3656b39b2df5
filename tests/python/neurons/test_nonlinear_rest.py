"""`mf.Nonlinear` with neurons that come to rest at w = 0 and leave again (eqs. (6.18) to (6.20))."""

import mfcore as mf
import numpy as np
import pytest

STUDENT = mf.Network(mf.activations.relu, output="trained")
INIT = mf.init.Product(a=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
MODEL = mf.Model(mf.data.Teacher(mf.Network(mf.activations.relu), 3 * np.eye(3, 5)), STUDENT, INIT)
TIMES = np.linspace(0.0, 10.0, 11)


def sizes(theta):
    return np.linalg.norm(theta[:, 1:], axis=1)


@pytest.mark.parametrize("driver", [mf.Atoms(32), mf.Particles(200)], ids=["limit", "network"])
def test_neurons_of_ReLU_come_to_rest_and_leave(driver):
    run = mf.solve(MODEL, mf.Nonlinear(50, driver), horizon=10.0, save_at=TIMES, rng=0, keep="all")
    assert run.status == "completed"
    least = np.array([sizes(theta).min() for theta in run.kept.values()])
    assert least.min() < 1e-9  # a neuron rests, ...
    assert least[-1] > 1e-3  # ... and in the end none does
    first, last = run.kept[0], run.final
    changed = np.abs((last[:, 0] ** 2 - sizes(last) ** 2) - (first[:, 0] ** 2 - sizes(first) ** 2))
    # |a|² − |w|² is conserved but for the way through 2δ, where it is off by δ² ~ 1e-5 |a|²/|w|².
    assert changed.max() < 1e-3


def test_neurons_driven_by_the_limit_follow_those_of_a_wide_network():
    when = {"horizon": 0.3, "save_at": [0.0, 0.3], "rng": 0, "keep": "all"}
    limit = mf.solve(MODEL, mf.Nonlinear(40, mf.Atoms(128)), **when)
    # The field of N = 2000 neurons is N^{−1/2} ~ 0.02 times some units away from that of the limit, and that
    # of 128 quasi-random atoms about as far; a sixth of the way that neurons have gone allows for both.
    wide = mf.solve(MODEL, mf.Nonlinear(40, mf.Particles(2000)), **when)
    moved = np.sqrt(np.square(wide.final - wide.kept[0]).mean())
    assert np.sqrt(np.square(limit.final - wide.final).mean()) < moved / 6
