"""A project in C alone finds mfcore, and every function of mfcore.h computes what Python does."""

import mfcore as mf
import numpy as np
import pytest
from mfcore import _core
from mfcore._base import build
from mfcore._base.rng import seed_of

START = np.array([[1.0, 0.1, 0.5, -0.3], [-0.5, 0.2, -0.4, 0.8], [0.7, 0.0, 0.3, 0.6]])
X = np.array([[1.0, 0.5], [-0.5, 1.5], [0.25, -1.0], [-1.0, -0.75]])
Y = np.array([1.0, -1.0, 0.5, 0.25])
EDGES = np.linspace(0.0, 2.0, 41)


ACTIVATIONS = {
    "tanh": mf.activations.tanh,
    "piecewise_linear": mf.activations.piecewise_linear(
        knots=[-0.5, 0.5], values=[0.0, 1.5], left_slope=0.5, right_slope=0.0
    ),
    "polynomial": mf.activations.polynomial([0.1, 0.5, 0.25]),
    "hermite": mf.activations.hermite([0.1, 0.5, 0.25]),
    "custom": mf.activations.expression("sin(1.5*z)"),
}


@pytest.fixture(scope="module")
def printed(source, tmp_path_factory, run):
    """What tests/embed/only_c prints: its lines."""
    folder = tmp_path_factory.mktemp("only_c")
    for command in (
        ("cmake", "-S", source / "tests" / "embed" / "only_c", "-B", folder, "-G", "Ninja",
         f"-Dmfcore_DIR={build.get_cmake_dir()}"),
        ("cmake", "--build", folder),
    ):  # fmt: skip
        made = run(*command)
        assert made.returncode == 0, made.stdout + made.stderr
    assert "CMAKE_CXX_COMPILER:" not in (folder / "CMakeCache.txt").read_text()
    ran = run(folder / "everything", seed_of(7))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def numbers(printed, name):
    (line,) = (line for line in printed if line.startswith(f"{name} "))
    return np.array(line.split()[1:], dtype=float)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_networks_learn_with_rates_scale_and_forces_as_in_python(name, printed):
    network = mf.Network(ACTIVATIONS[name], output="trained", bias="trained", scale=3.0)
    theta = START.copy()
    stepper = mf.steppers.SGD(
        network, theta, ridge=0.1, temperature=0.01, rates={"a": 2.0, "b": 0.5, "w": 1.5}, rng=7, threads=1
    )
    for _ in range(3):
        stepper.step(X, Y, h=0.05)
    model = mf.Model(mf.data.Dataset(X, Y), network)
    # Levels, and functions of the sine, round differently: some operations on numbers of size 1.
    near = {"atol": 1e-13, "rtol": 1e-13}
    np.testing.assert_allclose(numbers(printed, f"{name}.theta"), theta.ravel(), **near)
    np.testing.assert_allclose(numbers(printed, f"{name}.f"), mf.predict(model, theta, X), **near)
    np.testing.assert_allclose(numbers(printed, f"{name}.value"), mf.psi(model, START, theta), **near)
    gradient = mf.grad_psi(model, START, theta)
    np.testing.assert_allclose(numbers(printed, f"{name}.gradient"), gradient.ravel(), **near)


class Cells:
    """The problem of `move` in the program: Phi = (z1, z1²) on a line, (z1, z1·z2) in a plane."""

    def __init__(self, axes):
        centres = (EDGES[1:] + EDGES[:-1]) / 2
        grids = np.meshgrid(*[centres] * axes, indexing="ij")
        self.z = np.stack([grid.ravel() for grid in grids], axis=1)
        middle = np.array([0.8, 1.2])[:axes]
        mass = np.exp(-20 * ((self.z - middle) ** 2).sum(axis=1))
        self.mass, self.shape = mass / mass.sum(), grids[0].shape
        self.rates = [1.0, 0.5][:axes]

    @staticmethod
    def features(z):
        return np.stack([z[:, 0], z[:, 0] * z[:, -1]], axis=1)

    def potential(self, mass):
        phi = self.features(self.z)
        return phi @ (np.array([0.75, 0.25]) * (mass @ phi - 1)) + 0.05 * (self.z**2).sum(axis=1)

    def risk(self, mass):
        return np.array([0.75, 0.25]) @ (mass @ self.features(self.z) - 1) ** 2

    def moved(self):
        """Steps of the steppers of Python, chosen as the program does."""
        model = mf.ReducedModel(
            coordinates=["u", "v"][: len(self.rates)], weights=[0.75, 0.25], targets=[1.0, 1.0],
            features=self.features, gradients=lambda z: np.zeros((len(z), 2, z.shape[1])), ridge=0.1,
            rates=self.rates,
        )  # fmt: skip
        mass = self.mass.reshape(self.shape).copy()
        one = mass.ndim == 1
        kind = mf.steppers.FiniteVolume1D if one else mf.steppers.FiniteVolume2D
        stepper = kind(model, EDGES if one else (EDGES, EDGES), mass)
        t = 0.0
        while t < 1:
            h = min(0.5 * stepper.bound, 0.001, 1 - t)
            stepper.step(h)
            t += h
        return mass.ravel()

    def diffused(self):
        """The same time with noise, by implicit steps in the potential before each."""
        axes = [_core.DiffusionAxis(EDGES.tolist(), rate=rate) for rate in self.rates]
        mass, t = self.mass, 0.0
        while t < 1:
            h = min(0.001, 1 - t)
            mass = _core.diffuse(axes, 0.05, self.potential(mass), h, mass, threads=1)
            t += h
        return mass


@pytest.mark.parametrize("name", ["line", "plane", "noisy-line", "noisy-plane"])
def test_densities_move_as_in_python(name, printed):
    cells = Cells(1 if name.endswith("line") else 2)
    expected = cells.diffused() if name.startswith("noisy") else cells.moved()
    mass = numbers(printed, f"{name}.mass")
    # Both leave out 1e-12 of the features, in potentials that 1000 steps add up to a time of 1.
    np.testing.assert_allclose(mass, expected, atol=1e-11, rtol=0)
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    risks = [cells.risk(cells.mass), cells.risk(expected)]
    np.testing.assert_allclose(numbers(printed, f"{name}.risk"), risks, atol=1e-11, rtol=0)


def test_mistakes_in_c_are_answered_with_argument_rule_and_value(printed):
    h = "h must be finite and >= 0, got -1"
    assert [line for line in printed if ": " in line] == [
        "no name: 1 name must not be null, got null",
        "name: 1 kind must name an activation, got rellu",
        "no coefficients: 1 count must be >= 1, got 0",
        "knots: 1 knots must be strictly increasing, got [1, -1.5]",
        "no function: 1 function must not be null, got null",
        "line beyond the bound: 1 h must be",
        f"line: 1 {h}",
        f"noisy-line: 1 {h}",
        "plane beyond the bound: 1 h must be",
        f"plane: 1 {h}",
        f"noisy-plane: 1 {h}",
        "axes: 1 axes must be 1 or 2, got 3",
        "density: 1 density must not be null, got null",
    ]
