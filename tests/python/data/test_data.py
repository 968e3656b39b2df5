"""Data laws: samples by number, moments against closed forms, links against slow references."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import activations, data
from mfcore.data import _links
from mfcore.data._parts import HermiteLabel, NetworkLabel
from mfcore.network import Network
from problems import product, source
from scipy.special import eval_hermitenorm, factorial

ORTHOGONAL = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 7)))[0]
COV = np.diag(np.arange(1.0, 8.0)) + 0.3
THETA = np.random.default_rng(2).normal(size=(5, 9))
TEACHER = Network(activations.tanh, output="trained", bias="trained")
HERMITE = {(0, 0): 0.5, (1, 0): 1.0, (2, 1): -0.7, (0, 3): 0.4}
FOURIER = {(): 0.25, (0,): 1.0, (0, 1): -2.0, (0, 1, 2): 0.5}


def dataset():
    rng = np.random.default_rng(3)
    return data.Dataset(rng.normal(size=(11, 7)), rng.normal(size=11))


LAWS = {
    "isotropic": data.IsotropicGaussians(7, 0.5),
    "anisotropic": data.AnisotropicGaussians(7, 0.3, s0=3),
    "anisotropic basis": data.AnisotropicGaussians(7, 0.3, basis=ORTHOGONAL[:, :3]),
    "hermite": data.MultiIndex(7, HERMITE, 2, noise=0.2),
    "hermite directions": data.MultiIndex(7, HERMITE, ORTHOGONAL[:2]),
    "callable": data.MultiIndex(7, product, 2, noise=0.1),
    "hermite scaled": data.MultiIndex(7, HERMITE, ORTHOGONAL[:2], covariance=4.0),
    "hermite diagonal": data.MultiIndex(7, HERMITE, 2, covariance=np.arange(1.0, 8.0)),
    "callable cov": data.MultiIndex(7, product, ORTHOGONAL[:2], covariance=COV),
    "mixture": data.GaussianMixture(ORTHOGONAL[:3], [COV, 4.0, np.arange(1.0, 8.0)], [1.0, -1.0, 0.5]),
    "mixture diagonal": data.GaussianMixture(
        ORTHOGONAL[:2], [2.0, np.arange(1.0, 8.0)], [1.0, 0.0], [0.25, 0.75]
    ),
    "mixture isotropic": data.GaussianMixture([[1.0], [-2.0]], [1.0, 0.25], [1.0, -1.0], d=7),
    "fourier": data.MultiIndex(7, FOURIER, 3, inputs="hypercube", noise=0.1),
    "cube callable": data.MultiIndex(7, product, ORTHOGONAL[:2], inputs="hypercube"),
    "sphere": data.MultiIndex(7, HERMITE, ORTHOGONAL[:2], inputs="sphere"),
    "staircase": data.Staircase(7, [(0,), (0, 1), (0, 1, 2)]),
    "teacher": data.Teacher(TEACHER, THETA),
    "linear": data.Linear(np.arange(7.0), noise=0.5),
    "linear cov": data.Linear(np.arange(7.0), COV, 0.5),
    "linear scaled": data.Linear(np.arange(7.0), 4.0),
    "dataset": dataset(),
    "stream": data.Stream(source),
    "one dimension": data.MultiIndex(1, [0.0, 1.0, 0.5], 1, noise=0.1),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def mean_error_in_sigmas(samples, expected):
    """(mean − expected) in standard errors, entry by entry."""
    error = samples.std(axis=0) / math.sqrt(len(samples))
    gap = samples.mean(axis=0) - expected
    return np.where(np.abs(gap) < 1e-12, 0.0, gap / np.maximum(error, 1e-300))


def second_moments(x):
    i, j = np.triu_indices(x.shape[1])
    return x[:, i] * x[:, j]


# --- samples by number -------------------------------------------------------------------------------------


@every_law
@settings(max_examples=15, deadline=None)
@given(
    start=st.integers(0, 600),
    cuts=st.lists(st.integers(0, 80), min_size=1, max_size=3),
    seed=st.integers(0, 9),
)
def test_a_batch_may_be_cut_anywhere_without_changing_a_bit(law, start, cuts, seed):
    ends = [0, *sorted(cuts), 81]
    X, y = law.draw(81, rng=seed, first=start)
    for a, b in itertools.pairwise(ends):
        if a < b:
            x_piece, y_piece = law.draw(b - a, rng=seed, first=start + a)
            assert np.array_equal(x_piece, X[a:b])
            assert np.array_equal(y_piece, y[a:b])


@every_law
def test_threads_that_draw_at_the_same_time_get_the_same_bits(law):
    expected = law.draw(300, rng=5)
    with ThreadPoolExecutor(4) as pool:
        for X, y in pool.map(lambda _: law.draw(300, rng=5), range(8)):
            assert np.array_equal(X, expected[0])
            assert np.array_equal(y, expected[1])


@every_law
def test_another_seed_gives_other_samples(law):
    assert not np.array_equal(law.draw(20, rng=0)[0], law.draw(20, rng=1)[0])


def test_a_generator_gives_new_samples_at_every_call():
    rng = np.random.default_rng(0)
    law = LAWS["isotropic"]
    assert not np.array_equal(law.draw(3, rng)[0], law.draw(3, rng)[0])


# --- moments -----------------------------------------------------------------------------------------------


def covariance_given_label(name):
    """Closed forms of E[x xᵀ | class or all]: list of (label or None, covariance)."""
    eye = np.eye(7)
    if name == "isotropic":
        return [(s, (1 + s * 0.5) ** 2 * eye) for s in (1, -1)]
    if name in ("anisotropic", "anisotropic basis"):
        basis = eye[:, :3] if name == "anisotropic" else ORTHOGONAL[:, :3]
        return [(s, eye + ((1 + s * 0.3) ** 2 - 1) * basis @ basis.T) for s in (1, -1)]
    scales = {
        "hermite scaled": 4 * eye,
        "hermite diagonal": np.diag(np.arange(1.0, 8.0)),
        "callable cov": COV,
    }
    if name in scales:
        return [(None, scales[name])]
    if name.startswith("mixture"):
        law, form = LAWS[name], np.ndim(LAWS[name].covariances)
        whole = [c if form == 3 else np.diag(np.broadcast_to(c, 7)) for c in law.covariances]
        return list(zip(law.labels, whole, strict=True))
    if name.startswith("linear"):
        return [(None, {"linear": eye, "linear cov": COV, "linear scaled": 4 * eye}[name])]
    return [(None, eye)]


@pytest.mark.parametrize("name", [n for n in LAWS if n not in ("dataset", "stream", "one dimension")])
def test_inputs_have_the_mean_and_covariance_of_the_law(name):
    X, y = LAWS[name].draw(40_000, rng=7)
    for label, covariance in covariance_given_label(name):
        x = X if label is None else X[y == label]
        if name.startswith("mixture"):
            x = x - np.resize([*LAWS[name].means[LAWS[name].labels == label][0], *[0.0] * 7], 7)
        # 35 statistics per law and class, ~1000 in all: |z| > 5.5 by chance in fewer than 1 run in 25 000.
        assert np.abs(mean_error_in_sigmas(x, 0)).max() < 5.5
        upper = covariance[np.triu_indices(7)]
        assert np.abs(mean_error_in_sigmas(second_moments(x), upper)).max() < 5.5


@pytest.mark.parametrize("name", ["isotropic", "anisotropic", "anisotropic basis"])
def test_classes_are_fair_and_labels_are_signs(name):
    _, y = LAWS[name].draw(40_000, rng=8)
    assert set(y) == {-1.0, 1.0}
    assert abs(y.mean()) < 5 / math.sqrt(len(y))  # 5 sigma: 1 run in 10^6


def test_a_gaussian_law_stretches_standard_normals_sample_by_sample():
    g, _ = data.IsotropicGaussians(7, 0.0).draw(500, rng=3)
    mixtures = ("mixture", "mixture diagonal", "mixture isotropic")
    for name in ("isotropic", "anisotropic", "anisotropic basis", "linear cov", "hermite scaled", *mixtures):
        law = LAWS[name]
        X, y = law.draw(500, rng=3)
        parts = law._parts()
        for part in parts:
            mine = y == part.label if len(parts) > 1 else np.full(500, True)
            # Seven products and sums of numbers below 20: a few units in the last place.
            np.testing.assert_allclose(X[mine], part.at(g[mine]), rtol=0, atol=1e-13)


def test_sphere_inputs_have_radius_root_d():
    X, _ = LAWS["sphere"].draw(200, rng=0)
    np.testing.assert_allclose((X**2).sum(axis=1), 7.0, rtol=1e-14)


def test_hypercube_inputs_are_signs():
    X, _ = LAWS["fourier"].draw(200, rng=0)
    assert set(X.ravel()) == {-1.0, 1.0}


def test_label_noise_is_normal_and_leaves_everything_else_alone():
    quiet = data.Linear(np.arange(1.0, 4.0))
    noisy = data.Linear(np.arange(1.0, 4.0), noise=0.5)
    X, y = quiet.draw(40_000, rng=1)
    x_noisy, y_noisy = noisy.draw(40_000, rng=1)
    g = (y_noisy - y) / 0.5
    assert np.array_equal(X, x_noisy)
    # Even and odd moments of N(0, 1) and correlation with x: 7 statistics at 5 sigma, 1 run in 200 000.
    powers = np.stack([g, g**2, g**3, g**4], axis=1)
    assert np.abs(mean_error_in_sigmas(powers, [0, 1, 0, 3])).max() < 5
    assert np.abs(mean_error_in_sigmas(g[:, None] * X, 0)).max() < 5
    assert noisy.noise_power() == 0.25
    assert quiet.noise_power() == 0.0


@pytest.mark.parametrize("name", [n for n, law in LAWS.items() if law.target_power() is not None])
def test_target_power_is_the_mean_square_of_the_label(name):
    _, y = LAWS[name].draw(40_000, rng=4)
    # 12 laws at 5 sigma; y² has heavy tails, which make the true odds larger: about 1 run in 10^4.
    assert abs(mean_error_in_sigmas(y[:, None] ** 2, LAWS[name].target_power())).max() < 5


def test_target_power_is_known_where_parseval_or_a_sum_gives_it():
    known = {name: LAWS[name].target_power() for name in LAWS}
    assert known["isotropic"] == known["anisotropic"] == 1.0
    assert known["hermite"] == pytest.approx(0.25 + 1 + 0.49 + 0.16 + 0.04, rel=1e-15)
    assert known["callable"] == pytest.approx(1 + 1 + 0.01, rel=1e-13)  # rounding of a quadrature
    assert known["fourier"] == pytest.approx(0.0625 + 1 + 4 + 0.25 + 0.01, rel=1e-15)
    assert known["staircase"] == 3.0
    assert known["linear"] == sum(k * k for k in range(7)) + 0.25
    assert data.MultiIndex(9, product, 2, inputs="hypercube").target_power() == 2.0
    assert known["cube callable"] is known["sphere"] is known["stream"] is None
    _, y = LAWS["teacher"].draw(100_000, rng=0)  # a false alarm in 2e6 seeds
    assert known["teacher"] == pytest.approx(np.mean(y**2), abs=5 * np.std(y**2) / math.sqrt(len(y)))


# --- links -------------------------------------------------------------------------------------------------


def reference_label(law, x):
    """One sample at a time, from the definitions."""
    if isinstance(law, data.Teacher):
        return sum(t[0] * np.tanh(t[2:] @ x + t[1]) for t in law.theta) / len(law.theta)
    if isinstance(law, data.Linear):
        return law.w @ x
    z = x[: law.P] if isinstance(law.directions, int) else law.directions @ x
    if callable(law.link):
        return law.link(z[None])[0]
    if law.inputs == "hypercube":
        return sum(c * np.prod([z[j] for j in key]) for key, c in law.link.items())
    return sum(
        c * np.prod([eval_hermitenorm(k, t) / math.sqrt(factorial(k)) for k, t in zip(key, z, strict=True)])
        for key, c in law.link.items()
    )


@pytest.mark.parametrize(
    "name",
    [
        "hermite directions",
        "hermite diagonal",
        "cube callable",
        "sphere",
        "staircase",
        "teacher",
        "linear scaled",
    ],
)
def test_labels_agree_with_a_slow_reference(name):
    law = LAWS[name]
    X, y = law.draw(67, rng=11)
    expected = [reference_label(law, x) for x in X]
    # Sums of a few dozen terms of order 10.
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12)


# --- finite laws -------------------------------------------------------------------------------------------


def test_nodes_are_counted_for_small_cubes_and_datasets_only():
    counts = {name: law._nodes for name, law in LAWS.items()}
    assert counts["dataset"] == 11
    assert counts["fourier"] == counts["staircase"] == counts["cube callable"] == 128
    assert all(n == 0 for name, n in counts.items() if name in ("isotropic", "hermite", "sphere", "stream"))
    assert data.Staircase(17, [(0,)])._nodes == 0
    assert data.Staircase(math.inf, [(0,)])._nodes == 0


def test_a_dataset_keeps_the_array_and_its_nodes_are_the_rows():
    X, y = np.arange(12.0).reshape(4, 3), np.arange(4.0)
    law = data.Dataset(X, y)
    assert np.shares_memory(law.X, X)
    assert not law.X.flags.writeable
    assert X.flags.writeable
    rows, labels = law._node_sampler.draw(99, 1, 3)
    assert np.array_equal(rows, X[1:])
    assert np.array_equal(labels, y[1:])
    with pytest.raises(ValueError, match=r"first \+ count must be <= 4, got 5"):
        law._sampler.draw(0, 2, 3)


def test_a_dataset_is_resampled_uniformly_with_rows_and_labels_together():
    law = data.Dataset(np.arange(5.0)[:, None], 10 * np.arange(5.0))
    X, y = law.draw(40_000, rng=0)
    assert np.array_equal(y, 10 * X[:, 0])
    chosen = np.equal(X, np.arange(5.0)).astype(float)
    assert np.abs(mean_error_in_sigmas(chosen, 0.2)).max() < 5  # 1 run in 300 000


# --- Gaussian parts ----------------------------------------------------------------------------------------


def label_of(part, g, x):
    if isinstance(part.label, HermiteLabel):
        table = _links.hermite_table(g @ part.label.directions.T, 30)
        columns = np.arange(table.shape[1])
        return sum(
            (c * np.prod(table[:, columns, list(key)], axis=1) for key, c in part.label.coefficients.items()),
            np.zeros(len(g)),
        )
    if isinstance(part.label, NetworkLabel):
        theta = part.label.theta
        return (theta[:, 0] * np.tanh(x @ theta[:, 2:].T + theta[:, 1])).mean(axis=1)
    return np.full(len(g), part.label)


@pytest.mark.parametrize("name", [n for n, law in LAWS.items() if law._parts() is not None])
def test_parts_describe_the_law_that_is_drawn(name):
    law = LAWS[name]
    rng = np.random.default_rng(0)
    parts = law._parts()
    assert sum(part.weight for part in parts) == 1.0
    batches = []
    for part in parts:
        g = rng.normal(size=(int(20_000 * part.weight), law.d))
        x = part.at(g)
        batches.append((x, label_of(part, g, x) + part.noise * rng.normal(size=len(g))))
    X, y = law.draw(20_000, rng=1)
    x, t = (np.concatenate(column) for column in zip(*batches, strict=True))

    def statistics(x, y):
        return np.column_stack([y, y**2, y[:, None] * x, second_moments(x), y[:, None] * second_moments(x)])

    mine, theirs = statistics(X, y), statistics(x, t)
    error = np.sqrt((mine.var(axis=0) + theirs.var(axis=0)) / 20_000) + 1e-12
    # ~65 statistics for 10 laws, 6 sigma: 1 run in 10^5 with some room for the tails of products.
    assert np.abs((mine.mean(axis=0) - theirs.mean(axis=0)) / error).max() < 6


def test_hermite_labels_name_the_same_function_as_the_samples():
    names = ("hermite directions", "hermite scaled", "hermite diagonal", "callable cov", "linear cov")
    for name in (*names, "linear scaled", "teacher", "one dimension"):
        law = LAWS[name]
        (part,) = law._parts()
        g, _ = data.IsotropicGaussians(law.d, 0.0).draw(300, rng=2)
        X, y = law.draw(300, rng=2)
        gap = y - label_of(part, g, X)
        if part.noise == 0:
            np.testing.assert_allclose(gap, 0, atol=1e-10)  # labels up to 1000
        else:
            assert abs(gap.std() / part.noise - 1) < 6 / math.sqrt(600)  # 6 sigma: 1 run in 10^8


def test_laws_without_a_gaussian_form_have_no_parts():
    for name in ("fourier", "sphere", "dataset", "stream", "staircase"):
        assert LAWS[name]._parts() is None
    assert data.IsotropicGaussians(math.inf, 0.5)._parts() is None
    assert data.MultiIndex(math.inf, [0.0, 1.0], 1)._parts() is None


def test_a_zero_linear_teacher_is_a_law():
    (part,) = data.Linear([0.0, 0.0], noise=1.0)._parts()
    assert part.label.coefficients == {(1,): 0.0}
    assert np.linalg.norm(part.label.directions) == 1.0


def test_the_share_of_the_subspace_is_that_of_its_dimension_or_the_fraction_given():
    assert data.AnisotropicGaussians(8, 0.3, s0=2).gamma == 0.25
    assert data.AnisotropicGaussians(math.inf, 0.3, fraction=0.2).gamma == 0.2
