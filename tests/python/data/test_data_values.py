"""Data laws as values: streams from outside, d = inf, configuration files, equality, misuse."""

from __future__ import annotations

import copy
import math
import pickle
import tomllib

import numpy as np
import pytest
import tomli_w
from mfcore import activations, data
from mfcore.network import Network
from problems import product, source

COV = np.diag(np.arange(1.0, 8.0)) + 0.3
TEACHER = Network(activations.tanh, output="trained", bias="trained")


LAWS = {
    "isotropic": data.IsotropicGaussians(7, 0.5),
    "anisotropic": data.AnisotropicGaussians(7, 0.3, s0=3),
    "anisotropic basis": data.AnisotropicGaussians(7, 0.3, basis=np.eye(7)[:, 2:4]),
    "hermite": data.MultiIndex(7, {(0, 0): 0.5, (2, 1): -0.7}, 2, noise=0.2),
    "hermite directions": data.MultiIndex(7, [0.0, 1.0, 0.5], np.eye(7)[3:4]),
    "callable": data.MultiIndex(7, product, 2, noise=0.1),
    "fourier": data.MultiIndex(7, {(): 0.25, (0, 2): 1.0}, 3, inputs="hypercube", noise=0.1),
    "sphere": data.MultiIndex(7, {(1, 1): 1.0}, 2, inputs="sphere"),
    "staircase": data.Staircase(7, [(0,), (0, 1), (0, 1, 2)]),
    "teacher": data.Teacher(TEACHER, np.arange(18.0).reshape(2, 9)),
    "linear": data.Linear(np.arange(7.0), noise=0.5),
    "linear cov": data.Linear(np.arange(7.0), COV, 0.5),
    "linear scaled": data.Linear(np.arange(7.0), 4.0),
    "dataset": data.Dataset(np.arange(77.0).reshape(11, 7), np.arange(11.0)),
    "stream": data.Stream(source),
}


# --- streams -----------------------------------------------------------------------------------------------


def test_a_stream_asks_for_blocks_and_keeps_the_last_one():
    asked = []

    def counting(n, rng):
        asked.append(n)
        return source(n, rng)

    law = data.Stream(counting, d=7)
    assert asked == []
    for first in range(0, 512, 32):
        law.draw(32, rng=0, first=first)
    assert asked == [256, 256]
    assert not law._sampler.concurrent


def test_errors_of_the_source_reach_the_caller():
    def broken(n, rng):
        raise KeyError("disk is full")

    with pytest.raises(KeyError, match="disk is full"):
        data.Stream(broken, d=3).draw(2, rng=0)


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (np.zeros(3), TypeError, "source must return a pair"),
        ((np.zeros((256, 2)), np.zeros(256)), ValueError, r"X of the source must have shape \(256, 3\)"),
        ((np.zeros((256, 3)), np.zeros(255)), ValueError, r"y of the source must have shape \(256,\)"),
        ((np.zeros((256, 3)), np.full(256, np.nan)), ValueError, "y of the source must be finite, got nan"),
    ],
)
def test_batches_of_a_stream_are_checked(result, error, message):
    with pytest.raises(error, match=message):
        data.Stream(lambda n, rng: result, d=3).draw(2, rng=0)


# --- infinite dimension, configuration, values -------------------------------------------------------------


def infinite_laws():
    return [
        data.IsotropicGaussians(math.inf, 0.5),
        data.AnisotropicGaussians(math.inf, 0.5, fraction=0.2),
        data.MultiIndex(math.inf, {(1, 1): 1.0}, 2),
        data.Staircase(math.inf, {(0,): 1.0, (0, 1): 0.5}),
    ]


@pytest.mark.parametrize("law", infinite_laws(), ids=lambda law: type(law).__name__)
def test_nothing_can_be_drawn_in_infinite_dimension(law):
    with pytest.raises(
        ValueError, match=r"d must be finite to draw samples, got d=inf .*only the reduced rungs"
    ):
        law.draw(3, rng=0)
    assert law.target_power() is not None


