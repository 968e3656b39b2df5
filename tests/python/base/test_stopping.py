"""Ctrl-C and time limits, in processes of their own: whatever is computed, it stops soon and in order."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import mfcore as mf
import numpy as np
import pytest
from mfcore._base import limits

MODEL = mf.Model(
    data=mf.data.IsotropicGaussians(d=3, delta=0.5),
    network=mf.Network(mf.activations.tanh),
    init=mf.init.Gaussian(std=1.0),
)
# Half a second is promised. What a child does after the signal is counted in seconds of the processor, which
# a busy machine hardly changes: in half a second two threads do at most one second of work, 0.64 in the
# longest case on a machine with load 8; five times as much is allowed.
THREADS, PROMISED, ALLOWED = 2, 0.5, 5.0

BEGIN = """
import math, os, signal, sys, threading, time
import numpy as np
import mfcore as mf
from mfcore import _core

def model_of(d, sigma=mf.activations.tanh, **network):
    network = mf.Network(sigma, **network)
    data = mf.data.IsotropicGaussians(d=d, delta=0.5)
    return mf.Model(data=data, network=network, init=mf.init.Gaussian(std=1.0))

def normals(*shape):
    return np.random.default_rng(0).standard_normal(shape) / math.sqrt(shape[-1])
"""

RUN = """
{setup}
print("ready", flush=True)
try:
    result = {call}
    print(getattr(result, "status", "finished"), flush=True)
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""


