"""Temperatures and ridges as functions of t: Ornstein–Uhlenbeck processes, bits, files, refusals."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.runs._changing import Stretches, begin

REST = mf.Model(  # Ψ = 0: dθ = −λθ dt + √(2T) dB
    mf.data.Dataset([[0.0]], [0.0]), mf.Network(mf.activations.linear), mf.init.Gaussian(std=1.0), ridge=0.5
)


def falling(t):
    return 0.8 * math.exp(-0.7 * t)


def variance(t):
    """Of v' = −v + 1.6e^{−0.7t}, v(0) = 1: eq. (6.17)."""
    return math.exp(-t) + 1.6 / 0.3 * (math.exp(-0.7 * t) - math.exp(-t))


def second_moment(rho):
    if isinstance(rho, mf.Density):
        return float(rho.mass @ (rho.centers[0] ** 2 + np.diff(rho.edges[0]) ** 2 / 12))
    if isinstance(rho, mf.Cloud):
        return float(rho.weights @ rho.points[:, 0] ** 2)
    return float(np.mean(rho**2))


@pytest.mark.parametrize(
    "method",
    [
        mf.Particles(4000, method="heun", step=0.05),
        mf.GD(4000, step=0.02),
        mf.SGD(4000, step=0.02),
        mf.Nonlinear(4000, step=0.02),
        mf.Atoms(count=4000, method="heun", step=0.05),
    ],
    ids=repr,
)
def test_neurons_have_the_variance_of_an_ornstein_uhlenbeck_process_that_cools(method):
    """5 standard errors of 4000 draws, √(2/4000), and 2 % of bias by Euler's steps: false alarms 10⁻⁶. At the
    temperature of the start the variance would be 60 % larger.
    """
    model = REST.replace(temperature=falling)
    run = mf.solve(model, method, horizon=2.0, save_at=[1.0, 2.0], keep="all", rng=0)
    for t in (1.0, 2.0):
        assert abs(second_moment(run.kept[t]) / variance(t) - 1) < 5 * math.sqrt(2 / 4000) + 0.02
    assert run.meta["temperature"] == pytest.approx(falling(2.0), rel=0.05)


@pytest.mark.parametrize(
    ("method", "error"),
    [
        (mf.PDE(cells=400, extent={"w1": (-8.0, 8.0)}, step=0.005, error=False), 1e-3),
        (mf.PDE(cells=400), 2e-3),
        (mf.JKO(tau=0.005), 2e-3),
    ],
    ids=repr,
)
def test_densities_have_that_variance_up_to_their_own_errors(method, error):
    """Those of the same methods at the constant temperature 0.8 are 3e-4, 8e-4 and 1e-3 (measured)."""
    run = mf.solve(REST.replace(temperature=falling), method, horizon=2.0)
    assert abs(second_moment(run.final) / variance(2.0) - 1) < error


LAW = mf.init.Gaussian(std=1.0)


@pytest.mark.parametrize(
    "method",
    [
        mf.Particles(2),
        mf.Particles(2, method="lsoda"),
        mf.Particles(2, method="rk4", step=0.02),
        mf.Nonlinear(2),
        mf.Nonlinear(2, step=0.02),
        mf.Nonlinear(2, driver=mf.Particles(3)),
        mf.Atoms(),
        mf.Atoms(method="rk4", step=0.02),
        mf.Atoms(method="lsoda"),
    ],
    ids=repr,
)
def test_without_noise_a_ridge_of_1_over_1_plus_t_halves_all_weights_by_t_1(method):
    """λ = 1/(1 + t) alone: |θ| falls as 1/(1 + t). Stretches of 2 % leave 5e-5, of steps of 1/25 2e-4."""
    model = REST.replace(ridge=lambda t: 1 / (1 + t))
    run = mf.solve(model, method, horizon=1.0, save_at=[0.0, 1.0], keep="all", rng=0)
    start, end = (math.sqrt(second_moment(run.kept[t])) for t in (0.0, 1.0))
    assert end == pytest.approx(0.5 * start, rel=5e-4)
    assert run.error is None or run.error[-1] < 1e-12


def test_forces_are_followed_to_second_order_in_the_stretches():
    """With stretches of 1, 1/2 and 1/10 in place of those that are chosen: 3.3 to 4.8 times per halving."""
    method = mf.PDE(cells=400, extent={"w1": (-8.0, 8.0)}, step=0.005, error=False)
    errors = []
    for every in (1.0, 0.5, 0.1):
        starts = np.arange(0.0, 2.0, every)
        rows = [[s + k * 1e-9 * every, falling(s + every / 2)] for s in starts for k in (1, 1e9 - 1)]
        run = mf.solve(REST.replace(temperature=rows), method, horizon=2.0)
        errors.append(second_moment(run.final) / variance(2.0) - 1)
    assert 3.3 < (errors[0] - errors[-1]) / (errors[1] - errors[-1]) < 4.8


