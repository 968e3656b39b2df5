"""Problems that tests of several rooms solve, and what they ask of runs."""

import math

import mfcore as mf
import numpy as np

STEP = mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])
BENT = mf.activations.piecewise_linear(
    knots=[-1.0, 0.25, 2.0], values=[1.0, -0.5, 3.0], left_slope=-2.0, right_slope=0.75
)

# Of a reduced model: one coordinate z that is to fit 0 by z and 1 by z².
SQUARES = {
    "coordinates": ["z"],
    "weights": [0.5, 0.5],
    "targets": [0.0, 1.0],
    "features": lambda z: np.concatenate([z, z**2], axis=1),
    "gradients": lambda z: np.stack([np.ones_like(z), 2 * z], axis=1),
}


def shift(target=1.0, **options):
    """One coordinate z whose mean is to be the target: all mass moves alike."""
    return mf.ReducedModel(
        coordinates=["z"],
        weights=[1.0],
        targets=[target],
        features=lambda z: z,
        gradients=lambda z: np.ones((len(z), 1, 1)),
        **options,
    )


def density(t):
    """Of the standard normal law."""
    return np.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def erf_model(neurons=6, d=3, seed=0, output="trained", bias="trained", sphere=False, **options):
    """A smooth problem with an exact expectation: erf student of an erf teacher."""
    rng = np.random.default_rng(seed)
    network = mf.Network(mf.activations.erf, output=output, bias=bias, sphere=sphere)
    teacher = mf.Network(mf.activations.erf, output="trained")
    theta = rng.normal(size=(neurons, network.row(d)))
    if sphere:
        w = theta[:, network.row(0) :]
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    law = mf.data.Teacher(teacher, rng.normal(size=(2, d + 1)))
    return mf.Model(law, network, mf.init.Points(theta), **options)


def final(model, method, horizon, **options):
    """The final state of a run that completes."""
    run = mf.solve(model, method, horizon=horizon, save_at=[], risk=False, rng=0, **options)
    assert run.status == "completed"
    return run.final


def isotropic(d=40, activation=STEP, norm=0.4, delta=0.5, **options):
    """Two concentric Gaussian classes; neurons start on a sphere: one coordinate, r."""
    law = mf.data.IsotropicGaussians(d=d, delta=delta)
    return mf.Model(law, mf.Network(activation), mf.init.Radial(norm), **options)


def linear_model(neurons, d, seed=0, bias="none", **options):
    """A linear student of a linear target, on correlated inputs: a quadratic risk."""
    rng = np.random.default_rng(seed)
    law = mf.data.Linear(rng.normal(size=d), cov=np.diag(rng.uniform(0.5, 1.5, size=d)), noise=0.3)
    network = mf.Network(mf.activations.linear, bias=bias)
    return mf.Model(law, network, mf.init.Points(rng.normal(size=(neurons, network.row(d)))), **options)


def moments(density):
    """Mean and standard deviation of a measure of one coordinate."""
    cloud = density.as_cloud() if isinstance(density, mf.Density) else density
    mean = cloud.weights @ cloud.points[:, 0]
    return mean, math.sqrt(cloud.weights @ (cloud.points[:, 0] - mean) ** 2)


def orthonormal(d, k, seed=0):
    """k columns in R^d."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, k)))[0]


def product(z):
    """A link of two directions."""
    return z[:, 0] * z[:, 1] - z[:, 0]


def radius(target, **options):
    """One radius r ≥ 0 whose mean r̄ is to be `target`: Ψ = r·(r̄ − target)."""
    return mf.ReducedModel(
        coordinates=["r"],
        weights=[1.0],
        targets=[target],
        features=lambda z: z,
        gradients=lambda z: np.ones((len(z), 1, 1)),
        nonnegative=[True],
        **options,
    )


def same(run, other):
    """Whether two runs have the same bits."""
    return all(np.array_equal(getattr(run, name), getattr(other, name)) for name in ("t", "risk", "final"))


def source(n, rng):
    """Samples of a stream in R^7."""
    x = rng.uniform(-1, 1, size=(n, 7))
    return x, x[:, 0] - x[:, 1] ** 2


def waves(seed, k, **options):
    """Features sin(⟨v_q, z⟩ + c_q) at 5 nodes: potentials with many wells."""
    rng = np.random.default_rng(seed)
    v, c = rng.normal(0, 3, (5, k)), rng.uniform(0, 6, 5)
    return mf.ReducedModel(
        coordinates=[f"z{j}" for j in range(k)],
        weights=np.full(5, 0.2),
        targets=rng.normal(0, 2, 5),
        features=lambda z: np.sin(z @ v.T + c),
        gradients=lambda z: np.cos(z @ v.T + c)[:, :, None] * v,
        **options,
    )
