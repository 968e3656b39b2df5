"""Pictures draw the numbers of the runs they are given, anywhere, and leave nothing behind."""

import dataclasses
import subprocess
import sys

import matplotlib as mpl
import mfcore as mf
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from mfcore import plots
from mfcore.plots import _labels
from scipy import stats

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Gaussian(std=0.3),
)
PLANE = mf.Model(
    data=mf.data.AnisotropicGaussians(d=12, delta=0.5, s0=4),
    network=mf.Network(mf.activations.relu, bias="trained"),
    init=mf.init.Gaussian(std=0.5),
    rates={"b": 0.5},
)
TIMES = [0.0, 0.25, 0.5, 0.75, 1.0]


class PDE:
    """What calls itself a PDE in the runs below, which are made by hand."""


def sgd(model=MODEL, **options):
    method = mf.SGD(neurons=40, step=0.01, replicas=options.pop("replicas", 1))
    return mf.solve(model, method, horizon=1.0, save_at=TIMES, keep="all", rng=0, **options)


def limit(densities, *, error=0.0, model=MODEL, t=TIMES):
    """A run of the limit with these measures at times t."""
    risks = np.linspace(2.0, 1.0, len(t))
    return mf.Trajectory(
        t=np.array(t),
        risk=risks,
        error=np.full(len(t), error),
        observed={"norm_mean": risks / 2},
        final=densities[-1],
        kept=dict(zip(t, densities, strict=True)),
        status="completed",
        message="",
        meta={"model": model, "method": PDE(), "t": t[-1], "horizon": t[-1]},
    )


def bump(middle):
    """A density of |w| on 100 cells, of different widths."""
    edges = np.linspace(0.0, 2.0, 101) ** 1.2
    mass = np.exp(-50 * (0.5 * (edges[1:] + edges[:-1]) - middle) ** 2)
    return mf.Density(edges, mass / mass.sum())


LIMIT = limit([bump(0.5 + 0.2 * k) for k in range(5)])


def line(ax, name):
    (found,) = (entry for entry in ax.get_lines() if entry.get_label() == name)
    return found


def bars(ax, name):
    """Lower and upper ends of the error bars of a series, (T, 2)."""
    (found,) = (container for container in ax.containers if container.get_label() == name)
    return np.array([segment[:, 1] for segment in found[2][0].get_segments()])


def test_the_risk_of_networks_is_points_and_that_of_the_limit_a_line():
    run = sgd()
    ax = plots.risk([run, LIMIT])
    points, curve = line(ax, "SGD, N = 40"), line(ax, "PDE")
    assert (points.get_marker(), points.get_linestyle()) == ("o", "None")
    assert (curve.get_marker(), curve.get_linestyle()) == ("None", "-")
    for artist, source in ((points, run), (curve, LIMIT)):
        assert np.array_equal(artist.get_xdata(), source.t)
        assert np.array_equal(artist.get_ydata(), source.risk)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time $t$", "risk $R$")
    assert not ax.collections  # no bands and bars where nothing is uncertain


def test_replicas_are_their_mean_with_a_confidence_interval_of_95_percent():
    run = sgd(replicas=5)
    for ax, values in (
        (plots.risk({"a": run}), run.risk),
        (plots.observable({"a": run}, "norm_mean"), run.observed["norm_mean"]),
    ):
        assert np.array_equal(ax.containers[0][0].get_ydata(), values.mean(axis=1))
        interval = stats.t.interval(0.95, 4, loc=values.mean(axis=1), scale=stats.sem(values, axis=1))
        np.testing.assert_allclose(bars(ax, "a"), np.transpose(interval), rtol=1e-12)


def test_the_bars_of_a_sampled_risk_are_1_96_standard_errors():
    run = sgd(risk=mf.MonteCarlo(200, rng=0))
    ends = bars(plots.risk({"a": run}), "a")
    half = stats.norm.ppf(0.975) * run.error
    np.testing.assert_allclose(ends, np.stack([run.risk - half, run.risk + half], axis=1), rtol=1e-12)


