"""A fixed bias enters f and the forces, and moves nowhere: no gradient, no decay, no noise."""

import pickle

import mfcore as mf
import numpy as np
import pytest

LAW = mf.data.MultiIndex(6, [0.0, 1.0, 0.5], 1)
INIT = mf.init.Product(a=mf.init.Uniform(-1, 1), b=mf.init.Uniform(-1, 1), w=mf.init.Normal(0, 0.3))


def model(bias="fixed", law=LAW, **options):
    return mf.Model(law, mf.Network(mf.activations.tanh, output="trained", bias=bias), INIT, **options)


FIXED, COLD = model(ridge=0.1, temperature=0.01), model(ridge=0.1)
TRAINED = model("trained", ridge=0.1)
METHODS = {
    "SGD": (FIXED, mf.SGD(9, 0.05)),
    "SGD, batch": (FIXED, mf.SGD(9, 0.05, batch=4)),
    "SGD, coupled": (FIXED, mf.SGD(9, 0.05, coupled=True)),
    "SGD, float32": (FIXED, mf.SGD(9, 0.05, precision="float32")),
    "SGD, wide": (
        model(law=mf.data.MultiIndex(80, [0.0, 1.0], 1), ridge=0.1, temperature=0.01),
        mf.SGD(40, 0.05),
    ),
    "GD": (FIXED, mf.GD(9, 0.05)),
    "Particles": (COLD, mf.Particles(9)),
    "lsoda": (COLD, mf.Particles(9, method="lsoda")),
    "heun": (FIXED, mf.Particles(9, method="heun", step=0.05)),
    "Linearized": (COLD, mf.Linearized(9, mf.MonteCarlo(50, rng=1))),
    "Nonlinear": (COLD, mf.Nonlinear(9, mf.Particles(30))),
    "Nonlinear, limit": (COLD, mf.Nonlinear(9, mf.Atoms(200, method="euler", step=0.25), step=0.25)),
}


@pytest.mark.parametrize("name", METHODS)
def test_it_does_not_move_on_any_rung_of_networks(name):
    problem, method = METHODS[name]
    run = mf.solve(
        problem,
        method,
        horizon=0.5,
        keep=[0.0, 0.5],
        save_at=[0.0, 0.5],
        rng=0,
        risk=mf.MonteCarlo(100, rng=0),
    )
    first, last = (getattr(run.kept[t], "theta", run.kept[t]) for t in (0.0, 0.5))
    assert np.array_equal(first[:, 1], last[:, 1])
    assert np.abs(first[:, 1]).max() > 0.1
    assert (np.abs(first[:, [0, 2]] - last[:, [0, 2]]) > 0).all()


def test_everything_else_moves_as_with_a_trained_bias_of_rate_zero():
    # One step from the same start: a and w see the same forces; float64 rounding.
    run, other = (mf.solve(m, mf.SGD(9, 0.05), horizon=0.05, rng=0) for m in (model(ridge=0.1), TRAINED))
    assert np.abs(run.final - other.final)[:, [0, *range(2, 8)]].max() < 1e-15
    assert np.abs(run.final - other.final)[:, 1].min() > 0


def test_it_does_not_move_in_the_limit():
    reduced = COLD.reduce()
    assert reduced.coordinates[:2] == ("a", "b")
    assert reduced.rates[:2] == (1.0, 0.0)
    assert reduced.decays[:2] == (True, False)
    start = mf.Cloud(np.random.default_rng(0).random((8, 4)))
    run = mf.solve(COLD, mf.Atoms(start=start), horizon=0.5)
    assert np.array_equal(run.final.points[:, 1], start.points[:, 1])
    assert mf.risk(COLD, run.final) < mf.risk(COLD, start)


def test_exact_forms_are_those_of_a_trained_bias_but_for_its_own_forces():
    theta = np.random.default_rng(0).normal(size=(5, 8))
    assert np.array_equal(mf.V(COLD, theta), mf.V(TRAINED, theta))
    assert np.array_equal(mf.U(COLD, theta), mf.U(TRAINED, theta))
    gradient, other = (mf.grad_psi(m, theta, theta) for m in (COLD, TRAINED))
    assert (gradient[:, 1] == 0).all()
    assert np.array_equal(np.delete(gradient, 1, axis=1), np.delete(other, 1, axis=1))
    decay = 0.05 * np.square(theta[:, 1])
    assert mf.psi(TRAINED, theta, theta) - mf.psi(COLD, theta, theta) == pytest.approx(decay, rel=1e-9)
    assert mf.free_energy(TRAINED, theta) - mf.free_energy(COLD, theta) == pytest.approx(
        decay.mean(), rel=1e-9
    )
    assert mf.dissipation(COLD, theta) < mf.dissipation(TRAINED, theta)


def test_a_stepper_leaves_it_alone():
    theta = np.random.default_rng(0).normal(size=(5, 8))
    before = theta.copy()
    stepper = mf.steppers.SGD(COLD.network, theta, ridge=0.1, temperature=0.1, rng=0)
    stepper.step(np.ones(6), np.ones(1), h=0.1)
    stepper.step(np.ones((2, 6)), np.ones(2), h=0.1)
    assert np.array_equal(theta[:, 1], before[:, 1])
    assert (theta != before).sum() == 5 * 7


def test_it_is_described_shown_and_kept_in_files(tmp_path):
    network = COLD.network
    assert network.trained == ("a", "w")
    assert "bias='fixed'" in repr(network)
    assert network.layout == "a, b, w…"
    assert pickle.loads(pickle.dumps(network)) == network
    mf.save_config(COLD, tmp_path / "model.toml")
    assert mf.load_config(tmp_path / "model.toml") == COLD
    with pytest.raises(ValueError, match="got 'b', which is fixed"):
        COLD.replace(rates={"b": 2.0})
