"""`mf.Annealed`: Ornstein–Uhlenbeck processes of changing temperature and ridge, bits, files, refusals."""

import math

import mfcore as mf
import numpy as np
import pytest

REST = mf.Model(  # Ψ = 0: dθ = −λθ dt + √(2T) dB
    mf.data.Dataset([[0.0]], [0.0]), mf.Network(mf.activations.linear), mf.init.Gaussian(std=1.0), ridge=0.5
)


def falling(t):
    return 0.8 * math.exp(-0.7 * t)


def variance(t):
    """Of v' = −v + 1.6e^{−0.7t}, v(0) = 1."""
    return math.exp(-t) + 1.6 / 0.3 * (math.exp(-0.7 * t) - math.exp(-t))


def second_moment(rho):
    return float(rho.mass @ (rho.centers[0] ** 2 + np.diff(rho.edges[0]) ** 2 / 12))


@pytest.mark.parametrize(
    "method",
    [
        mf.Particles(4000, method="heun", step=0.05),
        mf.GD(4000, step=0.02),
        mf.SGD(4000, step=0.02),
    ],
    ids=repr,
)
def test_neurons_have_the_variance_of_an_ornstein_uhlenbeck_process_that_cools(method):
    """5 standard errors of 4000 draws, √(2/4000), and 2 % of bias by Euler's steps: false alarms 10⁻⁶. At the
    temperature of the start the variance would be 60 % larger.
    """
    run = mf.solve(
        REST, mf.Annealed(method, 0.1, falling), horizon=2.0, save_at=[1.0, 2.0], keep="all", rng=0
    )
    for t in (1.0, 2.0):
        assert abs(np.mean(run.kept[t] ** 2) / variance(t) - 1) < 5 * math.sqrt(2 / 4000) + 0.02
    assert run.meta["stretches"] == 20
    assert run.meta["temperature"] == falling(1.95)


def test_a_density_has_that_variance_to_second_order_in_the_stretches():
    """Grid and steps leave 2e-4 of relative error, a stretch of 1 3e-2, one of 1/2 a quarter of it."""
    errors = []
    for every in (1.0, 0.5, 0.1):
        pde = mf.PDE(cells=400, extent={"w1": (-8.0, 8.0)}, step=0.005, error=False)
        run = mf.solve(REST, mf.Annealed(pde, every, falling), horizon=2.0)
        errors.append(second_moment(run.final) / variance(2.0) - 1)
    assert abs(errors[-1]) < 1e-3
    assert 3.3 < (errors[0] - errors[-1]) / (errors[1] - errors[-1]) < 4.8


def test_a_ridge_may_change_too():
    """λ = 1/(1 + t) alone: |θ| falls as 1/(1 + t), by Heun's steps and stretches of 1/20 to 1e-3."""
    start = mf.init.Points([[1.0], [-2.0]])
    method = mf.Annealed(mf.Particles(2, method="heun", step=0.05), 0.05, ridge=lambda t: 1 / (1 + t))
    run = mf.solve(REST.replace(init=start), method, horizon=1.0)
    assert np.allclose(run.final, start.theta / 2, rtol=1e-3)


@pytest.mark.parametrize(
    "method",
    [
        mf.Particles(50, method="heun", step=0.03),
        mf.SGD(50, step=0.01, replicas=2),
        mf.PDE(cells=50, error=True),
    ],
    ids=repr,
)
def test_stops_and_a_checkpoint_change_no_bit(method):
    law = mf.data.Dataset([[1.0], [-0.5]], [1.0, 0.5])
    model = mf.Model(law, mf.Network(mf.activations.tanh), mf.init.Gaussian(std=1.0), ridge=0.3)
    annealed = mf.Annealed(method, 0.25, [[0.0, 0.5], [1.0, 0.1]])
    options = {"horizon": 1.0, "rng": 3, "threads": 1}
    whole = mf.solve(model, annealed, **options)
    looked = mf.solve(model, annealed, save_at=[0.0, 0.3, 0.5, 0.8, 1.0], **options)
    one, two = annealed.begin(model, 3, 1), annealed.begin(model, 3, 1)
    one.advance(0.6, math.inf)
    two.restore(one.state())
    for rung in (one, two):
        rung.advance(0.9, math.inf)

    def bits(measure):
        return measure.mass if isinstance(measure, mf.Density) else measure

    assert (bits(whole.final) == bits(looked.final)).all()
    assert (bits(one.measure()) == bits(two.measure())).all()
    assert whole.meta["stretches"] > 2


@pytest.mark.parametrize(
    "method", [mf.Particles(50, method="heun", step=0.03), mf.SGD(50, step=0.01)], ids=repr
)
def test_at_a_constant_temperature_it_is_the_method_itself(method):
    model = REST.replace(temperature=0.3)
    plain = mf.solve(model, method, horizon=1.0, rng=1)
    run = mf.solve(REST, mf.Annealed(method, 0.25, [[0.0, 0.3]]), horizon=1.0, rng=1)
    assert (run.final == plain.final).all()


def test_rows_stand_in_files(tmp_path):
    method = mf.Annealed(mf.SGD(5, step=0.1), 0.5, [[0.0, 1.0], [2.0, 0.5]], ridge=[[0.0, 0.1]])
    mf.save_config({"method": method}, tmp_path / "run.toml")
    back = mf.load_config(tmp_path / "run.toml")["method"]
    assert repr(back) == repr(method)
    assert back.at(1.0) == {"temperature": 0.75, "ridge": 0.1}
    assert back.at(9.0)["temperature"] == 0.5


def test_what_cannot_change_is_refused():
    particles = mf.Particles(5, method="heun", step=0.1)
    for method in (mf.JKO(tau=0.1), mf.Atoms(count=5, method="heun", step=0.1)):
        with pytest.raises(ValueError, match=r"method must be .* to be annealed"):
            mf.solve(REST, mf.Annealed(method, 0.5, lambda t: 1.0), horizon=1.0)
    with pytest.raises(ValueError, match="must have fixed steps to be annealed"):
        mf.solve(REST, mf.Annealed(mf.Particles(5), 0.5, ridge=lambda t: 1.0), horizon=1.0)
    with pytest.raises(TypeError, match="t must be a real number, got None"):
        mf.Annealed(mf.GD(3, 0.1), 0.1, ridge=lambda t: t).at(None)
    with pytest.raises(ValueError, match=r"temperature\(t = 0.25\) must be > 0, got 0"):
        mf.solve(REST, mf.Annealed(particles, 0.5, lambda t: 0.0), horizon=1.0)
    with pytest.raises(ValueError, match=r"every must be at least one step, got 0\.01"):
        mf.solve(REST, mf.Annealed(particles, 0.01, lambda t: 1.0), horizon=1.0)
    with pytest.raises(ValueError, match="temperature or ridge must be given"):
        mf.Annealed(particles, 0.5)
    with pytest.raises(ValueError, match="must be a function of t, or rows"):
        mf.Annealed(particles, 0.5, [[1.0, 0.5], [0.0, 0.5]])
    with pytest.raises(ValueError, match="no tolerance to be annealed"):
        mf.Annealed(mf.PDE(tolerance=1e-3), 0.5, lambda t: 1.0)
    with pytest.raises(TypeError, match=r"method must be a method"):
        mf.Annealed(3, 0.5, lambda t: 1.0)
