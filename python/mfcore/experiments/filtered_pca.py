"""About d samples show the direction of a target on which gradient descent sees nothing for d² of them.

Chen, Meka (2020): the covariance of inputs with large labels. The settings are ours: x ~ N(0, I_d), targets
z³ − 3z (information exponent 3), z² − 3 (labels are large on 1 % of the samples) and z₁z₂ (two directions).
SGD on the sphere sees the same samples once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from .. import activations, data, init
from .._base.check import FloatArray
from .._base.rng import derive
from ..model import Model
from ..network import Network
from ..neurons._methods import SGD
from ..plots._axes import COLORS, GREY, TEXT, marker
from ..theory._filtered import filtered_pca
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample
from ._work import Work


def _cubic(z: FloatArray) -> FloatArray:
    return z**3 - 3 * z


def _square(z: FloatArray) -> FloatArray:
    return z**2 - 3


def _product(z: FloatArray) -> FloatArray:
    return np.asarray(z[:, 0] * z[:, 1])


TARGETS: dict[str, tuple[Callable[[FloatArray], FloatArray], int]] = {
    "z³ − 3z": (_cubic, 1),
    "z² − 3": (_square, 1),
    "z₁z₂": (_product, 2),
}
NEURONS, SLOW = 20, 0.5  # of SGD, with steps SLOW/d
THRESHOLD, RATIO = 2.0, 16  # of the row that theory knows: |z³ − 3z| > 2 where |z| > 2


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller dimensions and fewer draws."""

    dims: tuple[int, ...] = (50, 100, 200, 400)
    ratios: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)
    draws: int = 24
    trained: int = 8  # networks


FULL = Size()
QUICK = Size(dims=(50, 100, 200), ratios=(4, 8, 16, 32, 64), draws=12, trained=4)


def run(work: Work, size: Size) -> Report:
    """Recover directions from n = c·d samples for several c and d, and train networks on the first target."""
    for name, (link, rank) in TARGETS.items():
        for d in size.dims:
            work.tell(f"{name}, d = {d} …")
            law = data.MultiIndex(d, link, directions=rank)
            found = [
                [_recovered(law, rank, c * d, derive(work.seed, k)) for k in range(size.draws)]
                for c in size.ratios
            ]
            work.arrays[f"{name}/{d}"] = np.array(found)
    for d in size.dims[:-1]:
        work.arrays[f"SGD/{d}"] = np.array([_trained(work, d, c * d, size.trained) for c in size.ratios])
    arrays = work.arrays
    return Report(
        name="filtered-pca",
        title="About d samples show the direction",
        caption=(
            "Cosine between the directions found and those of the target (the least one of two) against n/d, "
            f"mean and 95 % interval of {size.draws} draws. Filtered PCA: eigenvectors of the covariance of "
            f"inputs with large labels, d = {', '.join(map(str, size.dims))} (darker is larger): n = O(d) "
            "samples suffice. Left, grey: networks of "
            f"{NEURONS} neurons on the sphere that see the same samples once (steps {SLOW:g}/d), the leading "
            "eigenvector of Σ a² wwᵀ: chance, of order d^(−1/2)."
        ),
        figure=_figure(arrays, size),
        rows=_rows(work, size),
        runs=work.runs,
        arrays=dict(arrays),
    )


def _recovered(law: data.MultiIndex, rank: int, n: int, seed: int) -> float:
    X, y = law.draw(n, seed)
    rows = filtered_pca(X, y, rank)
    return float(np.linalg.svd(rows[:, :rank], compute_uv=False).min())


def _trained(work: Work, d: int, n: int, count: int) -> FloatArray:
    """|cos| of the direction that networks have found after n samples."""
    model = Model(
        data=data.MultiIndex(d, _cubic, directions=1),
        network=Network(activations.relu, output="trained", bias="trained", sphere=True),
        init=init.Product(a=init.Normal(0, 1), b=init.Normal(0, 0.5), w=init.Sphere(1.0)),
    )
    h = SLOW / d
    run = work.solve(
        f"sgd-{d}-{n}",
        model,
        SGD(NEURONS, h, replicas=count),
        horizon=n * h,
        save_at=[n * h],
        risk=False,
    )
    nets: Any = run.final
    cosines = []
    for net in np.reshape(nets, (count, NEURONS, d + 2)):
        vectors = np.linalg.eigh((net[:, 2:].T * net[:, 0] ** 2) @ net[:, 2:])[1]
        cosines.append(abs(vectors[0, -1]))
    return np.array(cosines)


