"""The picture of the README by its numbers: `python .ci/picture.py check|keep MADE.npz`.

`check` compares what `mfcore reproduce isotropic-gaussians --quick` has just made with the numbers kept
beside the picture, `keep` replaces those.
"""

import json
import sys
from pathlib import Path

import numpy as np

KEPT = Path(__file__).parents[1] / "docs" / "figures" / "isotropic-gaussians.json"
# Numbers of SGD agree to a few ulp on all instruction sets, masses of cells to 1e-11 of the largest; they are
# kept to 9 digits.
TOLERANCE = 1e-8


def numbers(made):
    """What the picture shows: risks over time, the density, and quantiles of |w| at three times."""
    with np.load(made) as run:
        shown = {name: run[name] for name in ("pde/t", "pde/risk", "sgd/t", "sgd/risk")}
        for k in range(3):
            shown[f"pde/mass/{k}"] = run[f"pde/kept/{k}/mass"]
            shown[f"pde/edges/{k}"] = run[f"pde/kept/{k}/edges/0"][[0, -1]]
            shown[f"sgd/quantiles of norm/{k}"] = np.quantile(
                run[f"sgd/kept/{k}/norm"], np.linspace(0, 1, 51)
            )
        return shown


def check(shown):
    """Names of what differs, with by how much of its largest number."""
    kept = {name: np.array(values) for name, values in json.loads(KEPT.read_text()).items()}
    if kept.keys() != shown.keys():
        return [f"other numbers are kept: {sorted(kept.keys() ^ shown.keys())}"]
    wrong = []
    for name, there in kept.items():
        here = shown[name]
        if here.shape != there.shape:
            wrong.append(f"{name}: shape {here.shape}, kept {there.shape}")
        elif not (off := np.abs(here - there).max() / np.abs(there).max()) <= TOLERANCE:
            wrong.append(f"{name}: differs by {off:.1e}")
    return wrong


def keep(shown):
    """Replace the numbers kept."""
    lines = [f'"{name}": {[float(f"{x:.9g}") for x in array.ravel()]}' for name, array in shown.items()]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _, what, made = sys.argv
    shown = {name: array.ravel() for name, array in numbers(made).items()}
    if what == "keep":
        keep(shown)
    else:
        wrong = check(shown)
        print(
            "\n".join(wrong)
            or f"the picture of the README shows the same {sum(map(np.size, shown.values()))} numbers"
        )
        sys.exit(bool(wrong))
