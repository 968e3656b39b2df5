"""Neurons in the field of wider networks, propagation of chaos, and the contracts of a run."""

from __future__ import annotations

import dataclasses
import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore._base.registry import from_config, to_config
from mfcore._base.rng import derive
from mfcore.atoms._atoms import Atoms
from mfcore.neurons._flow import DRIVER
from mfcore.neurons._independent import Nonlinear
from mfcore.neurons._methods import GD, SGD, Particles
from mfcore.runs._ends import End, Ended
from mfcore.runs._solve import resume, solve


def data_model(seed=0, init=None, **options):
    """Thirty points of the plane: rows so short that the reduction is θ itself, the same for all rungs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 2))
    law = mf.data.Dataset(x, np.tanh(2 * x[:, 0]) + x[:, 1])
    network = mf.Network(mf.activations.tanh, output="trained")
    return mf.Model(law, network, init or mf.init.Gaussian(1.0), **options)


def gaussian_model(d=40, **options):
    law = mf.data.IsotropicGaussians(d, 0.5)
    return mf.Model(law, mf.Network(mf.activations.relu), mf.init.Radial(1.0), **options)


def final(model, method, horizon=1.0, rng=0, **options):
    run = solve(model, method, horizon=horizon, save_at=[], risk=False, rng=rng, **options)
    assert run.status == "completed"
    return run.final


@dataclasses.dataclass(frozen=True)
class Replay:
    """The rung of the limit whose law at step k is that of the given neurons."""

    paths: dict = dataclasses.field(compare=False)
    h: float = 0.1

    def begin(self, model, seed, threads):
        return ReplayRung(self, model.reduce())


class ReplayRung:
    t = 0.0

    def __init__(self, method, reduced):
        self.method, self.reduced = method, reduced

    def advance(self, t, seconds):
        self.t = t
        return Ended(End.reached)

    def measure(self):
        return mf.Cloud(self.method.paths[round(self.t / self.method.h)])

    def state(self):
        return {"t": np.array(self.t)}

    def restore(self, state):
        self.t = float(state["t"])

    def meta(self):
        return {}


def test_in_the_field_of_their_own_particles_neurons_are_the_particles():
    model, h = data_model(temperature=0.05, ridge=0.1, rates={"a": 2.0}), 0.1
    run = solve(model, GD(20, h), horizon=1.0, save_at=11, keep="all", risk=False, rng=3)
    paths = {round(t / h): theta for t, theta in run.kept.items()}
    got = final(model, Nonlinear(20, Replay(paths), step=h), rng=3)
    np.testing.assert_allclose(got, run.final, atol=1e-13)  # rounding: sums in another order


@pytest.mark.parametrize("method", ["dopri5", "rk4", "lsoda"])
def test_a_network_that_starts_where_the_neurons_do_moves_as_they_do(method):
    theta = np.random.default_rng(0).normal(size=(9, 3))
    for model in (
        data_model(init=mf.init.Points(theta)),
        gaussian_model(3).replace(init=mf.init.Points(theta)),
    ):
        driver = Particles(9, method=method, step=0.1 if method == "rk4" else None, rtol=1e-8)
        # Errors per step of 1e-8, which depend on how many rows share them.
        np.testing.assert_allclose(final(model, Nonlinear(9, driver)), final(model, driver), atol=2e-6)


@pytest.mark.parametrize("model", [data_model(), gaussian_model(5)], ids=["nodes", "pairs"])
def test_neurons_without_mass_do_not_act_on_the_network(model):
    driver = GD(40, 0.1)
    rung = Nonlinear(7, driver).begin(model, 11, 1)
    alone = driver.begin(model, derive(11, DRIVER), 1)
    for run in (rung, alone):
        assert run.advance(1.0, math.inf).reached
    both = rung._run.values()
    np.testing.assert_allclose(both[7:], alone.measure(), atol=1e-14)  # rounding
    assert np.array_equal(both[:7], rung.measure())
    assert np.array_equal(
        Nonlinear(7, driver).begin(model, 11, 1).measure(), GD(7, 0.1).begin(model, 11, 1).measure()
    )


def test_on_the_sphere_the_network_keeps_them_there():
    network = mf.Network(mf.activations.relu, output="trained", sphere=True)
    init = mf.init.Product(a=mf.init.Normal(0, 1), w=mf.init.Sphere(1.0))
    model = mf.Model(mf.data.IsotropicGaussians(4, 0.5), network, init)
    theta = final(model, Nonlinear(5, Particles(30)))
    np.testing.assert_allclose(np.linalg.norm(theta[:, 1:], axis=1), 1.0, atol=1e-14)


def line_model():
    """One random number per neuron: atoms on panels give its law to 1e-8 at once."""
    x = np.linspace(-2, 2, 20)[:, None]
    init = mf.init.Product(b=mf.init.Constant(0.1), w=mf.init.Normal(0, 1))
    network = mf.Network(mf.activations.tanh, bias="trained")
    return mf.Model(mf.data.Dataset(x, np.tanh(2 * x[:, 0]) + 0.3), network, init)


def root_mean_square(gap):
    return math.sqrt(np.mean([gap(seed) ** 2 for seed in range(32)]))


def largest(one, other):
    return np.linalg.norm(one - other, axis=1).max()


# Of log2 of the ratios below, both near 2, the standard deviation over 32 seeds is 0.27 (bootstrap of 160):
# false alarm below 1e-4 each.
SLOWEST, FASTEST = 0.8, 3.0


def test_a_wider_network_comes_nearer_to_the_limit():
    """The field of M neurons is off by M^(-1/2)."""
    model = line_model()

    def gap(seed, m):
        one, other = (final(model, Nonlinear(10, d), rng=seed, threads=1) for d in (Particles(m), Atoms(64)))
        return largest(one, other)

    coarse, fine = (root_mean_square(lambda seed, m=m: gap(seed, m)) for m in (100, 1600))
    assert SLOWEST < math.log2(coarse / fine) < FASTEST


def test_propagation_of_chaos_has_its_rate():
    """max_i |θ_i − θ̄_i| of N particles and their independent twins falls like N^(-1/2)."""
    model = line_model()

    def gap(seed, n):
        one, other = (
            final(model, method, rng=seed, threads=1) for method in (Particles(n), Nonlinear(n, Atoms(64)))
        )
        return largest(one, other)

    coarse, fine = (root_mean_square(lambda seed, n=n: gap(seed, n)) for n in (50, 800))
    assert SLOWEST < math.log2(coarse / fine) < FASTEST


def same(one, other):
    return one.t.tolist() == other.t.tolist() and np.array_equal(one.final, other.final)


METHODS = {
    "chosen steps": (Nonlinear(6), {}),
    "fixed steps": (Nonlinear(6, step=0.03), {}),
    "noise": (Nonlinear(6, Atoms(50, method="heun", step=0.02), step=0.01), {"temperature": 0.01}),
    "network": (Nonlinear(6, Particles(20)), {}),
    "stiff network": (Nonlinear(6, Particles(20, method="lsoda")), {}),
}


@pytest.mark.parametrize("name", list(METHODS))
def test_a_run_is_resumed_to_the_same_bits_wherever_it_was_looked_at(name, tmp_path):
    method, options = METHODS[name]
    model = gaussian_model(**options)
    whole = solve(model, method, horizon=1.0, save_at=[0.0, 1.0], rng=4, threads=2)
    file = tmp_path / "run.npz"
    part = solve(
        model, method, horizon=1.0, save_at=[0.0, 1.0], rng=4, checkpoint=file, max_seconds=0, threads=1
    )
    assert part.status == "out of time"
    resumed = part
    for _ in range(3):
        if file.exists():
            resumed = resume(file, max_seconds=0.02, threads=1)
    if file.exists():
        resumed = resume(file, threads=1)
    assert resumed.status == "completed"
    assert same(resumed, whole)
    assert resumed.meta["method"] == method
    often = solve(model, method, horizon=1.0, save_at=37, rng=4, threads=1)
    assert np.array_equal(often.final, whole.final)
    other = solve(model, method, horizon=1.0, save_at=[0.0, 1.0], rng=5, threads=1)
    assert not np.array_equal(other.final, whole.final)


def test_states_are_restored_to_the_same_bits_between_steps():
    model = gaussian_model()
    for method, _ in list(METHODS.values())[:2]:
        rung, other = method.begin(model, 1, 1), method.begin(model, 1, 1)
        states, measures = [rung.state()], [rung.measure()]
        for t in (0.0, 0.2, 0.77, 1.0):
            assert rung.advance(t, math.inf).reached
            states.append(rung.state())
            measures.append(rung.measure())
        for k, state in enumerate(states):  # of a rung that has gone on
            other.restore(state)
            assert np.array_equal(other.measure(), measures[k])
            assert other.advance(1.0, math.inf).reached
            assert np.array_equal(other.measure(), measures[-1])


def test_methods_survive_configuration_files():
    for method in (Nonlinear(5), Nonlinear(5, Atoms(10), step=0.1), Nonlinear(5, GD(10, 0.1))):
        assert from_config(to_config(method)) == method
    assert repr(Nonlinear(5)) == "Nonlinear(neurons=5, driver=None, step=None, rtol=1e-06, atol=1e-09)"


class Ending(ReplayRung):
    """Constant until t = 0.5, where it ends."""

    end, waits = End.diverged, 0.0

    def begin(self, model, seed, threads):
        return self

    def advance(self, t, seconds):
        if t <= 0.5 or self.end is End.reached:
            time.sleep(min(self.waits, seconds))
            self.t = t
            return Ended(End.reached)
        self.t = 0.5
        return Ended(self.end, "this is why.")

    def measure(self):
        return mf.Cloud([[1.0]])


def ending(end, waits=0.0):
    driver = Ending(None, gaussian_model().reduce())
    driver.end, driver.waits = end, waits
    return driver


@pytest.mark.parametrize("step", [None, 0.05])
def test_a_driver_that_diverges_ends_the_run(step):
    run = solve(
        gaussian_model(), Nonlinear(3, ending(End.diverged), step=step), horizon=2.0, save_at=9, rng=0
    )
    assert run.status == "diverged"
    assert run.message == "the driver ended at t = 0.5: this is why."
    assert run.t[-1] <= 0.5
    assert np.isfinite(run.final).all()


def test_a_driver_at_rest_makes_the_same_field_until_the_next_save_point():
    model = gaussian_model()
    run = solve(model, Nonlinear(3, ending(End.stationary)), horizon=9.0, save_at=[0.0, 0.4, 1.0, 2.0], rng=0)
    assert run.status == "stationary"
    assert run.t.tolist() == [0.0, 0.4, 1.0]
    assert "this is why" in run.message
    whole = solve(model, Nonlinear(3, ending(End.reached)), horizon=1.0, save_at=[0.0], rng=0)
    np.testing.assert_allclose(run.final, whole.final, atol=1e-12)


def test_ctrl_c_in_the_driver_is_an_interruption():
    run = solve(gaussian_model(), Nonlinear(3, ending(End.interrupted)), horizon=2.0, save_at=9, rng=0)
    assert run.status == "interrupted"
    assert run.t[-1] <= 0.5


def test_what_cannot_run_says_what_would():
    network = mf.Network(mf.activations.relu, sphere=True)
    sphere = mf.Model(mf.data.IsotropicGaussians(5, 0.5), network, mf.init.Product(w=mf.init.Sphere(1.0)))
    rng = np.random.default_rng(0)
    data = mf.data.Dataset(rng.normal(size=(9, 7)), rng.normal(size=9))
    for model in (sphere, gaussian_model().replace(data=data)):
        with pytest.raises(
            ValueError, match=r"driver must be an auxiliary network, such as mf.Particles\(60\)"
        ):
            solve(model, Nonlinear(3), horizon=1.0)
        assert solve(model, Nonlinear(3, Particles(60)), horizon=0.1, save_at=2, rng=0).status == "completed"
    infinite = gaussian_model().replace(data=mf.data.IsotropicGaussians(np.inf, 0.5))
    with pytest.raises(ValueError, match="data must have finite d for neurons"):
        solve(infinite, Nonlinear(3), horizon=1.0)
    with pytest.raises(TypeError, match=r"model must be an mf.Model for networks"):
        solve(gaussian_model().reduce(), Nonlinear(3), horizon=1.0)
    with pytest.raises(ValueError, match="init must be an initial law"):
        solve(gaussian_model().replace(init=None), Nonlinear(3), horizon=1.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"neurons": 0}, ValueError, r"neurons must be >= 1, got 0"),
        ({"neurons": 3, "step": 0.0}, ValueError, r"step must be > 0, got 0.0"),
        ({"neurons": 3, "rtol": -1.0}, ValueError, r"rtol must be > 0, got -1.0"),
        ({"neurons": 3, "driver": SGD(9, 0.1)}, TypeError, r"driver must be a method of the limit.*got SGD"),
        ({"neurons": 3, "driver": Particles}, TypeError, r"driver must be a method of the limit"),
        ({"neurons": 3, "driver": GD(9, 0.1), "step": 0.1}, ValueError, r"step must be left out"),
    ],
)
def test_misuse_names_argument_rule_and_value(arguments, error, message):
    with pytest.raises(error, match=message):
        Nonlinear(**arguments)


def test_steps_must_fit_the_run():
    noisy = gaussian_model(temperature=0.1)
    with pytest.raises(ValueError, match=r"step must be given at temperature = 0.1, got None"):
        solve(noisy, Nonlinear(3, Atoms(10, method="heun", step=0.1)), horizon=1.0)
    for method in (Nonlinear(3, step=2.0), Nonlinear(3, GD(9, 2.0))):
        with pytest.raises(ValueError, match=r"step must be <= horizon = 1, got 2"):
            solve(gaussian_model(), method, horizon=1.0)
