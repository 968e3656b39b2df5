"""Runs of the limit stopped in the middle and resumed, or split among threads: the same bits."""

import math
import time

import mfcore as mf
import numpy as np
import pytest
from mfcore.atoms import _carried as carried
from mfcore.grids._fibres import NotSeparableError
from mfcore.grids._separable import Separable
from problems import isotropic

NOISE = {"temperature": 1e-3, "ridge": 0.1}
HEUN = mf.Atoms(200, method="heun", step=0.01)


def plane(**options):
    """Coordinates s1 and r, with few nodes."""
    law = mf.data.MultiIndex(20, [0.0, 1.0, 0.5], directions=1)
    model = mf.Model(law, mf.Network(mf.activations.softplus), mf.init.Gaussian(0.1), **options)
    return model.reduce(nodes=8)


CASES = {
    "PDE": (isotropic(320), mf.PDE(100), 1.0),
    "PDE, noisy": (isotropic(40, **NOISE), mf.PDE(100), 3.0),
    "PDE, plane": (plane(), mf.PDE(32), 3.0),
    "PDE, noisy plane": (plane(temperature=0.02, ridge=0.1), mf.PDE(32), 3.0),
    "Atoms": (isotropic(320), mf.Atoms(), 2.0),
    "Atoms, plane": (plane(), mf.Atoms(64), 3.0),
    "Atoms, stiff": (isotropic(40), mf.Atoms(64, method="lsoda"), 1.0),
    "Atoms, noisy": (isotropic(40, **NOISE), HEUN, 1.0),
    "JKO": (isotropic(40), mf.JKO(0.01, count=100), 1.0),
    "JKO, noisy": (isotropic(40, **NOISE), mf.JKO(0.01, count=100), 1.0),
    "JKO, plane": (plane(), mf.JKO(0.1, count=40), 1.5),
    "Nonlinear": (isotropic(40), mf.Nonlinear(30), 1.0),
    "Nonlinear, PDE": (isotropic(40), mf.Nonlinear(30, mf.PDE(64)), 0.5),
    "Nonlinear, JKO": (isotropic(40), mf.Nonlinear(30, mf.JKO(0.01, count=50), step=0.02), 1.0),
    "Nonlinear, noisy": (isotropic(40, **NOISE), mf.Nonlinear(30, HEUN, step=0.01), 1.0),
}
GROWN = {"PDE", "PDE, noisy", "PDE, plane", "PDE, noisy plane"}


def same(one, other):
    """Whether two runs are, bit by bit."""
    arrays = isinstance(one.final, np.ndarray)
    equal = np.array_equal(one.final, other.final) if arrays else one.final == other.final
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("t", "risk", "error")]
    pairs += [(values, other.observed[name]) for name, values in one.observed.items()]
    return equal and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("name", CASES)
def test_a_run_stopped_by_ctrl_c_is_resumed_to_the_same_bits(name, tmp_path):
    """Ctrl-C comes while a save point at a time between steps is recorded, and again at the next one."""
    model, method, horizon = CASES[name]
    pressed = []

    def press(measure):
        if stops and len(pressed) < 2:
            pressed.append(1)
            raise KeyboardInterrupt
        return 0.0

    file, times = tmp_path / "run.npz", [0.37 * horizon, horizon]
    plan = {"horizon": horizon, "save_at": times, "rng": 1, "threads": 1, "observe": {"press": press}}
    stops = False
    whole = mf.solve(model, method, **plan)
    assert whole.status == "completed"
    assert name not in GROWN or whole.meta["grown"] > 0
    stops = True
    part = mf.solve(model, method, **plan, checkpoint=file)
    assert part.status == "interrupted"
    assert 0 < part.meta["t"] < horizon
    for _ in range(2):
        part = mf.resume(file, model=model, threads=2, observe={"press": press})
    assert len(pressed) == 2
    assert part.status == "completed"
    assert same(part, whole)
    counts = {"steps", "rejected", "evaluations", "grown", "iterations"} & set(whole.meta)
    assert {key: part.meta[key] for key in counts} == {key: whole.meta[key] for key in counts}


@pytest.mark.parametrize("name", CASES)
def test_a_run_out_of_time_is_resumed_to_the_same_bits(name, tmp_path):
    model, method, horizon = CASES[name]
    file = tmp_path / "run.npz"

    def slow(_):
        time.sleep(0.03)  # so that most of the time goes between save points, however long preparations take
        return 0.0

    plan = {"horizon": horizon, "save_at": np.linspace(0, horizon, 20), "rng": 1, "threads": 1}
    begun = time.monotonic()
    whole = mf.solve(model, method, **plan, observe={"slow": slow})
    limit, part, times = 0.1 * (time.monotonic() - begun), None, []
    while part is None or part.status != "completed":
        try:
            if part is None:
                part = mf.solve(
                    model, method, **plan, observe={"slow": slow}, checkpoint=file, max_seconds=limit
                )
            else:
                part = mf.resume(file, model=model, observe={"slow": slow}, max_seconds=limit)
            assert part.status in ("out of time", "completed")
            times.append(part.meta["t"])
        except TimeoutError:  # in the preparation, which is done again each time
            pass
        limit *= 1.2
    assert any(0 < t < horizon for t in times)
    assert same(part, whole)


