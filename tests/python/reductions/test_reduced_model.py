"""The reduced model as an object: built by hand, refused, tabulated, and its initial laws."""

import copy
import math
import pickle

import mfcore as mf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core
from mfcore.data._parts import GaussianPart
from mfcore.data._symmetry import Part, Radius, Symmetry
from mfcore.reductions._tables import Table
from problems import STEP

INF = math.inf
RELU = mf.Network(mf.activations.relu)
FULL = mf.Network(mf.activations.tanh, output="trained", bias="trained")
ISOTROPIC = mf.data.IsotropicGaussians(40, 0.5)


def reduced(law, network=RELU, init=None, **options):
    reduce = {name: options.pop(name) for name in ("limit", "nodes") if name in options}
    return mf.Model(data=law, network=network, init=init, **options).reduce(**reduce)


def by_hand(**changes):
    arguments = {
        "coordinates": ["z"],
        "weights": [0.25, 0.75],
        "targets": [1.0, -1.0],
        "features": lambda z: np.hstack([z, z**2]),
        "gradients": lambda z: np.stack([np.ones_like(z), 2 * z], axis=1),
    }
    return mf.ReducedModel(**{**arguments, **changes})


def test_a_model_by_hand_computes_sums_over_nodes():
    model = by_hand(noise=0.5)
    points, weights = np.array([[1.0], [2.0]]), np.array([0.5, 0.5])
    f = np.array([1.5, 2.5])
    np.testing.assert_allclose(model.V([3.0]), [-(0.25 * 3 - 0.75 * 9)])
    np.testing.assert_allclose(model.U(points, np.array([[3.0]])), [[0.75 + 0.75 * 9], [1.5 + 0.75 * 36]])
    residual = np.array([0.25 * (f[0] - 1), 0.75 * (f[1] + 1)])
    np.testing.assert_allclose(model.psi([3.0], points, weights), [residual @ [3, 9]])
    np.testing.assert_allclose(model.grad_psi(np.array([[3.0]]), points, weights), [[residual @ [1, 6]]])
    assert model.risk(points, weights) == pytest.approx(0.25 * 0.25 + 0.75 * 3.5**2 + 0.5)


def test_defaults_are_one_free_coordinate():
    model = by_hand()
    assert (model.volume, model.nonnegative, model.rates, model.decays) == ((0.0,), (False,), (1.0,), (True,))
    assert by_hand(rates=[0.0]).decays == (False,)
    assert repr(model) == "ReducedModel(coordinates=(z,), nodes=2)"
    assert repr(reduced(ISOTROPIC)).startswith("ReducedModel(coordinates=(r,), nodes=")


def test_without_gradients_only_gradients_are_refused():
    model = by_hand(gradients=None)
    assert model.V([1.0]).shape == (1,)
    assert model._compiled is None
    with pytest.raises(ValueError, match="gradients must be given"):
        model.grad_psi(np.array([[1.0]]), np.array([[1.0]]), np.ones(1))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"weights": [0.5, 0.6]}, ValueError, "weights must be > 0 and sum to 1"),
        ({"weights": [1.0, 0.0]}, ValueError, "or of either sign without 0"),
        ({"targets": [1.0]}, ValueError, "targets must have shape"),
        ({"features": 3}, TypeError, "features must be a callable"),
        ({"coordinates": "z"}, TypeError, "coordinates must be a sequence of names"),
        ({"coordinates": ["z", "z"]}, ValueError, "coordinates must have different names"),
        ({"ridge": -1.0}, ValueError, "ridge must be >= 0"),
        ({"volume": [1.0, 2.0]}, ValueError, "volume must have one entry per coordinate"),
        ({"rates": [-1.0]}, ValueError, "rates must be >= 0"),
        ({"initial": 3}, TypeError, "initial must have sample"),
    ],
)
def test_what_is_wrong_by_hand_is_named(change, error, message):
    with pytest.raises(error, match=message):
        by_hand(**change)