def _rows(work: Work, size: Size) -> list[Row]:
    d = size.dims[-1]
    law, n = data.MultiIndex(d, _cubic, directions=1), RATIO * d
    squares = []
    for k in range(size.draws):
        X, y = law.draw(n, derive(work.seed, k))
        squares.append(float(filtered_pca(X, y, 1, threshold=THRESHOLD)[0, 0] ** 2))
    rows = [
        sample(
            f"z³ − 3z, d = {d}, n = {RATIO}d, τ = 2: squared cosine",
            np.array(squares),
            promised(RATIO),
            0.0,
            "eq. (12.7), d → ∞",
            "d is finite, and so is the number of draws",
        )
    ]
    for name in TARGETS:
        low, high = (_half(work.arrays[f"{name}/{e}"], size.ratios) for e in (size.dims[0], d))
        rows.append(
            Row(
                f"{name}: n/d at a cosine of 0.7, d = {d} over d = {size.dims[0]}",
                high[0] / low[0],
                1.0,
                0.0,
                "n = O(d)",
                1.96 * math.hypot(high[1] / low[0], low[1] * high[0] / low[0] ** 2),
                None,
                "the smaller d is held back: thresholds keep at least 20 samples, and few labels are large",
            )
        )
    e = size.dims[-2]
    chance = math.sqrt(2 / (math.pi * e))
    what = f"SGD, d = {e}, n = {size.ratios[-1]}d: |cos|"
    why = "the leading eigenvector of 20 neurons is no uniform direction if they have begun to move"
    rows.append(sample(what, work.arrays[f"SGD/{e}"][-1], chance, 0.0, "chance: √(2/πd)", why))
    return rows


def promised(ratio: float) -> float:
    """The squared cosine of eq. (12.7) for z³ − 3z, τ = 2 and n = ratio·d: kept are |z| > 2."""
    kept = 2 * norm.sf(THRESHOLD)
    spike = 2 * THRESHOLD * norm.pdf(THRESHOLD) / kept
    aspect = 1 / (ratio * kept)
    return max(0.0, float((1 - aspect / spike**2) / (1 + aspect / spike)))


def _half(cosines: FloatArray, ratios: tuple[int, ...]) -> tuple[float, float]:
    """n/d at which the mean cosine is 0.7, by interpolation in log n, with a jackknife error over draws."""

    def crossing(values: FloatArray) -> float:
        mean = np.maximum.accumulate(values.mean(axis=1))
        return float(np.exp(np.interp(0.7, mean, np.log(ratios))))

    n = cosines.shape[1]
    without = np.array([crossing(np.delete(cosines, k, axis=1)) for k in range(n)])
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    return crossing(cosines), error


def _figure(arrays: Any, size: Size) -> Any:
    figure = blank((9.6, 3.4))
    panels = [quiet(ax) for ax in figure.subplots(1, len(TARGETS), sharey=True)]
    shades = np.linspace(0.35, 1.0, len(size.dims))
    for k, (ax, name) in enumerate(zip(panels, TARGETS, strict=True)):
        for shade, d in zip(shades, size.dims, strict=True):
            values = arrays[f"{name}/{d}"]
            half = 1.96 * values.std(axis=1, ddof=1) / math.sqrt(values.shape[1])
            ax.errorbar(
                size.ratios,
                values.mean(axis=1),
                half,
                color=COLORS[k],
                alpha=float(shade),
                linewidth=1.2,
                elinewidth=0.8,
                **marker(k),
                label=f"d = {d}",
            )
        if k == 0:
            for d in size.dims[:-1]:
                ax.plot(size.ratios, arrays[f"SGD/{d}"].mean(axis=1), color=GREY, linewidth=0.9)
            ax.annotate(
                "SGD",
                (size.ratios[-1], arrays[f"SGD/{size.dims[0]}"][-1].mean()),
                xytext=(-24, 8),
                textcoords="offset points",
                fontsize=TEXT,
                color=GREY,
            )
        ax.set(xscale="log", xlabel="$n/d$", title=name, ylim=(0, 1.02))
        ax.set_xticks(size.ratios, [str(c) for c in size.ratios])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize=TEXT - 1, loc="lower right" if k else "center right")
    panels[0].set_ylabel("cosine")
    return figure