def test_the_stated_error_of_the_limit_is_a_band_where_it_can_be_seen():
    run = dataclasses.replace(LIMIT, error=np.full(5, 0.1))
    (band,) = plots.risk(run).collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.9, 2.1), rel=1e-12)
    assert not plots.risk(dataclasses.replace(LIMIT, error=np.full(5, 1e-4))).collections


def test_logarithmic_axes_are_those_asked_for():
    for log, scales in (("", ("linear", "linear")), ("x", ("log", "linear")), ("xy", ("log", "log"))):
        ax = plots.risk(LIMIT, log=log)
        assert (ax.get_xscale(), ax.get_yscale()) == scales
    for wrong in ("z", True):
        with pytest.raises(ValueError, match="log must be '', 'x', 'y' or 'xy', got"):
            plots.risk(LIMIT, log=wrong)


def test_runs_are_named_by_what_they_differ_in_and_the_title_has_the_rest():
    def ran(model=MODEL, rng=0, **options):
        return mf.solve(model, mf.SGD(**options), horizon=0.1, save_at=2, rng=rng)

    small, wide = ran(neurons=10, step=0.01), ran(neurons=20, step=0.01)
    fast, hard = ran(neurons=10, step=0.05), ran(MODEL.replace(ridge=0.5), neurons=10, step=0.01)
    other = ran(MODEL.replace(network=mf.Network(mf.activations.erf)), neurons=10, step=0.01)
    cut = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[0.0, 1.0])
    cut = ran(MODEL.replace(network=mf.Network(cut)), neurons=10, step=0.01)
    particles = mf.solve(MODEL, mf.Particles(10), horizon=0.1, save_at=2, rng=0)
    for runs, names, common in (
        ([small], ["SGD, N = 10"], ""),
        ([small, wide, LIMIT], ["SGD, N = 10", "SGD, N = 20", "PDE"], ""),
        ([small, LIMIT], ["SGD, N = 10", "PDE"], ""),
        ([small, wide], ["N = 10", "N = 20"], "SGD"),
        ([small, particles, LIMIT], ["SGD", "Particles", "PDE"], "N = 10"),
        ([small, fast], ["step = 0.01", "step = 0.05"], "SGD, N = 10"),
        ([small, fast, LIMIT], ["SGD, step = 0.01", "SGD, step = 0.05", "PDE"], "N = 10"),
        ([small, hard], ["ridge = 0", "ridge = 0.5"], "SGD, N = 10"),
        ([small, other, cut], ["relu", "erf", "piecewise_linear"], "SGD, N = 10"),
        ([small, small], ["run 1", "run 2"], "SGD, N = 10"),
        ([[small, ran(neurons=10, step=0.01, rng=1)], [fast]], ["step = 0.01", "step = 0.05"], "SGD, N = 10"),
        ({"mine": small, "yours": small}, ["mine", "yours"], ""),
    ):
        ax = plots.risk(runs)
        assert [text.get_text().replace("\n", " ") for text in ax.texts] == names
        assert [artist.get_label() for artist in ax.get_lines()] == names
        assert ax.get_title("left") == common


def test_a_group_is_the_mean_over_its_runs_and_replicas_with_a_band_of_95_percent():
    def ran(seed, replicas):
        method = mf.SGD(neurons=40, step=0.01, replicas=replicas)
        return mf.solve(MODEL, method, horizon=1.0, save_at=TIMES, rng=seed)

    runs = [ran(0, 1), ran(1, 3), ran(2, 1)]
    values = np.concatenate([run.risk.reshape(5, -1) for run in runs], axis=1)
    ax = plots.risk({"three seeds": runs, "limit": LIMIT})
    np.testing.assert_allclose(line(ax, "three seeds").get_ydata(), values.mean(axis=1), rtol=1e-14)
    low, high = stats.t.interval(0.95, 4, loc=values.mean(axis=1), scale=stats.sem(values, axis=1))
    (band,) = ax.collections
    drawn = band.get_paths()[0].vertices
    for end in (low, high):
        assert all(np.abs(drawn[:, 1] - y).min() < 1e-12 for y in end)
    assert ax.get_ylabel() == "risk $R$, mean and 95 % interval"
    with pytest.raises(ValueError, match="the same save points in a group"):
        plots.risk([[runs[0], mf.solve(MODEL, mf.GD(40, step=0.1), horizon=1.0, save_at=3, rng=0)]])
    with pytest.raises(ValueError, match="groups of networks alone or of limits alone"):
        plots.risk([[runs[0], LIMIT]])
    with pytest.raises(ValueError, match="trajectories must not have an empty group"):
        plots.risk({"none": []})


