"""Everything public travels between processes: an object of every public class, made as its users make it."""

import inspect
import pickle
import re
from functools import cache

import mfcore as mf
import numpy as np
import pytest
from mfcore import theory
from mfcore._base.registry import public_names

MODULES = (mf, mf.activations, mf.conventions, mf.data, mf.init, mf.steppers, mf.theory)
MODEL = mf.Model(
    mf.data.IsotropicGaussians(d=4, delta=0.5), mf.Network(mf.activations.relu), mf.init.Radial(1.0)
)
THETA = np.random.default_rng(1).normal(size=(3, 4))
DATA = mf.data.Dataset(THETA, THETA[:, 0])
LITTLE = mf.Model(
    mf.data.Dataset([[1.0], [2.0]], [1.0, -1.0]), mf.Network(mf.activations.tanh), mf.init.Gaussian(1.0)
)
PAIR = np.array([[0.3], [-0.5]])
SMOOTH = mf.Model(DATA, mf.Network(mf.activations.tanh, output="trained", scale=30.0), mf.init.Gaussian(1.0))


def source(n, rng):
    return rng.normal(size=(n, 4)), np.ones(n)


def positive(value):
    return value > 0


def first(networks):
    return networks[0]


def ramp(t):
    return 0.1 * t


METHODS = (
    *(mf.SGD(3, step=0.1), mf.GD(3, step=0.1), mf.Particles(3), mf.PDE(20), mf.Atoms()),
    *(mf.JKO(0.05, count=20), mf.Nonlinear(3, driver=mf.Atoms())),
)
LAYERS = mf.LayerWise(4, step=0.1, batch=5)
LAYERED = mf.Model(
    mf.data.Staircase(5, [(0,), (0, 1)]),
    mf.Network(mf.activations.hermite([0.0, 1.0, 1.0]), output="fixed"),
    mf.init.Product(a=mf.init.Constant(0.01), w=mf.init.Radial(1.0)),
)
LAZY = (mf.Linearized(4), mf.Linearized(np.inf))


@cache
def solved():
    """A short run of each method, on a model that it takes."""
    found = [mf.solve(MODEL, method, horizon=0.1, rng=0) for method in METHODS]
    found.append(mf.solve(LAYERED, LAYERS, horizon=1.0, save_at=2, rng=0))
    found.append(mf.solve(MODEL.replace(ridge=ramp), METHODS[1], horizon=0.1, rng=0))
    found.append(mf.solve(SMOOTH, mf.Particles(10), horizon=0.01, save_at=3, keep="all", rng=0))
    return found + [mf.solve(SMOOTH, method, horizon=0.01, rng=0) for method in LAZY]


def spectrum():
    return theory.zonal_spectrum(lambda u: 1 + u + u**2, 20, degree=2)


@cache
def ladder():
    return theory.ladder(MODEL, [4, 8], [0.1, 0.05], horizon=0.2, replicas=2, save_at=3, rng=0)


@cache
def stationary():
    return mf.gibbs(MODEL.replace(temperature=0.1, ridge=1.0), cells=40)


def near():
    """Of measures near a measure."""
    noisy = MODEL.replace(temperature=0.1, ridge=1.0)
    return [
        theory.stability(LITTLE, PAIR),
        *theory.fixed_points(LITTLE, starts=2),
        theory.relaxation(noisy, stationary().measure),
        theory.along(LITTLE, PAIR, -PAIR, points=3),
        theory.diagnose(LITTLE, PAIR, starts=2),
        *theory.bounds(LITTLE, PAIR, neurons=4, replicas=4),
        theory.fluctuations(LITTLE, 0.01, save_at=2, atoms=4),
    ]


def lazy():
    return [
        spectrum(),
        theory.regression_risk(spectrum(), [0, 1, 1], samples=[60, 600]),
        theory.laziness(SMOOTH, solved()[-3].final),
        bounds := theory.lazy_bounds(solved()[-3]),
        *(value for value in vars(bounds).values() if isinstance(value, theory.Bound)),
        theory.kernel_ridge(np.exp, mf.data.MultiIndex(5, [0.0, 1.0], 1), samples=[5], draws=2, rng=0),
    ]


