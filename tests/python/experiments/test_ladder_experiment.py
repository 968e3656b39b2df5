"""The experiment `ladder` at a tiny size: its numbers, not its looks."""

from __future__ import annotations

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore.experiments import Work, ladder


def test_ctrl_c_keeps_the_replicas_that_are_done_and_ends_the_experiment(monkeypatch):
    whole = theory.ladder

    def interrupted(*arguments, **options):
        budget = whole(*arguments, **options)
        budget.meta["status"] = "interrupted"
        return budget

    monkeypatch.setattr(theory, "ladder", interrupted)
    size = ladder.Size((8, 16), (4e-4, 2e-4), horizon=0.01, replicas=2, gd_steps=5, save_points=2)
    work = Work()
    with pytest.raises(KeyboardInterrupt):
        ladder.run(work, size)
    assert work.arrays["ladder/risk"].shape == (2, 2, 2, 5, 2)


def test_the_experiment_measures_the_rates_of_the_theorem(tmp_path):
    size = ladder.Size((8, 32), (4e-4, 2e-4), horizon=0.1, replicas=4, gd_steps=5, save_points=3, variants=2)
    report = mf.experiments.run("ladder", size=size)
    rows = {row.quantity: row.measured for row in report.rows}
    assert abs(rows["slope of GD-SGD in h, distance"] - 0.5) < 0.15
    assert -1.0 < rows["slope of ND-PD in N, distance"] < -0.1
    assert 0.0 < rows["N(R_N − R) of ND at t = 0"] < 15.0  # 7.4 expected
    # Of two replicas, by the fixed seed; the bounds are twice the tolerances of the table or more.
    assert abs(rows["slope of PD-GD in h, risk"] - 1.0) < 0.05
    assert abs(rows["slope of GD-SGD in D, distance"] - 0.5) < 0.3
    assert abs(rows["noisy: slope of PD-GD in h, distance"] - 1.0) < 0.3
    assert report.unexplained() == [], report.table()
    written = report.write(tmp_path)
    with np.load(written[2]) as numbers:
        risk = numbers["ladder/risk"]
        assert risk.shape == (2, 2, 4, 5, 3)
        # R at t = 0 of the PDE, as the publication has it: 1.704 of its 400 cells.
        np.testing.assert_allclose(risk[..., 0, 0], 1.7045, atol=1e-3)
    assert "| ND-PD | N |" in written[3].read_text("utf-8")