def test_densities_of_a_group_are_means_over_its_networks_with_intervals():
    runs = [mf.solve(MODEL, mf.GD(60, step=0.1), horizon=0.1, rng=seed) for seed in range(4)]
    ax = plots.density([runs], bins=5)
    heights, edges, _ = ax.patches[0].get_data()
    each = [np.histogram(np.linalg.norm(run.final, axis=1), edges, density=True)[0] for run in runs]
    np.testing.assert_allclose(heights, np.mean(each, axis=0), rtol=1e-12)
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    interval = stats.t.interval(0.95, 3, loc=heights, scale=stats.sem(each, axis=0))
    np.testing.assert_allclose(ends, np.maximum(np.transpose(interval), 0), rtol=1e-12, atol=1e-12)
    assert ax.get_ylabel() == "density, mean and 95 % interval"
    assert line(plots.density([[LIMIT, LIMIT]], times=1.0), "_child0").get_ydata() == pytest.approx(
        LIMIT.final.density
    )
    with pytest.raises(ValueError, match="networks of one size or densities of one grid in a group"):
        plots.density([[runs[0], mf.solve(MODEL, mf.GD(5, step=0.1), horizon=0.1, rng=0)]])


def test_two_observables_on_the_same_axes_are_both_named():
    run = sgd(replicas=2)
    ax = plots.observable([run, LIMIT], "norm_mean")
    ax = plots.observable(run, "norm_std", ax=ax)
    assert " ".join(ax.get_ylabel().split()) == (
        "mean of |w|; standard deviation of |w|, mean and 95 % interval"
    )
    assert [" ".join(text.get_text().split()) for text in ax.texts] == [
        "SGD, N = 40: mean of |w|",
        "PDE: mean of |w|",
        "SGD, N = 40: standard deviation of |w|",
    ]


def test_the_axis_says_when_intervals_are_of_samples_or_stated_errors():
    assert plots.risk(sgd(risk=mf.MonteCarlo(200, rng=0))).get_ylabel() == "risk $R$, 95 % interval"
    stated = dataclasses.replace(LIMIT, error=np.full(5, 0.1))
    assert plots.risk(stated).get_ylabel() == "risk $R$, stated error"


def test_boxes_that_fit_stay_where_they_want_to_be_and_none_leaves_the_bounds():
    wanted, heights = np.array([0.1, 0.5, 0.52, 0.9]), np.array([0.1, 0.1, 0.2, 0.1])
    np.testing.assert_allclose(_labels.spread(wanted, heights), [0.1, 0.435, 0.585, 0.9], rtol=1e-12)
    low = _labels.spread(np.array([0.0, 0.0, 1.0]), np.full(3, 0.2), (0.0, 1.0))
    np.testing.assert_allclose(low, [0.1, 0.3, 0.9], rtol=1e-12)


def test_densities_are_lines_over_histograms_of_all_neurons():
    run = sgd(replicas=2)
    ax = plots.density([run, LIMIT], times=[0.0, 1.0])
    for k, t in enumerate((0.0, 1.0)):
        law, curve = LIMIT.kept[t], ax.get_lines()[k]
        assert np.array_equal(curve.get_xdata(), law.centers[0])
        assert np.array_equal(curve.get_ydata(), law.density)
        heights, edges, _ = ax.patches[k].get_data()
        norms = np.linalg.norm(run.kept[t], axis=-1).ravel()
        assert len(norms) == 80
        np.testing.assert_allclose(heights, np.histogram(norms, bins=edges, density=True)[0], rtol=1e-12)
        assert (edges[0], edges[-1]) == (norms.min(), norms.max())
    assert [text.get_text() for text in ax.texts] == ["t = 0", "t = 1"]
    assert ax.get_xlabel() == "$|w|$"
    assert ax.get_title("left") == "bars: SGD, N = 40     lines: PDE"


