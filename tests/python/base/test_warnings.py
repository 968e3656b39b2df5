"""Every warning of mfcore points at the line of the user's code that has called it."""

import inspect
import re
import warnings
from pathlib import Path

import mfcore as mf
import pytest

START = mf.init.Gaussian(0.1)
EVEN = mf.Model(mf.data.MultiIndex(4, {(1, 1): 1.0}, 2), mf.Network(mf.activations.tanh), START)
MODEL = mf.Model(mf.data.IsotropicGaussians(4, 0.5), mf.Network(mf.activations.relu), START)


def here():
    """The number of the line that calls this."""
    return inspect.currentframe().f_back.f_lineno


def one_of_three(x):
    if x == 2:
        raise RuntimeError("two is not wanted")
    return float(x)


def even():
    return mf.solve(EVEN, mf.SGD(3, 0.1), horizon=0.1, rng=0), here()


def by_heart():
    data = mf.data.MultiIndex(10, [0.0, 1.0, 1.0], 1)
    model = mf.Model(data, mf.Network(mf.activations.relu, output="trained"), mf.init.Gaussian(0.5))
    few = mf.GD(50, 0.05, expectation=mf.MonteCarlo(40, rng=0))
    return mf.solve(model, few, horizon=40.0, save_at=[40.0], rng=0), here()


def some_cases_fail():
    return mf.sweep(one_of_three, [{"x": 1}, {"x": 2}, {"x": 3}], workers=1), here()


@pytest.mark.parametrize("case", [even, by_heart, some_cases_fail])
def test_a_warning_points_at_the_line_of_the_call(case):
    with pytest.warns(UserWarning, match="target is even|learned by heart|1 of 3 cases failed") as caught:
        _, line = case()
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_so_does_one_about_a_checkpoint(tmp_path):
    def replace(neurons):
        (tmp_path / "run.npz").unlink(missing_ok=True)
        (tmp_path / "run.npz").write_bytes(b"of somebody else")
        return 0.0

    method, file = mf.SGD(3, 0.1), tmp_path / "run.npz"
    with pytest.warns(RuntimeWarning, match="another file has taken its place") as caught:
        line = mf.solve(MODEL, method, horizon=0.1, observe={"x": replace}, checkpoint=file) and here()
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_a_call_in_a_function_of_the_user_is_the_one_that_is_named():
    lines = []

    def inner(neurons):
        result, line = even()
        lines.append(line)
        return result.risk[-1]

    with pytest.warns(UserWarning, match="the target is even") as caught:
        mf.solve(MODEL, mf.SGD(3, 0.1), horizon=0.1, save_at=[0.1], observe={"x": inner})
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, lines[0])}


def test_no_other_file_warns_by_itself():
    package = Path(mf.__file__).parent
    calls = [file for file in package.rglob("*.py") if "warnings.warn(" in file.read_text("utf-8")]
    assert calls == [package / "_base" / "warn.py"]


def test_filters_by_module_see_the_module_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=re.escape(__name__))
        even()
    assert not caught
