"""Published figures: what is written, what is refused, and the first of them in numbers."""

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import mfcore as mf
import numpy as np
import pytest
from matplotlib.figure import Figure
from mfcore.cli import main
from mfcore.experiments import (
    Because,
    Row,
    Work,
    computed,
    exact,
    isotropic_gaussians,
    phase_transition,
    published,
)
from mfcore.experiments._row import averaged, sample
from PIL import Image
from scipy import stats


@pytest.fixture(scope="module")
def isotropic():
    """Two networks of 300 neurons with a step that is 100 times that of the publication."""
    size = replace(
        isotropic_gaussians.QUICK,
        step=2e-4,
        neurons=300,
        replicas=2,
        held_out=10_000,
        cells=200,
        atoms=200,
        save_points=6,
    )
    return mf.experiments.run("isotropic-gaussians", size=size)


def test_networks_follow_the_pde_of_isotropic_gaussians(isotropic):
    # 300 neurons, a step 100 times the published one: a few hundredths of the range of the risk, 1.7.
    sgd, pde = isotropic.runs["sgd"], isotropic.runs["pde"]
    line = np.interp(sgd.t, pde.t, pde.risk)
    assert np.abs(sgd.risk.mean(axis=1) - line).max() < 0.08
    norm = np.interp(sgd.t, pde.t, pde.observed["norm_mean"])
    assert np.abs(sgd.observed["norm_mean"].mean(axis=1) - norm).max() < 0.08


def test_the_pde_of_isotropic_gaussians_agrees_with_atoms_at_quantiles(isotropic):
    # Each within the errors that half of the cells and half of the atoms tell.
    rows = [row for row in isotropic.rows if "quantiles" in row.source.where]
    assert len(rows) == 5
    assert all(row.agrees for row in rows), isotropic.table()
    (closed,) = [row for row in isotropic.rows if row.source.kind == "exact"]
    assert closed.agrees
    (spike,) = [row for row in isotropic.rows if row.source.kind == "published"]
    assert abs(spike.measured - 0.14) < 0.06  # 600 neurons: a standard error of 0.014


def test_long_steps_move_the_mean_norm_as_the_modified_flow_predicts(isotropic):
    """A step 100 times the published one moves |w| at t = 8 by 0.03, thirty standard errors."""
    (row,) = [row for row in isotropic.rows if row.quantity == "mean |w| of SGD at t = 8"]
    assert row.because.explains(row.measured - row.expected), row.verdict


def test_a_report_is_written_as_picture_numbers_and_table(isotropic, tmp_path):
    written = isotropic.write(tmp_path, made="Made by a test.")
    assert [path.suffix for path in written] == [".png", ".svg", ".npz", ".md"]
    assert matplotlib.image.imread(written[0]).shape[1] >= 800
    page = written[3].read_text("utf-8")
    assert page.startswith(
        "# A network follows the PDE\n\n![A network follows the PDE](isotropic-gaussians.png)"
    )
    assert page.endswith("Made by a test.\n")
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(table) == 2 + len(isotropic.rows)
    assert "mean \\|w\\| of SGD at t = 20" in page
    assert "| ours ± 95 % | published ± reading error | exact | computed again ± error |" in page
    assert "±” is half of a 95 % interval everywhere" in page
    for setting in mf.experiments.inferred("isotropic-gaussians"):
        assert f"- {setting}" in page
    with Image.open(written[0]) as picture:
        assert picture.text["Description"] == f"{isotropic.caption} Made by a test."
        assert picture.text["Title"] == isotropic.title
    svg = written[1].read_text("utf-8")
    assert "<dc:description>" in svg
    assert "<dc:date>" not in svg
    assert "<image" not in svg  # lines and text only
    with np.load(written[2]) as numbers:
        assert np.array_equal(numbers["sgd/risk"], isotropic.runs["sgd"].risk)
        assert numbers["sgd/kept/2/norm"].shape == (2, 300)
        assert numbers["pde/kept/2/mass"].sum() == pytest.approx(1.0)
        info = json.loads(str(numbers["info"]))
    assert info["runs"]["sgd"]["kept"] == [0.002, 8.0, 20.0]