def test_atoms_that_are_nodes_of_a_law_look_like_its_density():
    rho0 = MODEL.reduce().initial
    (steps,) = plots.density(limit([mf.Cloud(*rho0.quadrature(200))], t=[1.0]), bins=12).patches
    heights, edges, _ = steps.get_data()
    law = stats.chi(6, scale=0.3)
    assert (law.cdf(edges[0]), law.sf(edges[-1])) == pytest.approx((1e-3, 1e-3), rel=0.5)
    assert heights @ np.diff(edges) == pytest.approx(1.0, rel=1e-12)
    # A bar holds 2 or 3 of the nodes that matter; the interval of a node is its own to second order.
    np.testing.assert_allclose(heights[1:-1], np.diff(law.cdf(edges))[1:-1] / np.diff(edges)[1:-1], rtol=0.1)


def test_atoms_of_one_mass_are_a_histogram():
    rng = np.random.default_rng(0)
    cloud = mf.Cloud(rng.uniform(0.5, 1.0, (30, 1)))
    (steps,) = plots.density(limit([cloud], t=[1.0]), bins=6).patches
    heights, edges, _ = steps.get_data()
    assert len(heights) == 6
    wanted = np.histogram(cloud.points[:, 0], bins=edges, weights=cloud.weights)[0] / np.diff(edges)
    np.testing.assert_allclose(heights, wanted, rtol=1e-12)


def test_coordinates_of_neurons_and_marginals_of_densities_go_by_name():
    run = sgd(PLANE)
    ax = plots.density(run, times=1.0, coordinate="r1", bins=5)
    heights, edges, _ = ax.patches[0].get_data()
    r1 = np.linalg.norm(run.final[:, 1:5], axis=1)  # rows are [b, w…], the first 4 entries of w are special
    np.testing.assert_allclose(heights, np.histogram(r1, bins=edges, density=True)[0], rtol=1e-12)
    edges = tuple(np.linspace(0, 1, n + 1) for n in (4, 3, 5))
    mass = np.random.default_rng(1).dirichlet(np.ones(60)).reshape(4, 3, 5)
    (curve,) = plots.density(
        limit([mf.Density(edges, mass)], model=PLANE, t=[1.0]), coordinate="r1"
    ).get_lines()
    np.testing.assert_allclose(curve.get_ydata(), mass.sum(axis=(0, 2)) * 3, rtol=1e-12)
    with pytest.raises(
        ValueError, match="coordinate must be one of the model's, got 'nrom'; did you mean 'norm'"
    ):
        plots.density(run, coordinate="nrom")


def test_neurons_that_agree_up_to_rounding_are_one_bar():
    law = mf.init.Points(np.full((5, 6), 0.5))
    run = mf.solve(MODEL.replace(init=law), mf.GD(5, step=0.1), horizon=0.1, rng=0)
    heights, edges, _ = plots.density(run).patches[0].get_data()
    assert (len(heights), heights[0] * (edges[1] - edges[0])) == (1, pytest.approx(1.0, rel=1e-12))


