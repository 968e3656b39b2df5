"""The kernel staircase: regression learns one degree per power of d, and a network that moves leaves it.

Ghorbani, Mei, Misiakiewicz and Montanari (2021): with d^ℓ ≪ n ≪ d^(ℓ+1) samples on the sphere, every kernel
of the angle, tangent kernels and random features among them, learns the target's part of degree ≤ ℓ and
nothing else: the risk is ‖P_{>ℓ}f‖². The target here is a function of one direction, y = σ(⟨w, x⟩) + noise,
with equal power in the degrees 1, 2, 3; a network in the mean-field scale finds that direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import data, init, theory
from .._base.check import FloatArray
from ..model import Model
from ..neurons._methods import GD
from ..plots._axes import COLORS, GREY, TEXT
from ._panels import blank, quiet
from ._report import Report
from ._row import Row, sample, spread
from ._source import about, computed, exact
from ._stairs import FAR, NETWORK, NOISE, RIDGE, START, law, model_of, power, predicted
from ._work import Work


@dataclass(frozen=True)
class Size:
    """Sizes of the runs; the quick run has smaller ones."""

    dimensions: tuple[int, ...] = (16, 32, 64)
    most: int = 3000  # samples
    draws: int = 16
    moving: tuple[float, ...] = (1.0, 1.25, 1.5, 1.75, 2.0)  # log n / log d of the network that moves
    neurons: int = 300
    steps: int = 4000
    networks: int = 4
    few: int = 300  # samples of the double descent
    ratios: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.35, 2.0, 4.0, 10.0, 30.0)


FULL = Size()
QUICK = Size(
    dimensions=(10, 20, 40),
    most=800,
    draws=16,
    moving=(1.0, 1.25, 1.5, 1.75, 2.0),
    neurons=100,
    steps=1000,
    networks=6,
    few=100,
    ratios=(0.1, 0.4, 0.8, 1.0, 1.2, 2.0, 5.0, 20.0),
)


def run(work: Work, size: Size) -> Report:
    """Measure regression over n, train the network that moves, and measure the double descent."""
    tangent = {d: _measured(work, size, d, None) for d in size.dimensions}
    features = {d: _measured(work, size, d, "a") for d in size.dimensions}
    middle = size.dimensions[len(size.dimensions) // 2]
    moving = _moving(work, size, middle)
    descent = _descent(work, size, size.dimensions[0])
    return Report(
        name="kernel-staircase",
        title="The kernel staircase, and a network that leaves it",
        caption=(
            f"y = (h₁ + h₂ + h₃)/√3 of one direction + noise of variance {NOISE:g}, x uniform on the sphere "
            "of radius √d. Left: excess risk of ridge regression with the tangent kernel of infinitely "
            f"many ReLU neurons, a, b and w trained (points: means of {size.draws} draws, 95 %), its "
            "deterministic equivalent (lines; dashed: d = 10⁶), and the plateaus ‖P_{>ℓ}f‖² (dotted). "
            "Middle: the same with random features (a alone); stars: the best risk along the training of "
            f"{size.neurons} neurons in the mean-field scale on as many samples, {size.networks} networks, "
            f"d = {middle}. Right: N neurons and n = {size.few} samples, no ridge, d = "
            f"{size.dimensions[0]}: risk over the number of parameters per sample, and that of N = ∞ "
            "(dashed)."
        ),
        figure=_figure(size, tangent, features, middle, moving, descent),
        rows=list(_rows(tangent, features, middle, moving, descent)),
        runs=work.runs,
        arrays=work.arrays,
        inferred=("all sizes, target and noise: ours, for dimensions in which n = d² can be run",),
        notes=[
            "The deterministic equivalent is exact as d → ∞ only; the rows tell how far off it is here.",
            "The network that moves is judged by its best test risk along the training (gradient descent "
            "on all "
            "n samples at every step), as it fits the noise later. It has no ridge.",
        ],
    )


def _measured(work: Work, size: Size, d: int, blocks: str | None) -> theory.RegressionDraws:
    exponents = np.arange(0.5, 2.51, 0.25)
    n = np.unique(np.minimum(np.round(d**exponents), size.most))
    work.tell(f"{'tangent kernel' if blocks is None else 'random features'}, d = {d}, up to n = {n[-1]:g} …")
    options: dict[str, Any] = {
        "ridge": RIDGE,
        "noise": NOISE,
        "draws": size.draws,
        "rng": work.seed,
        "threads": work.threads,
    }
    found = theory.kernel_ridge(model_of(d), law(d), samples=n, blocks=blocks, **options)
    name = f"{'tangent' if blocks is None else 'features'}-{d}"
    work.arrays |= {f"{name}/samples": found.samples, f"{name}/risk": found.risk}
    return found


def _moving(work: Work, size: Size, d: int) -> tuple[FloatArray, FloatArray]:
    """n, and the best excess risk along the training of networks in the mean-field scale."""
    n = np.round(d ** np.array(size.moving)).astype(int)
    n = n[n <= size.most]
    best = np.empty((len(n), size.networks))
    step = 1.0 / d  # of a stable descent: the neurons' kernel is of order d
    work.tell(f"{best.size} networks in the mean-field scale, d = {d} …")
    for i, count in enumerate(n):
        for k in range(size.networks):
            X, y = law(d, math.sqrt(NOISE)).draw(int(count), rng=work.seed + k)
            test = law(d).draw(1000, rng=work.seed + k + 1000)
            model = Model(data.Dataset(X, y), NETWORK, init.Paired(START))
            method = GD(size.neurons, step=step)
            options: dict[str, Any] = {
                "horizon": step * size.steps,
                "save_at": 60,
                "rng": work.seed + k,
                "test": test,
            }
            run = work.quietly(f"n = {count}", model, method, **options)
            best[i, k] = run.observed["test_risk"].min()
    work.arrays |= {"moving/samples": n.astype(float), "moving/risk": best}
    return n.astype(float), best


def _descent(work: Work, size: Size, d: int) -> dict[str, tuple[FloatArray, theory.RegressionDraws]]:
    """Parameters per sample and risks, of a alone and of all blocks; last, infinitely many neurons."""
    out = {}
    for name, blocks, parameters in (("random features", "a", 1), ("tangent model", None, d + 2)):
        work.tell(f"{name}, N and n finite …")
        n = np.maximum(1, np.round(np.array(size.ratios) * size.few / parameters))
        widths = np.append(np.unique(n), math.inf)
        options: dict[str, Any] = {
            "noise": NOISE,
            "draws": size.draws,
            "rng": work.seed,
            "threads": work.threads,
        }
        found = theory.kernel_ridge(
            model_of(d), law(d), samples=size.few, neurons=widths, blocks=blocks, **options
        )
        out[name] = widths * parameters / size.few, found
        work.arrays |= {f"{name}/neurons": widths, f"{name}/risk": found.risk}
    return out


def _rows(
    tangent: dict[int, theory.RegressionDraws],
    features: dict[int, theory.RegressionDraws],
    middle: int,
    moving: tuple[FloatArray, FloatArray],
    descent: dict[str, tuple[FloatArray, theory.RegressionDraws]],
) -> Iterator[Row]:
    source = computed(predicted, "deterministic equivalent, exact as d → ∞")
    for name, runs, blocks in (("tangent kernel", tangent, None), ("random features, N = ∞", features, "a")):
        for d, found in runs.items():
            at = int(np.abs(np.log(found.samples) / math.log(d) - 1.5).argmin())
            n = found.samples[at]
            there = float(predicted(d, found.samples[at : at + 1], blocks)[0])
            yield sample(f"{name}, d = {d}, n = {n:g}", found.risk[at], there, 0.0, source)
    for last in (1, 2):
        there = float(power(FAR)[last + 1 :].sum())
        n = np.array([FAR ** (last + 0.5)])
        for name, blocks in (("tangent kernel", None), ("random features", "a")):
            ours = float(predicted(FAR, n, blocks)[0])
            quantity = f"equivalent of {name} at n = d^{last + 0.5:g}, d = 10⁶"
            yield Row(quantity, ours, there, 2 * FAR**-0.5, exact(f"‖P_>{last}f‖², to 2/√d"))
    for name, (ratio, found) in descent.items():
        peak = float(ratio[:-1][int(found.mean[:-1].argmax())])
        quantity = f"{name}: parameters per sample at the peak"
        yield Row(quantity, peak, 1.0, 0.1, exact("as many as samples, on our grid"))
        wide, less = found.risk[-2] / found.risk[-1], found.risk[-3] / found.risk[-1]
        quantity = f"{name}: risk at {ratio[-2]:.3g} parameters per sample over that of N = ∞"
        size = float(less.mean() - 1) * ratio[-3] / ratio[-2]
        why = about(
            f"N is finite: 1/N of the {less.mean():.3g} at {ratio[-3]:.3g} parameters per sample", size
        )
        yield sample(quantity, wide, 1.0, 0.0, exact("1 as N → ∞"), because=why)
    n, best = moving
    far = int(np.argmax(n))
    kernel = tangent[middle]
    here = float(np.interp(math.log(n[far]), np.log(kernel.samples), kernel.mean))
    share = float(np.mean(best[far] < 0.5 * here))
    quantity = "networks in the mean-field scale below half of the tangent kernel's risk"
    yield Row(f"{quantity}, d = {middle}, n = {n[far]:g}", share, 1.0, 0.0, exact("one direction is enough"))


def _figure(
    size: Size,
    tangent: dict[int, theory.RegressionDraws],
    features: dict[int, theory.RegressionDraws],
    middle: int,
    moving: tuple[FloatArray, FloatArray],
    descent: dict[str, tuple[FloatArray, theory.RegressionDraws]],
) -> Any:
    figure = blank((11.5, 3.9))
    left, center, right = (quiet(ax) for ax in figure.subplots(1, 3))
    for ax, runs, blocks, title in (
        (left, tangent, None, "tangent kernel"),
        (center, features, "a", "random features"),
    ):
        _stairs(ax, runs, blocks)
        ax.set_title(title, fontsize=TEXT)
    n, best = moving
    _, half, _ = spread(best)
    label = f"mean field, d = {middle}"
    style: dict[str, Any] = {
        "color": COLORS[6],
        "marker": "*",
        "markersize": 8,
        "linestyle": "none",
        "label": label,
    }
    center.errorbar(np.log(n) / math.log(middle), best.mean(axis=1), half, **style)
    left.set_ylabel("excess risk")
    for ax in (left, center):
        ax.legend(frameon=False, fontsize=TEXT - 1)
    for (name, (ratio, found)), color, marker in zip(descent.items(), COLORS, "os", strict=False):
        right.errorbar(
            ratio[:-1],
            found.mean[:-1],
            np.minimum(found.interval[:-1], 0.9 * found.mean[:-1]),
            color=color,
            marker=marker,
            markersize=4,
            fillstyle="none",
            label=name,
        )
        right.plot([3, ratio[-2]], [found.mean[-1]] * 2, "--", color=color, linewidth=1)
    right.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
    right.set(xscale="log", yscale="log", xlabel="parameters per sample")
    right.set_title(f"double descent, n = {size.few}", fontsize=TEXT)
    right.legend(frameon=False, fontsize=TEXT - 1)
    return figure


def _stairs(ax: Any, runs: dict[int, theory.RegressionDraws], blocks: str | None) -> None:
    exponents = np.linspace(0.4, 2.6, 60)
    for level in range(3):
        ax.axhline(float(power(FAR)[level + 1 :].sum()), color=GREY, linestyle=":", linewidth=0.8)
    for (d, found), color, marker in zip(runs.items(), COLORS, "os^", strict=False):
        ax.plot(exponents, predicted(d, d**exponents, blocks), color=color, linewidth=1.2)
        ax.errorbar(
            np.log(found.samples) / math.log(d),
            found.mean,
            found.interval,
            color=color,
            marker=marker,
            markersize=4,
            fillstyle="none",
            linestyle="none",
            label=f"d = {d}",
        )
    ax.plot(
        exponents,
        predicted(FAR, float(FAR) ** exponents, blocks),
        "--",
        color=GREY,
        linewidth=1,
        label="d = 10⁶",
    )
    ax.set(xlabel="log n / log d", xlim=(0.4, 2.6), ylim=(0.0, 1.5))
