"""Several widths are one picture: shades in the order of N, the limit as a line, what is left ∝ 1/N."""

import dataclasses

import mfcore as mf
import numpy as np
import pytest
from mfcore import plots
from mfcore.plots import _shades
from scipy import stats

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Gaussian(std=0.3),
)
RUN = mf.solve(MODEL, mf.SGD(10, step=0.01), horizon=1.0, save_at=6, rng=0)
EXCESS = {50: 0.02, 200: 0.005, 800: 0.00125}  # exactly 1/N


class PDE:
    """What calls itself a PDE in the runs below, which are made by hand."""


def network(n, spread=0.0, replicas=4, level=0.5):
    """Networks of N neurons whose risk is level + 1/N, and differs by `spread` between replicas."""
    errors = spread * np.linspace(-1, 1, replicas)
    risk = level + 1 / n + np.exp(-RUN.t)[:, None] + errors
    return dataclasses.replace(RUN, risk=risk, error=0 * risk, final=np.zeros((replicas, n, 6)))


def limit(level=0.5, error=0.0):
    """The limit of these networks."""
    density = mf.Density(np.linspace(0, 1, 3), np.array([0.5, 0.5]))
    meta = {"model": MODEL, "method": PDE()}
    risk = level + np.exp(-RUN.t)
    return dataclasses.replace(RUN, risk=risk, error=error + 0 * risk, final=density, meta=meta)


def test_several_widths_are_lines_in_shades_of_their_order_beside_a_black_limit():
    ax = plots.risk([network(200), limit(), network(50), network(800)])
    lines = {line.get_label(): line for line in ax.get_lines()}
    names = ["SGD, N = 50", "SGD, N = 200", "SGD, N = 800"]
    assert [lines[name].get_color() for name in names] == _shades.shades(3)
    assert all(lines[name].get_linestyle() == "-" for name in names)
    assert (lines["PDE"].get_color(), lines["PDE"].get_marker()) == ("#000000", "None")
    assert len({lines[name].get_marker() for name in names}) == 3


def test_runs_that_differ_in_more_than_their_width_keep_colours_of_their_own():
    ax = plots.risk({"a": network(50), "b": network(50), "c": network(200)})
    assert [line.get_color() for line in ax.get_lines()] == list(plots.COLORS[:3])
    assert all(line.get_linestyle() == "None" for line in ax.get_lines())


def test_a_wide_reference_is_a_line_with_its_interval_as_a_band():
    wide = network(5000, spread=0.01)
    for reference, name in (
        (wide, "SGD, N = 5000"),
        ([wide, wide], "SGD, N = 5000"),
        ({"wide": wide}, "wide"),
    ):
        ax = plots.risk([network(50), network(200)], reference=reference)
        line = ax.get_lines()[-1]
        assert (line.get_label(), line.get_marker(), line.get_color()) == (name, "None", "#000000")
        assert line.get_ydata() == pytest.approx(wide.risk.mean(axis=1), rel=1e-14)
        assert len(ax.collections) == 1
    observed = dataclasses.replace(wide, observed={"norm_mean": wide.risk})
    ax = plots.observable({"a": observed}, "norm_mean", reference={"a": observed})
    assert [text.get_text() for text in ax.texts] == ["a", "a (reference)"]


@pytest.mark.parametrize("log", ["", "y"])
def test_intervals_of_a_risk_end_at_0(log):
    run = network(50, spread=3.0, level=0.1)
    middle = run.risk.mean(axis=1)
    assert (stats.t.interval(0.95, 3, loc=middle, scale=stats.sem(run.risk, axis=1))[0] < 0).any()
    ax = plots.risk({"group": [run, run]}, log=log)
    assert ax.collections[0].get_paths()[0].vertices[:, 1].min() == 0
    if log:  # and do not fill a logarithmic axis
        assert ax.get_ylim()[0] > 0.1 * middle.min()
    bars = plots.risk({"one": run}).containers[0][2][0].get_segments()
    assert np.array(bars)[:, :, 1].min() == pytest.approx(0, abs=1e-15)
    signed = dataclasses.replace(run, observed={"a_mean": run.risk})
    bars = plots.observable({"one": signed}, "a_mean").containers[0][2][0].get_segments()
    assert np.array(bars)[:, :, 1].min() < 0