def test_stretches_end_at_knots_and_where_a_force_has_changed_by_2_percent():
    class Force:
        def __init__(self, function, knots=()):
            self.function, self.knots = function, knots

        def __call__(self, t):
            return self.function(t)

    decay = Stretches([Force(lambda t: math.exp(-t))], lambda t: t)
    for k in range(200):
        assert math.exp(decay.end(k) - decay.begin(k)) <= 1.02 + 1e-12
    ramp = Stretches([Force(lambda t: 0.1 * t)], lambda t: t)
    assert ramp.begin(300) > 1  # 2 % alone would begin with 2⁻⁴⁰ and need more than a thousand
    jump = Stretches([Force(lambda t: 1.0 if t < 1 else 2.0)], lambda t: t)
    ends = [jump.end(k) for k in range(100)]
    near = min(ends, key=lambda t: abs(t - 1))
    assert abs(near - 1) < 1e-9
    rows = Stretches([Force(lambda t: min(t, 0.3), (0.0, 0.3))], lambda t: t)
    k = next(k for k in range(10_000) if math.isinf(rows.end(k)))
    assert rows.begin(k) == 0.3
    stepping = Stretches([Force(lambda t: math.exp(-t))], lambda t: round(t / 0.25) * 0.25)
    assert [stepping.end(k) for k in range(4)] == [0.25, 0.5, 0.75, 1.0]


def test_a_schedule_need_not_exist_beyond_the_horizon():
    """T = 0.3√(1 − t) is no number beyond t = 1."""
    model = REST.replace(temperature=lambda t: 0.3 * math.sqrt(1 - t))
    for method in (mf.PDE(cells=50), mf.Particles(5, method="heun", step=0.05)):
        assert mf.solve(model, method, horizon=1.0).status == "completed"


def test_a_network_with_a_scale_cools_as_its_unit_does():
    """Eq. (11.1): temperature and ridge over the square of the scale."""
    law = mf.data.Dataset([[1.0], [-0.5]], [1.0, 0.5])
    model = mf.Model(
        law, mf.Network(mf.activations.tanh, scale=2.0), LAW, ridge=lambda t: 0.4 / (1 + t),
        temperature=[[0.0, 0.5], [1.0, 0.1]],
    )  # fmt: skip
    other = mf.Model(
        mf.data.Dataset([[1.0], [-0.5]], [0.5, 0.25]), mf.Network(mf.activations.tanh), LAW,
        ridge=lambda t: 0.1 / (1 + t), temperature=[[0.0, 0.125], [1.0, 0.025]], rates={"w": 4.0},
    )  # fmt: skip
    method = mf.Particles(20, method="heun", step=0.05)
    one, two = (mf.solve(m, method, horizon=1.0, rng=1) for m in (model, other))
    assert np.allclose(one.final, two.final, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "method",
    [
        mf.Particles(50, method="heun", step=0.03),
        mf.SGD(50, step=0.01, replicas=2),
        mf.PDE(cells=50, error=True),
        mf.Nonlinear(20, step=0.05),
        mf.Atoms(count=30, method="heun", step=0.05),
        mf.JKO(tau=0.05, count=30),
    ],
    ids=repr,
)
def test_stops_and_a_checkpoint_change_no_bit(method):
    law = mf.data.Dataset([[1.0], [-0.5]], [1.0, 0.5])
    model = mf.Model(
        law, mf.Network(mf.activations.tanh), LAW, ridge=0.3, temperature=[[0.0, 0.5], [1.0, 0.1]]
    )
    options = {"horizon": 1.0, "rng": 3, "threads": 1}
    whole = mf.solve(model, method, **options)
    looked = mf.solve(model, method, save_at=[0.0, 0.3, 0.5, 0.8, 1.0], **options)
    one, two = begin(method, model, 3, 1), begin(method, model, 3, 1)
    one.advance(0.6, math.inf)
    two.restore(one.state())
    for rung in (one, two):
        rung.advance(0.9, math.inf)

    def bits(measure):
        if isinstance(measure, mf.Density):
            return np.concatenate([measure.edges[0], measure.mass])
        return measure.points if isinstance(measure, mf.Cloud) else measure

    assert (bits(whole.final) == bits(looked.final)).all()
    assert (bits(one.measure()) == bits(two.measure())).all()
    assert whole.meta["stretches"] > 2


