"""`mf.PDE` as a rung: against converged atoms, on growing grids, interrupted, resumed; what it refuses."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.density._pde import PDE
from mfcore.grids._grid import Grid, centered_edges, transfer
from problems import isotropic
from scipy import integrate


def atoms(reduced, times, nodes):
    """R at the times, of Gauss nodes of ρ0 carried along the flow."""
    z, weights = reduced.initial.quadrature(nodes)
    rates = np.array(reduced.rates)

    def velocity(_, flat):
        points = flat.reshape(z.shape)
        gradient = reduced.grad_psi(points, points, weights) + reduced.ridge * points * reduced.decays
        return -(rates * gradient).ravel()

    run = integrate.solve_ivp(velocity, (0, times[-1]), z.ravel(), t_eval=times, rtol=1e-8, atol=1e-10)
    return np.array([reduced.risk(flat.reshape(z.shape), weights) for flat in run.y.T])


@pytest.mark.parametrize("d", [40, 320])
@pytest.mark.parametrize("scheme", ["muscl", "upwind"])
def test_isotropic_risks_are_those_of_converged_atoms(d, scheme):
    times = np.linspace(0, 1.0, 6)
    model = isotropic(d)
    want = atoms(model.reduce(), times, 24)  # 16 nodes give the same to 1e-7
    run = mf.solve(model, PDE(200, scheme=scheme), horizon=1.0, save_at=times)
    assert (np.abs(run.risk - want) < run.error).all()
    assert run.error.max() < {"muscl": 3e-3, "upwind": 1.5e-2}[scheme]


def test_a_point_mass_at_infinite_dimension_stays_near_its_trajectory():
    times = np.linspace(0, 1.0, 6)
    model = isotropic(math.inf)
    want = atoms(model.reduce(), times, 1)
    run = mf.solve(model, PDE(400), horizon=1.0, save_at=times)
    assert np.abs(run.risk - want).max() < 1e-3  # measured: 3e-4
    assert abs(run.observed["norm_mean"][0] - 0.4) < 1e-12


def test_two_radii_are_those_of_converged_atoms():
    law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
    reduced = mf.Model(data=law, network=mf.Network(mf.activations.softplus)).reduce()
    normal = mf.init.Normal(0.8, 0.1)
    reduced = with_initial(reduced, [normal, mf.init.Normal(1.0, 0.08)])
    times = np.linspace(0, 8.0, 5)
    run = mf.solve(reduced, PDE(60), horizon=8.0, save_at=times)
    assert (np.abs(run.risk - atoms(reduced, times, 8)) < run.error).all()
    assert run.error.max() < 2e-3
    # The potential of the compressed features is that of the features.
    assert abs(run.risk[-1] - mf.risk(reduced, run.final)) < 1e-10
    grid = Grid(reduced, run.final.edges).with_features()
    assert grid.features is not None
    psi = grid.potential().potential(run.final.mass.ravel())
    centers = run.final.as_cloud().points
    assert np.abs(psi - mf.psi(reduced, centers, run.final)).max() < 1e-10


def with_initial(reduced, laws):
    """The same model with independent coordinates."""
    from mfcore.init._blocks import Scalar
    from mfcore.reductions._init import ReducedInit

    fields = {**vars(reduced), "initial": ReducedInit([Scalar(law) for law in laws])}
    return mf.ReducedModel(**{name: fields[name] for name in mf.ReducedModel.__dataclass_fields__})


def wave(rates=(1.0, 1.0), **options):
    """Features cos(q x) y at three nodes: not separable into fewer than they are, cheap."""
    q = np.array([0.5, 1.0, 1.5])
    return mf.ReducedModel(
        coordinates=["x", "y"],
        weights=np.full(3, 1 / 3),
        targets=[0.5, 1.0, -0.5],
        features=lambda z: np.cos(z[:, :1] * q) * z[:, 1:],
        gradients=lambda z: np.stack([-q * np.sin(z[:, :1] * q) * z[:, 1:], np.cos(z[:, :1] * q)], axis=-1),
        rates=rates,
        **options,
    )


@pytest.mark.parametrize("law", [mf.init.Normal(0.3, 0.8), mf.init.Uniform(-1, 1), mf.init.Constant(0.7)])
def test_a_coordinate_at_rest_is_an_axis_that_nothing_crosses(law):
    reduced = with_initial(wave(rates=(1.0, 0.0)), [mf.init.Normal(0.4, 0.2), law])
    times = np.linspace(0, 2.0, 5)
    run = mf.solve(reduced, PDE(200), horizon=2.0, save_at=times, keep="all")
    assert (np.abs(run.risk - atoms(reduced, times, 12)) < run.error + 1e-9).all()
    # Masses along the axis at rest never change, and its centres are Gauss nodes of the law.
    first, last = (rho.mass.sum(axis=0) for rho in (run.kept[0.0], run.final))
    assert np.abs(first - last).max() < 1e-13
    assert abs(run.final.centers[1] @ last - law.mean) < 1e-12
    assert np.allclose(run.final.centers[1], np.sort(law.quadrature(12)[0]), atol=1e-12)


def test_features_that_are_not_smooth_are_taken_from_a_table():
    kinked = mf.ReducedModel(
        coordinates=["x", "y"],
        weights=[0.25, 0.75],
        targets=[1.0, 0.0],
        features=lambda z: np.stack([np.abs(z[:, 0] - z[:, 1]), z[:, 0] * z[:, 1]], axis=1),
    )
    edges = np.linspace(-1, 1, 41)
    start = mf.Density((edges, edges), np.full((40, 40), 1 / 1600))
    run = mf.solve(kinked, PDE(start=start, error=False), horizon=0.5, save_at=[0.5])
    assert abs(run.risk[0] - mf.risk(kinked, run.final)) < 1e-10
    assert math.isnan(run.error[0])


def test_save_points_change_no_bit():
    model = isotropic(320)
    few = mf.solve(model, PDE(100), horizon=0.7, save_at=[0.0, 0.35, 0.7])
    many = mf.solve(model, PDE(100), horizon=0.7, save_at=np.linspace(0, 0.7, 29))
    assert few.meta["grown"] > 2
    assert few.final == many.final
    assert np.array_equal(few.risk, many.risk[::14])
    assert np.array_equal(few.error, many.error[::14])


def test_threads_change_no_bit():
    start = mf.Density((np.linspace(-1, 1, 121), np.linspace(0, 2, 101)), np.full((120, 100), 1 / 12000))
    one, two = (mf.solve(wave(), PDE(start=start), horizon=0.3, save_at=[], threads=n).final for n in (1, 2))
    assert one == two


@pytest.mark.parametrize("kind", ["line", "plane"])
def test_a_resumed_run_has_the_same_bits(tmp_path, kind):
    model = isotropic(320) if kind == "line" else with_initial(wave(), [mf.init.Normal(0.4, 0.2)] * 2)
    tight = (-1.02, 1.82)
    method = PDE(100) if kind == "line" else PDE(40, extent={"x": tight, "y": tight})
    file = tmp_path / "run.npz"
    end = 1.0 if kind == "line" else 2.0
    plan = {"horizon": end, "save_at": [0.0, end / 2, end]}
    whole = mf.solve(model, method, **plan)
    part = mf.solve(model, method, **plan, checkpoint=file, max_seconds=0.0)
    stops = 0
    while part.status != "completed":
        stops += 1
        part = mf.resume(file, model=model, max_seconds=0.004 * stops)
    assert whole.meta["grown"] > 0
    assert part.final == whole.final
    assert np.array_equal(part.risk, whole.risk)
    assert np.array_equal(part.error, whole.error)
    assert part.meta["steps"] == whole.meta["steps"]


@pytest.mark.parametrize("k", [1, 2])
def test_a_density_to_start_from_is_kept_in_files(tmp_path, k):
    edges = [np.linspace(0, 1, 41)] * k
    method = PDE(start=mf.Density(edges, np.full((40,) * k, 40.0**-k)))
    model = isotropic(40) if k == 1 else with_initial(wave(), [mf.init.Constant(0.0)] * 2)
    run = mf.solve(model, method, horizon=0.1, save_at=2, threads=1)
    run.save(tmp_path / "run.npz")
    loaded = mf.load(tmp_path / "run.npz")
    assert loaded.meta["method"] == method
    assert loaded.final == run.final
    given = {"model": model} if k == 2 else {}  # features by hand are not in files
    file = tmp_path / "state.npz"
    mf.solve(model, method, horizon=0.1, save_at=2, threads=1, checkpoint=file, max_seconds=0)
    assert mf.resume(file, threads=1, **given).final == run.final


def test_noise_is_for_scharfetter_and_gummel():
    model = isotropic(40, mf.activations.relu, temperature=0.02, ridge=0.1)
    run = mf.solve(model, PDE(100), horizon=1.0, save_at=5)
    assert run.meta["scheme"] == "scharfetter-gummel"
    assert run.status == "completed"
    assert (np.diff(run.observed["free_energy"]) <= 1e-12).all()
    assert run.final.mass.min() >= 0


def test_merging_cells_and_growing_conserves_masses():
    edges = (np.linspace(0.5, 2, 8), np.linspace(-1, 1, 10))
    old = Grid(wave(), edges)
    mass = np.random.default_rng(0).random((7, 9))
    for new in (old.coarse(), old.grown(0, 0, 100), old.grown(1, 1, 10), old.coarse().coarse()):
        moved = transfer(mass, old, new)
        assert moved.shape == new.shape
        assert abs(moved.sum() - mass.sum()) < 1e-13
    assert np.array_equal(transfer(mass, old, old.grown(1, 1, 100))[:, :9], mass)
    radius = mf.ReducedModel(
        coordinates=["r"], weights=[1.0], targets=[0.0], features=lambda z: z, nonnegative=(True,)
    )
    grid = Grid(radius, (np.linspace(0.25, 4.25, 17),))
    grown = grid.grown(0, 0, 100)
    assert grown.edges[0][0] == 0.0  # not below: that is where the coordinate ends
    assert grown.has_wall(0)
    assert np.array_equal(grown.edges[0][1:], grid.edges[0])


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_nodes_at_rest_are_centres_of_cells(n):
    for law in (mf.init.Normal(1, 2), mf.init.Uniform(-1, 3)):
        nodes = law.quadrature(n)[0]
        edges = centered_edges(nodes)
        assert (np.diff(edges) > 0).all()
        assert np.allclose(0.5 * (edges[1:] + edges[:-1]), nodes, atol=1e-13)


def test_the_method_is_a_value():
    start = mf.Density([0.0, 1.0, 2.0], [0.5, 0.5])
    assert repr(PDE()) == "PDE()"
    assert (
        repr(PDE((100, 50), scheme="upwind", step=0.1)) == "PDE(cells=(100, 50), scheme='upwind', step=0.1)"
    )
    assert PDE(start=start) == PDE(start=start)
    for method in (
        PDE(400),
        PDE([20, 30], extent={"r1": (0, 2)}, tolerance=1e-6, error=False),
        PDE(start=start),
    ):
        assert mf.config.from_config(mf.config.to_config(method)) == method


BAD_METHODS = [
    (lambda: PDE(1), "cells must be >= 2, got 1"),
    (lambda: PDE((100, 0)), r"cells\[1\] must be >= 2, got 0"),
    (
        lambda: PDE(scheme="godunov"),
        "scheme must be one of 'muscl', 'upwind', 'scharfetter-gummel', got 'godunov'",
    ),
    (lambda: PDE(step=0), "step must be > 0, got 0"),
    (lambda: PDE(tolerance=-1), "tolerance must be > 0, got -1"),
    (lambda: PDE(extent={"r": (1, 0)}), r"extent\['r'\] must have low < high, got \(1, 0\)"),
    (
        lambda: PDE(100, start=mf.Density([0.0, 1.0], [1.0])),
        "cells must be left out with start, got 100",
    ),
    (lambda: mf.Density([0.0, 1.0, 2.0], [1.5, -0.5]), r"mass must be >= 0, got -0.5 at \[1\]"),
    (lambda: mf.Density([0.0, 1.0, 2.0], [0.5, 0.6]), "mass must sum to 1 within 1e-09, got a sum of 1.1"),
]


@pytest.mark.parametrize(("make", "message"), BAD_METHODS)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def three(**options):
    return mf.ReducedModel(
        coordinates=["a", "s", "r"], weights=[1.0], targets=[0.0], features=lambda z: z[:, :1], **options
    )


LINE = mf.Density(np.linspace(0, 1, 5), np.full(4, 0.25))
BAD_RUNS = [
    (lambda: three(), PDE(), r"one or two moving coordinates .* got 3 of \(a, s, r\); mf.Atoms"),
    (lambda: three(rates=(0.0, 0.0, 0.0)), PDE(), "one or two moving coordinates .* got 0"),
    (lambda: wave(), PDE(), r"init must have a law in the coordinates \(x, y\), got None"),
    (lambda: wave(), PDE(start=LINE), r"start must have the coordinates \(x, y\), got a density in 1"),
    (
        lambda: isotropic(320),
        PDE(15),
        r"cells must be at least \d+ along r, or wider than .* of ρ0 .* got 15",
    ),
    (lambda: isotropic(320), PDE((20, 20)), r"cells must be one number or one for each of r, got \(20, 20\)"),
    (
        lambda: isotropic(320),
        PDE(extent={"s": (0, 1)}),
        r"extent must name moving coordinates \(r\), got 's'",
    ),
    (lambda: isotropic(320), PDE(extent={"r": (0.4, 1)}), r"extent of r must hold ρ0, .* got \[0.4, 1.0\]"),
    (lambda: isotropic(320), PDE(step=0.5), "step must be at most .*, where muscl on 400 cells is stable"),
    (
        lambda: isotropic(320, temperature=1.0),
        PDE(scheme="upwind"),
        "scheme must be 'scharfetter-gummel' at temperature = 1, got 'upwind'",
    ),
    (
        lambda: isotropic(320),
        PDE(scheme="scharfetter-gummel"),
        "scheme must be 'muscl' or 'upwind' at temperature = 0",
    ),
    (lambda: isotropic(math.inf, temperature=1.0), PDE(), "temperature must be 0 at d=inf, got 1"),
]


@pytest.mark.parametrize(("model", "method", "message"), BAD_RUNS)
def test_what_cannot_run_is_refused_with_the_reason(model, method, message):
    with pytest.raises(ValueError, match=message):
        mf.solve(model(), method, horizon=1.0)


def test_a_step_below_the_bound_is_kept():
    reduced = mf.ReducedModel(
        coordinates=["z"], weights=[1.0], targets=[0.0], features=lambda z: 0 * z, ridge=1.0
    )
    start = mf.Density(np.linspace(-1, 1, 51), np.full(50, 0.02))
    run = mf.solve(reduced, PDE(start=start, step=1e-3), horizon=0.1, save_at=[])
    assert run.meta["steps"] in (99, 100)  # the last one may end a rounding error beyond the horizon


def test_the_scheme_is_the_one_given_or_the_one_for_the_temperature():
    model = isotropic(20).reduce()
    assert mf.PDE().scheme_for(model) == "muscl"
    assert mf.PDE(scheme="upwind").scheme_for(model) == "upwind"
    assert mf.PDE().scheme_for(isotropic(20, temperature=0.1).reduce()) == "scharfetter-gummel"
