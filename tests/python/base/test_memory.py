"""Requests beyond memory are refused at once, with the argument and an estimate."""

import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore._base import check, free_memory

NET = mf.Network(mf.activations.relu)
LAW = mf.data.IsotropicGaussians(d=40, delta=0.5)
MODEL = mf.Model(LAW, NET, mf.init.Radial(0.5))
STAIRS = mf.Model(mf.data.Staircase(20, [(0,), (0, 1)]), NET, mf.init.Radial(0.5))
NOISY = MODEL.replace(temperature=1e-3, ridge=0.1)
ROWS = np.ones((1_000_000, 40))
TIMES = np.linspace(0.0, 1.0, 10**6)
WIDE = np.lib.stride_tricks.as_strided(np.ones(40), (10**10, 40), (0, 8))  # 320 bytes that look like 3 TB


def run(method, model=MODEL, **options):
    return mf.solve(model, method, horizon=1.0, rng=0, **options)


REQUESTS = {
    "save_at": lambda: run(mf.SGD(10, 0.1), save_at=10**11),
    "keep": lambda: run(mf.SGD(100_000, 0.1), save_at=10**6, keep="all"),
    "neurons of SGD": lambda: run(mf.SGD(10**12, 0.1)),
    "neurons of GD": lambda: run(mf.GD(10**12, 0.1)),
    "neurons of Particles": lambda: run(mf.Particles(10**12)),
    "neurons of Nonlinear": lambda: run(mf.Nonlinear(10**12)),
    "neurons of a driver": lambda: run(mf.Nonlinear(10, mf.Particles(10**12))),
    "replicas": lambda: run(mf.SGD(10, 0.1, replicas=10**10)),
    "batch": lambda: run(mf.SGD(10, 0.1, batch=10**12)),
    "method": lambda: run(mf.Particles(100_000, method="lsoda")),
    "count of noisy atoms": lambda: run(mf.Atoms(10**12, method="heun", step=0.1), NOISY),
    "cells of gibbs": lambda: mf.gibbs(NOISY, cells=10**11),
    "cells of PDE": lambda: mf.PDE(cells=10**9),
    "n of draw": lambda: LAW.draw(10**13),
    "d": lambda: mf.data.IsotropicGaussians(d=10**14, delta=0.5).draw(1),
    "count of sample": lambda: mf.init.Gaussian(1.0).sample(NET, 40, 10**12),
    "n of a reduced law": lambda: MODEL.reduce().initial.sample(10**12),
    "theta of U": lambda: mf.U(MODEL, ROWS),
    "theta of estimate": lambda: mf.estimate(MODEL, ROWS, samples=10),
    "theta of V": lambda: mf.V(MODEL, WIDE),
    "X": lambda: mf.predict(MODEL, ROWS[:2], WIDE),
    "chunk": lambda: mf.estimate(MODEL, ROWS[:2], samples=10**15, chunk=10**13),
    "directions": lambda: mf.distance(ROWS[:9], 2 * ROWS[:9], method="sliced", directions=10**18),
    "cases": lambda: mf.sweep(math.sqrt, {"x": range(10**6), "y": range(10**6)}, workers=1),
    "samples of fourier": lambda: mf.theory.fourier(STAIRS, np.ones((3, 20)), [(0,)], samples=10**13),
    "batch of LayerWise": lambda: run(mf.LayerWise(4, 0.1, batch=10**13), STAIRS),
    "count of log_times": lambda: mf.log_times(1, 2, 10**12),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_beyond_memory_is_refused_at_once_and_names_its_argument(name):
    began = time.process_time()
    with pytest.raises(ValueError, match=rf"^{name.split()[0]} must (fit in memory|be <=)"):
        REQUESTS[name]()
    assert time.process_time() - began < 5  # nothing was filled: 0.9 s where SciPy is imported


def test_a_list_of_save_points_counts_like_their_number(monkeypatch):
    monkeypatch.setattr(free_memory, "free", lambda: 5e8)
    with pytest.raises(ValueError, match=r"^save_at must fit in memory, .* 1 GB or more$"):
        run(mf.SGD(10, 0.1), save_at=TIMES)


def test_the_message_has_what_is_free_and_what_is_needed(monkeypatch):
    monkeypatch.setattr(free_memory, "free", lambda: 23e9)
    words = "neurons must fit in memory, of which 23 GB are free, got 1000000000000: 320 TB or more"
    with pytest.raises(ValueError, match=f"^{words}$"):
        check.memory(320e12, "neurons", 10**12)


def test_what_fits_is_not_refused(monkeypatch):
    check.memory(free_memory.free() / 2, "n", 1)
    monkeypatch.setattr(free_memory, "free", lambda: 0.0)
    check.memory(1e6, "n", 1)  # too small to look


def test_a_large_bound_on_atoms_that_are_never_made_is_allowed():
    assert run(mf.Atoms(10**12)).status == "completed"


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_a_container_counts(version, tmp_path, monkeypatch):
    _, limit, used, cache = free_memory._CONTROL_GROUPS[2 - version]
    (tmp_path / limit).write_text("1000\n")
    (tmp_path / used).write_text("700\n")
    (tmp_path / "memory.stat").write_text(f"anon 500\n{cache.decode()} 150\n")
    monkeypatch.setattr(free_memory, "_CONTROL_GROUPS", ((str(tmp_path), limit, used, cache),))
    assert free_memory.free() == 450


def test_a_machine_that_tells_nothing_has_enough(monkeypatch):
    monkeypatch.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(OSError()))
    monkeypatch.delattr("os.sysconf")
    monkeypatch.setattr("resource.getrlimit", lambda _: (free_memory.resource.RLIM_INFINITY,) * 2)
    assert free_memory.free() == float("inf")
