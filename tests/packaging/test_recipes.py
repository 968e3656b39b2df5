"""The recipes of CONTRIBUTING, followed: what an addition touches is enough for it to work everywhere."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore._base import registry
from mfcore.data._config import KINDS
from mfcore.data._law import DataLaw, dimension, set_field
from mfcore.data._symmetry import Part, Radius, Split, Symmetry
from mfcore.reductions._project import projections
from mfcore.runs._ends import End, Ended
from mfcore.runs._reduced import model_of

STRUCT = re.compile(r'struct (\w+)[^;{]*\{\s*static constexpr const char\* name = "(\w+)"')


def code(file):
    """The text of a C++ file without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", file.read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, to add files to."""
    left_out = shutil.ignore_patterns("__pycache__", "include", "lib")
    package = Path(mf.__file__).parent
    beside = package.with_name("mfcore.libs")  # of a repaired wheel: OpenMP is looked for there
    if beside.is_dir():
        shutil.copytree(beside, tmp_path / beside.name)
    return shutil.copytree(package, tmp_path / "mfcore", ignore=left_out)


@pytest.fixture
def use(copy, run):
    """Run Python with the copied package and some arguments; gives what it printed."""

    def call(*arguments):
        done = run(sys.executable, *arguments, PYTHONPATH=str(copy.parent), MPLBACKEND="Agg")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def change(file, old, new):
    """Replace a piece of text that occurs once."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new), "utf-8")


# ---------------------------------------------------------------- an activation


def test_an_activation_is_one_struct_in_one_list_and_no_other_file_knows_it(source):
    kinds, one_list = source / "cpp/src/network/kinds", source / "cpp/src/network/kinds.hpp"
    described = {
        struct: (name, file) for file in kinds.glob("*.hpp") for struct, name in STRUCT.findall(code(file))
    }
    not_in_files, by_the_custom_one = {"custom"}, {"expression"}
    of_files = set(mf.activations.KINDS) - by_the_custom_one
    assert {name for name, _ in described.values()} == of_files | not_in_files
    listed = re.search(r"using All\s*=\s*List<([^>]+)>", code(one_list))[1]
    assert {name.strip() for name in listed.split(",")} == set(described)
    for file in (source / "cpp").rglob("*.?pp"):
        if file.parent == kinds or file == one_list:
            continue
        for struct, (name, own) in described.items():
            assert f"kinds::{struct}" not in code(file), f"{file} knows {struct} of {own}"
            assert f'"{name}"' not in code(file), f"{file} knows {name} of {own}"
    package = Path(mf.__file__).parent
    for file in package.rglob("*.py"):
        if not {"activations", "experiments"} & set(file.relative_to(package).parts):
            asked = re.search(
                r"(activation|sigma)\.name\b|in _[A-Z]+ and .*\bname\b", file.read_text("utf-8")
            )
            assert not asked, f"{file} asks an activation for its name: {asked[0]}"


def test_an_activation_without_parameters_is_an_object_of_its_name():
    assert len(_core.named_kinds()) >= 7
    for name in _core.named_kinds():
        assert getattr(mf.activations, name) == mf.activations.get(name)


def test_what_the_core_knows_of_an_activation_is_true():
    z = np.linspace(0.1, 7.0, 20)
    for kind in mf.activations.KINDS:
        arguments = {"coefficients": [0.0, 1.0, 0.0, 0.5]}
        if kind == "piecewise_linear":
            arguments = {"knots": [-1.0, 2.0], "values": [1.0, 3.0]}
        if kind == "expression":
            arguments = {"text": "exp(-(z - 1)**2)"}  # its degree is not known: a bounded one
        sigma = mf.activations.from_config(
            {"kind": kind, **({} if kind in _core.named_kinds() else arguments)}
        )
        known = sigma._core.facts
        # To rounding; functions of size 1 without parity miss it by more than 0.1.
        gaps = {"even": np.abs(sigma(-z) - sigma(z)).max(), "odd": np.abs(sigma(-z) + sigma(z)).max()}
        assert {parity for parity, gap in gaps.items() if gap < 1e-12} == {known.parity} - {"none"}, kind
        assert known.parity != "none" or min(gaps.values()) > 0.1, kind
        # |σ(t)| ≤ C(1 + |t|^degree) with the C of a moderate t.
        t = np.array([-1e6, *np.linspace(-30.0, 30.0, 7), 1e6])
        size = np.abs(sigma(t)) / (1 + np.abs(t) ** known.degree)
        assert size.max() <= 2 * size[1:-1].max(), kind
        # Strips: 0 with knots; polynomials need none.
        assert (known.strip > 0) == (sigma.pieces is None and not known.is_polynomial), kind


# ---------------------------------------------------------------- a data law


@dataclass(frozen=True, eq=False, repr=False)
class HalfSpaces(DataLaw):
    """y = sign x₁, x ~ N(0, I_d)."""

    d: float

    def __post_init__(self):
        set_field(self, "d", dimension(self.d, infinite=True))

    def _make_sampler(self, d):
        return _core.multi_index("gaussian", d, _core.python_link(1, _sign))

    def _symmetry(self):
        return Symmetry(("s1",), (Radius("r", self.d - 1),), (Part(1.0, (1.0, 1.0), _sign),))

    def _split(self):
        return Split(1, False, ("s1",), "r")


def _sign(z):
    return np.sign(z[:, 0])


def test_a_data_law_brings_its_samples_coordinates_and_nodes(monkeypatch):
    monkeypatch.setitem(KINDS, "HalfSpaces", HalfSpaces)  # the list
    law = HalfSpaces(8)
    assert mf.data.from_config({"kind": "HalfSpaces", "d": 8}) == law
    X, y = law.draw(100, 0)
    assert (y == np.sign(X[:, 0])).all()
    tanh, start = mf.Network(mf.activations.tanh), mf.init.Radial(0.5)
    assert mf.Model(HalfSpaces(np.inf), tanh, start).reduce().coordinates == ("s1", "r")
    risks = [
        mf.solve(mf.Model(data, tanh, start), mf.Atoms(20), horizon=0.5, rng=0).risk
        for data in (law, mf.data.MultiIndex(8, _sign, 1))
    ]
    assert np.array_equal(*risks)
    assert set(projections(law)) == {"s1", "r"}


# ---------------------------------------------------------------- a rung


@dataclass(frozen=True)
class Shrink:
    """θ(t) = e^{−t}θ(0): ridge alone."""

    neurons: int

    def begin(self, model, seed, threads):
        return ShrinkRung(self, model_of(model), seed)


class ShrinkRung:
    reduced = None

    def __init__(self, method, model, seed):
        self.t = 0.0
        self._theta = np.ones((method.neurons, int(model.row)))

    def advance(self, t, seconds):
        self._theta *= np.exp(self.t - t)
        self.t = t
        return Ended(End.reached)

    def measure(self):
        return self._theta.copy()

    def state(self):
        return {"t": np.array(self.t), "theta": self._theta.copy()}

    def restore(self, state):
        self.t, self._theta = float(state["t"]), state["theta"].copy()

    def meta(self):
        return {}


def test_a_rung_is_a_method_and_its_run(monkeypatch, tmp_path):
    monkeypatch.setitem(registry._CLASSES, "Shrink", Shrink)  # what @configurable does
    model = mf.Model(mf.data.IsotropicGaussians(3, 0.5), mf.Network(mf.activations.relu), mf.init.Radial(0.5))
    arguments = {"model": model, "method": Shrink(4), "horizon": 1.0, "save_at": [0.0, 0.5, 1.0]}
    run = mf.solve(**arguments)
    np.testing.assert_allclose(run.final, np.exp(-1.0), rtol=1e-14)  # a few roundings
    assert run.risk[2] != run.risk[0]
    mf.save_config(arguments, tmp_path / "run.toml")
    assert mf.load_config(tmp_path / "run.toml")["method"] == Shrink(4)
    run.save(tmp_path / "run.npz")
    assert np.array_equal(mf.load(tmp_path / "run.npz").final, run.final)


# ---------------------------------------------------------------- a theory result


def test_a_theory_result_is_one_file_and_its_name(copy, use):
    (copy / "theory" / "_spread.py").write_text(
        textwrap.dedent('''
            """How far neurons are from each other."""

            from ..measures._measure import Cloud


            def spread(cloud: Cloud) -> float:
                """The variance of a cloud."""
                mean = cloud.weights @ cloud.points
                return float(cloud.weights @ ((cloud.points - mean) ** 2).sum(axis=1))
        '''),
        "utf-8",
    )
    first_page = copy / "theory" / "__init__.py"
    change(first_page, "from ._rates import", "from ._spread import spread\nfrom ._rates import")
    change(first_page, '    "zonal_spectrum",\n]', '    "spread",\n    "zonal_spectrum",\n]')
    shown = use(
        "-c",
        "import mfcore as mf; print(mf.theory.spread(mf.Cloud([0.0, 2.0])))",
    )
    assert float(shown) == 1.0


# ---------------------------------------------------------------- a figure

FIGURE = '''
"""A straight line.

