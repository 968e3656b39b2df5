"""Initial laws: moments, quadratures, addressed draws, and what does not fit a network."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import activations, init
from mfcore.network import Network

PLAIN = Network(activations.relu)
FULL = Network(activations.relu, output="trained", bias="trained")
BALL = Network(activations.relu, output="fixed", sphere=True)

SCALARS = [init.Normal(0.5, 2.0), init.Uniform(-1.0, 3.0), init.Constant(0.7)]
FULL_LAWS = [
    init.Gaussian(0.3),
    init.Product(a=init.Uniform(-1, 1), b=init.Normal(1, 2), w=init.Radial(0.8)),
    init.Product(a=init.Constant(1), b=init.Constant(-1), w=init.Sphere(2.0)),
    init.Product(a=init.Normal(), b=init.Uniform(0, 1), w=init.Uniform(-2, 2)),
]


@pytest.mark.parametrize("law", SCALARS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 7, 64, 200])
def test_quadratures_have_the_moments_of_the_law(law, n):
    nodes, weights = law.quadrature(n)
    assert nodes.shape == weights.shape
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert (weights >= 0).all()
    # Gauss rules with n nodes are exact up to degree 2n - 1; what is left is rounding of sums of n terms.
    assert weights @ nodes == pytest.approx(law.mean, abs=1e-13)
    if n > 1:
        assert weights @ nodes**2 == pytest.approx(law.second_moment, rel=1e-13)
        assert law.second_moment == pytest.approx(law.mean**2 + law.std**2, rel=1e-15)


@pytest.mark.parametrize("law", SCALARS[:2], ids=repr)
def test_quantiles_invert_the_distribution_function(law):
    u = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(law.cdf(law.quantile(u)), u, rtol=1e-13)


def test_a_constant_has_a_step_for_a_distribution_function():
    law = init.Constant(0.7)
    assert law.cdf(np.array([0.6, 0.7, 0.8])).tolist() == [0, 1, 1]
    assert law.quantile(np.array([0.1, 0.9])).tolist() == [0.7, 0.7]


def slow_sample(law, network, d, count, seed):
    """One number at a time, each asked for by its own address."""
    from mfcore import _core

    def one(scalar, step, item):
        if isinstance(scalar, init.Constant):
            return scalar.value
        name = "normals" if isinstance(scalar, init.Normal) else "uniforms"
        x = getattr(_core, name)(seed, "init", step, item, 1, "float64")[0]
        return (
            scalar.mean + scalar.std * x if name == "normals" else scalar.low + (scalar.high - scalar.low) * x
        )

    parts, rows = law.parts(network), []
    for i in range(count):
        w = parts.w
        if isinstance(w, init.Radial):
            row_w = [one(init.Normal(0, w.norm / math.sqrt(d)), 2, i * d + j) for j in range(d)]
        elif isinstance(w, init.Sphere):
            g = [one(init.Normal(), 2, i * d + j) for j in range(d)]
            row_w = [w.radius * x / math.hypot(*g) for x in g]
        else:
            row_w = [one(w, 2, i * d + j) for j in range(d)]
        head = [one(part, step, i) for step, part in enumerate((parts.a, parts.b)) if part is not None]
        rows.append(head + row_w)
    return np.array(rows)


@pytest.mark.parametrize("law", FULL_LAWS, ids=repr)
@pytest.mark.parametrize(("d", "count"), [(1, 1), (3, 5), (7, 11)])
def test_every_number_is_addressed_by_block_neuron_and_coordinate(law, d, count):
    from mfcore._base.rng import seed_of

    fast, slow = law.sample(FULL, d, count, rng=5), slow_sample(law, FULL, d, count, seed_of(5))
    # A scaled and normalised number may be rounded in another order.
    np.testing.assert_allclose(fast, slow, rtol=1e-14, atol=1e-15)


@settings(max_examples=30, deadline=None)
@given(
    law=st.sampled_from(FULL_LAWS),
    d=st.integers(1, 9),
    count=st.integers(1, 20),
    more=st.integers(0, 20),
    seed=st.integers(0, 2**64),
)
def test_the_first_neurons_do_not_depend_on_how_many_are_drawn(law, d, count, more, seed):
    few, many = law.sample(FULL, d, count, seed), law.sample(FULL, d, count + more, seed)
    assert few.shape == (count, FULL.row(d))
    assert np.array_equal(few, many[:count])


@pytest.mark.parametrize("law", FULL_LAWS, ids=repr)
def test_drawn_blocks_follow_their_laws(law):
    n, d = 20_000, 3
    theta, parts = law.sample(FULL, d, n, rng=7), law.parts(FULL)
    for block, where in FULL.blocks(d).items():
        part = getattr(parts, block)
        x = np.sort(theta[:, where].ravel())
        if isinstance(part, init.Constant):
            assert (x == part.value).all()
        elif isinstance(part, init.ScalarLaw):
            # Kolmogorov-Smirnov: sqrt(n) times the distance exceeds 2.5 with probability 2 exp(-12.5) = 8e-6,
            # once per block and law, so about 1e-4 for the whole test; the seed is fixed.
            distance = np.abs(part.cdf(x) - (np.arange(x.size) + 0.5) / x.size).max()
            assert distance * math.sqrt(x.size) < 2.5
    for one, other in (("a", "b"), ("a", "w"), ("b", "w")):
        x, y = (theta[:, FULL.blocks(d)[block].start] for block in (one, other))
        if x.std() > 0 and y.std() > 0:
            # Independent columns correlate by N(0, 1/n): beyond 5 standard deviations in 6e-7 of the cases.
            assert abs(np.corrcoef(x, y)[0, 1]) * math.sqrt(n) < 5


@pytest.mark.parametrize("d", [1, 2, 40, 2000])
def test_a_radial_start_has_its_mean_square_norm_at_every_dimension(d):
    n, kappa = 4000, 0.8
    squares = (init.Radial(kappa).sample(PLAIN, d, n, rng=1) ** 2).sum(axis=1)
    # |w|^2 d / kappa^2 is chi-squared(d), with variance 2d; 5 standard deviations of the mean: 6e-7.
    assert squares.mean() == pytest.approx(kappa**2, abs=5 * kappa**2 * math.sqrt(2 / (d * n)))
    assert squares.var() == pytest.approx(2 * kappa**4 / d, rel=0.5)


@pytest.mark.parametrize(
    "law", [init.Gaussian(3.0), init.Product(a=init.Normal(), w=init.Sphere())], ids=repr
)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_spherical_network_starts_on_the_unit_sphere_in_uniform_directions(law, d):
    n = 4000
    w = law.sample(BALL, d, n, rng=3)[:, 1:]
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1.0, rtol=1e-14)
    # E w = 0 and E w w^T = I/d; a mean of n terms of size <= 1 is off by 5/sqrt(n) with odds below 1e-6.
    assert np.abs(w.mean(axis=0)).max() < 5 / math.sqrt(n)
    assert np.abs(w.T @ w / n - np.eye(d) / d).max() < 5 / math.sqrt(n)


def test_points_start_as_given_and_are_kept_apart_from_the_callers_array():
    theta = np.arange(10.0).reshape(2, 5)
    law = init.Points(theta)
    theta[0, 0] = 99
    assert law.theta[0, 0] == 0
    assert not law.theta.flags.writeable
    drawn = law.sample(FULL, 3, 2)
    drawn[0, 0] = -1
    assert np.array_equal(law.sample(FULL, 3, 2), np.arange(10.0).reshape(2, 5))


def test_points_of_float32_accuracy_are_put_on_the_sphere():
    w = init.Sphere().sample(PLAIN, 4, 6, rng=0).astype(np.float32)
    law = init.Points(np.hstack([np.ones((6, 1)), w]))
    np.testing.assert_allclose(np.linalg.norm(law.sample(BALL, 4, 6)[:, 1:], axis=1), 1, rtol=1e-14)


NEEDS_A = "init must give a law of a, which this network stores"
MISFITS = [
    (init.Radial(0.8), FULL, 5, NEEDS_A),
    (init.Product(w=init.Radial(0.8)), FULL, 5, NEEDS_A),
    (
        init.Product(a=init.Normal(), w=init.Radial(0.8)),
        FULL,
        5,
        "init must give a law of b, which this network",
    ),
    (
        init.Product(a=init.Normal(), w=init.Radial(0.8)),
        PLAIN,
        5,
        "must not give a law of a: .* output='one'",
    ),
    (init.Product(b=init.Normal(), w=init.Radial(0.8)), PLAIN, 5, "must not give a law of b: .* bias='none'"),
    (init.Gaussian(0.1), PLAIN, math.inf, r"keep \|w\| finite at d = inf: mf.init.Radial"),
    (init.Product(w=init.Uniform(-1, 1)), PLAIN, math.inf, r"keep \|w\| finite at d = inf"),
    (init.Product(a=init.Normal(), w=init.Normal(1.0)), BALL, math.inf, r"keep \|w\| finite at d = inf"),
    (init.Product(a=init.Normal(), w=init.Constant(0)), BALL, 5, "init must give w a direction"),
    (init.Points(np.ones((4, 5))), PLAIN, 4, r"theta must have rows \[w…\] of length 4 for d = 4, got 5"),
    (
        init.Points(np.ones((4, 5))),
        FULL,
        4,
        r"theta must have rows \[a, b, w…\] of length 6 for d = 4, got 5",
    ),
    (
        init.Points(np.ones((4, 5))),
        PLAIN,
        math.inf,
        "init must be a law, not points of 5 entries, when d = inf",
    ),
    (
        init.Points([[1.0, 3.0, 4.0]]),
        BALL,
        2,
        r"\|w\| = 1 on a network with sphere=True, got \|w\| = 5 in row 0",
    ),
]


@pytest.mark.parametrize(("law", "network", "d", "message"), MISFITS)
def test_a_law_that_does_not_fit_the_network_is_refused_by_name(law, network, d, message):
    with pytest.raises(ValueError, match=message):
        law.check(network, d)


@pytest.mark.parametrize(
    ("law", "network"),
    [
        (init.Radial(0.8), PLAIN),
        (init.Sphere(2.0), PLAIN),
        (init.Product(w=init.Constant(0.0)), PLAIN),
        (init.Product(a=init.Uniform(-1, 1), b=init.Constant(1), w=init.Radial(0.8)), FULL),
        (init.Gaussian(1.0), BALL),
    ],
    ids=repr,
)
def test_starts_with_a_limit_fit_infinite_dimension_but_cannot_be_drawn_there(law, network):
    law.check(network, math.inf)
    with pytest.raises(ValueError, match="d must be finite to draw neurons, got inf"):
        law.sample(network, math.inf, 10)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: init.Gaussian(0), ValueError, "std must be > 0, got 0"),
        (lambda: init.Normal(0, -1), ValueError, "std must be > 0, got -1"),
        (lambda: init.Uniform(1, 1), ValueError, "high must be > low, got low=1, high=1"),
        (lambda: init.Constant(math.nan), ValueError, "value must be finite, got nan"),
        (lambda: init.Radial(-0.1), ValueError, "norm must be > 0, got -0.1"),
        (lambda: init.Sphere("1"), TypeError, "radius must be a real number, got '1'"),
        (
            lambda: init.Product(a=1.0, w=init.Radial(1)),
            TypeError,
            r"a must be Normal\(mean, std\), .*, got 1.0",
        ),
        (
            lambda: init.Product(b=init.Radial(1), w=init.Radial(1)),
            TypeError,
            r"b must be Normal.*got Radial\(",
        ),
        (
            lambda: init.Product(w=init.Gaussian(1)),
            TypeError,
            r"w must be Radial\(norm\), Sphere.*got Gaussian",
        ),
        (lambda: init.Points([1.0, 2.0]), ValueError, r"theta must have shape \(any, any\), got \(2,\)"),
        (lambda: init.Points([[math.inf]]), ValueError, r"theta must be finite, got inf at \[0, 0\]"),
        (lambda: init.Normal().quadrature(0), ValueError, "n must be >= 1, got 0"),
        (lambda: init.Gaussian(1).sample(PLAIN, 3, 0), ValueError, "count must be >= 1, got 0"),
        (lambda: init.Gaussian(1).sample(PLAIN, 0, 3), ValueError, "d must be >= 1, got 0"),
        (
            lambda: init.Points(np.ones((4, 3))).sample(PLAIN, 3, 9),
            ValueError,
            "count must be 4, .* points, got 9",
        ),
        (
            lambda: init.Points(np.ones((4, 3))).parts(PLAIN),
            ValueError,
            "must be a law of independent blocks here",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_rule_and_value(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("law", [*FULL_LAWS, *SCALARS, init.Points([[1.0, 2.0]])], ids=repr)
def test_laws_compare_hash_pickle_and_print_by_value(law):
    for twin in (pickle.loads(pickle.dumps(law)), copy.deepcopy(law), eval(repr(law), vars(init))):
        assert twin == law
        assert hash(twin) == hash(law)
    assert law != init.Gaussian(17.0)


def test_many_points_print_as_their_shape():
    assert repr(init.Points(np.ones((800, 5)))) == "Points(theta=<array 800×5>)"
    assert init.Points(np.ones((800, 5))) != init.Points(np.ones((800, 4)))


HALVES = [
    init.Gaussian(0.5),
    init.Product(a=init.Uniform(-1, 1), b=init.Symmetric(init.Constant(2.0)), w=init.Sphere(2.0)),
    init.Paired(init.Product(a=init.Normal(), b=init.Normal(), w=init.Radial(1.0))),
    init.Points(np.random.default_rng(0).normal(size=(1000, 5))),
]


@pytest.mark.parametrize(
    ("law", "sphere"),
    [(law, False) for law in HALVES] + [(law, True) for law in HALVES[:3]],  # not points
    ids=lambda value: str(value) if isinstance(value, bool) else type(value).__name__,
)
def test_parts_of_a_network_draw_the_rows_of_the_whole(law, sphere):
    network = Network(activations.relu, output="trained", bias="trained", sphere=sphere)
    whole = law.sample(network, 3, 1000, rng=5)
    for first, count in ((0, 334), (334, 2), (336, 664)):
        part = law.sample(network, 3, count, rng=5, first=first)
        assert np.array_equal(part, whole[first : first + count])


def test_a_part_must_be_in_the_whole():
    points, pairs = init.Points(np.ones((4, 3))), init.Paired(init.Gaussian(1.0))
    trained = Network(activations.relu, output="trained")
    for call, message in (
        (lambda: init.Gaussian(1.0).sample(PLAIN, 3, 2, first=-1), "first must be >= 0, got -1"),
        (lambda: points.sample(PLAIN, 3, 2, first=3), r"first \+ count must be <= 4, .* got 3 \+ 2"),
        (lambda: pairs.sample(trained, 3, 2, first=1), "first must be even for neurons in pairs, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