def child(script):
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
    command = [sys.executable, "-c", BEGIN + script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def worked(pid):
    """Seconds of the processor that a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


BEGUN = "save_at=[0.0], observe={'begun': lambda _: print('begun', flush=True) or 0.0}"


def interrupted(setup, call, after=0.4):
    """What a call ends with on Ctrl-C some seconds after its begin, and how much work that took."""
    with child(RUN.format(setup=setup, call=call)) as process:
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        assert process.stdout.readline() == "ready\n"
        if BEGUN in call:
            assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        before = worked(process.pid)
        process.send_signal(2)
        outcome = process.stdout.readline().strip()
        work = worked(process.pid) - before
        watchdog.cancel()
        process.kill()  # a solver of SciPy's goes on until it is done
    print(f"{call}: {outcome} after {work:.2f} s of work (promised: {THREADS * PROMISED})")
    return outcome, work


SCIPY = "import scipy.optimize, scipy.spatial"  # not while the signal comes
FUNCTIONS = {
    "exact U of erf": ("m, z = model_of(100, mf.activations.erf), normals(20_000, 100)", "mf.U(m, z)"),
    "exact U of relu": ("m, z = model_of(100, mf.activations.relu), normals(20_000, 100)", "mf.U(m, z)"),
    "exact U of tanh": ("m, z = model_of(100), normals(20_000, 100)", "mf.U(m, z)"),
    "potential of many neurons": ("m, z = model_of(100), normals(30_000, 100)", "mf.psi(m, z, z)"),
    "its gradient": ("m, z = model_of(100), normals(30_000, 100)", "mf.grad_psi(m, z, z)"),
    "potential of others": (
        "m, z, r = model_of(100), normals(30_000, 100), normals(30_001, 100)",
        "mf.psi(m, z, r)",
    ),
    "potential over samples": (
        "m, z = model_of(20), normals(1000, 20)",
        "mf.psi(m, z, z, expectation=mf.MonteCarlo(10**8, rng=0))",
    ),
    "predictions of many neurons": (
        "m, z, x = model_of(50), normals(1_000_000, 50), normals(3000, 50)",
        "mf.predict(m, z, x)",
    ),
    "samples": (
        "data = mf.data.IsotropicGaussians(d=3, delta=0.5)",
        "[data.draw(2 * 10**7, rng=0) for _ in range(9)]",
    ),
    "samples in one call": ("m = model_of(40)", "m.data._iid_sampler.draw(0, 0, 5 * 10**6)"),
    "random numbers": ("", "_core.normals(0, 'init', 0, 0, 4 * 10**8)"),
    "a permutation": ("", "_core.permutation(0, 'init', 0, 10**8)"),
    "smoothing": (
        "z = normals(10**7, 1).ravel()",
        "_core.smooth(mf.activations.tanh._core, z, abs(z))",
    ),
    "an activation": (
        "z = normals(10**8, 1).ravel()",
        "[_core.evaluate(mf.activations.gelu._core, z) for _ in range(9)]",
    ),
    "a reduction": (
        "r = model_of(20, mf.activations.tanh, bias='trained').reduce(); z = abs(normals(10**6, 2))",
        "r.features(np.resize(z, (10**5, len(r.coordinates))))",
    ),
    "the distance of many points": (
        f"{SCIPY}; z = normals(2, 5000, 20)",
        "mf.distance(*z)",
    ),
    "the distance of points with masses": (
        f"{SCIPY}; z = normals(2, 1500, 20); q = np.linspace(1, 2, 1500); q /= q.sum()",
        "mf.distance(mf.Cloud(z[0], q), z[1])",
    ),
    "the distance in many directions": (
        "z = normals(2, 200_000, 20)",
        "mf.distance(*z, method='sliced', directions=1000)",
    ),
    "eigenvalues of a large kernel": (
        "from mfcore import theory; import scipy.sparse.linalg; x = normals(4000, 10); z = normals(50, 10); "
        "m = model_of(10).replace(data=mf.data.Dataset(x, x[:, 0]))",
        "[theory.laziness(m, z) for _ in range(9)]",
    ),
    "directions from many samples": (
        "from mfcore import theory; x = normals(100_000, 400)",
        "[theory.filtered_pca(x, x[:, 0], 1) for _ in range(9)]",
    ),
    "output weights of many neurons": (
        "from mfcore import theory; m = model_of(20, output='fixed'); z = normals(5000, 21)",
        "[theory.second_layer(m, z, samples=10**5, rng=0) for _ in range(9)]",
    ),
    "ridge regression with many samples": (
        "from mfcore import theory; law = mf.data.MultiIndex(20, [0.0, 1.0], 1, inputs='sphere')",
        "theory.kernel_ridge(np.exp, law, samples=6000, test=50_000, rng=0)",
    ),
    "an estimate in its first chunk": (
        "m, z = model_of(20), normals(12_000, 20)",
        "mf.estimate(m, z, samples=10**6, rng=0)",
    ),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_ctrl_c_ends_a_long_call_soon(case):
    outcome, work = interrupted(*FUNCTIONS[case])
    assert outcome in ("KeyboardInterrupt", "interrupted")
    assert work < ALLOWED


RUNS = {
    "gradient descent of a million neurons": (
        "m = model_of(20); method = mf.GD(neurons=10**6, step=0.1)",
        f"mf.solve(m, method, horizon=1e3, rng=0, {BEGUN}, risk=False)",
    ),
    "stochastic gradient descent of very many": (
        "m = model_of(200); method = mf.SGD(neurons=200_000, step=1e-4)",
        f"mf.solve(m, method, horizon=1e3, rng=0, {BEGUN}, risk=False)",
    ),
    "the first layer of very many": (
        "m = model_of(200, output='fixed'); n = 20_000; t = np.column_stack([np.ones(n), normals(n, 200)]);"
        "m = m.replace(init=mf.init.Points(t)); method = mf.LayerWise(n, 0.1, batch=2000)",
        f"mf.solve(m, method, horizon=1e3, rng=0, {BEGUN}, risk=False)",
    ),
    "exact gradient descent": (
        "m = model_of(50, mf.activations.erf); method = mf.GD(neurons=20_000, step=0.1)",
        f"mf.solve(m, method, horizon=1e3, rng=0, {BEGUN}, risk=False)",
    ),
    "a risk at a save point": (
        "m = model_of(50, mf.activations.erf); method = mf.SGD(neurons=40_000, step=1e-3)",
        "mf.solve(m, method, horizon=1.0, rng=0, risk=mf.Exact(), observe={}, save_at=[0.0])",
    ),
    "a density": (
        "m = model_of(40, mf.activations.relu); method = mf.PDE(cells=2000)",
        f"mf.solve(m, method, horizon=1e9, {BEGUN})",
    ),
    "a density with noise": (
        "import dataclasses; m = dataclasses.replace(model_of(40), temperature=1e-3, ridge=0.1);"
        "method = mf.PDE(cells=2000, step=1e-6)",
        f"mf.solve(m, method, horizon=1e6, {BEGUN})",
    ),
    "atoms": (
        "m = model_of(40, mf.activations.relu); method = mf.Atoms(count=20_000, method='euler', step=1e-7)",
        f"mf.solve(m, method, horizon=1e6, rng=0, {BEGUN})",
    ),
    "minimising movements": (
        "m = model_of(40, mf.activations.relu); method = mf.JKO(tau=1e-5, count=1000)",
        f"mf.solve(m, method, horizon=1e3, {BEGUN})",
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_ctrl_c_ends_a_run_with_what_there_is(case):
    outcome, work = interrupted(*RUNS[case], after=1.5)
    assert outcome == "interrupted"
    assert work < ALLOWED


@pytest.mark.parametrize(("n", "m", "wait"), [(3000, 3000, 0.3), (300, 250, 0.05), (300, 250, 0.0)])
def test_a_process_ends_well_after_ctrl_c_in_the_solver_of_another_library(n, m, wait):
    script = f"""
{SCIPY}
x, y = normals({n}, 20), normals({m}, 20)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try: mf.distance(x, y); time.sleep(9)
except KeyboardInterrupt: print("stopped")
time.sleep({wait})
"""
    with child(script) as process:
        assert process.communicate(timeout=120)[0] == "stopped\n"
    assert process.returncode == 0


def test_ctrl_c_at_any_moment_after_the_start_returns_the_same_prefix():
    # Every save point is expensive here, and the signal comes at one of 12 moments of a run that takes
    # twice as long as the last of them.
    setup = (
        "m = model_of(30, mf.activations.erf); method = mf.SGD(neurons=800, step=1e-3); whole = None;"
        "import tempfile; file = tempfile.mktemp(suffix='.npz')"
    )
    call = """
def run():
    result = mf.solve(m, method, horizon=0.4, save_at=401, rng=0, risk=mf.Exact(), keep="all",
                      observe={"x": lambda theta: theta.sum()}, checkpoint=file)
    n = len(result.t)
    assert len(result.risk) == len(result.observed["x"]) == len(result.kept) == n, "a torn record"
    assert result.status == "interrupted", result.status
    assert os.path.exists(file)
    back = mf.resume(file, observe={"x": lambda theta: theta.sum()}, max_seconds=0)
    assert np.array_equal(back.risk, result.risk)
    assert np.array_equal(back.final, result.final)
    os.unlink(file)
    return result
"""
    script = BEGIN + setup + call + RUN.format(setup="", call="run()")
    for k in range(12):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.2 + 0.05 * k)
            process.send_signal(2)
            assert process.stdout.readline().strip() == "interrupted"


def test_ctrl_c_twice_leaves_a_checkpoint_that_can_be_resumed(tmp_path):
    file = tmp_path / "part.npz"
    setup = "m = model_of(30); method = mf.SGD(neurons=3000, step=1e-6)"
    call = f"mf.solve(m, method, horizon=1.0, rng=0, save_at=[0.0], checkpoint={str(file)!r})"
    with child(RUN.format(setup=setup, call=call)) as process:
        assert process.stdout.readline() == "ready\n"
        while not file.exists():
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(2)
        process.send_signal(2)
        assert process.stdout.readline().strip() in ("interrupted", "KeyboardInterrupt")
    assert mf.resume(file, max_seconds=0).status == "out of time"


def test_other_signal_handlers_pass_their_exceptions_through():
    script = """
def handler(*_): raise RuntimeError("from the handler")
m, z = model_of(100), normals(30_000, 100)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    mf.psi(m, z, z)
except RuntimeError as error:
    print(error)
"""
    with child(script) as process:
        assert process.communicate(timeout=60)[0] == "from the handler\n"


def test_ctrl_c_leaves_the_calls_of_other_threads_alone():
    script = """
m, z = model_of(20, mf.activations.erf), normals(4000, 20)
want, got = mf.psi(m, z, z), []
def work(): got.append(mf.psi(m, np.tile(z, (8, 1)), z))
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
try:
    big = normals(30_000, 20)
    mf.psi(m, big, big)
except KeyboardInterrupt:
    print("stopped")
for t in threads: t.join()
print([bool(np.allclose(g, np.tile(want, 8), rtol=1e-12)) for g in got])
"""
    with child(script) as process:
        assert process.communicate(timeout=60)[0] == "stopped\n[True, True]\n"


@pytest.mark.parametrize(("setup", "call"), RUNS.values(), ids=RUNS)
def test_max_seconds_ends_a_step_that_is_under_way(setup, call):
    call = call.replace(BEGUN, "save_at=[0.0]").removesuffix(")") + ", max_seconds=1.0)"
    script = (
        "{setup}\nbegun = time.process_time()\n"
        "try: status = {call}.status\nexcept TimeoutError: status = 'out of time'\n"
        "print(status, time.process_time() - begun)"
    )
    with child(script.format(setup=setup, call=call)) as process:
        status, work = process.communicate(timeout=60)[0].rsplit(maxsplit=1)
    print(f"{call}: {work} s of work")
    assert status == "out of time"
    assert float(work) < THREADS * 1.0 + ALLOWED


def test_max_seconds_covers_what_comes_before_the_first_step():
    limit = limits.Limit(0.0)
    time.sleep(0.6)  # more than the half second that what is under way may take longer
    said = []
    expected = "max_seconds = 0 passed while mfcore prepared features, before the run could begin"
    prepared = limits.preparing("features")
    with pytest.raises(TimeoutError, match=expected), limit.for_preparation(said.append), prepared:
        mf.V(MODEL, np.ones((2, 3)))
    assert said == ["the start of the run", "features"]
    mf.V(MODEL, np.ones((2, 3)))  # no longer


def test_a_run_whose_preparation_takes_too_long_is_a_timeout_that_says_what_took_long():
    calls = []

    def features(z):
        calls.append(len(z))
        time.sleep(0.05)
        return np.tanh(z.sum(axis=1, keepdims=True) + z[:, :1] * z[:, 1:])

    def gradients(z):
        return np.zeros((len(z), 1, 2))

    slow = mf.ReducedModel(
        coordinates=("a", "b"), weights=[1.0], targets=[0.5], features=features, gradients=gradients
    )
    start = mf.Density((np.linspace(0, 1, 9), np.linspace(0, 1, 9)), np.full((8, 8), 1 / 64))
    with pytest.raises(TimeoutError, match="max_seconds = 0 passed while mfcore prepared feat"):
        mf.solve(slow, mf.PDE(start=start), horizon=1.0, max_seconds=0)
    assert len(calls) <= 12  # half a second of sleep, what was under way, and one more


# A thread of the interpreter that is inside of the core, in one way or another, when the process ends.
DAEMON = """
m = model_of(30, mf.activations.relu)  # a target that tanh cannot learn would be a warning
def work():
    while True:
        {call}
threading.Thread(target=work, daemon=True).start()
time.sleep({delay})
"""
DAEMONS = {
    "solve": "mf.solve(m, mf.SGD(neurons=200, step=1e-7), horizon=1.0, save_at=[], rng=0)",
    "short calls": "mf.V(m, normals(50, 30))",
    "functions of the caller's": (
        "mf.solve(mf.Model(data=mf.data.MultiIndex(d=20, link=lambda z: z[:, 0] ** 2, directions=1),"
        " network=m.network, init=m.init), mf.SGD(neurons=50, step=1e-7, schedule=lambda t: 1 / (1 + t)),"
        " horizon=1.0, save_at=[], rng=0)"
    ),
    "gradient flow": "mf.solve(m, mf.Particles(neurons=2000), horizon=1e3, save_at=[], rng=0)",
}


@pytest.mark.parametrize("case", DAEMONS)
def test_a_process_ends_well_with_a_daemon_thread_in_the_core(case):
    codes = []
    for k in range(6):
        script = DAEMON.format(call=DAEMONS[case], delay=0.3 + 0.01 * k)
        process = subprocess.Popen([sys.executable, "-c", BEGIN + script], stderr=subprocess.PIPE, text=True)
        _, errors = process.communicate(timeout=60)
        assert errors == ""
        codes.append(process.returncode)
    assert codes == [0] * 6