def test_densities_of_two_coordinates_are_images():
    model = PLANE.replace(network=mf.Network(mf.activations.relu), rates=None)
    mass = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(3, 4)
    law = mf.Density((np.array([0.0, 1.0, 2.0, 4.0]), np.linspace(0, 1, 5)), mass)
    run = limit([law] * 5, model=model)
    ax = plots.density(run, times=[0.0, 1.0])
    *panels, bar = ax.figure.axes
    assert len(panels) == 2
    assert bar.get_ylabel() == "density"
    for panel in panels:
        (mesh,) = panel.collections
        assert isinstance(mesh, QuadMesh)
        assert np.array_equal(mesh.get_array(), law.density.T)
        assert np.array_equal(mesh.get_coordinates()[0, :, 0], law.edges[0])
        assert np.array_equal(mesh.get_coordinates()[:, 0, 1], law.edges[1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$r_{1}$", "$r_{2}$")
    given = Figure().subplots(1, 2)
    assert plots.density(run, times=[0.0, 1.0], ax=given) is given[0]
    with pytest.raises(ValueError, match="ax must be 2 axes here, got 1"):
        plots.density(run, times=[0.0, 1.0], ax=given[0])


DRAWN = {
    "risk": lambda **options: plots.risk(LIMIT, **options),
    "observable": lambda **options: plots.observable(LIMIT, "norm_mean", **options),
    "density": lambda **options: plots.density(LIMIT, **options),
    "particles": lambda **options: plots.particles(sgd(PLANE).final, PLANE, arrows=3, **options),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_every_plot_returns_the_axes_given_or_new_ones_and_they_can_be_saved(draw, tmp_path):
    before = dict(mpl.rcParams)
    given = Figure().add_subplot()
    assert draw(ax=given) is given
    for k, ax in enumerate((given, draw())):
        ax.savefig(tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").read_bytes().startswith(b"\x89PNG")
    assert ax._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
    panel = Figure().subfigures(1, 2)[0].add_subplot()
    draw(ax=panel).savefig(tmp_path / "panel.png")
    assert dict(mpl.rcParams) == before
    with pytest.raises(TypeError, match="ax must be matplotlib axes, got 3"):
        draw(ax=3)


def test_mistakes_say_what_is_there():
    run = sgd()
    bare = dataclasses.replace(run, risk=None, error=None)
    stored = dataclasses.replace(run, meta={**run.meta, "model": "Model(…)"})
    vector = dataclasses.replace(run, observed={"x": np.zeros((5, 2))})
    for call, error, message in (
        (lambda: plots.risk([]), ValueError, "trajectories must not be empty"),
        (lambda: plots.risk(run.risk), TypeError, "trajectories must be what mf.solve returns"),
        (lambda: plots.risk(3), TypeError, "trajectories must be what mf.solve returns"),
        (lambda: plots.risk(bare), ValueError, "'SGD, N = 40' that ran with risk=False"),
        (lambda: plots.observable(run, "norm_maen"), ValueError, "did you mean 'norm_mean'?"),
        (
            lambda: plots.observable(run, np.ones(2)),
            ValueError,
            "^name must be an observable of .* array of shape",
        ),
        (lambda: plots.density(LIMIT, coordinate=[1]), ValueError, "^coordinate must be .*, got "),
        (lambda: plots.observable(vector, "x"), ValueError, r"one number per save point .*\(5, 2\)"),
        (lambda: plots.density(run, times=0.3), ValueError, "got 0.3; 'SGD, N = 40' has 0, 0.25, 0.5"),
        (lambda: plots.density(stored), ValueError, "trajectory must know its model"),
        (lambda: plots.density(run, bins=0), ValueError, "bins must be >= 1, got 0"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_neither_importing_nor_drawing_touches_pyplot(tmp_path):
    code = (
        "import sys, mfcore as mf; from mfcore import plots; assert 'matplotlib' not in sys.modules\n"
        "model = mf.Model(mf.data.IsotropicGaussians(d=4, delta=0.5), mf.Network(mf.activations.relu),"
        " mf.init.Gaussian(1.0))\n"
        "plots.risk(mf.solve(model, mf.GD(5, step=0.1), horizon=1.0, rng=0)).savefig(sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    picture = tmp_path / "risk.png"
    subprocess.run([sys.executable, "-W", "error", "-c", code, picture], check=True, timeout=60)
    assert picture.stat().st_size > 1000


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'mfcore\[plot\]'"):
        plots.risk(LIMIT)


def test_axes_of_the_callers_have_names_in_a_legend_that_stays_inside():
    figure = Figure(figsize=(8, 4))
    left, right = figure.subplots(1, 2)
    plots.risk([sgd(), LIMIT], ax=left)
    plots.risk({"later": LIMIT}, ax=left)  # a second call adds to it
    figure.canvas.draw()
    legend = left.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["SGD, N = 40", "PDE", "later"]
    assert not any(text.get_visible() for text in left.texts)
    box = legend.get_window_extent()
    assert left.bbox.x0 <= box.x0
    assert box.x1 <= left.bbox.x1
    assert right.get_legend() is None
    assert plots.risk(LIMIT).get_legend() is None


def test_lines_of_the_limit_that_agree_can_all_be_seen():
    ax = plots.risk({"one": LIMIT, "other": LIMIT})
    assert line(ax, "one").get_linestyle() == "-"
    assert line(ax, "other").get_linestyle() == "--"
