"""About d samples show the direction of a target on which SGD sees nothing with as many.

Chen, Meka (2020): the covariance of inputs with large labels. The settings are ours: x ~ N(0, I_d), targets
z³ − 3z (information exponent 3), z² − 3 (labels are large on 1 % of the samples) and z₁z₂ (two directions).
SGD on the sphere sees as many fresh samples, and finds the direction of the target z with the same steps.
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
from ..plots._runs import mean
from ..theory._filtered import filtered_pca
from ._panels import blank, key, quiet
from ._report import Report
from ._row import Row, sample
from ._source import Because, computed, exact
from ._work import Work


def _cubic(z: FloatArray) -> FloatArray:
    return z**3 - 3 * z


def _square(z: FloatArray) -> FloatArray:
    return z**2 - 3


def _linear(z: FloatArray) -> FloatArray:
    return np.asarray(z[:, 0])


def _product(z: FloatArray) -> FloatArray:
    return np.asarray(z[:, 0] * z[:, 1])


TARGETS: dict[str, tuple[Callable[[FloatArray], FloatArray], int]] = {
    "z³ − 3z": (_cubic, 1),
    "z² − 3": (_square, 1),
    "z₁z₂": (_product, 2),
}
ONE = tuple(name for name, (_, rank) in TARGETS.items() if rank == 1)
HARD, EASY = "z³ − 3z", "z"  # targets of SGD
NEURONS, SLOW = 20, 0.5  # of SGD, with steps SLOW/d
THRESHOLD, RATIO = 2.0, 16  # of the row with a given τ: |z³ − 3z| > 2 where |z| > 2
FEWEST = 20  # samples that a threshold keeps
SHARES = 0.5 ** (np.arange(16, 0, -1) / 2)  # of samples kept by the thresholds tried


@dataclass(frozen=True)
class Size:
    """Sizes of the run; the quick run has smaller dimensions and fewer draws."""

    dims: tuple[int, ...] = (50, 100, 200, 400)
    ratios: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    draws: int = 24
    trained: int = 32  # networks
    trained_dims: tuple[int, ...] = (100, 200)


FULL = Size()
QUICK = Size(dims=(50, 100, 200), ratios=(4, 8, 16, 32, 64), draws=5, trained=16, trained_dims=(100,))


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
    for name, link in ((HARD, _cubic), (EASY, _linear)):
        for d in size.trained_dims:
            work.tell(f"SGD, {name}, d = {d} …")
            work.arrays[f"SGD/{name}/{d}"] = np.array(
                [_trained(work, link, d, c * d, size.trained) for c in size.ratios]
            )
    for name in ONE:
        work.arrays[f"{name}/limit"] = np.array([limit(TARGETS[name][0], c) for c in size.ratios])
    return Report(
        name="filtered-pca",
        title="About d samples show the direction",
        caption=(
            "Cosine between the directions found and those of the target (of two, the smaller one) against "
            f"n/d, mean and 95 % interval of {size.draws} draws. Filtered PCA takes leading eigenvectors of "
            "the covariance of inputs with large labels. Black: what it tends to as d → ∞, the best of 16 "
            "thresholds in eq. (12.7). Left, grey: networks of "
            f"{NEURONS} neurons on the sphere after n steps of SGD with n fresh samples (h = {SLOW:g}/d, "
            f"{size.trained} networks, d = {size.trained_dims[-1]}), the leading eigenvector of Σ a² wwᵀ: on "
            "z³ − 3z they stay near chance, √(2/πd), on z they find it."
        ),
        figure=_figure(work.arrays, size),
        rows=_rows(work, size),
        runs=work.runs,
        arrays=dict(work.arrays),
        notes=[
            "A label that depends on one direction z of x hides it from gradients if its correlations with z "
            "and z² vanish, as those of z³ − 3z do: at the start all directions look alike, up to d^(−1/2), "
            "and SGD needs many times d samples before it leaves. Yet the samples know the direction. Large "
            "labels come from large |z|, so inputs with large labels vary more along z than across it, and "
            "the leading eigenvector of their covariance is z.",
            "How many samples does it take? The covariance of m inputs in d dimensions has noise of order "
            "√(d/m), which is of order one when m is of the order of d. Below that the eigenvector is noise, "
            "above it appears, and curves of all d fall on one when drawn against n/d: n = O(d). The rarer "
            "the large labels, the more samples: those of z² − 3 beyond 3 are 1.4 % of all, too few at small "
            "d, where thresholds keep at least 20 samples.",
        ],
    )


def _recovered(law: data.MultiIndex, rank: int, n: int, seed: int) -> float:
    X, y = law.draw(n, seed)
    rows = filtered_pca(X, y, rank)
    return float(np.linalg.svd(rows[:, :rank], compute_uv=False).min())


def _trained(work: Work, link: Callable[[FloatArray], FloatArray], d: int, n: int, count: int) -> FloatArray:
    """|cos| of the direction that networks have found after n samples."""
    model = Model(
        data=data.MultiIndex(d, link, directions=1),
        network=Network(activations.relu, output="trained", bias="trained", sphere=True),
        init=init.Product(a=init.Normal(0, 1), b=init.Normal(0, 0.5), w=init.Sphere(1.0)),
    )
    h = SLOW / d
    options: dict[str, Any] = {"horizon": n * h, "save_at": [n * h], "risk": False, "rng": work.seed}
    run = work.quietly(f"SGD, d = {d}, n = {n}", model, SGD(NEURONS, h, replicas=count), **options)
    nets: Any = run.final
    cosines = []
    for net in np.reshape(nets, (count, NEURONS, d + 2)):
        vectors = np.linalg.eigh((net[:, 2:].T * net[:, 0] ** 2) @ net[:, 2:])[1]
        cosines.append(abs(vectors[0, -1]))
    return np.array(cosines)


def _rows(work: Work, size: Size) -> list[Row]:
    d, c = size.dims[-1], size.ratios[-1]
    law, n = data.MultiIndex(d, _cubic, directions=1), RATIO * d
    squares = []
    for k in range(size.draws):
        X, y = law.draw(n, derive(work.seed, k))
        squares.append(float(filtered_pca(X, y, 1, threshold=THRESHOLD)[0, 0] ** 2))
    source = computed(promised, "eq. (12.7), d → ∞")
    what = f"z³ − 3z, d = {d}, n = {RATIO}d, τ = 2: squared cosine"
    rows = [sample(what, np.array(squares), promised(RATIO), 0.0, source)]
    for name in ONE:
        what, there = f"{name}, d = {d}, n = {c}d: cosine", work.arrays[f"{name}/limit"][-1]
        rows.append(
            sample(
                what, work.arrays[f"{name}/{d}"][-1], there, 0.0, computed(limit, "eq. (12.7), d → ∞, best τ")
            )
        )
    small = size.dims[-2]
    for name in TARGETS:
        low, high = (_half(work.arrays[f"{name}/{e}"], size.ratios) for e in (small, d))
        ratio = high[0] / low[0]
        half = 1.96 * ratio * math.hypot(high[1] / high[0], low[1] / low[0])
        what = f"{name}: n/d at a cosine of 0.7, d = {d} over d = {small}"
        before = _half(work.arrays[f"{name}/{size.dims[-3]}"], size.ratios)[0]
        fall = min(low[0] / before - 1, 0.0)
        why = Because(
            f"the smaller d is held back, as thresholds keep at least {FEWEST} samples: from "
            f"{size.dims[-3]} to {small} "
            f"n/d falls by {-fall:.2g}",
            1.5 * fall - half,
            half,
        )
        rows.append(Row(what, ratio, 1.0, 0.0, exact("1: n = O(d)"), half, half / 1.96, why))
    e = size.trained_dims[-1]
    chance, here = math.sqrt(2 / (math.pi * e)), f"d = {e}, n = {c}d: |cos|"
    stuck, found = (work.arrays[f"SGD/{name}/{e}"][-1] for name in (HARD, EASY))
    earlier = work.arrays[f"SGD/{HARD}/{e}"]
    why = Because(
        f"networks have begun to move: after a quarter of the samples it was {earlier[-3].mean():.3f}, "
        "and it is far "
        "from found",
        float(earlier[-3].mean()) - chance,
        0.5 - chance,
    )
    rows.append(sample(f"SGD on {HARD}, {here}", stuck, chance, 0.0, exact("√(2/πd) by chance"), why))
    half = float(work.arrays[f"SGD/{EASY}/{e}"][-2].mean()) - 1.0
    noise = Because(
        f"steps of size h leave noise across the direction, {half:+.2g} after half of the samples",
        2 * half,
        0.0,
    )
    rows.append(sample(f"SGD on {EASY}, {here}", found, 1.0, 0.0, exact("1 as h → 0"), noise))
    return rows


def promised(ratio: float) -> float:
    """The squared cosine of eq. (12.7) for z³ − 3z, τ = 2 and n = ratio·d: kept are |z| > 2."""
    kept = 2 * float(norm.sf(THRESHOLD))
    return _squared(2 * THRESHOLD * float(norm.pdf(THRESHOLD)) / kept, 1 / (ratio * kept))


def limit(link: Callable[[FloatArray], FloatArray], ratio: float) -> float:
    """The cosine of eq. (12.7) at the best of the thresholds tried, for n = ratio·d and d → ∞."""
    z = np.linspace(-9, 9, 200_001)
    mass = norm.pdf(z) / norm.pdf(z).sum()
    order = np.argsort(-np.abs(link(z)), kind="stable")
    kept, second = np.cumsum(mass[order]), np.cumsum((mass * z * z)[order])
    at = np.searchsorted(kept, SHARES)
    return math.sqrt(max(_squared(second[k] / kept[k] - 1, 1 / (ratio * kept[k])) for k in at))


def _squared(spike: float, aspect: float) -> float:
    """Eq. (12.7); 0 where the spike does not stand out."""
    if spike <= math.sqrt(aspect):
        return 0.0
    return float((1 - aspect / spike**2) / (1 + aspect / spike))


def _half(cosines: FloatArray, ratios: tuple[int, ...]) -> tuple[float, float]:
    """n/d at which the mean cosine is 0.7, by interpolation in log n, with a jackknife error over draws."""

    def crossing(values: FloatArray) -> float:
        rising = np.maximum.accumulate(values.mean(axis=1))
        return float(np.exp(np.interp(0.7, rising, np.log(ratios))))

    n = cosines.shape[1]
    without = np.array([crossing(np.delete(cosines, k, axis=1)) for k in range(n)])
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    return crossing(cosines), error


def _figure(arrays: Any, size: Size) -> Any:
    figure = blank((9.6, 3.5))
    panels = [quiet(ax) for ax in figure.subplots(1, len(TARGETS), sharey=True)]
    shown: list[tuple[str, dict[str, Any]]] = []
    for ax, name in zip(panels, TARGETS, strict=True):
        for k, d in enumerate(size.dims):
            style = {"color": COLORS[k], "linewidth": 0.9, **marker(k)}
            _points(ax, size.ratios, arrays[f"{name}/{d}"], style)
            if ax is panels[0]:
                shown.append((f"d = {d}", style))
        if name in ONE:
            ax.plot(size.ratios, arrays[f"{name}/limit"], color="black", linewidth=1.6, zorder=1)
        ax.set(xscale="log", xlabel="samples over dimension, $n/d$", title=name, ylim=(0, 1.09))
        ax.set_xticks(size.ratios, [str(c) for c in size.ratios])
        ax.minorticks_off()
    left, e = panels[0], size.trained_dims[-1]
    for name, k, place in ((HARD, 5, (-4, 8)), (EASY, 6, (8, 7))):
        values = arrays[f"SGD/{name}/{e}"]
        _points(left, size.ratios, values, {"color": GREY, "linewidth": 0.9, "linestyle": "--", **marker(k)})
        at = -1 if name == HARD else 2
        left.annotate(
            "SGD, same target" if name == HARD else "SGD, target z",
            (size.ratios[at], values[at].mean()),
            xytext=place,
            textcoords="offset points",
            ha="right",
            fontsize=TEXT,
            color=GREY,
        )
    left.set_ylabel("cosine with the target's direction")
    key(panels[-1], [*shown, ("d → ∞", {"color": "black", "linewidth": 1.6})], loc="lower right")
    return figure


def _points(ax: Any, ratios: tuple[int, ...], values: FloatArray, style: dict[str, Any]) -> None:
    """Means of the draws with 95 % intervals."""
    middle, half = mean(values, np.zeros_like(values))
    ax.errorbar(ratios, middle, half, elinewidth=0.8, **style)