CALLABLE = {"callable", "stream"}
WRITABLE = [law for name, law in LAWS.items() if name not in CALLABLE] + infinite_laws()


@pytest.mark.parametrize("law", WRITABLE, ids=repr)
def test_a_law_survives_toml(law):
    text = tomli_w.dumps(law._to_config())
    back = data.from_config(tomllib.loads(text))
    assert back == law
    assert type(back.d) is type(law.d)


@pytest.mark.parametrize("name", sorted(CALLABLE))
def test_callables_cannot_be_written_down(name):
    with pytest.raises(ValueError, match="is a callable and cannot be written to TOML"):
        LAWS[name]._to_config()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "Isotropic", "d": 3}, "did you mean 'IsotropicGaussians'"),
        ({"kind": "IsotropicGaussians", "d": 3, "detla": 0.5}, "did you mean 'delta'"),
        ({"kind": "IsotropicGaussians", "d": 3}, "IsotropicGaussians must be given delta"),
        ({"d": 3}, "kind of data must be one of"),
    ],
)
def test_mistakes_in_a_configuration_are_named(config, message):
    with pytest.raises(ValueError, match=message):
        data.from_config(config)


@pytest.mark.parametrize("name", list(LAWS))
def test_pickles_and_copies_are_equal_and_draw_the_same(name):
    law = LAWS[name]
    law.draw(2, rng=0)  # a law that has been used carries compiled parts, which do not travel
    for twin in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law)):
        assert twin == law
        assert hash(twin) == hash(law)
        assert np.array_equal(twin.draw(5, rng=1)[0], law.draw(5, rng=1)[0])


def test_laws_are_equal_when_their_arguments_mean_the_same():
    assert data.AnisotropicGaussians(10, 0.5, s0=3) == data.AnisotropicGaussians(10, 0.5, fraction=0.3)
    assert data.MultiIndex(4, [0, 1.0], 1) == data.MultiIndex(4, {(0,): 0, (1,): 1}, 1)
    assert data.Staircase(5, [(1, 0)]) == data.Staircase(5, {(0, 1): 1}) == data.Staircase(5, [[0, 1]])
    assert data.Linear([1, 2]) == data.Linear(np.array([1.0, 2.0]))
    assert data.Linear([1, 2]) != data.Linear([1, 3])
    assert data.IsotropicGaussians(4, 0.5) != data.IsotropicGaussians(5, 0.5)
    assert data.IsotropicGaussians(4, 0.5) != data.AnisotropicGaussians(4, 0.5, s0=4)


