"""Tangent kernels: of neurons against Jacobians, at infinite width against closed forms and many neurons."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory

NETWORKS = {
    "relu": mf.Network(mf.activations.relu),
    "relu, a": mf.Network(mf.activations.relu, output="trained", scale=3.0),
    "tanh, fixed a, b": mf.Network(mf.activations.tanh, output="fixed", bias="trained"),
    "tanh, a, fixed b": mf.Network(mf.activations.tanh, output="trained", bias="fixed", scale=2.0),
    "softplus, fixed a and b": mf.Network(mf.activations.softplus, output="fixed", bias="fixed"),
    "gelu, fixed b, sphere": mf.Network(mf.activations.gelu, bias="fixed", sphere=True),
    "erf, a, b": mf.Network(mf.activations.erf, output="trained", bias="trained", scale=0.3),
    "gelu, a, b, sphere": mf.Network(mf.activations.gelu, output="trained", bias="trained", sphere=True),
    "hermite, sphere": mf.Network(mf.activations.hermite([0.0, 0.4, 1.0, 0.3]), sphere=True, scale=2.0),
}
SPEEDS = {"a": 2.0, "b": 0.3, "w": 1.7}


def model_of(network, d=4):
    rates = {block: SPEEDS[block] for block in network.trained}
    return mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), network, rates=rates)


def neurons(network, count, d=4, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, network.row(d)))
    if network.sphere:
        w = rows[:, network.row(0) :]
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return rows


def slow_kernel(model, theta, masses, X, Y, step=1e-5):
    """∇f by central differences neuron by neuron, tangential on the sphere, then the sum over rows."""
    network, row = model.network, model.network.row(0)

    def gradients(Z):
        out = np.zeros((len(Z), *theta.shape))
        for i, one in enumerate(theta):
            for k in range(theta.shape[1]):
                up, down = one.copy(), one.copy()
                up[k] += step
                down[k] -= step
                out[:, i, k] = (mf.predict(model, [up], Z) - mf.predict(model, [down], Z)) / (2 * step)
            if network.sphere:
                w = one[row:]
                out[:, i, row:] -= np.outer(out[:, i, row:] @ w, w)
        return out

    speed = np.zeros(theta.shape[1])
    for block, where in network.blocks(4).items():
        speed[where] = SPEEDS[block] if block in network.trained else 0.0
    return np.einsum("qik,pik,i,k->qp", gradients(X), gradients(Y), masses, speed)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("count", [1, 7, 260])  # the last one fills more than a block
def test_the_kernel_of_neurons_is_that_of_their_jacobian(network, count):
    rng = np.random.default_rng(1)
    model, theta = model_of(network), neurons(network, count)
    X, Y = rng.normal(size=(53, 4)), rng.normal(size=(9, 4))
    masses = rng.dirichlet(np.ones(count))
    cloud = mf.Cloud(theta, masses)
    want = slow_kernel(model, theta, masses, X, Y)
    got = theory.tangent_kernel(model, X, Y, measure=cloud)
    # central differences: 1e-10 · third derivatives + 1e-16/1e-5, on numbers up to 100
    np.testing.assert_allclose(got, want, atol=1e-8 * np.abs(want).max(), rtol=1e-8)
    whole = theory.tangent_kernel(model, X, measure=cloud)
    np.testing.assert_allclose(whole, theory.tangent_kernel(model, X, X, measure=cloud), rtol=1e-13)
    assert (whole == whole.T).all()
    assert np.linalg.eigvalsh(whole).min() > -1e-12 * np.abs(whole).max()
    equal = theory.tangent_kernel(model, X, measure=theta)
    np.testing.assert_allclose(equal, theory.tangent_kernel(model, X, measure=mf.Cloud(theta)), rtol=1e-13)


def test_threads_change_no_bit_of_a_kernel():
    network = NETWORKS["gelu, a, b, sphere"]
    model, theta = model_of(network), neurons(network, 700)
    X, Y = np.random.default_rng(1).normal(size=(2, 210, 4))
    for other in (None, Y):
        kernels = [theory.tangent_kernel(model, X, other, measure=theta, threads=k) for k in (1, 2, 3)]
        assert all((kernel == kernels[0]).all() for kernel in kernels)


LAWS = {
    "relu, radial": (NETWORKS["relu, a"], {"a": mf.init.Normal(0.5, 1.0), "w": mf.init.Radial(1.3)}),
    "erf, b normal": (
        NETWORKS["erf, a, b"],
        {"a": mf.init.Uniform(-1, 2), "b": mf.init.Normal(0.3, 0.7), "w": mf.init.Normal(0.0, 0.6)},
    ),
    "tanh, b uniform": (
        NETWORKS["tanh, fixed a, b"],
        {"a": mf.init.Constant(1.5), "b": mf.init.Uniform(-1, 1), "w": mf.init.Radial(1.3)},
    ),
    "tanh, fixed b": (
        NETWORKS["tanh, a, fixed b"],
        {"a": mf.init.Normal(0.5, 1.0), "b": mf.init.Normal(0.3, 0.7), "w": mf.init.Radial(1.3)},
    ),
    "gelu, fixed b, on the sphere": (
        NETWORKS["gelu, fixed b, sphere"],
        {"b": mf.init.Uniform(-0.5, 0.5), "w": mf.init.Radial(1.0)},
    ),
    "kinks, b constant": (
        mf.Network(mf.activations.piecewise_linear([-0.5, 0.5], [-0.3, 1.0]), bias="trained"),
        {"b": mf.init.Constant(0.2), "w": mf.init.Radial(0.9)},
    ),
    "relu, sphere law": (NETWORKS["relu, a"], {"a": mf.init.Constant(1.0), "w": mf.init.Sphere(1.7)}),
    "gelu, on the sphere": (
        NETWORKS["gelu, a, b, sphere"],
        {"a": mf.init.Normal(0.0, 1.0), "b": mf.init.Uniform(-0.5, 0.5), "w": mf.init.Radial(1.0)},
    ),
    "relu, on the sphere": (
        mf.Network(mf.activations.relu, sphere=True),
        {"w": mf.init.Sphere(1.0)},
    ),
    "hermite, on the sphere": (NETWORKS["hermite, sphere"], {"w": mf.init.Radial(1.0)}),
}


@pytest.mark.parametrize(("network", "blocks"), LAWS.values(), ids=LAWS)
def test_many_neurons_have_the_kernel_of_infinitely_many(network, blocks):
    law = mf.init.Product(**blocks)
    model = model_of(network).replace(init=law)
    X = np.random.default_rng(2).normal(size=(5, 4))
    X[1] = X[0]  # parallel inputs are the hard ones
    X[2] = -0.5 * X[0]
    want = theory.tangent_kernel(model, X)
    f0 = mf.predict(model, mf.TangentLimit(X, np.zeros(5)), X)
    batches = [law.sample(network, 4, 20_000, rng=k) for k in range(16)]
    for found, exact in (
        ([theory.tangent_kernel(model, X, measure=rows) for rows in batches], want),
        ([mf.predict(model, rows, X) for rows in batches], f0),
    ):
        spread = np.std(found, axis=0, ddof=1) / 4
        # 5 standard errors from 16 batches: wrong once in 1e4 seeds for each of up to 20 numbers
        assert (np.abs(np.mean(found, axis=0) - exact) <= 6 * spread + 1e-12).all()


def test_the_kernel_of_neurons_tends_to_that_of_infinitely_many_as_one_over_the_root_of_their_number():
    network, blocks = LAWS["erf, b normal"]
    law = mf.init.Product(**blocks)
    model = model_of(network).replace(init=law)
    X = np.random.default_rng(3).normal(size=(6, 4))
    want, gaps = theory.tangent_kernel(model, X), []
    for count in (100, 1600):
        draws = [law.sample(network, 4, count, rng=k) for k in range(24)]
        found = np.array([theory.tangent_kernel(model, X, measure=rows) for rows in draws])
        gaps.append(np.sqrt(np.mean((found - want) ** 2)))
    # The ratio is 4; of 24 draws each its logarithm has standard deviation 0.15 or less: 5 of them
    assert 4 * math.exp(-0.75) < gaps[0] / gaps[1] < 4 * math.exp(0.75)


def test_relu_at_infinite_width_has_the_arc_cosine_form():
    model = model_of(mf.Network(mf.activations.relu, output="trained", scale=2.0)).replace(
        rates=None, init=mf.init.Product(a=mf.init.Normal(1.0, 2.0), w=mf.init.Radial(1.3))
    )
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[3] = X[2] * (1 + 1e-12) + 1e-9 * X[1]
    norms = np.linalg.norm(X, axis=1)
    unit = X / norms[:, None]
    # the angle by the tangent of its half: exact for nearly parallel inputs too
    phi = 2 * np.arctan2(
        np.linalg.norm(unit[:, None] - unit, axis=2), np.linalg.norm(unit[:, None] + unit, axis=2)
    )
    size = np.multiply.outer(norms, norms)
    slopes = (math.pi - phi) / (2 * math.pi)
    values = 1.3**2 / 4 * size / (2 * math.pi) * (np.sin(phi) + (math.pi - phi) * np.cos(phi))
    want = 4 * (values + 5.0 * (X @ X.T) * slopes)
    np.testing.assert_allclose(theory.tangent_kernel(model, X), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sigma", [mf.activations.tanh, mf.activations.erf, mf.activations.softplus])
def test_quadrature_over_the_sphere_is_that_of_the_gaussian_averaged_over_radii(sigma):
    """N(0, I/d) is spheres of radii χ_d/√d: a mean over radii of their kernels is the Gaussian one."""
    d = 3
    network = mf.Network(sigma, output="trained")
    X = np.random.default_rng(0).normal(size=(4, d))

    def of(w):
        law = mf.init.Product(a=mf.init.Constant(1.0), w=w)
        return theory.tangent_kernel(model_of(network, d).replace(rates=None, init=law), X)

    nodes, weights = mf.init.Chi(d, 0.5 / math.sqrt(d)).quadrature(24)
    mean = sum(p * of(mf.init.Sphere(float(r))) for r, p in zip(nodes[:, 0], weights, strict=True))
    # The rule over radii is for even functions, as means over spheres are; 24 nodes leave 1e-8.
    np.testing.assert_allclose(mean, of(mf.init.Radial(0.5)), rtol=1e-7)


@pytest.mark.parametrize("name", ["erf", "tanh", "sigmoid", "softplus", "gelu", "silu", "sin", "cos"])
@pytest.mark.parametrize("size", [0.5, 3.0, 40.0, 1000.0])
def test_slopes_of_parallel_inputs_are_integrals_over_one_number(name, size):
    sigma = getattr(mf.activations, name)
    model = model_of(mf.Network(sigma)).replace(rates=None, init=mf.init.Gaussian(1.0))
    x = size * np.array([[0.6, 0.0, 0.8, 0.0]])
    g = np.linspace(-9, 9, 200_001)
    for factor in (1.0, -1.3):
        slopes = sigma.derivative(size * g) * sigma.derivative(factor * size * g)
        want = factor * size**2 * (slopes @ np.exp(-g * g / 2)) * (g[1] - g[0]) / math.sqrt(2 * math.pi)
        got = theory.tangent_kernel(model, x, factor * x)[0, 0]
        assert math.isclose(got, want, rel_tol=1e-10, abs_tol=1e-13 * size**2)  # of waves nothing is left


def test_one_dimension_is_two_points():
    network = mf.Network(mf.activations.tanh, sphere=False)
    model = model_of(network, 1).replace(rates=None, init=mf.init.Sphere(0.7))
    X = np.array([[1.0], [-2.0]])
    both = theory.tangent_kernel(model, X, measure=[[0.7], [-0.7]])
    np.testing.assert_allclose(theory.tangent_kernel(model, X), both, rtol=1e-14)


def test_pairs_have_the_kernel_of_their_law():
    law = mf.init.Product(a=mf.init.Uniform(0, 2), w=mf.init.Radial(1.0))
    model = model_of(NETWORKS["relu, a"]).replace(init=law)
    X = np.random.default_rng(0).normal(size=(3, 4))
    paired = model.replace(init=mf.init.Paired(law))
    np.testing.assert_allclose(theory.tangent_kernel(model, X), theory.tangent_kernel(paired, X), rtol=1e-14)


def test_what_has_no_kernel_is_refused_in_words():
    X = np.zeros((2, 4)) + 1.0
    with pytest.raises(ValueError, match="measure must be given for a model without initial law"):
        theory.tangent_kernel(model_of(NETWORKS["relu"]), X)
    plain = mf.Network(mf.activations.relu)
    kinks = mf.Network(mf.activations.custom(np.abs, slope=np.sign, kinks=[0.0]))
    for network, init, words in (
        (plain, mf.init.Product(w=mf.init.Uniform(-1, 1)), "Radial.norm."),
        (plain, mf.init.Product(w=mf.init.Normal(1.0, 1.0)), "Radial.norm."),
        (kinks, mf.init.Sphere(1.0), "smooth or piecewise linear activation"),
    ):
        with pytest.raises(ValueError, match=words):
            theory.tangent_kernel(model_of(network).replace(rates=None, init=init), X)
    reduced = mf.Cloud([[1.0, 2.0]])
    model = mf.Model(mf.data.AnisotropicGaussians(d=4, delta=0.5, s0=2), plain)
    with pytest.raises(ValueError, match="measure must hold neurons"):
        theory.tangent_kernel(model, X, measure=reduced)
    with pytest.raises(ValueError, match="X must have shape"):
        theory.tangent_kernel(model, X[:, :3], measure=[[1.0, 2.0, 3.0, 4.0]])


def test_given_points_are_the_measure():
    theta = np.random.default_rng(0).normal(size=(3, 4))
    model = model_of(NETWORKS["relu"]).replace(init=mf.init.Points(theta))
    X, Y = np.random.default_rng(1).normal(size=(2, 3, 4))
    assert (theory.tangent_kernel(model, X) == theory.tangent_kernel(model, X, measure=theta)).all()
    assert (theory.tangent_kernel(model, X, Y) == theory.tangent_kernel(model, X, Y, measure=theta)).all()


def test_a_fixed_bias_has_no_part_in_the_kernel_of_infinitely_many_neurons():
    network, blocks = LAWS["tanh, fixed b"]
    model = model_of(network).replace(init=mf.init.Product(**blocks))
    trained = model.replace(
        network=mf.Network(network.activation, output="trained", bias="trained", scale=2.0)
    )
    X = np.random.default_rng(0).normal(size=(5, 4))
    found, every = theory.tangent_kernel(model, X), theory.tangent_kernel(trained, X)
    without = theory.tangent_kernel(trained, X, blocks=("a", "w"))
    np.testing.assert_allclose(found, without, rtol=1e-13)
    assert np.linalg.norm(every - found) > 0.05 * np.linalg.norm(found)


def test_the_spectrum_of_a_model_is_that_of_its_kernel():
    d = 6
    model = model_of(mf.Network(mf.activations.relu), d).replace(rates=None, init=mf.init.Radial(1.0))
    of_model = theory.zonal_spectrum(model, d, degree=4)
    arc = theory.zonal_spectrum(lambda u: d * u * (math.pi - np.arccos(u)) / (2 * math.pi), d, degree=4)
    np.testing.assert_allclose(of_model.eigenvalues, arc.eigenvalues, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="d must be 6"):
        theory.zonal_spectrum(model, 5, degree=2)


def test_the_spectrum_of_a_model_with_a_fixed_bias_is_that_of_what_trains():
    d, law = 6, mf.init.Product(b=mf.init.Normal(0.0, 1.0), w=mf.init.Radial(1.0))
    fixed, trained = (
        mf.Model(mf.data.IsotropicGaussians(d=d, delta=0.5), mf.Network(mf.activations.tanh, bias=bias), law)
        for bias in ("fixed", "trained")
    )
    found, every = (theory.zonal_spectrum(model, d, degree=4) for model in (fixed, trained))
    want = theory.zonal_spectrum(trained, d, degree=4, blocks="w")
    np.testing.assert_allclose(found.eigenvalues, want.eigenvalues, rtol=1e-12, atol=1e-14)
    assert every.eigenvalues[0] > 1.5 * found.eigenvalues[0]
    data = mf.data.MultiIndex(d, [0.0, 1.0], 1, inputs="sphere")
    options = {"samples": 20, "ridge": 0.1, "draws": 2, "test": 50, "rng": 0}
    for neurons in (math.inf, 30):
        one = theory.kernel_ridge(fixed, data, neurons=neurons, **options)
        two = theory.kernel_ridge(trained, data, neurons=neurons, blocks="w", **options)
        np.testing.assert_allclose(one.risk, two.risk, rtol=1e-9)


def test_the_kernel_of_given_points_is_none_of_the_angle():
    model = model_of(NETWORKS["relu"], 6).replace(rates=None, init=mf.init.Points(np.eye(6)))
    with pytest.raises(
        ValueError, match="kernel must have an initial law whose w has no preferred direction"
    ):
        theory.zonal_spectrum(model, 6, degree=2)


@pytest.mark.parametrize("blocks", [-1e200, (), ["x"], [[]], [1.0], len])
def test_blocks_that_are_not_trained_are_refused_by_name(blocks):
    model = model_of(mf.Network(mf.activations.relu, output="trained"))
    with pytest.raises(ValueError, match=r"^blocks must be some of the trained ones \(a, w\), got"):
        theory.tangent_kernel(model, np.eye(4), measure=np.ones((2, 5)), blocks=blocks)


@pytest.mark.parametrize(
    "sigma", [mf.activations.relu, mf.activations.erf, mf.activations.sin, mf.activations.tanh]
)
@pytest.mark.parametrize("bias", ["none", "trained"])
def test_kernels_of_inputs_with_themselves_are_those_with_copies_to_the_bit_and_symmetric(sigma, bias):
    # each pair is computed once, in tiles of 64 rows and 240 columns
    law = mf.init.Product(
        a=mf.init.Normal(0.0, 1.5),
        b=mf.init.Constant(0.3) if bias == "trained" else None,
        w=mf.init.Radial(1.3),
    )
    network = mf.Network(sigma, output="trained", bias=bias)
    model = mf.Model(mf.data.Linear(np.zeros(20)), network, law)
    X = np.random.default_rng(0).normal(size=(251, 20))
    X[17], X[100] = X[3], -2 * X[99]
    K = theory.tangent_kernel(model, X, threads=1)
    assert np.array_equal(K, theory.tangent_kernel(model, X, threads=3))
    assert np.array_equal(K, K.T) or sigma is mf.activations.tanh or bias == "trained"
    np.testing.assert_allclose(K, theory.tangent_kernel(model, X, X.copy()), rtol=1e-14, atol=1e-13)
