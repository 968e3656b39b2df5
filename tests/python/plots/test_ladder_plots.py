"""The picture of a ladder draws its means, its largest gaps and the slopes fitted to them."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from matplotlib.figure import Figure
from mfcore import plots, theory
from mfcore.atoms._atoms import Atoms


@pytest.fixture(scope="module")
def budget():
    model = mf.Model(
        mf.data.IsotropicGaussians(40, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(1.0)
    )
    return theory.ladder(
        model, [8, 16], [0.1, 0.05], horizon=0.4, replicas=3, save_at=5, limit=Atoms(16), rng=0
    )


def lines_of(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_the_budget_over_time_has_the_means_of_the_gaps(budget):
    first = plots.ladder(budget, neurons=8, step=0.1)
    lines = lines_of(first)
    assert set(lines) == {*theory.GAPS, "total"}
    for name, line in lines.items():
        mean = np.abs(budget.gap(name)).mean(axis=2)[0, 0]
        np.testing.assert_allclose(line.get_xydata(), np.stack([budget.t, mean], axis=1)[mean > 0])
    assert len(first.collections) == 5
    assert first.get_title(loc="left") == "N = 8, h = 0.1, 3 replicas"


def test_panels_of_rates_have_the_largest_gaps_and_the_fitted_slopes(budget):
    panels = plots.ladder(budget).figure.axes
    assert [ax.get_xlabel() for ax in panels] == ["time $t$", "neurons $N$", "step $h$"]
    rates = budget.rates()
    for ax, variable, x in ((panels[1], "N", [8, 16]), (panels[2], "h", [0.1, 0.05])):
        containers = {box.get_label(): box for box in ax.containers}
        for name in (*theory.GAPS, "total"):
            mean = budget.suprema(name).mean(axis=-1)
            drawn = containers[name].lines[0].get_xydata()
            np.testing.assert_allclose(drawn, np.stack([x, mean[:, 1] if variable == "N" else mean[1]], 1))
        fitted = [line.get_xydata() for line in ax.lines if line.get_label().startswith("_child")]
        rises = [np.diff(np.log(xy), axis=0)[0] for xy in fitted]
        slopes = {round(float(y / x), 6) for x, y in rises}
        wanted = {round(rate.slope, 6) for rate in rates if rate.variable == variable}
        assert wanted <= slopes
        words = [text.get_text() for text in ax.texts]
        assert any(f"{abs(rates['PD-GD', variable].slope):.2f}" in word for word in words)


@pytest.mark.parametrize("quantity", ["norm", "distance", "w1"])
def test_every_quantity_can_be_drawn(budget, quantity, tmp_path):
    ax = plots.ladder(budget, quantity=quantity)
    assert set(lines_of(ax)) == set(budget.names(quantity))
    ax.savefig(tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").stat().st_size > 10_000


def test_axes_may_be_given_and_other_arguments_are_refused(budget):
    given = Figure().subplots(1, 3)
    assert plots.ladder(budget, ax=given) is given[0]
    for one in given:  # names and title stay with their panel
        assert len(one.get_legend().get_texts()) == len(one.texts)
        assert not any(text.get_visible() for text in one.texts)
    assert "\n" in given[0].get_title(loc="left")
    with pytest.raises(ValueError, match="ax must be 3 axes here, got 1"):
        plots.ladder(budget, ax=given[0])
    with pytest.raises(ValueError, match="neurons must be one of 8, 16, got 9"):
        plots.ladder(budget, neurons=9)
    with pytest.raises(TypeError, match=r"budget must be what mf\.theory\.ladder returns"):
        plots.ladder([budget])