def test_laws_do_not_change_with_the_arrays_they_were_made_of():
    w = np.array([1.0, 2.0])
    law = data.Linear(w)
    w[0] = 5.0
    assert law.w[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        law.w[0] = 3.0


def test_a_repr_shows_what_matters_on_one_line():
    assert repr(LAWS["dataset"]) == "Dataset(X=<array 11×7>, y=<array 11>)"
    assert repr(LAWS["callable"]) == "MultiIndex(d=7, link=product, directions=2, noise=0.1)"
    assert repr(LAWS["linear cov"]) == "Linear(w=<array 7>, cov=<array 7×7>, noise=0.5)"
    assert repr(data.IsotropicGaussians(math.inf, 0.5)) == "IsotropicGaussians(d=inf, delta=0.5)"


def test_a_staircase_is_a_multi_index_on_the_hypercube():
    law = data.Staircase(6, [(0,), (0, 1)])
    twin = data.MultiIndex(6, {(0,): 1.0, (0, 1): 1.0}, 2, inputs="hypercube")
    assert isinstance(law, data.MultiIndex)
    assert (law.P, law.directions, law.inputs, law.noise) == (2, 2, "hypercube", 0.0)
    for mine, theirs in zip(law.draw(20, rng=0), twin.draw(20, rng=0), strict=True):
        assert np.array_equal(mine, theirs)


# --- misuse ------------------------------------------------------------------------------------------------

SKEW = np.array([[2.0, 0.5], [0.4, 2.0]])
MISUSE = [
    (lambda: data.IsotropicGaussians(0, 0.5), "d must be >= 1, got 0"),
    (lambda: data.IsotropicGaussians(2.5, 0.5), "d must be an integer, got 2.5"),
    (lambda: data.IsotropicGaussians(3, 1.0), "delta must be .*< 1, got 1.0"),
    (lambda: data.IsotropicGaussians(3, -0.1), "delta must be >= 0.*, got -0.1"),
    (lambda: data.IsotropicGaussians(3, math.nan), "delta must be finite.*, got nan"),
    (lambda: data.AnisotropicGaussians(3, 0.5), "exactly one of s0 and fraction must be given, got neither"),
    (lambda: data.AnisotropicGaussians(3, 0.5, s0=1, fraction=0.5), "exactly one of s0 and fraction"),
    (lambda: data.AnisotropicGaussians(3, 0.5, s0=4), "s0 must be <= d = 3, got 4"),
    (
        lambda: data.AnisotropicGaussians(10, 0.5, fraction=0.25),
        "fraction must make .* whole .*got 0.25 with d=10",
    ),
    (lambda: data.AnisotropicGaussians(10, 0.5, fraction=1.5), "fraction must be .*<= 1, got 1.5"),
    (
        lambda: data.AnisotropicGaussians(math.inf, 0.5, s0=3),
        "fraction alone must give the subspace when d=inf",
    ),
    (
        lambda: data.AnisotropicGaussians(3, 0.5, basis=np.ones((3, 1))),
        "basis must have orthonormal columns .*1e-10",
    ),
    (
        lambda: data.AnisotropicGaussians(3, 0.5, basis=np.eye(2)),
        r"basis must have shape \(3, any\), got \(2, 2\)",
    ),
    (
        lambda: data.AnisotropicGaussians(3, 0.5, s0=1, basis=np.eye(3)),
        "basis must have s0 = 1 columns, got 3",
    ),
    (lambda: data.MultiIndex(3, [1.0], 4), "directions must be <= d = 3, got 4"),
    (lambda: data.MultiIndex(3, [1.0], 0), "directions must be >= 1, got 0"),
    (
        lambda: data.MultiIndex(3, [1.0], np.ones((1, 3))),
        "directions must have orthonormal rows to within 1e-10",
    ),
    (lambda: data.MultiIndex(math.inf, [1.0], np.eye(3)), "directions must be a count when d=inf"),
    (lambda: data.MultiIndex(3, [1.0], 1, noise=-1.0), "noise must be >= 0, got -1.0"),
    (
        lambda: data.MultiIndex(3, [1.0], 1, inputs="hypercub"),
        "inputs must be one of .*did you mean 'hypercube'",
    ),
    (lambda: data.MultiIndex(3, [1.0], 2), "link must be a callable or a dict for P > 1"),
    (
        lambda: data.MultiIndex(3, [1.0], 1, inputs="hypercube"),
        "link must be a callable or a dict for inputs=",
    ),
    (lambda: data.MultiIndex(3, {(1,): 1.0}, 2), r"degrees must have length P = 2, got \(1,\)"),
    (lambda: data.MultiIndex(3, {(-1,): 1.0}, 1), r"degree of \(-1,\) must be >= 0, got -1"),
    (lambda: data.MultiIndex(3, {(1,): math.nan}, 1), r"link\[\(1,\)\] must be finite, got nan"),
    (
        lambda: data.MultiIndex(3, {(2,): 1.0}, 2, inputs="hypercube"),
        r"coordinates must be < P = 2, got \(2,\)",
    ),
    (lambda: data.MultiIndex(3, lambda z: z, 2), r"link must map shape \(2, 2\) to \(2,\), got \(2, 2\)"),
    (lambda: data.MultiIndex(3, {}, 1), "link must have at least one coefficient"),
    (lambda: data.Staircase(3, [(0, 0)]), r"must not repeat a coordinate, got \(0, 0\)"),
    (lambda: data.Staircase(3, [(-1,)]), r"coordinates must be >= 0, got \(-1,\)"),
    (lambda: data.Staircase(3, [(0, 1), (1, 0)]), r"must name every monomial once, got \(0, 1\) twice"),
    (lambda: data.Staircase(3, [(0,), (0, 3)]), r"coordinates must be < d = 3, got \(0, 3\)"),
    (lambda: data.Staircase(3, [()]), "monomials must hold one with a coordinate"),
    (lambda: data.Teacher(TEACHER, np.zeros((2, 2))), "theta must have at least 3 columns, got 2"),
    (lambda: data.Linear([1.0, math.inf]), r"w must be finite, got inf at \[1\]"),
    (
        lambda: data.Linear([1.0, 2.0], SKEW),
        r"cov must be symmetric, got 0.5 at \[0, 1\] and 0.4 at \[1, 0\]",
    ),
    (
        lambda: data.Linear([1.0, 2.0], np.ones((2, 2))),
        "cov must be positive definite, got smallest eigenvalue",
    ),
    (lambda: data.Linear([1.0, 2.0], np.eye(3)), r"cov must have shape \(2, 2\), got \(3, 3\)"),
    (lambda: data.Linear([1.0], 0.0), "cov must be > 0, got 0.0"),
    (lambda: data.Dataset(np.eye(3), np.ones(2)), "y must have one label for each of the 3 rows of X, got 2"),
    (lambda: data.Dataset([[math.nan]], [1.0]), r"X must be finite, got nan at \[0, 0\]"),
    (lambda: LAWS["isotropic"].draw(0), "n must be >= 1, got 0"),
    (lambda: LAWS["isotropic"].draw(3, first=-1), "first must be >= 0, got -1"),
    (lambda: data.Linear([1.0], noise=math.inf), "noise must be finite"),
]


@pytest.mark.parametrize(("make", "message"), MISUSE, ids=[message for _, message in MISUSE])
def test_misuse_names_argument_rule_and_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.Teacher("relu", np.zeros((2, 2))), "network must be a Network, got 'relu'"),
        (lambda: data.MultiIndex(3, "z", 1), "link must be a callable, a dict or a sequence"),
        (lambda: data.MultiIndex(3, {1: 1.0}, 1), "link must use tuples of degrees"),
        (lambda: data.Staircase(3, [0, 1]), "monomials must use tuples of coordinates"),
        (lambda: data.Staircase(3, 4), "monomials must be a sequence of tuples or a dict"),
        (lambda: data.Stream(3), "source must be a callable"),
        (lambda: data.Stream(lambda n: n), r"source must take two arguments \(n, rng\), got one .* \(n\)"),
        (lambda: data.IsotropicGaussians("3", 0.5), "d must be an integer, got '3'"),
    ],
)
def test_wrong_types_are_type_errors(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_link_that_is_not_finite_is_caught_when_it_happens():
    law = data.MultiIndex(3, lambda z: np.where(z[:, 0] > 1, math.inf, 0.0), 1)
    with pytest.raises(ValueError, match=r"link must return finite values, got inf at z = \["):
        law.draw(100, rng=0)


@pytest.mark.parametrize("scale", [1.0, 3.0])
@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "gelu", "silu", "sin", "linear"])
def test_the_power_of_a_teacher_is_that_of_its_labels(name, scale):
    network = Network(activations.get(name), output="trained", bias="trained", scale=scale)
    theta = np.random.default_rng(0).normal(size=(4, 5))
    law = data.Teacher(network, theta)
    _, y = law.draw(200_000, rng=1)
    error = np.square(y).std() / np.sqrt(len(y))
    assert law.target_power() == pytest.approx(np.square(y).mean(), abs=5 * error)  # odds 6e-7 a case
