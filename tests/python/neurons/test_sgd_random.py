"""SGD on random problems against a plain loop that is fed the same samples."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest

from .random_sgd import by_method, differences, problem


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_every_way_of_doing_sgd_is_the_plain_loop_up_to_rounding(first):
    """Largest of 5600 problems: 0.7 of what rounding may do."""
    for number in range(first, first + 50):
        assert max(differences(number).values()) < 1, number


def test_single_precision_is_the_plain_loop_up_to_its_rounding():
    """Without noise, whose numbers are others in single precision. Largest: 0.003 of what rounding may do."""
    ratio = np.finfo(np.float32).eps / np.finfo(float).eps
    for number in range(400, 460):
        asked, end = problem(number)
        if asked.temperature == 0:
            got = by_method(asked, precision="float32")
            assert np.abs(got - end).max() < ratio * asked.tolerance(end), number


def test_a_fixed_bias_does_not_decay_inside_predictions():
    """With x = y = b = 1 and f = w + b, a step is w <- w - h(w + ridge w): 0.7 w for ridge 2 and h = 0.1."""
    law = mf.data.Stream(lambda n, rng: (np.ones((n, 1)), np.ones(n)), d=1)
    network = mf.Network(mf.activations.linear, bias="fixed")
    model = mf.Model(law, network, mf.init.Points([[1.0, 1.0]]), ridge=2)
    for neurons in (1, 20):  # one tile of neurons, or two
        start = mf.init.Points(np.ones((neurons, 2)))
        run = mf.solve(model.replace(init=start), mf.SGD(neurons, 0.1), horizon=2.0, save_at=[], risk=False)
        np.testing.assert_allclose(run.final, np.tile([1.0, 0.7**20], (neurons, 1)), rtol=1e-12)
