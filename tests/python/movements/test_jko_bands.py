"""Minimising movements of one radius from features that are tabulated on bands."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.movements import _bands
from mfcore.movements._bands import BandsEnergy
from mfcore.movements._field import PointEnergy

THREADS = 1


def reduced(activation=mf.activations.gelu, **options):
    law, init = mf.data.IsotropicGaussians(5, 0.5), mf.init.Radial(0.5)
    return mf.Model(law, mf.Network(activation), init, **options).reduce(nodes=12)


def begun(monkeypatch, dear, method, model):
    monkeypatch.setattr(_bands, "_DEAR", dear)
    return method.begin(model, 0, THREADS)


@pytest.mark.parametrize("activation", [mf.activations.gelu, mf.activations.tanh, mf.activations.relu])
def test_tables_on_bands_are_the_features_at_radii_of_any_size(activation):
    """Values hold to 1e-12 of the largest on a band, slopes lose the squared terms of a series: 18²."""
    model = reduced(activation, ridge=0.3)
    sizes = [[0.0, 1e-9, 0.3, np.nextafter(1, 0), 1.0, 1.9, 2.0, 7.0], [150.0, 3e6], [1e22]]
    for radii in sizes:
        z, w = np.array(radii)[:, None], np.full(len(radii), 1 / len(radii))
        table, direct = BandsEnergy(model, THREADS), PointEnergy(model, THREADS)
        (residual, *numbers), (want, *others) = table.value(z, w), direct.value(z, w)
        np.testing.assert_allclose(residual, want, rtol=0, atol=1e-11 * np.abs(want).max())
        np.testing.assert_allclose(numbers[0], others[0], rtol=1e-11)  # the energy
        np.testing.assert_allclose(numbers[2], others[2], rtol=1e-11)  # the risk
        slopes, there = table.slopes(z), direct.slopes(z)
        np.testing.assert_allclose(slopes, there, rtol=0, atol=1e-9 * np.abs(there).max())


def test_second_derivatives_of_tables_are_those_of_the_potential():
    model = reduced(ridge=0.3)
    z = np.array([[0.4], [1.5], [5.0]])
    table, direct = BandsEnergy(model, THREADS), PointEnergy(model, THREADS)
    residual = table.value(z, np.full(3, 1 / 3))[0]
    got = table.curvature(z, residual, table.slopes(z))
    want = direct.curvature(z, residual, direct.slopes(z))
    np.testing.assert_allclose(got, want, rtol=1e-5)  # differences of slopes over 1e-6


@pytest.mark.parametrize("heat", [0.0, 0.5])
def test_runs_with_tables_are_those_with_the_features_themselves(monkeypatch, heat):
    """Movements are solved to 1e-9 of themselves, and the risk is flat to first order near none of them."""
    model, method = reduced(ridge=1.0, temperature=heat), mf.JKO(0.5, count=24)
    rungs = [begun(monkeypatch, dear, method, model) for dear in (0, math.inf)]
    assert all(rung.advance(3.0, math.inf).reached for rung in rungs)
    (risk, error), (want, other) = (rung.risk() for rung in rungs)
    assert risk == pytest.approx(want, rel=1e-7)
    assert error == pytest.approx(other, rel=1e-5)
    assert rungs[0].meta()["unfinished"] == 0


def test_tables_do_not_depend_on_where_a_run_has_been(monkeypatch):
    model, method = reduced(ridge=0.5, temperature=2.0), mf.JKO(0.2, count=24)
    whole = begun(monkeypatch, 0, method, model)
    assert whole.advance(1.0, math.inf).reached
    parts = begun(monkeypatch, 0, method, model)
    for t in (0.2, 0.6):
        assert parts.advance(t, math.inf).reached
        parts.risk()
        state = parts.state()
        parts = begun(monkeypatch, 0, method, model)
        parts.restore(state)
    assert parts.advance(1.0, math.inf).reached
    assert parts.measure() == whole.measure()
    assert parts.risk() == whole.risk()


def test_one_huge_step_with_noise_ends_near_the_stationary_law():
    """It asks for features hundreds of times, and leads from radii of .5 to 4."""
    model = mf.Model(
        mf.data.IsotropicGaussians(5, 0.5),
        mf.Network(mf.activations.gelu),
        mf.init.Radial(0.5),
        ridge=1.0,
        temperature=1.0,
    ).reduce()
    assert _bands.serves(model, 100)
    run = mf.solve(model, mf.JKO(1e6, count=100), horizon=1e6)
    law = mf.gibbs(model, cells=200)
    assert run.meta["unfinished"] == 0
    assert run.risk[-1] == pytest.approx(mf.risk(model, law.measure), rel=1e-2)  # 100 cells
