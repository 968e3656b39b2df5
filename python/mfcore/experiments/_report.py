"""The report of an experiment: a picture, its numbers, and a table of measured beside known numbers."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._base import files
from .._base.archive import write_archive
from .._base.build import build_info
from .._base.check import FloatArray
from ..measures._measure import Cloud, Density
from ..measures._tangent import LinearMeasure, Tangent
from ..model import Model
from ..plots._coordinates import columns
from ..runs._trajectory import Measure, Trajectory
from ._row import HEAD, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALL = 2000  # larger networks are stored as the coordinates that pictures show, not as parameters


@dataclass(frozen=True)
class Report:
    """The result of an experiment: picture, rows, and runs.

    Args:
        name: That of the experiment.
        title: One line.
        caption: What the picture shows, with the settings of the runs.
        figure: The picture.
        rows: Measured beside published, exact and recomputed.
        runs: Everything that was run.
        arrays: Further numbers of the picture.
        inferred: Settings that the publication does not state, each with how it was found; of an experiment
            of our own, none.
        notes: What else to know, a paragraph each.
        animation: Function that writes an animation to a path without suffix and returns the file written.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    rows: Sequence[Row]
    runs: Mapping[str, Trajectory]
    arrays: Mapping[str, FloatArray] = field(default_factory=dict)
    inferred: Sequence[str] = ()
    notes: Sequence[str] = ()
    animation: Any = None

    def table(self) -> list[list[str]]:
        """The head and the rows of the table, without empty columns."""
        lines = [HEAD, *(row.cells() for row in self.rows)]
        used = [k for k in range(len(HEAD)) if any(line[k] not in ("", "–") for line in lines[1:])]
        return [[line[k] for k in used] for line in lines]

    def agreement_line(self) -> str:
        """How many rows agree and how many do not: a line below the table."""
        counts = Counter(row.outcome for row in self.rows)
        others = ", ".join(f"{counts[key]} {words}" for key, words in _OTHERS.items() if counts[key])
        agree = f"{counts['agrees']} of {len(self.rows)} rows agree"
        return f"{agree}{', ' if others else ''}{others}; ± is 95 %"

    def unexplained(self) -> list[str]:
        """The quantities of rows that differ as no reason predicts."""
        return [row.quantity for row in self.rows if row.outcome == "unexplained"]

    def markdown(self, made: str) -> str:
        """The report as a Markdown page; `made` says how and when it was made."""
        head, *lines = self.table()
        rows = [head, ["---"] * len(head), *lines]
        table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
        inferred = "\n".join(f"- {line}" for line in self.inferred) or "- none"
        parts = [
            f"# {self.title}",
            f"![{self.title}]({self.name}.png)",
            self.caption,
            table,
            _EXPLAINED,
            f"Settings that are inferred, as no publication states them:\n\n{inferred}",
            *self.notes,
            made,
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def metadata(self, picture: Path, made: str = "") -> dict[str, Any]:
        """Title, caption and how it was made, as a picture of this format stores them."""
        about: dict[str, Any] = {"Title": self.title, "Description": f"{self.caption} {made}".strip()}
        return about | {"Date": None} if picture.suffix == ".svg" else about  # the same file on every day

    def write(self, folder: str | os.PathLike[str], *, made: str = "") -> list[Path]:
        """Write picture (PNG, SVG), numbers (npz) and page (Markdown); files of these names are replaced."""
        stem = Path(folder) / self.name
        written = [stem.with_suffix(suffix) for suffix in SUFFIXES]
        png, svg, npz, page = written
        save_runs(npz, self.runs, self.arrays)  # first, as numbers take longest to get again
        files.replace(page, lambda file: file.write(self.markdown(made).encode()))
        for picture in (png, svg):
            draw = partial(
                self.figure.savefig, format=picture.suffix[1:], metadata=self.metadata(picture, made)
            )
            files.replace(picture, draw)
        if self.animation is not None:
            with tempfile.TemporaryDirectory() as beside:  # what draws it wants a path
                drawn = self.animation(Path(beside, self.name))
                written.append(stem.with_suffix(drawn.suffix))
                files.replace(written[-1], lambda file: file.write(drawn.read_bytes()))
        return written


# The words of the line below the table for rows that do not agree.
_OTHERS = {
    "fitted": "fitted",
    "not resolved": "not resolved",
    "differs": "differ as predicted",
    "unexplained": "differ, unexplained",
}
_EXPLAINED = (
    "“±” is half of a 95 % interval everywhere: of the mean over networks (Student's t) and of the "
    "samples that "
    "a risk is measured on; for numbers without chance, the error that the method states. s.e. is the "
    "standard "
    "error of ours. *Published* is cited, *exact* is a closed form or theorem, *computed again* is a second "
    "computation by the function named as its source. Two numbers are within reach if they differ by no more "
    "than our interval and the error of the other; there is no other tolerance. Then they agree, unless our "
    "settings were fitted to that curve (*fitted*), or the interval or reading error is as wide as the "
    "effect "
    "or alone hides more than 2.57 standard errors, the t of six networks (*not resolved*). A reason for a "
    "difference predicts its sign and size; a difference without one is *unexplained*."
)
SUFFIXES = (".png", ".svg", ".npz", ".md")


def save_runs(
    path: Path, runs: Mapping[str, Trajectory], arrays: Mapping[str, FloatArray] | None = None
) -> None:
    """Series and measures of runs in one archive, as ``run/t``, ``run/risk``, ``run/kept/0/norm``, …"""
    numbers: dict[str, FloatArray] = dict(arrays or {})
    info: dict[str, Any] = {"version": build_info()["version"], "runs": {}}
    for name, run in runs.items():
        series = {"t": run.t, "risk": run.risk, "error": run.error, **run.observed}
        numbers |= {f"{name}/{key}": values for key, values in series.items() if values is not None}
        for k, measure in enumerate(run.kept.values()):
            numbers |= _numbers(f"{name}/kept/{k}", measure, run)
        numbers |= _numbers(f"{name}/final", run.final, run)
        facts = {key: run.meta.get(key) for key in ("seed", "seconds", "steps", "isa", "t", "horizon")}
        info["runs"][name] = {
            "model": repr(run.meta["model"]),
            "method": repr(run.meta["method"]),
            "status": run.status,
            "kept": list(run.kept),
            **facts,
        }
    write_archive(path, numbers, info)


def _numbers(name: str, measure: Measure, run: Trajectory) -> dict[str, FloatArray]:
    if isinstance(measure, Density):
        edges = {f"{name}/edges/{k}": edge for k, edge in enumerate(measure.edges)}
        return {f"{name}/mass": measure.mass, **edges}
    if isinstance(measure, Cloud):
        return {f"{name}/points": measure.points, f"{name}/weights": measure.weights}
    if isinstance(measure, Tangent):
        measure = measure.theta
    if isinstance(measure, LinearMeasure):
        return {}
    model = run.meta["model"]
    if measure.size <= _SMALL or not isinstance(model, Model):
        return {f"{name}/neurons": measure}
    return {f"{name}/{key}": of(measure) for key, of in columns(model, measure).items()}