Nobody, nowhere.
"""

from dataclasses import dataclass
from pathlib import Path

from ._panels import wide
from ._report import Report
from ._row import Row
from ._source import exact


@dataclass(frozen=True)
class Size:
    """What the quick run has less of."""

    points: int = 100


FULL, QUICK = Size(), Size(points=2)


def run(work, size):
    """The line and its slope."""
    figure, _, right = wide(1)
    right.plot(range(size.points), range(size.points))
    rows = [Row("slope", 1.0, 1.0, 1e-12, exact("Euclid"))]
    return Report(
        name="line", title="A line", caption="It is straight.", figure=figure, rows=rows, runs=work.runs
    )
'''


def test_a_figure_is_one_file_and_its_name(copy, use, tmp_path):
    (copy / "experiments" / "line.py").write_text(FIGURE, "utf-8")
    change(copy / "experiments" / "__init__.py", '    "three-atoms",\n', '    "three-atoms",\n    "line",\n')
    use("-m", "mfcore", "reproduce", "line", "--quick", "--out", tmp_path / "made")
    made = {file.suffix for file in (tmp_path / "made").iterdir()}
    assert {".png", ".svg", ".md", ".npz"} <= made
    assert "| slope |" in (tmp_path / "made" / "line").with_suffix(".md").read_text("utf-8")
