"""Labels are where a reader finds them: none over another or outside, and no two runs look alike."""

import dataclasses
import itertools

import mfcore as mf
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox
from mfcore import plots
from mfcore.plots import _axes, _shades

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=6, delta=0.5),
    network=mf.Network(mf.activations.relu),
    init=mf.init.Gaussian(std=0.3),
)
RUN = mf.solve(MODEL, mf.SGD(neurons=10, step=0.01), horizon=1.0, save_at=6, keep="all", rng=0)
LONG = "a run with a name of more than forty letters, number"

# Machado, Oliveira and Fernandes (2009): linear RGB as seen without green and without red cones.
BLIND = (
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
)


def close_runs(count, name="run"):
    """Runs whose ends are close to each other: all labels want to be at one place."""
    ends = [3.0, *(2.0 - 1e-3 * k for k in range(1, count))]
    return {f"{name} {k}": dataclasses.replace(RUN, risk=end + 0 * RUN.t) for k, end in enumerate(ends)}


def boxes_of(figure):
    """The boxes on paper of all texts that can be seen."""
    figure.draw_without_rendering()
    artists = []
    for ax in figure.axes:
        artists += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax._left_title, ax.title]
        artists += [tick.label1 for axis in (ax.xaxis, ax.yaxis) for tick in axis._update_ticks()]
    return [(text, text.get_window_extent()) for text in artists if text.get_visible() and text.get_text()]


def check(figure, labels):
    boxes = boxes_of(figure)
    known = {id(text) for text, _ in boxes}
    assert all(id(text) in known for text in labels)
    for text, box in boxes:
        inside = figure.bbox.padded(1.0)
        assert inside.containsx(box.x0), text.get_text()
        assert inside.containsx(box.x1), text.get_text()
        assert inside.containsy(box.y0), text.get_text()
        assert inside.containsy(box.y1), text.get_text()
    for (text, box), (other, there) in itertools.combinations(boxes, 2):
        if text in labels or other in labels:
            # Boxes are those of letters: half a pixel is the renderer's rounding.
            across = min(box.x1, there.x1) - max(box.x0, there.x0)
            up = min(box.y1, there.y1) - max(box.y0, there.y0)
            assert min(across, up) <= 0.5, (text.get_text(), other.get_text())


@pytest.mark.parametrize("name", ["run", LONG])
@pytest.mark.parametrize("count", range(1, 13))
def test_labels_of_1_to_12_runs_stay_in_the_figure_beside_the_axes_and_never_overlap(count, name):
    ax = plots.risk(close_runs(count, name))
    assert len(ax.texts) == count
    check(ax.figure, ax.texts)
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= ax.bbox.x1
        assert ax.bbox.y0 - 1 <= box.y0
        assert box.y1 <= ax.bbox.y1 + 1


def test_a_value_is_on_the_line_of_its_name():
    ax = plots.risk(close_runs(8, "N = 100, step = 0.01, run"))
    lines = [line for text in ax.texts for line in text.get_text().splitlines()]
    assert len(lines) > 8
    assert not any(line.strip().endswith("=") for line in lines)


def test_labels_of_a_second_call_make_room_for_those_of_the_first():
    ax = plots.risk(close_runs(6))
    plots.risk(close_runs(6, "later"), ax=ax)
    assert len(ax.texts) == 12
    check(ax.figure, ax.texts)
    colors = [text.get_color() for text in ax.texts]
    assert colors == [artist.get_color() for artist in ax.get_lines()]
    assert len(set(colors)) == 12


@pytest.mark.parametrize("count", [1, 4, 12])
def test_legends_of_the_callers_figure_stay_inside_of_its_axes(count):
    figure = Figure(figsize=(8, 4))
    left, _ = figure.subplots(1, 2)
    plots.risk(close_runs(count), ax=left)
    figure.draw_without_rendering()
    box = left.get_legend().get_window_extent()
    assert left.bbox.x0 <= box.x0
    assert box.x1 <= left.bbox.x1
    assert left.bbox.y0 <= box.y0
    assert box.y1 <= left.bbox.y1


@pytest.mark.parametrize("count", [1, 3, 6, 12])
def test_labels_at_the_peaks_of_densities_never_overlap_or_leave_the_axes(count):
    times = np.linspace(0, 1, count) if count > 1 else np.array([1.0])
    kept = dict.fromkeys(times.tolist(), RUN.final)
    ax = plots.density(dataclasses.replace(RUN, kept=kept), times=times)
    assert len(ax.texts) == count
    check(ax.figure, ax.texts)
    assert all(text.get_window_extent().y1 <= ax.bbox.y1 + 1 for text in ax.texts)


def samples(ax):
    """The lines beside labels that show what their series look like."""
    boxes = [one for one in ax.artists if isinstance(one, AnnotationBbox) and one.get_visible()]
    return [one.offsetbox.get_children()[0] for one in boxes]


