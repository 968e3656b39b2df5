"""The files of an experiment: which there are, and what those of runs hold."""

import mfcore as mf
import numpy as np
from matplotlib.figure import Figure
from mfcore import experiments
from mfcore.experiments import _source

MODEL = mf.Model(
    mf.data.IsotropicGaussians(4, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(0.5), ridge=0.1
)


def test_a_report_writes_the_files_that_suffixes_names(tmp_path):
    assert set(experiments.suffixes("three-atoms")) == {*experiments.suffixes("noisy"), ".gif"}
    for name in ("noisy", "three-atoms"):
        drawn = name == "three-atoms"

        def draw(stem):
            stem.with_suffix(".gif").write_bytes(b"GIF89a")
            return stem.with_suffix(".gif")

        report = experiments.Report(
            name, "A title", "A caption", Figure(), rows=[], runs={}, animation=draw if drawn else None
        )
        files = report.write(tmp_path)
        assert [file.name for file in files] == [name + suffix for suffix in experiments.suffixes(name)]
        assert all(file.stat().st_size for file in files)


def test_save_runs_keeps_series_and_measures_of_each_run_under_its_name(tmp_path):
    runs = {
        "sgd": mf.solve(MODEL, mf.SGD(20, 0.01), horizon=0.1, save_at=3, keep="all", rng=0),
        "pde": mf.solve(MODEL, mf.PDE(30), horizon=0.1, save_at=2),
        "blind": mf.solve(MODEL, mf.Atoms(), horizon=0.1, save_at=2, risk=False),
    }
    experiments.save_runs(tmp_path / "runs.npz", runs, {"more": np.arange(3.0)})
    with np.load(tmp_path / "runs.npz") as stored:
        assert np.array_equal(stored["more"], np.arange(3.0))
        for name, run in runs.items():
            assert np.array_equal(stored[f"{name}/t"], run.t)
            assert (f"{name}/risk" in stored) == (run.risk is not None)
        assert np.array_equal(stored["sgd/risk"], runs["sgd"].risk)
        assert np.array_equal(stored["sgd/kept/1/neurons"], list(runs["sgd"].kept.values())[1])
        assert np.array_equal(stored["pde/final/mass"], runs["pde"].final.mass)
        assert np.array_equal(stored["blind/final/points"], runs["blind"].final.points)


def test_sources_are_of_one_class_and_tell_their_kind():
    found = [_source.published("Mei et al. (2018), figure 1", fitted=True), _source.exact("eq. (2.1)")]
    assert [(type(source), source.kind) for source in found] == [
        (experiments.Source, "published"),
        (experiments.Source, "exact"),
    ]
    assert [source.fitted for source in found] == [True, False]
