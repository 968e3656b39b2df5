"""Supports of initial laws, and their masses in the cells of a grid."""

import math

import mfcore as mf
import numpy as np
import pytest
from mfcore.init._blocks import Chi, Point, Scalar, SpherePoint, share_among_cells
from mfcore.reductions._init import ReducedInit

BLOCKS = {
    "normal": Scalar(mf.init.Normal(0.3, 2.0)),
    "uniform": Scalar(mf.init.Uniform(-1.0, 4.0)),
    "chi": Chi(40.0, 0.1),
    "chi in one dimension": Chi(1.0, 0.5),
    "sphere": SpherePoint(2.0, 1, (30.0,)),
    "two norms on a sphere": SpherePoint(1.0, 0, (10.0, 25.0)),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_all_of_a_law_but_a_trillionth_is_in_its_support(name):
    law = ReducedInit([BLOCKS[name]])
    points = law.sample(20_000, rng=1)  # one of them outside: odds of 4e-8
    for (low, high), column in zip(law.support(), points.T, strict=True):
        assert low <= column.min()
        assert column.max() <= high
        # 20000 draws come that near to quantiles of 1e-12: a Gaussian's are at 4 and 7 standard deviations.
        assert column.max() - column.min() > 0.3 * (high - low)


@pytest.mark.parametrize("name", BLOCKS)
def test_masses_of_cells_are_shares_of_a_sample(name):
    law = ReducedInit([BLOCKS[name]])
    edges = [np.linspace(low, high, 13) for low, high in law.support()]
    mass = law.cell_masses(edges)
    assert mass.shape == (12,) * len(edges)
    assert mass.min() >= 0
    assert abs(mass.sum() - 1) < 1e-14
    n = 100_000
    points = law.sample(n, rng=2)
    for c, e in enumerate(edges):
        count = np.histogram(points[:, c], e)[0] / n
        along = mass.sum(axis=tuple(i for i in range(len(edges)) if i != c))
        if len(edges) == 1:  # six standard deviations of a share: 12 cells, odds of 2e-8
            assert (np.abs(count - along) < 6 * np.sqrt(along / n) + 1e-9).all()
        else:  # nodes are put on two cells each, those beyond the last centre on the last
            centers = 0.5 * (e[1:] + e[:-1])
            assert abs(along @ centers - points[:, c].mean()) < 0.5 * (e[1] - e[0])


def test_points_are_shared_so_that_means_are_exact():
    edges = [np.linspace(-1, 1, 9), np.array([0.0, 0.5, 1.5, 2.0])]
    points = np.array([[0.3, 0.9], [-0.7, 1.2], [0.125, 0.25]])
    weights = np.array([0.5, 0.3, 0.2])
    cloud = mf.Density(edges, share_among_cells(points, weights, edges)).as_cloud()
    assert np.abs(cloud.weights @ cloud.points - weights @ points).max() < 1e-15
    outside = share_among_cells(np.array([[5.0, -3.0]]), np.ones(1), edges)
    assert outside[-1, 0] == 1.0


def test_known_coordinates_are_in_two_cells_and_products_of_blocks_are_products_of_masses():
    law = ReducedInit([Point((0.4,)), Scalar(mf.init.Normal())])
    assert law.support()[0] == (0.4, 0.4)
    edges = [np.linspace(0, 1, 6), np.linspace(-8, 8, 21)]
    mass = law.cell_masses(edges)
    assert np.count_nonzero(mass.sum(axis=1)) == 2
    assert abs(mass.sum(axis=1) @ np.arange(0.1, 1, 0.2) - 0.4) < 1e-15
    normal = Scalar(mf.init.Normal()).cell_masses(edges[1:])
    assert np.abs(mass - np.multiply.outer(mass.sum(axis=1), normal)).max() < 1e-16
    assert math.isclose(normal[10], 0.5 * math.erf(0.8 / math.sqrt(2)), rel_tol=1e-14)


def test_laws_of_init_and_numbers_make_up_an_initial_law():
    laws = [mf.init.Normal(0.3, 0.1), 2.0, mf.init.Chi(40, 0.2), mf.init.Uniform(-1, 1)]
    blocks = [Scalar(laws[0]), Point((2.0,)), laws[2], Scalar(laws[3])]
    found, wanted = ReducedInit(laws), ReducedInit(blocks)
    assert repr(found) == repr(wanted)
    assert np.array_equal(found.sample(5, rng=0), wanted.sample(5, rng=0))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "blocks must be a list with a law for each coordinate"),
        (mf.init.Normal(), "blocks must be a list with a law for each coordinate"),
        (["normal"], "blocks must be laws of one coordinate, such as mf.init.Normal"),
        ([mf.init.Radial(1.0)], "blocks must be laws of one coordinate"),
    ],
)
def test_what_is_no_initial_law_is_refused(blocks, message):
    with pytest.raises(TypeError, match=message):
        ReducedInit(blocks)


def test_an_initial_law_has_as_many_coordinates_as_its_model():
    with pytest.raises(
        ValueError, match="initial must be a law of 1 coordinates, as there are, got one of 2"
    ):
        mf.ReducedModel(
            coordinates=["z"],
            weights=[1.0],
            targets=[1.0],
            features=lambda z: z,
            initial=mf.ReducedInit([mf.init.Normal(), mf.init.Normal()]),
        )


def test_radii_of_no_dimension_or_size_are_refused():
    with pytest.raises(ValueError, match="d must be > 0, got 0"):
        mf.init.Chi(0)
    with pytest.raises(ValueError, match="scale must be > 0, got -1"):
        mf.init.Chi(3, -1.0)
