"""Animations have one frame for each time, on axes that stand still, in every format."""

import dataclasses

import mfcore as mf
import numpy as np
import pytest
from matplotlib.animation import FFMpegWriter
from mfcore import plots
from PIL import Image

MODEL = mf.Model(
    data=mf.data.AnisotropicGaussians(d=12, delta=0.5, s0=4),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Gaussian(std=0.5),
)


@pytest.fixture(scope="module")
def run():
    return mf.solve(MODEL, mf.SGD(neurons=30, step=0.01), horizon=1.0, save_at=4, keep="all", rng=0)


@pytest.mark.parametrize("options", [{"bins": 5}, {"kind": "particles", "arrows": 3}])
def test_a_gif_has_a_frame_for_each_time_kept(run, options, tmp_path):
    plots.animate(run, tmp_path / "run.gif", **options)
    with Image.open(tmp_path / "run.gif") as film:
        assert film.n_frames == 4


def test_a_page_has_its_frames_inside(run, tmp_path):
    plots.animate(run, tmp_path / "run.html", times=[0.0, 1.0], bins=5)
    assert (tmp_path / "run.html").read_text("utf-8").count("data:image/png;base64") == 2


def test_axes_stand_still_and_hold_all_frames(run):
    film = plots.animate(run, bins=5)
    ax = film._fig.axes[0]
    seen = set()
    for t in run.kept:
        film._func(t)
        seen.add((*ax.get_xlim(), *ax.get_ylim()))
    assert len(seen) == 1
    low, high = seen.pop()[:2]
    norms = np.concatenate([np.linalg.norm(measure, axis=1) for measure in run.kept.values()])
    assert low < norms.min() < norms.max() < high


def test_images_of_a_film_share_one_scale_of_colours_with_one_bar(run):
    rng = np.random.default_rng(0)
    edges = (np.linspace(0, 1, 4), np.linspace(0, 2, 5))
    kept = {t: mf.Density(edges, rng.dirichlet(np.ones(12)).reshape(3, 4)) for t in (0.0, 1.0)}
    film = plots.animate(dataclasses.replace(run, kept=kept, final=kept[1.0]))
    ax, bar = film._fig.axes
    top = max(law.density.max() for law in kept.values())
    for t, law in kept.items():
        film._func(t)
        assert np.array_equal(ax.collections[0].get_array(), law.density.T)
        assert ax.collections[0].norm.vmax == bar.get_ylim()[1] == top
        assert len(film._fig.axes) == 2


def test_the_time_stands_over_its_law_in_every_frame(run):
    film = plots.animate(run, bins=5)
    ax = film._fig.axes[0]
    film._fig.draw_without_rendering()  # by matplotlib the first frame begins the film
    for t in run.kept:
        film._func(t)
        film._fig.draw_without_rendering()
        (note,) = ax.texts
        top = ax.transData.transform((0.0, ax.patches[0].get_data()[0].max()))[1]
        box = note.get_window_extent()
        assert 0 <= box.y0 - top < box.height


def test_mistakes_of_animations_say_what_is_possible(run, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"path must end in one of \.gif, \.mp4, \.html, got 'run.avi'"):
        plots.animate(run, "run.avi")
    with pytest.raises(ValueError, match=r"times must have shape \(any,\), got \(2, 2\)"):
        plots.animate(run, times=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="kind must be one of 'density', 'particles', got 'risk'"):
        plots.animate(run, kind="risk")
    with pytest.raises(ValueError, match="trajectories must be one run for particles"):
        plots.animate([run, run], kind="particles")
    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(RuntimeError, match=r"an \.mp4 needs the program ffmpeg"):
        plots.animate(run, tmp_path / "run.mp4", bins=5)
