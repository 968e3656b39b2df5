"""Measures are drawn alone or beside runs, with names where their mass is, on ranges that times share."""

import dataclasses

import mfcore as mf
import numpy as np
import pytest
from mfcore import plots
from mfcore.plots import _shades

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Gaussian(std=0.3),
    ridge=0.2,
    temperature=0.05,
)
PLANE = MODEL.replace(data=mf.data.AnisotropicGaussians(d=12, delta=0.5, s0=4))
RUN = mf.solve(MODEL, mf.SGD(200, step=0.01), horizon=1.0, save_at=3, keep="all", rng=0)
LAW = mf.gibbs(MODEL)


def test_a_gibbs_law_is_its_density_alone_and_beside_a_run():
    for ax, color, names in (
        (plots.density(LAW, MODEL), plots.COLORS[0], []),
        (plots.density(LAW.measure), plots.COLORS[0], []),
        (plots.density([RUN, LAW], MODEL, times=[0.0, 1.0]), "#000000", ["t = 0", "t = 1", "Gibbs law"]),
    ):
        (line,) = ax.get_lines()
        assert np.array_equal(line.get_ydata(), LAW.measure.density)
        assert line.get_color() == color
        assert [text.get_text() for text in ax.texts] == names
    assert plots.density(LAW.measure).get_xlabel() == "$z$"
    assert [patch.get_edgecolor() for patch in ax.patches] == [
        pytest.approx(shade) for shade in map(_rgba, _shades.shades(2))
    ]


def _rgba(color):
    from matplotlib.colors import to_rgba

    return to_rgba(color)


def test_neurons_and_atoms_given_as_measures_are_histograms():
    heights, edges, _ = plots.density(RUN.final, MODEL).patches[0].get_data()
    norms = np.linalg.norm(RUN.final, axis=1)
    assert len(heights) == 12  # 2·200^(1/3)
    np.testing.assert_allclose(heights, np.histogram(norms, edges, density=True)[0], rtol=1e-12)
    cloud = mf.Cloud(np.stack([norms, norms**2], axis=1))
    ax = plots.density({"atoms": cloud}, coordinate="z2")
    assert ax.get_xlabel() == "$z_{2}$"
    with pytest.raises(TypeError, match=r"model must be an mf.Model for neurons, got None"):
        plots.density(RUN.final)
    with pytest.raises(ValueError, match="coordinate must be given for 'atoms': one of z1, z2"):
        plots.density({"atoms": cloud})


def test_a_histogram_has_the_bars_of_one_network_however_many_replicas_there_are():
    theta = np.random.default_rng(0).normal(size=(40, 200, 6))
    assert len(plots.density(theta, MODEL).patches[0].get_data()[0]) == 12
    weights = np.full(8000, 1e-9)
    weights[:200] = 1.0
    points = np.random.default_rng(1).normal(size=(8000, 2))
    ax = plots.density(mf.Cloud(points, weights / weights.sum()), coordinate="z1")
    assert len(ax.patches[0].get_data()[0]) == 12


def spiked(share):
    """A density with this share of its mass in a narrow spike, the rest in a hump at 5."""
    edges = np.linspace(0, 8, 401)
    x = 0.5 * (edges[1:] + edges[:-1])
    spike, hump = np.exp(-(((x - 0.1) / 0.02) ** 2)), np.exp(-((x - 5) ** 2))
    return mf.Density(edges, share * spike / spike.sum() + (1 - share) * hump / hump.sum())


@pytest.mark.parametrize(("share", "middle"), [(0.13, 5.0), (0.9, 0.1)])
def test_the_name_of_a_density_is_over_most_of_its_mass(share, middle):
    law = spiked(share)
    ax = plots.density({"one": law, "other": spiked(0.0)})
    note = ax.texts[0]
    x, y = ax.transData.inverted().transform(note.get_transform().transform(note.get_position()))
    # A name keeps inside of the axes, and the middle of a hump is known to a cell.
    assert abs(x - middle) < 0.35
    if share < 0.5:
        assert law.density[240:260].max() < y < 0.5 * law.density.max()


def test_images_share_their_ranges_and_one_scale_of_colours_with_a_bar():
    edges = [(np.linspace(0, 1, 5), np.linspace(0, 2, 4)), (np.linspace(0, 2, 5), np.linspace(0, 2, 4))]
    rng = np.random.default_rng(0)
    kept = {float(k): mf.Density(e, rng.dirichlet(np.ones(12)).reshape(4, 3)) for k, e in enumerate(edges)}
    run = dataclasses.replace(
        RUN, t=np.array([0.0, 1.0]), kept=kept, final=kept[1.0], meta={"model": PLANE, "t": 1.0}
    )
    first, second, bar = plots.density(run).figure.axes
    assert first.get_xlim() == second.get_xlim() == (0, 2)
    assert first.get_ylim() == second.get_ylim() == (0, 2)
    assert first.get_aspect() == second.get_aspect() == 1.0
    top = max(law.density.max() for law in kept.values())
    for panel in (first, second):
        assert (panel.collections[0].norm.vmin, panel.collections[0].norm.vmax) == (0.0, top)
    assert bar.get_ylim() == (0.0, top)
    alone = plots.density(kept[0.0], PLANE).figure.axes
    assert len(alone) == 2
    assert alone[0].get_xlabel() == "$r_{1}$"


def test_planes_of_w_have_equal_scales_and_planes_with_a_or_b_do_not():
    model = PLANE.replace(network=mf.Network(mf.activations.relu, bias="trained"))
    theta = np.random.default_rng(0).normal(size=(30, 13))
    ax = plots.particles(theta, model, arrows=0)
    assert ax.get_aspect() == 1.0
    ax.figure.draw_without_rendering()
    pixels = np.diff(ax.transData.transform([(0.0, 0.0), (1.0, 1.0)]), axis=0)[0]
    assert pixels[0] == pytest.approx(pixels[1], rel=1e-9)
    assert plots.particles(theta, model, coordinates=("b", "r2"), arrows=0).get_aspect() == "auto"
    flat = plots.particles(theta * np.array([1.0, *[0.01] * 4, *[1.0] * 8]), model, arrows=0)
    assert flat.get_aspect() == "auto"
