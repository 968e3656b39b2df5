"""Importing mfcore chooses a level, leaves the process as it was, and survives forks."""

import os
import sys

import pytest
from mfcore import _core
from mfcore._core import _loader


def test_every_usable_level_imports_and_says_so(level, python):
    done = python("import mfcore; print(mfcore.build_info()['isa'])", MFCORE_ISA=level)
    assert done.stdout.strip() == level, done.stderr


def test_the_highest_usable_level_is_the_default(python):
    done = python("import mfcore; print(mfcore.build_info()['isa'])", MFCORE_ISA="")
    assert done.stdout.strip() == _loader.usable_levels()[-1], done.stderr


def test_an_unknown_level_is_refused_with_the_list_of_levels(python):
    done = python("from mfcore import _core", MFCORE_ISA="avx9")
    assert done.returncode != 0
    assert "MFCORE_ISA must be one of v2, v3, v4, generic, native, got 'avx9'" in done.stderr


def pretend(monkeypatch, machine, installed, wanted=""):
    """Let this process believe in another machine and another installation."""
    monkeypatch.setenv("MFCORE_ISA", wanted)
    monkeypatch.setattr(_loader._cpu, "levels", lambda: machine)
    monkeypatch.setattr(_loader, "_installed", lambda level: level in installed)


def test_a_level_that_is_not_installed_is_refused_with_the_command_that_builds_it(monkeypatch):
    pretend(monkeypatch, ["v2", "v3"], ["v2"], wanted="v3")
    message = f"MFCORE_ISA=v3 is not installed; usable here: v2. A build from source .* {_loader.BUILD_ALL}"
    with pytest.raises(ImportError, match=message):
        _loader.load()


def test_a_level_the_machine_lacks_is_refused_with_those_that_are_usable(monkeypatch):
    pretend(monkeypatch, ["v2"], ["v2", "v4"], wanted="v4")
    with pytest.raises(ImportError, match="MFCORE_ISA=v4 is not supported by this machine; usable here: v2"):
        _loader.load()


def test_a_machine_below_every_installed_level_is_told_what_to_do(monkeypatch):
    pretend(monkeypatch, ["v2", "v3"], ["v4"])
    message = "built for v4, and this machine supports v2, v3: build it here, or once for all machines with: "
    with pytest.raises(ImportError, match=message + _loader.BUILD_ALL):
        _loader.load()


def test_classes_and_functions_of_the_core_do_not_name_the_level():
    public = {name: value for name, value in vars(_core).items() if not name.startswith("_")}
    assert "build_info" in public
    for name, value in public.items():
        assert not callable(value) or value.__module__ == "mfcore._core", name


def test_the_import_leaves_what_is_slow_to_load_for_when_it_is_used(python):
    scipy = [f"scipy.{name}" for name in ("integrate", "ndimage", "optimize", "stats")]
    slow = [*scipy, "matplotlib", "xarray", "tqdm", "PIL"]
    done = python(f"import sys, mfcore; print([name for name in {slow!r} if name in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_subnormal_numbers_survive_the_import(python):
    # -ffast-math at link time would flush them for the whole process, NumPy included.
    code = """
import numpy as np
from mfcore import _core
_core.resolve_threads(2)
tiny = np.finfo(np.float64).smallest_subnormal * np.arange(1.0, 65.0)
assert (tiny > 0).all() and (tiny * 0.5 + tiny == tiny * 1.5).sum() >= 32
assert float(np.finfo(np.float64).tiny) / 2.0 > 0.0
assert np.finfo(np.float32).tiny / np.float32(2) > 0
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_child_forked_after_a_parallel_call_computes_the_same_on_one_thread(python):
    # The pool of the parent does not exist in the child: a second thread there would be waited for for ever.
    code = """
import os
import numpy as np
import mfcore as mf
from mfcore import _core

model = mf.Model(
    data=mf.data.IsotropicGaussians(d=40, delta=0.5),
    network=mf.Network(mf.activations.tanh),
    init=mf.init.Gaussian(std=0.1),
)
theta = model.init.sample(model.network, d=40, count=1000, rng=0)

def work():
    return mf.psi(model, theta, theta, expectation=mf.MonteCarlo(2000, rng=0), threads=3)

parent = work()
assert _core.resolve_threads(3) == 3
child = os.fork()
if child == 0:
    same = _core.resolve_threads(3) == 1 and np.array_equal(work(), parent)
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.array_equal(work(), parent)
"""
    done = python(code, PYTHONWARNINGS="ignore::DeprecationWarning")
    assert done.returncode == 0, done.stderr


SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters  # Python 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
import sys
sys.path[:0] = PATH
try:
    import mfcore
except ImportError as error:
    print(error)
    print([name for name in ("numpy", "scipy") if name in sys.modules], flush=True)
'''
interpreters.run_string(interpreters.create(), code.replace("PATH", repr(sys.path)))
import mfcore
print(mfcore.build_info()["version"] == mfcore.__version__)
"""


def test_a_sub_interpreter_is_refused_and_the_main_one_works_on(python):
    # It would wait for ever for what the main interpreter holds.
    done = python(SUB_INTERPRETER)
    assert done.stdout.splitlines() == [
        "mfcore must be imported by the main interpreter of a process, got a sub-interpreter: its compiled "
        "core and NumPy do not support them; use processes",
        "[]",
        "True",
    ], done.stderr


def test_two_levels_never_share_a_process(python):
    done = python("import sys; from mfcore import _core; print(*sys.modules)")
    assert sum(name.startswith("mfcore._core._core_") for name in done.stdout.split()) == 1


def test_the_default_number_of_threads_is_the_environments_whatever_others_do(python):
    code = """
import mfcore as mf
from threadpoolctl import threadpool_limits
from mfcore import _core
with threadpool_limits(1):  # as libraries that share the OpenMP runtime do
    print(_core.resolve_threads(), _core.resolve_threads(5))
"""
    for wanted, default in (("3", "3"), ("2,1", "2")):
        done = python(code, OMP_NUM_THREADS=wanted)
        assert done.stdout.split() == [default, "5"], done.stderr


WORKER = """
import multiprocessing, os
import mfcore as mf

def threads():
    return mf.build_info()["threads"]

if __name__ == "__main__":
    with multiprocessing.get_context({start!r}).Pool(1) as pool:
        print(threads(), pool.apply(threads))
"""


@pytest.mark.parametrize(
    ("start", "environment", "expected"),
    [("spawn", "", "1"), ("forkserver", "", "1"), ("fork", "", "1"), ("spawn", "3", "3")],
)
def test_a_worker_of_a_pool_takes_one_thread_unless_the_environment_says_more(
    start, environment, expected, run, tmp_path
):
    script = tmp_path / "pool.py"
    script.write_text(WORKER.format(start=start))
    done = run(sys.executable, script, OMP_NUM_THREADS=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity can be set on Linux alone")
def test_a_process_that_may_use_one_core_takes_one_thread(python):
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import mfcore as mf; "
    done = python(code + "print(mf.build_info()['threads'])", OMP_NUM_THREADS="")
    assert done.stdout.split() == ["1"]