def test_a_report_that_fails_half_way_leaves_the_files_that_were_there(isotropic, tmp_path, monkeypatch):
    written = isotropic.write(tmp_path)
    before = [path.read_bytes() for path in written]

    def full(self, file, **_):
        file.write(b"half a picture")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*\.png'"):
        isotropic.write(tmp_path)
    assert [path.read_bytes() for path in (written[0], written[1])] == before[:2]
    assert sorted(tmp_path.iterdir()) == sorted(written)  # nothing partial is left


PAPER = published("Nobody (1999), figure 1")


def test_rows_agree_within_the_reading_error_and_the_interval_and_nothing_else():
    assert Row("x", 1.05, 1.0, 0.06, PAPER).agrees
    assert Row("x", 1.05, 1.0, 0.02, PAPER, interval=0.04).agrees
    why = Because("N is 10", 0.15, 0.3)
    off = Row("x", 1.2, 1.0, 0.1, PAPER, interval=0.06, error=0.03, because=why)
    assert not off.agrees
    verdict = "differs, because N is 10 (predicted: +0.15 to +0.3)"
    assert off.cells() == [
        "x", "1.200 ± 0.06", "1.00 ± 0.1", "–", "–", "+6.7", "+20", verdict, "Nobody (1999), figure 1"
    ]  # fmt: skip
    assert Row("x", 1.2, 1.0, 0.0, PAPER).verdict == "differs, unexplained"
    assert not Row("x", float("nan"), 1.0, 0.1, PAPER).agrees
    exactly = Row("x", 1.0 + 1e-14, 1.0, 1e-12, exact("one"))
    assert exactly.cells() == ["x", "1", "–", "1", "–", "–", "0", "agrees", "one"]


def test_a_reason_explains_only_differences_of_the_sign_and_size_that_it_predicts():
    why = Because("N is 10", 0.1, 0.3)
    for measured, outcome in ((1.2, "differs"), (0.8, "unexplained"), (1.5, "unexplained"), (1.0, "agrees")):
        assert Row("x", measured, 1.0, 0.0, exact("one"), because=why).outcome == outcome
    with pytest.raises(ValueError, match=r"low must be at most high = 0\.1, got 0\.2"):
        Because("N is 10", 0.2, 0.1)


def test_agreement_with_a_curve_that_settings_were_fitted_to_is_called_fitted():
    curve = published("Nobody (1999), figure 1", fitted=True)
    assert Row("x", 1.05, 1.0, 0.1, curve).verdict == "fitted"
    assert Row("x", 1.2, 1.0, 0.1, curve).verdict == "differs, unexplained"


@pytest.mark.parametrize(
    ("measured", "expected", "reading", "interval", "error"),
    [
        (0.413, 0.395, 0.0, 0.019, 0.0022),  # +8.2 standard errors behind the 12.7 of two networks
        (0.055, 0.030, 0.02, 0.011, 0.005),  # +5.0 behind the reading error
        (0.0056, 0.0, 0.02, 0.0013, 0.0006),  # the published number itself is below the reading error
        (0.0028, 0.0022, 0.0006, 0.0024, 0.0006),  # an interval as wide as the number
    ],
)
def test_what_intervals_or_reading_errors_alone_hide_is_not_resolved(
    measured, expected, reading, interval, error
):
    assert Row("x", measured, expected, reading, PAPER, interval, error).verdict == "not resolved"


def test_means_of_fewer_than_six_networks_are_not_resolved():
    values = np.array([0.9, 1.0, 1.1, 0.95, 1.05, 1.0])
    verdicts = [sample("x", values[:n], 1.0, 0.0, PAPER).verdict for n in (1, 2, 5, 6)]
    assert verdicts == ["not resolved"] * 3 + ["agrees"]
    assert sample("x", values[:5], 7.0, 0.0, PAPER).verdict == "not resolved"  # whatever the difference


def test_sources_are_cited_or_exist():
    with pytest.raises(ValueError, match=r"a year in parentheses and a place behind it, got 'from memory'"):
        published("from memory")
    again = computed(phase_transition.programme)
    assert again.where == "`mfcore.experiments.phase_transition.programme`"
    assert computed(mf.PDE, "the density").where == "`mfcore.PDE`: the density"


