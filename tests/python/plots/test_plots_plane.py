"""Pictures in the plane of two coordinates: points where the neurons are, arrows where they go."""

import mfcore as mf
import numpy as np
import pytest
from mfcore import plots

PLANE = mf.Model(
    data=mf.data.AnisotropicGaussians(d=12, delta=0.5, s0=4),
    network=mf.Network(mf.activations.relu, bias="trained"),
    init=mf.init.Gaussian(std=0.5),
    rates={"b": 0.5},
)


@pytest.fixture(scope="module")
def run():
    return mf.solve(PLANE, mf.SGD(neurons=40, step=0.01), horizon=1.0, rng=0)


def test_particles_are_where_the_neurons_are_and_arrows_where_they_go(run):
    ax = plots.particles(run, coordinates=("b", "r2"), arrows=5)
    points, arrows = ax.collections
    z = np.stack(
        [run.final[:, 0], *(np.linalg.norm(run.final[:, c], axis=1) for c in (slice(1, 5), slice(5, 13)))]
    )
    assert np.array_equal(points.get_offsets(), z[[0, 2]].T)
    places = np.tile(z.mean(axis=1), (25, 1))
    places[:, [0, 2]] = np.stack([arrows.X, arrows.Y], axis=1)
    # The picture takes fewer nodes than this, for an accuracy of 1e-3.
    velocity = -mf.grad_psi(PLANE.reduce(nodes=40), places, mf.Cloud(z.T))[:, [0, 2]] * [0.5, 1.0]
    drawn = np.stack([arrows.U, arrows.V], axis=1)
    same = np.abs(drawn - velocity).max(axis=1) < 2e-3 * np.abs(velocity).max()
    assert same.mean() >= 0.85  # all but the fastest, one in ten of 25
    cut = (drawn[~same] / velocity[~same]).mean(axis=1)
    np.testing.assert_allclose(drawn[~same], velocity[~same] * cut[:, None], rtol=0.01)
    assert (cut < 1).all()
    assert ax.get_ylim()[0] >= 0


def test_particles_of_any_measure_and_model_are_drawn():
    rng = np.random.default_rng(0)
    reduced = mf.ReducedModel(
        coordinates=["u", "v"],
        weights=[1.0],
        targets=[1.0],
        features=lambda z: z[:, :1] * z[:, 1:],
        gradients=lambda z: z[:, None, ::-1],
    )
    cloud = mf.Cloud(rng.normal(size=(7, 2)))
    ax = plots.particles(cloud, reduced, arrows=0)
    assert np.array_equal(ax.collections[0].get_offsets(), cloud.points)
    density = mf.Density((np.linspace(0, 1, 4), np.linspace(0, 2, 3)), np.full((3, 2), 1 / 6))
    mesh = plots.particles(density, reduced, coordinates=("v", "u")).collections[0]
    assert np.array_equal(mesh.get_array(), density.density)
    radial = PLANE.replace(data=mf.data.IsotropicGaussians(d=12, delta=0.5), rates=None)
    radial = radial.replace(network=mf.Network(mf.activations.relu))
    line = mf.solve(radial, mf.SGD(neurons=4, step=0.01), horizon=0.1, rng=0)
    with pytest.raises(ValueError, match=r"model must have two coordinates to span a plane, got \(r\)"):
        plots.particles(line)
    with pytest.raises(TypeError, match="model must be given with a measure"):
        plots.particles(cloud)
    with pytest.raises(ValueError, match="coordinates must be one of 'u', 'v', got 'w'"):
        plots.particles(cloud, reduced, coordinates=("u", "w"))


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 2), (3, 4)])
def test_neurons_of_another_network_are_refused_by_their_shape(shape):
    model = mf.Model(
        mf.data.Dataset([[0.0], [1.0]], [0.0, 1.0]),
        mf.Network(mf.activations.tanh, output="trained", bias="trained"),
        mf.init.Gaussian(0.5),
    )
    with pytest.raises(ValueError, match=r"^measure must have rows of 3 parameters, got the shape \(3,"):
        mf.plots.particles(np.zeros(shape), model)


def test_a_measure_in_other_coordinates_is_refused_by_their_number(run):
    line = mf.Cloud([[0.5], [1.0]], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"^measure must be in the model's coordinates \(.*\), got 1"):
        plots.particles(line, run.meta["model"])