def test_adaptive_runs_resume_to_the_same_bits_too():
    model = mf.Model(
        mf.data.Dataset([[1.0], [-0.5]], [1.0, 0.5]), mf.Network(mf.activations.tanh), LAW,
        ridge=lambda t: 0.3 / (1 + t),
    )  # fmt: skip
    for method in (mf.Particles(5), mf.Particles(5, method="lsoda"), mf.Nonlinear(5), mf.Atoms()):
        one, two = begin(method, model, 3, 1), begin(method, model, 3, 1)
        one.advance(0.6, math.inf)
        two.restore(one.state())
        assert one.t == two.t == 0.6
        for rung in (one, two):
            rung.advance(0.9, math.inf)
        ends = [m.points if isinstance(m, mf.Cloud) else m for m in (one.measure(), two.measure())]
        assert (ends[0] == ends[1]).all()


def test_a_run_that_is_stopped_goes_on_from_its_file(tmp_path):
    model = REST.replace(temperature=[[0.0, 0.5], [1.0, 0.1]])
    method, options = mf.SGD(20, step=0.01), {"horizon": 1.0, "rng": 4}
    whole = mf.solve(model, method, **options)
    part = mf.solve(model, method, checkpoint=tmp_path / "run", max_seconds=0, **options)
    assert part.status == "out of time"
    assert (mf.resume(tmp_path / "run").final == whole.final).all()
    cooled = REST.replace(temperature=falling)  # a function, which a file cannot hold
    whole = mf.solve(cooled, method, **options)
    mf.solve(cooled, method, checkpoint=tmp_path / "other", max_seconds=0, **options)
    with pytest.raises(ValueError, match="model"):
        mf.resume(tmp_path / "other")
    assert (mf.resume(tmp_path / "other", model=cooled).final == whole.final).all()


def test_a_later_horizon_changes_no_bit_of_what_was_before(tmp_path):
    model = REST.replace(temperature=falling)
    for method in (mf.SGD(20, step=0.01), mf.PDE(cells=40)):
        options = {"save_at": [0.0, 0.7, 1.3], "rng": 4}
        whole = mf.solve(model, method, horizon=1.3, **options)
        short = mf.solve(model, method, horizon=0.7, save_at=[0.0, 0.7], rng=4)
        assert (np.asarray(whole.risk[:2]) == np.asarray(short.risk)).all()


@pytest.mark.parametrize(
    "method", [mf.Particles(50, method="heun", step=0.03), mf.SGD(50, step=0.01)], ids=repr
)
def test_at_a_constant_temperature_it_is_the_method_itself(method):
    plain = mf.solve(REST.replace(temperature=0.3), method, horizon=1.0, rng=1)
    for course in ([[0.0, 0.3]], lambda t: 0.3):
        run = mf.solve(REST.replace(temperature=course), method, horizon=1.0, rng=1)
        assert (run.final == plain.final).all()
        assert run.meta["stretches"] == 1


def test_rows_stand_in_files_and_functions_do_not(tmp_path):
    model = REST.replace(temperature=[[0.0, 1.0], [2.0, 0.5]], ridge=[[0.0, 0.1]])
    mf.save_config({"model": model}, tmp_path / "run.toml")
    back = mf.load_config(tmp_path / "run.toml")["model"]
    assert back.temperature == model.temperature
    assert repr(back.temperature) == "[[0.0, 1.0], [2.0, 0.5]]"
    assert (back.at(1.0).temperature, back.at(9.0).temperature, back.at(3.0).ridge) == (0.75, 0.5, 0.1)
    assert back.at(1.0) == REST.replace(temperature=0.75, ridge=0.1, data=back.data, init=back.init)
    with pytest.raises(TypeError, match=r"model\.temperature must be an object of mfcore or a plain value"):
        mf.save_config({"model": REST.replace(temperature=falling)}, tmp_path / "other.toml")


X = np.linspace(-2.0, 2.0, 9)[:, None]
MODEL = mf.Model(
    mf.data.Dataset(X, np.sin(X[:, 0])), mf.Network(mf.activations.tanh, output="trained"), LAW, ridge=0.1
)
THETA = np.random.default_rng(0).normal(size=(5, 2))
CELLS = mf.Density((np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), np.full((4, 4), 1 / 16))
ONE_NUMBER = {  # what needs one temperature and one ridge
    "free_energy": lambda m: mf.free_energy(m, CELLS),
    "dissipation": lambda m: mf.dissipation(m, CELLS),
    "gibbs": mf.gibbs,
    "certificate": lambda m: mf.certificate(m, THETA),
    "stability": lambda m: theory.stability(m, THETA),
    "fixed_points": theory.fixed_points,
    "fluctuations": lambda m: theory.fluctuations(m, 0.5, start=THETA),
    "diagnose": lambda m: theory.diagnose(m, THETA),
    "relaxation": lambda m: theory.relaxation(m, CELLS),
    "bounds": lambda m: theory.bounds(m, THETA),
    "steppers.Flow": lambda m: mf.steppers.Flow(m, THETA.copy()),
    "begin, SGD": lambda m: mf.SGD(5, step=0.1).begin(m, 0, 1),
    "begin, Particles": lambda m: mf.Particles(5).begin(m, 0, 1),
    "begin, PDE": lambda m: mf.PDE(cells=(8, 8)).begin(m, 0, 1),
    "begin, Atoms": lambda m: mf.Atoms().begin(m, 0, 1),
}