def test_points_and_features_of_wrong_shape_are_named():
    with pytest.raises(ValueError, match="z must have shape"):
        by_hand().features([[1.0, 2.0]])
    with pytest.raises(ValueError, match="features must map shape"):
        by_hand(features=lambda z: z).features([1.0])


def test_coordinates_speeds_decay_and_volume_follow_the_network():
    law = mf.data.AnisotropicGaussians(10, 0.5, s0=3)
    model = reduced(law, FULL, ridge=0.1, temperature=0.2, rates={"a": 3.0, "w": 0.5}, nodes=4)
    assert model.coordinates == ("a", "b", "r1", "r2")
    assert model.rates == (3.0, 1.0, 0.5, 0.5)
    assert model.decays == (True,) * 4
    assert model.volume == (0.0, 0.0, 2.0, 6.0)
    assert model.nonnegative == (False, False, True, True)
    assert (model.ridge, model.temperature, model.d) == (0.1, 0.2, 10)
    fixed = reduced(law, mf.Network(mf.activations.relu, output="fixed"), nodes=4)
    assert (fixed.rates[0], fixed.decays[0]) == (0.0, False)


def test_features_end_where_the_radius_is_zero():
    model = reduced(ISOTROPIC, mf.Network(STEP))
    np.testing.assert_array_equal(model.features([-0.3]), model.features([0.0]))
    np.testing.assert_array_equal(model.gradients([-0.3]), model.gradients([0.0]))


def test_the_limit_takes_its_features_and_the_start_of_the_finite_model():
    init = mf.init.Radial(0.4)
    limit = reduced(ISOTROPIC, init=init, limit=True, temperature=0.1)
    infinite = reduced(mf.data.IsotropicGaussians(INF, 0.5), init=init)
    np.testing.assert_array_equal(limit.features([0.7]), infinite.features([0.7]))
    assert limit.volume == (39.0,)
    assert len(limit.initial.quadrature(5)[0]) == 5
    assert infinite.initial.quadrature(5)[0].tolist() == [[0.4]]


def test_on_the_hypercube_the_limit_must_be_asked_for():
    law = mf.data.Staircase(30, [(0,), (0, 1)])
    with pytest.raises(ValueError, match=r"d=inf .*limit=True"):
        reduced(law)
    model = reduced(law, limit=True)
    z = np.array([[0.3, -0.2, 0.8]])
    np.testing.assert_array_equal(model.V(z), reduced(mf.data.Staircase(INF, [(0,), (0, 1)])).V(z))
    assert model.node_error == 0.0


def test_a_cube_without_anything_across_is_enumerated():
    law = mf.data.Staircase(3, [(0,), (0, 1, 2)])
    model = reduced(law, FULL)
    assert model.coordinates == ("a", "b", "s1", "s2", "s3")
    x = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    y = x[:, 0] + x.prod(axis=1)
    z = np.array([[0.5, 0.1, 1.0, -0.3, 0.7]])
    want = -np.mean(y * 0.5 * np.tanh(x @ z[0, 2:] + 0.1))
    assert model.V(z)[0] == pytest.approx(want, abs=1e-15)


def test_short_rows_need_no_symmetry():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((17, 1)), rng.standard_normal(17)
    model = reduced(mf.data.Dataset(X, y), FULL)
    assert model.coordinates == ("a", "b", "w1")
    z = rng.standard_normal((4, 3))
    phi = z[:, :1] * np.tanh(z[:, 2:] @ X.T + z[:, 1:2])
    np.testing.assert_allclose(model.V(z), -phi @ y / 17, atol=1e-14)
    np.testing.assert_allclose(model.U(z, z), phi @ phi.T / 17, atol=1e-14)
    np.testing.assert_allclose(model.gradients(z)[:, :, 0], phi / z[:, :1], atol=1e-14)