def test_rows_of_networks_have_the_interval_of_student(isotropic):
    sgd = isotropic.runs["sgd"]
    shares = np.array([0.1, 0.2, 0.4])
    row = sample("share", shares, 0.2, 0.0, PAPER)
    half = stats.t.ppf(0.975, 2) * stats.sem(shares)
    assert (row.interval, row.error) == pytest.approx((half, stats.sem(shares)), rel=1e-12)
    norms = sgd.observed["norm_mean"][-1]
    row = averaged("norm", sgd, "norm_mean", -1, 0.0, 0.0, PAPER)
    assert row.measured == pytest.approx(norms.mean(), rel=1e-14)
    assert row.interval == pytest.approx(stats.t.ppf(0.975, 1) * stats.sem(norms), rel=1e-12)
    risk = averaged("risk", sgd, "risk", -1, 0.0, 0.0, PAPER)
    samples = stats.norm.ppf(0.975) * sgd.error[-1].mean()
    chance = stats.t.ppf(0.975, 1) * stats.sem(sgd.risk[-1])
    assert risk.interval == pytest.approx(np.hypot(samples, chance), rel=1e-12)


def test_every_experiment_is_listed_and_described():
    for name in mf.experiments.NAMES:
        assert 20 < len(mf.experiments.summary(name)) < 110


def test_an_interrupted_run_is_kept():
    def stop(_):
        raise KeyboardInterrupt

    work = Work()
    with pytest.raises(KeyboardInterrupt):
        work.solve(
            "run", isotropic_gaussians.MODEL, mf.SGD(8, step=0.01), horizon=1.0, observe={"stop": stop}
        )
    assert work.runs["run"].status == "interrupted"


def test_ctrl_c_while_a_run_is_timed_ends_the_work(monkeypatch):
    def stopped(model, method, **options):
        return replace(mf.solve(model, method, **options), status="interrupted")

    monkeypatch.setattr("mfcore.experiments._work.solve", stopped)
    work = Work(tell=lambda line: None)
    with pytest.raises(KeyboardInterrupt):
        work.solve("run", isotropic_gaussians.MODEL, mf.SGD(8, step=0.01), steps=10, horizon=0.1)
    assert not work.runs  # the run itself was not begun


def test_a_machine_too_busy_to_time_a_run_still_runs_it(monkeypatch):
    def late(model, method, **options):
        if options.get("max_seconds") is not None:
            raise TimeoutError("max_seconds = 1 passed while mfcore prepared the start of the run")
        return mf.solve(model, method, **options)

    monkeypatch.setattr("mfcore.experiments._work.solve", late)
    told = []
    Work(tell=told.append).solve(
        "run", isotropic_gaussians.MODEL, mf.SGD(8, step=0.01), steps=10, horizon=0.1
    )
    assert told == ["run: 10 steps …"]


def test_a_run_that_diverges_is_an_error():
    linear = mf.Model(
        data=mf.data.Linear(w=[1.0, 2.0]), network=mf.Network(mf.activations.linear), init=mf.init.Radial(1.0)
    )
    with pytest.raises(RuntimeError, match=r"run: the risk at t = .* is more than 1e\+06 times its scale"):
        Work().solve("run", linear, mf.SGD(8, step=50.0), horizon=50_000.0, save_at=[], risk=False)


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def quickly(monkeypatch, isotropic):
    """`mfcore reproduce` with the result at hand."""
    monkeypatch.setattr(isotropic_gaussians, "run", lambda work, size: isotropic)