@pytest.mark.parametrize("function", ONE_NUMBER.values(), ids=ONE_NUMBER)
def test_what_needs_one_number_refuses_a_function_of_time_and_says_what_works(function):
    with pytest.raises(ValueError, match=r"temperature must be a number here.*model\.at\(t\)"):
        function(MODEL.replace(temperature=falling))


@pytest.mark.parametrize(
    "function",
    [
        lambda m: mf.psi(m, THETA, THETA),
        lambda m: mf.grad_psi(m, THETA, THETA),
        lambda m: mf.free_energy(m, THETA),
        lambda m: mf.certificate(m, THETA),
        lambda m: mf.optimum(m),
        lambda m: theory.stability(m, THETA),
        lambda m: theory.diagnose(m, THETA),
        lambda m: theory.bounds(m, THETA),
        lambda m: mf.steppers.Flow(m, THETA.copy()),
        lambda m: mf.SGD(5, step=0.1).begin(m, 0, 1),
        lambda m: mf.Particles(5).begin(m, 0, 1),
        lambda m: mf.Atoms().begin(m, 0, 1),
    ],
)
def test_a_ridge_that_changes_is_refused_as_well(function):
    with pytest.raises(ValueError, match=r"ridge must be a number here.*model\.at\(t\)"):
        function(MODEL.replace(ridge=falling))


def test_what_depends_on_neither_takes_such_models():
    changing = MODEL.replace(temperature=falling, ridge=falling)
    assert mf.risk(changing, THETA) == mf.risk(MODEL, THETA)
    assert (mf.V(changing, THETA) == mf.V(MODEL, THETA)).all()
    assert changing == MODEL.replace(temperature=falling, ridge=falling)
    assert hash(changing) == hash(MODEL.replace(temperature=falling, ridge=falling))
    assert "falling" in repr(changing)
    assert "falling" in repr(changing.reduce())
    assert changing.at(1.0) == MODEL.replace(temperature=falling(1.0), ridge=falling(1.0))
    assert MODEL.at(1.0) is MODEL
    assert mf.gibbs(changing.at(1.0)).risk > 0


def test_what_cannot_change_is_refused():
    model = REST.replace(temperature=falling)
    with pytest.raises(ValueError, match=r"temperature must be 0 for mf.Linearized"):
        mf.solve(model, mf.Linearized(5), horizon=1.0)
    with pytest.raises(ValueError, match=r"ridge must be a number for Linearized\(.*follow functions of t"):
        mf.solve(REST.replace(ridge=falling, init=mf.init.Points([[0.0]])), mf.Linearized(1), horizon=1.0)
    with pytest.raises(ValueError, match="method must be 'euler' or 'heun', with a step"):
        mf.solve(model, mf.Particles(5), horizon=1.0)
    with pytest.raises(ValueError, match="tolerance must be left out where forces change"):
        mf.solve(model, mf.PDE(tolerance=1e-3), horizon=1.0)
    with pytest.raises(ValueError, match=r"temperature\(t = 0\) must be > 0, .* got 0"):
        mf.solve(REST.replace(temperature=lambda t: 0.0), mf.SGD(5, step=0.1), horizon=1.0)
    with pytest.raises(ValueError, match=r"temperature\(t = 0\) must be >= 0, got -1"):
        mf.solve(REST.replace(temperature=lambda t: -1.0), mf.SGD(5, step=0.1), horizon=1.0)
    driver = mf.Atoms(method="heun", step=0.1)
    with pytest.raises(ValueError, match="step must be that of the driver"):
        mf.solve(model, mf.Nonlinear(5, driver=driver, step=0.05), horizon=1.0)
    for rows in ([[1.0, 0.5], [0.0, 0.5]], [[0.0, -0.5]], []):
        with pytest.raises(ValueError, match=r"temperature must be .*rows|temperature must"):
            REST.replace(temperature=rows)
    with pytest.raises((TypeError, ValueError), match="temperature must be"):
        REST.replace(temperature="hot")
