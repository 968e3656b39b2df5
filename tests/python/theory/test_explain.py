"""`mf.explain` says what runs on a model, and what does not."""

import math

import mfcore as mf
import numpy as np
import pytest

RELU = mf.Network(mf.activations.relu)
INIT = mf.init.Gaussian(std=0.3)
METHODS = {"Atoms": mf.Atoms(), "PDE": mf.PDE(), "JKO": mf.JKO(0.1), "SGD": mf.SGD(10, step=0.1)}
MODELS = {
    "teacher": mf.Model(mf.data.Teacher(RELU, 3 * np.eye(3, 20)), RELU, INIT),
    "isotropic": mf.Model(mf.data.IsotropicGaussians(40, 0.5), RELU, INIT),
    "limit": mf.Model(mf.data.MultiIndex(math.inf, [0.0, 1.0], 1), RELU, mf.init.Radial(1.0)),
    "samples": mf.Model(mf.data.Dataset(np.eye(9), np.ones(9)), RELU, INIT),
    "noisy": mf.Model(mf.data.MultiIndex(9, [0.0, 1.0], 1), RELU, INIT, temperature=0.1),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_refused_is_what_a_run_would_say(name):
    found = mf.explain(MODELS[name])
    assert set(found.costs) | set(found.refused) == {"SGD", "GD", "Particles", "Atoms", "PDE", "JKO"}
    for method in ("SGD", "PDE", "JKO"):
        if method in found.refused and (name, method) != ("teacher", "JKO"):
            with pytest.raises((ValueError, TypeError)) as raised:
                mf.solve(MODELS[name], METHODS[method], horizon=1.0)
            if method != "SGD":
                assert str(raised.value) == found.refused[method]


def test_the_reduction_is_said_in_words():
    teacher = mf.explain(MODELS["teacher"])
    assert isinstance(teacher, mf.Explanation)
    assert teacher.reduction.startswith("closed forms of pairs in (s1, s2, s3, r), U averaged over 8 cosines")
    assert "(r) at" in mf.explain(MODELS["isotropic"]).reduction
    samples = mf.explain(MODELS["samples"])
    assert samples.coordinates == ()
    assert samples.reduction.startswith("none: data must have a symmetry")
    assert samples.costs["GD"] == "N neurons × 9 samples × 9 inputs"


def test_it_reads_line_by_line():
    lines = str(mf.explain(MODELS["limit"])).splitlines()
    assert lines[0].startswith("reduction: features in (s1, r) at ")
    assert any(line.startswith("mf.SGD does not run: d must be finite") for line in lines)
    assert any(line.startswith("mf.PDE: 200×200 cells") for line in lines)


def test_a_reduced_model_has_no_networks():
    found = mf.explain(MODELS["isotropic"].reduce())
    assert set(found.refused) == {"SGD", "GD", "Particles"}


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match=r"model must be an mf\.Model or mf\.ReducedModel"):
        mf.explain(3)
