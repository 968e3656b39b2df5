"""Published figures, reproduced: `mfcore.experiments`, on the command line ``mfcore reproduce NAME``.

Each experiment is one module: the published settings, a full and a quick size, and a function that runs them
and returns a `Report` of the picture, its numbers, and a table of measured beside published, exact and
recomputed ones.

- networks and their limit: `isotropic_gaussians`, `anisotropic_gaussians`, `predictable_failure`,
  `phase_transition`, `three_atoms`, `noisy`, `noisy_convergence`, `time_scales` (`_closed_system`),
  `geometry`
- how near: `ladder` (`_ladder_variants`), `fluctuations`, `approximation` (`_best_neurons`), `sample_size`,
  `global_convergence` (`_relu_teacher`, `_deconvolution`)
- targets of few directions: `merged_staircase` (`_appendix`, `_dimension_free`, `_escapes`), `leap`
  (`_layers`), `filtered_pca`, `quartic_sphere` (`_quartic`)
- lazy training: `lazy_transition`, `three_regimes` (`_scales`), `kernel_staircase` (`_stairs`)
- what all share: `_work` runs, `_report`, `_row` and `_source` tell, `_panels` draws, `_ramps` has closed
  forms of the truncated ReLU, `_chance` what N neurons add
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._base import check
from ._report import SUFFIXES, Report, save_runs
from ._row import Row
from ._source import Because, Source, computed, exact, published
from ._work import Work

__all__ = [
    "NAMES",
    "Because",
    "Report",
    "Row",
    "Source",
    "Work",
    "computed",
    "exact",
    "inferred",
    "published",
    "run",
    "save_runs",
    "suffixes",
    "summary",
]

NAMES = (
    "isotropic-gaussians",
    "predictable-failure",
    "anisotropic-gaussians",
    "phase-transition",
    "noisy",
    "ladder",
    "three-atoms",
    "lazy-transition",
    "three-regimes",
    "kernel-staircase",
    "approximation",
    "fluctuations",
    "geometry",
    "global-convergence",
    "noisy-convergence",
    "time-scales",
    "merged-staircase",
    "filtered-pca",
    "sample-size",
    "leap",
    "quartic-sphere",
)


def run(
    name: str, *, quick: bool = False, rng: int = 0, work: Work | None = None, size: Any = None
) -> Report:
    """Run one experiment.

    Args:
        name: One of `NAMES`.
        quick: At a size that takes less than a minute on two cores; else at that of the publication.
        rng: The seed.
        work: What announces, times and keeps the runs; default one that says nothing, with seed `rng`.
        size: A size of the experiment's own, in place of the two it has.

    Examples:
        >>> import mfcore as mf
        >>> "isotropic-gaussians" in mf.experiments.NAMES
        True
    """
    module = _module(name)
    if size is None:
        size = module.QUICK if check.boolean(quick, "quick") else module.FULL
    work = work or Work(seed=check.integer(rng, "rng", at_least=0))
    perform: Callable[[Work, Any], Report] = module.run
    return perform(work, size)


def summary(name: str) -> str:
    """The first line of an experiment's description."""
    return str(_module(name).__doc__).partition("\n")[0]


def inferred(name: str) -> tuple[str, ...]:
    """Settings of an experiment that no publication states, each with how it was found.

    Examples:
        >>> import mfcore as mf
        >>> any("s_k" in line for line in mf.experiments.inferred("predictable-failure"))
        True
    """
    return tuple(getattr(_module(name), "INFERRED", ()))


def suffixes(name: str) -> tuple[str, ...]:
    """Return the suffixes that an experiment's files add to its name."""
    return (*SUFFIXES, *getattr(_module(name), "ALSO", ()))


def _module(name: str) -> Any:
    chosen = check.choice(name, "name", NAMES)
    return importlib.import_module(f".{chosen.replace('-', '_')}", __name__)