def test_reproduce_writes_into_a_folder_and_overwrites_only_by_force(quickly, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    command = ["reproduce", "isotropic-gaussians", "--quick", "--out", str(out)]
    code, said, err = run(capsys, *command)
    assert (code, err) == (0, "")
    assert "mean |w| of SGD at t = 20" in said
    assert "of 12 rows agree" in said
    assert {path.name for path in out.iterdir()} == {
        f"isotropic-gaussians.{suffix}" for suffix in ("png", "svg", "npz", "md")
    }
    assert "`mfcore reproduce isotropic-gaussians --quick --seed 0`" in (
        out / "isotropic-gaussians.md"
    ).read_text("utf-8")
    code, said, err = run(capsys, *command)
    assert (code, said) == (2, "")
    assert "--force overwrites it" in err
    assert run(capsys, *command, "--force")[0] == 0


def test_reproduce_keeps_its_numbers_when_the_disk_is_full(quickly, isotropic, tmp_path, capsys, monkeypatch):
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    failures = [OSError(errno.ENOSPC, "No space left on device")]
    draw = Figure.savefig

    def savefig(figure, file, **options):
        if failures:
            raise failures.pop()
        draw(figure, file, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    code, said, err = run(capsys, "reproduce", "isotropic-gaussians", "--out", str(tmp_path / "figures"))
    assert code == 1
    assert "mean |w| of SGD at t = 20" in said
    assert "of 12 rows agree" in said
    png = tmp_path / "figures" / "isotropic-gaussians.png"
    line = f"mfcore: error: {png} could not be written: No space left on device; the result is now in (.*)\n"
    saved = Path(re.fullmatch(line, err)[1])
    assert saved.is_relative_to(tmp_path / "spare")
    assert {path.suffix for path in saved.parent.iterdir()} == {".png", ".svg", ".npz", ".md"}
    for numbers in (saved, png.with_suffix(".npz")):  # they are written first
        with np.load(numbers) as file:
            assert np.array_equal(file["pde/risk"], isotropic.runs["pde"].risk)


def test_reproduce_keeps_what_was_run_before_ctrl_c(monkeypatch, isotropic, tmp_path, capsys):
    def interrupted(work, size):
        work.runs["pde"] = isotropic.runs["pde"]
        raise KeyboardInterrupt

    monkeypatch.setattr(isotropic_gaussians, "run", interrupted)
    code, _, err = run(capsys, "reproduce", "isotropic-gaussians", "--out", str(tmp_path))
    assert code == 130
    assert "isotropic-gaussians-partial.npz" in err
    with np.load(tmp_path / "isotropic-gaussians-partial.npz") as numbers:
        assert np.array_equal(numbers["pde/risk"], isotropic.runs["pde"].risk)
    code, _, err = run(capsys, "reproduce", "isotropic-gaussians", "--out", str(tmp_path))
    assert code == 2  # what was kept is not lost by a second try
    assert "--force overwrites it" in err


def test_reproduce_all_makes_every_experiment_and_stops_at_the_first_that_fails(
    monkeypatch, isotropic, tmp_path, capsys
):
    asked = []

    def performed(name, *, quick, work):
        asked.append((name, quick))
        return replace(isotropic, name=name, figure=Figure(figsize=(1, 1)), animation=None)

    monkeypatch.setattr("mfcore.experiments.run", performed)
    code, said, _ = run(capsys, "reproduce", "all", "--quick", "--out", str(tmp_path / "all"))
    assert code == 0
    assert asked == [(name, True) for name in mf.experiments.NAMES]
    for k, name in enumerate(mf.experiments.NAMES, start=1):
        assert f"{name}, {k} of {len(mf.experiments.NAMES)}" in said
        assert (tmp_path / "all" / f"{name}.png").exists()
        page = (tmp_path / "all" / f"{name}.md").read_text("utf-8")
        assert f"`mfcore reproduce {name} --quick --seed 0`" in page
    code, said, err = run(capsys, "reproduce", "all", "--out", str(tmp_path / "all"))
    assert (code, said) == (2, "")  # before anything is run
    assert "--force overwrites it" in err

    def interrupted(name, **_):
        asked.append((name, None))
        raise KeyboardInterrupt

    monkeypatch.setattr("mfcore.experiments.run", interrupted)
    assert run(capsys, "reproduce", "all", "--out", str(tmp_path / "other"))[0] == 130
    assert asked[len(mf.experiments.NAMES) :] == [(mf.experiments.NAMES[0], None)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["isotropic-gausians"], "did you mean 'isotropic-gaussians'?"),
        (["isotropic-gaussians", "--seed", "-1"], "--seed must be >= 0, got -1"),
    ],
)
def test_reproduce_refuses_what_it_cannot_do(arguments, message, tmp_path, capsys):
    code, _, err = run(capsys, "reproduce", *arguments, "--out", str(tmp_path / "new"))
    assert code == 2
    assert message in err
    assert not (tmp_path / "new").exists()