def test_short_rows_with_gaussian_inputs_use_a_grid_of_inputs():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    linear = reduced(mf.data.Linear([1.0, -1.0], cov=cov, noise=0.3), mf.Network(mf.activations.linear))
    w, v = np.array([[0.3, 0.8]]), np.array([[-1.0, 0.5]])
    np.testing.assert_allclose(linear.U(w, v), w @ cov @ v.T, rtol=1e-12)
    np.testing.assert_allclose(linear.V(w), -w @ cov @ [1.0, -1.0], rtol=1e-12)
    assert linear.noise == pytest.approx(0.09)
    teacher = mf.data.Teacher(mf.Network(mf.activations.erf), [[1.0, 0.5], [0.0, 2.0]])
    inner, norms = teacher.theta @ w[0], 1 + 2 * np.square(teacher.theta).sum(axis=1)
    kernel = 2 / math.pi * np.arcsin(2 * inner / np.sqrt(norms * (1 + 2 * np.sum(w**2))))
    # 64 nodes per input see the steeper teacher, erf(2 x), to seven digits.
    assert reduced(teacher, mf.Network(mf.activations.erf)).V(w)[0] == pytest.approx(-kernel.mean(), abs=1e-7)


REFUSED = [
    ({"law": mf.data.Linear(np.ones(5), cov=np.diag(np.arange(1.0, 6.0)))}, "laws with a reduction"),
    ({"law": mf.data.Dataset(np.ones((2, 9)), np.ones(2))}, "must have a symmetry"),
    (
        {"law": ISOTROPIC, "network": mf.Network(mf.activations.relu, sphere=True)},
        "data must have directions",
    ),
    ({"law": mf.data.IsotropicGaussians(INF, 0.5), "temperature": 0.1}, "temperature must be 0 at d=inf"),
    (
        {"law": mf.data.MultiIndex(9, {(1,) * 5: 1.0}, 5), "network": mf.Network(mf.activations.tanh)},
        "at most 4 directions",
    ),
    ({"law": ISOTROPIC, "nodes": 0}, "nodes must be >= 1"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_impossible_reductions_say_what_would_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        reduced(**arguments)


@pytest.mark.parametrize(("d", "low", "high"), [(320, 14, 20), (40, 28, 38)])
def test_a_table_of_eighty_columns_has_low_rank(d, low, high):
    model = reduced(mf.data.IsotropicGaussians(d, 0.5), mf.Network(STEP), nodes=40)
    # Weights below 1e-16 in all are left out of the 80 nodes: they would not raise the rank.
    table = model.table(np.linspace(0.0125, 10, 400))
    small = table.compress()
    assert low <= small.basis.shape[1] <= high  # 17 and 36 are quoted for tolerances of this kind
    scale = np.sqrt(table.weights)
    deviation = np.abs((small.basis @ small.coefficients - table.values) * scale).max()
    assert deviation <= 1.01e-12 * np.abs(table.values * scale).max()


@settings(max_examples=30, deadline=None)
@given(cells=st.integers(1, 40), nodes=st.integers(1, 30), rank=st.integers(1, 6), seed=st.integers(0, 99))
def test_compression_finds_the_rank_and_measures_its_error(cells, nodes, rank, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((cells, rank)) @ rng.standard_normal((rank, nodes))
    values += 1e-9 * rng.standard_normal((cells, nodes))
    basis, coefficients, error = _core.compress(values, 1e-6)
    assert basis.shape[1] <= min(cells, nodes, rank)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-13)
    measured = np.abs(basis @ coefficients - values).max() / np.abs(values).max()
    assert measured == pytest.approx(error, abs=1e-14)
    assert error <= 1e-6


def test_ranks_grow_to_all_where_nothing_less_suffices():
    values = np.random.default_rng(0).standard_normal((60, 50))
    basis, coefficients, error = _core.compress(values, 1e-14)
    assert basis.shape == (60, 50)
    assert np.abs(basis @ coefficients - values).max() <= 1e-13  # roundings of 50 terms
    half, _, error = _core.compress(values, 0.5)
    assert half.shape[1] < 50
    assert (
        error <= 0.5 < np.abs(values - half[:, :-1] @ (half[:, :-1].T @ values)).max() / np.abs(values).max()
    )


@pytest.mark.parametrize("shape", [(20_000, 20_000), (6_000, 6_000), (1 << 26, 2)])
def test_tables_whose_compression_would_take_minutes_or_gigabytes_are_refused(shape):
    values = np.broadcast_to(0.0, shape)  # one number in memory
    table = Table((np.arange(2.0),), values, np.ones(shape[1]))
    with pytest.raises(ValueError, match=r"values must have at most .* entries for compression"):
        table.compress()


def test_a_table_of_zeros_has_rank_zero():
    basis, coefficients, error = _core.compress(np.zeros((3, 2)), 1e-12)
    assert (basis.shape, coefficients.shape, error) == ((3, 0), (0, 2), 0.0)


def test_tables_have_an_axis_per_coordinate():
    model = reduced(mf.data.AnisotropicGaussians(INF, 0.5, fraction=0.2))
    table = model.table([0.1, 0.5, 1.0], [0.2, 0.4])
    assert repr(table) == "Table(3×2 cells, 2 nodes)"
    np.testing.assert_array_equal(table.values[2, 1], model.features([[1.0, 0.4]])[0])
    with pytest.raises(ValueError, match="axes must be 2"):
        model.table([0.1])


BLOCKS = mf.data.AnisotropicGaussians(20, 0.5, s0=5)
SHARES = mf.data.AnisotropicGaussians(INF, 0.5, fraction=0.2)
PLANE = mf.data.MultiIndex(4, {(1, 1): 1.0}, 2)
INITIAL = {
    "isotropic": (ISOTROPIC, mf.init.Radial(0.8), {"r": 0.64}),
    "two radii": (BLOCKS, mf.init.Gaussian(0.1), {"r1": 0.05, "r2": 0.15}),
    "two radii on a sphere": (BLOCKS, mf.init.Sphere(2.0), {"r1": 1.0, "r2": 3.0}),
    "single index": (mf.data.MultiIndex(9, [0.0, 1.0], 1), mf.init.Sphere(3.0), {"s1": 1.0, "r": 8.0}),
    "two indices": (PLANE, mf.init.Gaussian(2.0), {"s1": 4.0, "s2": 4.0, "r": 8.0}),
    "limit": (mf.data.Staircase(INF, [(1,)]), mf.init.Radial(0.5), {"s1": 0.0, "s2": 0.0, "r": 0.25}),
    "shares": (SHARES, mf.init.Sphere(1.0), {"r1": 0.2, "r2": 0.8}),
    "whole sphere": (mf.data.Staircase(2, [(0,), (1,)]), mf.init.Sphere(1.0), {"s1": 0.5, "s2": 0.5}),
}


@pytest.mark.parametrize("case", INITIAL)
def test_initial_laws_have_the_second_moments_of_the_row(case):
    law, init, moments = INITIAL[case]
    model = reduced(law, init=init, nodes=4)
    assert model.coordinates == tuple(moments)
    points, weights = model.initial.quadrature(6)
    assert weights.sum() == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(weights @ points**2, list(moments.values()), atol=1e-12)
    drawn = model.initial.sample(20_000, rng=1)
    error = (drawn**2).std(axis=0) / math.sqrt(len(drawn))
    # Five standard errors: a false alarm in fewer than one of 10^5 seeds.
    assert np.all(np.abs((drawn**2).mean(axis=0) - list(moments.values())) <= 5 * error + 1e-12)


def test_initial_laws_of_a_and_b_come_first():
    init = mf.init.Product(a=mf.init.Constant(2.0), b=mf.init.Uniform(-1, 1), w=mf.init.Radial(1.0))
    initial = reduced(ISOTROPIC, FULL, init).initial
    points, weights = initial.quadrature(3)
    assert points.shape == (9, 3)
    assert set(points[:, 0]) == {2.0}
    assert weights @ points[:, 1] ** 2 == pytest.approx(1 / 3)
    np.testing.assert_array_equal(initial.sample(4, rng=0), initial.sample(4, rng=0))


NOT_INVARIANT = [None, mf.init.Product(w=mf.init.Uniform(-1, 1)), mf.init.Product(w=mf.init.Normal(1.0))]


@pytest.mark.parametrize("init", NOT_INVARIANT)
def test_laws_without_the_symmetry_have_no_reduced_start(init):
    assert reduced(ISOTROPIC, init=init).initial is None


def test_reduced_models_pickle_and_copy():
    model = reduced(mf.data.AnisotropicGaussians(40, 0.5, s0=10), RELU, mf.init.Radial(0.8), ridge=0.1)
    z, weights = model.initial.quadrature(4)
    start = mf.Cloud(z, weights)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert repr(twin) == repr(model)
        assert mf.risk(twin, start) == mf.risk(model, start)
        np.testing.assert_array_equal(mf.grad_psi(twin, z, start), mf.grad_psi(model, z, start))
        assert isinstance(twin._compiled, _core.ReducedFeatures)


def test_a_symmetry_of_unknown_inputs_is_refused():
    """They were averaged as if they were Gaussian."""
    with pytest.raises(ValueError, match=r"inputs of a symmetry must be one of .* got 'laplace'"):
        Symmetry(("s1",), (Radius("r", 4),), (Part(1.0, (1.0, 1.0), 1.0),), inputs="laplace")


def test_what_the_nodes_can_do_to_a_risk_is_the_error_times_predictions_of_that_size():
    model = by_hand(node_error=1e-6)
    assert model.risk_node_error(3.0) == pytest.approx(1e-6 * (2 * 3 + 3**2), rel=1e-15)
    assert by_hand().risk_node_error(3.0) == 0.0


def test_what_needs_derivatives_refuses_a_curved_space():
    model = by_hand(curved=True, temperature=0.1, ridge=0.1)
    assert model.curved
    for use in (lambda: mf.solve(model, mf.PDE(20), horizon=1.0), lambda: mf.gibbs(model)):
        with pytest.raises(ValueError, match="model must have flat coordinates for "):
            use()


def test_replace_changes_fields_and_checks_them_anew():
    model = reduced(ISOTROPIC)
    other = model.replace(ridge=0.5, targets=-model.targets)
    assert other.ridge == 0.5
    np.testing.assert_array_equal(other.targets, -model.targets)
    np.testing.assert_array_equal(other.features([[1.0]]), model.features([[1.0]]))
    with pytest.raises(ValueError, match="temperature must be >= 0, got -1"):
        model.replace(temperature=-1)
    with pytest.raises(TypeError, match=r"replace takes the fields of a reduced model .* got 'rige'.*ridge"):
        model.replace(rige=1.0)


def test_replace_forgets_what_was_measured_of_other_features():
    model = reduced(ISOTROPIC)
    assert model.node_error is not None
    assert model.replace(targets=2 * model.targets).node_error is None
    assert model.replace(targets=2 * model.targets).inputs is model.inputs
    other = model.replace(features=lambda z: np.ones((len(z), len(model.weights))))
    assert (other.inputs, other.node_error) == (None, None)
    with pytest.raises(ValueError, match="gradients must be given"):
        other.gradients([[1.0]])  # those of the model would be of other features
    assert model.replace(features=model.features, node_error=1e-3).node_error == 1e-3


def test_the_label_noise_of_a_law_of_several_parts_is_their_mean():
    class Mixture(mf.data.Linear):
        def _parts(self):
            return [GaussianPart(0.3, lambda w: w, 1.0, 0.5), GaussianPart(0.7, lambda w: w, -1.0, 0.1)]

        def _symmetry(self):
            return None

    model = mf.Model(Mixture([1.0, 0.5]), mf.Network(mf.activations.tanh), mf.init.Gaussian(1.0))
    assert model.reduce().noise == pytest.approx(0.3 * 0.5**2 + 0.7 * 0.1**2, rel=1e-15)