@pytest.mark.parametrize("step", [None, 0.05])
def test_densities_are_restored_wherever_they_are(step):
    """Also before the first step on a grid that has just grown, whose size is that of the last one."""
    model, method = isotropic(40, **NOISE), mf.PDE(64, step=step)
    whole, part = method.begin(model, 0, 1), method.begin(model, 0, 1)
    for t in np.linspace(0.0, 2.0, 41)[1:]:
        assert part.advance(t, math.inf).reached
        again = method.begin(model, 0, 1)
        again.restore(part.state())
        assert again.t == part.t
        part = again
    assert whole.advance(2.0, math.inf).reached
    assert whole.meta()["grown"] > 0
    assert part.measure() == whole.measure()
    assert part.risk() == whole.risk()
    assert part.meta() == whole.meta()


def soft_radii():
    law = mf.data.AnisotropicGaussians(d=math.inf, delta=0.5, fraction=0.2)
    return mf.Model(law, mf.Network(mf.activations.softplus), rates={"w": 3.0}).reduce()


def test_atoms_whose_features_cease_to_be_separable_go_on_to_the_same_bits(monkeypatch):
    """The first box has separable features, the next one has none; and back to the first."""
    monkeypatch.setattr(carried, "_DEAR", 0)
    build, boxes = Separable.build, []

    def once(reduced, box, **options):
        boxes.append(box)
        if len(boxes) > 1 and not np.array_equal(box, boxes[0]):
            raise NotSeparableError("as the test wants it")
        return build(reduced, box, **options)

    monkeypatch.setattr(Separable, "build", once)
    method = mf.Atoms(start=mf.Cloud([[0.1, 0.2], [0.2, 0.1], [0.15, 0.15]]))
    rung = method.begin(soft_radii(), 0, 1)
    assert rung.advance(0.1, math.inf).reached
    early = rung.state()
    assert rung.advance(30.0, math.inf).reached
    assert len(boxes) > 1
    late, measure = rung.state(), rung.measure()
    again = method.begin(soft_radii(), 0, 1)
    for state in (late, early, late):  # forwards, back, and forwards again
        again.restore(state)
    assert again.measure() == measure
    assert again.advance(40.0, math.inf).reached
    assert rung.advance(40.0, math.inf).reached
    assert again.measure() == rung.measure()
    again.restore(early)
    assert again.advance(40.0, math.inf).reached
    assert again.measure() == rung.measure()


RADII = np.random.default_rng(0).uniform(0.1, 1.0, (5000, 1))
PAIRS = np.random.default_rng(1).uniform(0.1, 1.0, (5000, 2))
LARGE = {
    "Atoms": (isotropic(320), mf.Atoms(start=mf.Cloud(RADII)), 0.1),
    "Atoms, plane": (plane(), mf.Atoms(start=mf.Cloud(PAIRS)), 0.1),
    "Atoms, noisy": (isotropic(40, **NOISE), mf.Atoms(5000, method="heun", step=0.01), 0.05),
    "PDE": (isotropic(320), mf.PDE(5000, step=1e-6), 2e-5),
    "PDE, plane": (plane(), mf.PDE((200, 200), error=False), 0.05),
    "PDE, noisy plane": (plane(temperature=0.02, ridge=0.1), mf.PDE((200, 200), error=False), 0.05),
    "JKO": (isotropic(320), mf.JKO(0.01, start=mf.Cloud(RADII)), 0.03),
    "JKO, noisy": (isotropic(40, **NOISE), mf.JKO(0.01, count=4000), 0.03),
    "JKO, plane": (plane(), mf.JKO(0.05, start=mf.Cloud(PAIRS[:1000])), 0.1),
    "Nonlinear": (isotropic(40), mf.Nonlinear(3000), 0.1),
    "Nonlinear, noisy": (
        isotropic(40, **NOISE),
        mf.Nonlinear(3000, mf.Atoms(3000, method="heun", step=0.01), step=0.01),
        0.02,
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_threads_change_no_bit_of_large_problems(name):
    model, method, horizon = LARGE[name]
    one, *others = (
        mf.solve(model, method, horizon=horizon, save_at=[horizon], rng=2, threads=n) for n in (1, 2, 3)
    )
    assert one.status == "completed"
    assert all(same(one, other) for other in others)