def laws():
    law, start = mf.data, mf.init
    scalar = start.Normal(0.0, 1.0)
    scalars = [scalar, start.Constant(1.0), start.Uniform(0.0, 1.0), start.Chi(3.0), start.Symmetric(scalar)]
    return [
        *(DATA, MODEL.data, law.AnisotropicGaussians(d=6, delta=0.5, s0=2), law.Linear(np.ones(3))),
        *(law.MultiIndex(5, [0.0, 1.0], 1), law.Staircase(5, [[1], [1, 2]]), law.Stream(source)),
        law.Teacher(MODEL.network, THETA),
        law.GaussianMixture([[1.0, 0.0], [-1.0, 0.0]], [1.0, 0.5], [1.0, -1.0]),
        *scalars,
        *(start.Gaussian(1.0), start.Radial(1.0), start.Sphere(), start.Points(THETA)),
        *(start.Paired(start.Gaussian(1.0)), start.Product(a=scalar, w=start.Radial(1.0))),
    ]


def activations():
    made = mf.activations
    return [
        *(
            made.get(name)
            for name in ("relu", "tanh", "erf", "gelu", "linear", "sigmoid", "softplus", "silu", "sin", "cos")
        ),
        *(
            made.hermite([0.0, 1.0]),
            made.polynomial([0.0, 1.0]),
            made.piecewise_linear([0.0, 1.0], [0.0, 1.0]),
        ),
        *(made.expression("z**3"), made.custom(np.sin, slope=np.cos), made.relu.pieces),
    ]


def loops():
    edges, halves = np.linspace(0.0, 3.0, 5), np.linspace(0.0, 2.0, 3)
    law = mf.data.AnisotropicGaussians(d=np.inf, delta=0.5, fraction=0.2)
    plane = mf.Model(law, mf.Network(mf.activations.softplus)).reduce(nodes=6)
    return [
        mf.steppers.SGD(MODEL.network, THETA.copy()),
        mf.steppers.Flow(MODEL, THETA.copy()),
        mf.steppers.FiniteVolume1D(MODEL.reduce(), edges, np.full(4, 0.25)),
        mf.steppers.FiniteVolume2D(plane, (halves, halves), np.full((2, 2), 0.25)),
    ]


MAKERS = {
    "models": lambda: [
        *(MODEL, MODEL.network, MODEL.reduce(), MODEL.reduce(limit=True), mf.ReducedInit([0.5])),
        mf.explain(MODEL),
    ],
    "runs": solved,
    "methods": lambda: [*METHODS, LAYERS, *LAZY],
    "measures": lambda: [run.final for run in solved()] + [mf.Cloud(THETA), stationary().measure],
    "limits": lambda: [stationary(), mf.optimum(LITTLE), mf.certificate(LITTLE, PAIR)],
    "averages": lambda: [mf.Exact(), mf.MonteCarlo(9, rng=0), mf.estimate(MODEL, THETA, samples=9, rng=0)],
    "functions": lambda: [mf.Bisection("x", 0.0, 1.0, positive, 0.1), mf.all_replicas(first)],
    "conventions": lambda: [mf.conventions.mmn18(step=0.1)],
    "ladders": lambda: [
        ladder(),
        ladder().rates(),
        ladder().bound(),
        *ladder().rates().rates,
        theory.propose_step(MODEL, horizon=1.0),
    ],
    "near": near,
    "lazy": lazy,
    "laws": laws,
    "activations": activations,
    "steppers": loops,
}


@cache
def made(maker):
    return MAKERS[maker]()


ADDRESS = re.compile(" at 0x[0-9a-f]+")


@pytest.mark.parametrize("maker", MAKERS)
def test_it_comes_back_as_it_was(maker):
    for thing in made(maker):
        there = pickle.loads(pickle.dumps(thing))
        assert type(there) is type(thing)
        assert ADDRESS.sub("", repr(there)) == ADDRESS.sub("", repr(thing))


def test_a_stepper_goes_on_with_the_same_bits():
    sgd, flow, *grids = loops()
    x, y = np.ones(4), 1.0
    for one in (sgd, flow, *grids):
        moved = ("theta" if hasattr(one, "theta") else "mass", *((x, y) if one is sgd else ()))
        one.step(*moved[1:], 1e-4)
        other = pickle.loads(pickle.dumps(one))
        for stepper in (one, other):
            stepper.step(*moved[1:], 1e-4)
        assert np.array_equal(getattr(one, moved[0]), getattr(other, moved[0]))


def test_no_public_class_is_left_out():
    things = [thing for maker in MAKERS for thing in made(maker)]
    classes = {
        f"{module.__name__}.{name}": value
        for module in MODULES
        for name in public_names(module)
        if inspect.isclass(value := getattr(module, name)) and not getattr(value, "_is_protocol", False)
    }
    assert [name for name, value in classes.items() if not any(isinstance(t, value) for t in things)] == []