def test_labels_that_had_to_move_have_samples_of_their_series_and_others_have_none():
    ax = plots.risk(close_runs(8))
    ax.figure.draw_without_rendering()
    shown = samples(ax)
    for name in ("get_marker", "get_color", "get_linestyle"):
        assert [getattr(one, name)() for one in shown] == [getattr(one, name)() for one in ax.get_lines()]
    for one, text in zip(shown, ax.texts, strict=True):
        box, label = one.get_window_extent(), text.get_window_extent()
        assert ax.bbox.x1 < box.x0 < box.x1 < label.x0
        assert label.y0 < 0.5 * (box.y0 + box.y1) < label.y1
    assert not samples(plots.risk(close_runs(2)))


def _seen(color, cones=None):
    """CIE L*a*b* of a colour, as seen without some cones."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if cones is not None:
        linear = np.clip(cones @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 0.00886))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_twelve_colours_differ_for_all_eyes_and_can_be_read_on_white():
    for one, other in itertools.combinations(_axes.COLORS, 2):
        for cones in (None, *BLIND):
            # A difference of 2.3 can just be seen; 15 is that of neighbouring ticks of a good colour bar.
            assert np.linalg.norm(_seen(one, cones) - _seen(other, cones)) > 15, (one, other)
    assert all(_seen(color)[0] < 75 for color in _axes.COLORS)


def test_no_two_of_many_runs_share_a_colour_and_of_twelve_none_a_shape():
    ax = plots.risk(close_runs(40))
    assert len({artist.get_color() for artist in ax.get_lines()}) == 40
    shapes = [artist.get_marker() for artist in plots.risk(close_runs(12)).get_lines()]
    assert len(set(shapes)) == 12
    strokes = [tuple(map(str, _axes.stroke(k).values())) for k in range(12)]
    assert len(set(strokes)) == 12


def test_points_that_agree_show_each_other():
    ax = plots.risk({"SGD": RUN, "Particles": RUN})
    first, second = ax.get_lines()
    assert first.get_marker() != second.get_marker()
    assert first.get_markersize() != second.get_markersize()
    assert {first.get_markerfacecolor(), second.get_markerfacecolor()} == {"none"}


def test_bands_and_bars_of_limits_and_groups_are_behind_points():
    runs = [dataclasses.replace(RUN, risk=RUN.risk + 0.1 * k) for k in range(3)]
    ax = plots.risk([runs, RUN])
    (band,) = ax.collections
    assert all(band.get_zorder() < artist.get_zorder() for artist in ax.get_lines())


@pytest.mark.parametrize("kind", ["svg", "pdf", "eps"])
def test_vector_formats_hold_lines_and_text_and_no_images(kind, tmp_path):
    ax = plots.risk({"SGD": RUN, "later": RUN})
    ax.savefig(tmp_path / f"risk.{kind}")
    written = (tmp_path / f"risk.{kind}").read_bytes()
    assert len(written) > 5000
    assert b"<image" not in written
    assert b"/Subtype /Image" not in written
    if kind == "svg":
        assert written.count(b"<path") > 20


def test_new_axes_have_the_style_and_sizes_asked_for():
    left, right = plots.new_axes(2.0, inches=(5.0, 2.0))  # a whole number of any kind
    assert left.figure is right.figure
    assert left.figure.get_size_inches().tolist() == [5.0, 2.0]
    assert not left.spines["top"].get_visible()
    with pytest.raises(ValueError, match="count must be <= 20, got 21"):
        plots.new_axes(21)
    with pytest.raises(ValueError, match="inches must be > 0 and at most 100, got 0 and 2"):
        plots.new_axes(inches=(0, 2))


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_shades_get_darker_for_all_eyes_and_in_grey(count):
    for cones in (None, *BLIND):
        light = [_seen(shade, cones)[0] for shade in _shades.shades(count)]
        # 2.3 can just be seen beside each other; seven shades are 7 apart.
        assert (np.diff(light) < -40 / count).all()
    assert _seen(_shades.shades(count)[0])[0] < 75  # a name in it can be read on white


@pytest.mark.parametrize("inches", [(6.0, 3.7), (2.6, 1.8), (2.0, 1.4)])
def test_the_label_of_the_y_axis_is_no_longer_than_the_axis(inches):
    runs = [dataclasses.replace(RUN, risk=RUN.risk + 0.1 * k) for k in range(3)]
    (ax,) = plots.new_axes(inches=inches)
    plots.risk([runs], ax=ax)
    label = ax.yaxis.label
    ax.figure.draw_without_rendering()
    assert label.get_text().replace("\n", " ") == "risk $R$, mean and 95 % interval"
    assert label.get_window_extent().height <= ax.bbox.height + 1  # a pixel of rounding
    assert label.get_window_extent().x0 >= 0
