"""Pictures of sweeps: a series for each case, seeds averaged with bands."""

import itertools

import mfcore as mf
import numpy as np
import pytest
from mfcore import plots


def run(neurons, seed, early=False):
    t = np.linspace(0, 1, 5)[: 3 if early and seed else 5]
    risk = 1 / neurons + np.exp(-t) + 0.1 * seed
    return mf.Trajectory(t, risk, 0 * t, {"norm": t}, np.zeros((neurons, 2)), {}, "completed", "")


@pytest.fixture
def table():
    return mf.sweep(run, {"neurons": [10, 40], "seed": [0, 1, 2]}, workers=1)


def lines(ax):
    return [line for line in ax.lines if len(line.get_xdata()) > 1]


def test_cases_are_series_and_seeds_their_mean_with_a_band(table):
    ax = plots.risk(table)
    assert [text.get_text() for text in ax.texts] == ["N = 10", "N = 40"]
    assert ax.get_ylabel() == "risk $R$, mean and 95 % interval"
    for line, neurons in zip(lines(ax), (10, 40), strict=True):
        np.testing.assert_allclose(line.get_ydata(), 1 / neurons + 0.1 + np.exp(-table["t"]), rtol=1e-12)
    assert len(ax.collections) == 2


def test_what_all_cases_have_in_common_is_the_title_and_lists_of_cases_are_drawn_like_grids():
    grid = {"neurons": [10, 40], "seed": [0, 1], "early": [False]}
    ax = plots.risk(mf.sweep(run, grid, workers=1))
    assert [text.get_text() for text in ax.texts] == ["N = 10", "N = 40"]
    assert ax.get_title("left") == "early = False"
    cases = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    other = plots.risk(mf.sweep(run, cases, workers=1))
    assert [text.get_text() for text in other.texts] == ["N = 10", "N = 40"]
    for one, line in zip(lines(ax), lines(other), strict=True):
        np.testing.assert_array_equal(one.get_ydata(), line.get_ydata())


def test_a_folder_is_drawn_as_what_was_returned(table, tmp_path):
    mf.sweep(run, {"neurons": [10, 40], "seed": [0, 1, 2]}, workers=1, folder=tmp_path)
    there, here = plots.risk(mf.load(tmp_path)), plots.risk(table)
    for one, other in zip(lines(there), lines(here), strict=True):
        np.testing.assert_array_equal(one.get_ydata(), other.get_ydata())


def test_failed_cases_are_left_out_and_groups_go_as_far_as_all_of_their_runs():
    def fails(neurons, seed):
        if neurons == 7:
            raise RuntimeError("seven")
        return run(neurons, seed, early=True)

    with pytest.warns(UserWarning, match="2 of 4 cases failed"):
        table = mf.sweep(fails, {"neurons": [7, 10], "seed": [0, 1]}, workers=1)
    (line,) = lines(plots.risk(table))
    assert line.get_xdata().tolist() == [0, 0.25, 0.5]


def test_a_selection_and_a_mapping_of_tables_are_drawn_too(table):
    (text,) = plots.risk(table.sel(neurons=10)).texts
    assert text.get_text() == "N = 10"
    ax = plots.risk({"narrow": table.sel(neurons=10), "wide": table.sel(neurons=40)})
    assert [text.get_text() for text in ax.texts] == ["narrow", "wide"]
    assert plots.observable(table, "norm").get_ylabel().startswith("norm")


def test_limits_are_lines_with_the_error_they_state():
    def limit(delta):
        model = mf.Model(
            mf.data.IsotropicGaussians(4, delta), mf.Network(mf.activations.relu), mf.init.Radial(1.0)
        )
        return mf.solve(model, mf.Atoms(), horizon=0.2, save_at=3)

    table = mf.sweep(limit, {"delta": [0.2, 0.4]}, workers=1)
    ax = plots.risk(table)
    assert not table["network"].any()
    assert [text.get_text() for text in ax.texts] == ["Δ = 0.2", "Δ = 0.4"]
    assert {line.get_marker() for line in lines(ax)} == {"None"}


def test_a_table_without_trajectories_or_without_any_result_is_refused():
    table = mf.sweep(lambda x: x, {"x": [1, 2]}, workers=1)
    with pytest.raises(
        ValueError, match=r"a sweep of a function that returns its Trajectory, got a table of"
    ):
        plots.risk(table)
    with pytest.warns(UserWarning, match="1 of 1 cases failed"):
        table = mf.sweep(lambda x: 1 / x, {"x": [0]}, workers=1)
    with pytest.raises(ValueError, match="a sweep whose cases have all failed"):
        plots.risk(table)