def test_the_lazy_clock_is_alpha_squared_t():
    lazy = MODEL.replace(network=mf.Network(mf.activations.relu, scale=4.0))
    run = dataclasses.replace(RUN, meta={**RUN.meta, "model": lazy})
    ax = plots.risk({"1": RUN, "4": run}, clock="lazy")
    assert [line.get_xdata()[-1] for line in ax.get_lines()] == [1.0, 16.0]
    assert ax.get_xlabel() == "clock $α^2 t$"
    with pytest.raises(ValueError, match="clock must be one of 'time', 'lazy', got 'slow'"):
        plots.risk(RUN, clock="slow")
    with pytest.raises(ValueError, match="clock must be 'time' for runs that do not know their"):
        plots.risk(dataclasses.replace(RUN, meta={}), clock="lazy")


def test_the_risk_above_the_limit_is_on_its_line_of_slope_minus_1():
    for reference in (None, limit(), float(limit().risk[-1])):
        runs = [network(n, spread=1e-4) for n in EXCESS] + [limit()] * (reference is None)
        ax = plots.final_risk(runs, reference=reference)
        points, line = ax.get_lines()[0], ax.get_lines()[-1]
        assert points.get_xdata() == pytest.approx(list(EXCESS))
        assert points.get_ydata() == pytest.approx(list(EXCESS.values()), rel=1e-9)  # rounding of differences
        assert line.get_xdata() * line.get_ydata() == pytest.approx(1.0, rel=1e-9)
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert [text.get_text() for text in ax.texts] == ["∝ 1/N"]
    segments = np.array(ax.containers[0][2][0].get_segments())[:, :, 1]
    risks = network(50, spread=1e-4).risk[-1]
    low, high = stats.t.interval(0.95, 3, loc=EXCESS[50], scale=stats.sem(risks))
    assert segments[0] == pytest.approx([low, high], rel=1e-9)


def test_without_a_limit_the_line_is_fitted_in_1_over_n():
    ax = plots.final_risk([network(n) for n in EXCESS])
    line = ax.get_lines()[-1]
    level = 0.5 + np.exp(-1.0)
    assert line.get_ydata() == pytest.approx(level + 1 / line.get_xdata(), rel=1e-9)
    assert ax.texts[0].get_text() == f"{level:.4g} + 1/N"


def test_the_table_of_a_sweep_over_widths_and_seeds_is_shaded_and_has_final_risks():
    def run(neurons, seed):
        return mf.solve(MODEL, mf.SGD(neurons, step=0.01), horizon=0.1, save_at=2, rng=seed)

    table = mf.sweep(run, {"neurons": [10, 40], "seed": range(3)}, workers=1)
    colors = [line.get_color() for line in plots.risk(table).get_lines()]
    assert colors == _shades.shades(2)
    points = plots.final_risk(table).get_lines()[0]
    assert points.get_xdata() == pytest.approx([10, 40])
    assert points.get_ydata() == pytest.approx(table["risk"].isel(t=-1).mean("seed"), rel=1e-12)


def test_final_risks_need_two_widths_and_a_risk():
    with pytest.raises(
        ValueError, match=r"trajectories must have networks of two widths or more, .* N = 50$"
    ):
        plots.final_risk([network(50)])
    with pytest.raises(ValueError, match="one width to a group, got N = 50"):
        plots.final_risk([[network(50), network(200)]])
    bare = dataclasses.replace(network(50), risk=None, error=None)
    with pytest.raises(ValueError, match="trajectories must have a risk, got 'N = 50'"):
        plots.final_risk([bare, network(200)])
