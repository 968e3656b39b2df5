import enum
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]

class Activation:
    def __init__(
        self,
        kind: str,
        *,
        offset: float = ...,
        left_slope: float = ...,
        knots: Sequence[float] = ...,
        jumps: Sequence[float] = ...,
        coefficients: Sequence[float] = ...,
    ) -> None: ...
    @staticmethod
    def named(kind: str) -> Activation: ...
    @staticmethod
    def of_python(
        value: Callable[[_Array], Any],
        slope: Callable[[_Array], Any],
        curvature: Callable[[_Array], Any] | None,
        strip: float,
        kinks: Sequence[float],
    ) -> Activation: ...
    @staticmethod
    def of_spans(
        address: int, user: int, owner: object, curved: bool, strip: float, kinks: Sequence[float]
    ) -> Activation: ...
    @property
    def kind(self) -> str: ...
    @property
    def offset(self) -> float: ...
    @property
    def left_slope(self) -> float: ...
    @property
    def knots(self) -> list[float]: ...
    @property
    def jumps(self) -> list[float]: ...
    @property
    def coefficients(self) -> list[float]: ...
    @property
    def is_piecewise(self) -> bool: ...
    @property
    def facts(self) -> Facts: ...

class Facts:
    @property
    def parity(self) -> Literal["none", "even", "odd"]: ...
    @property
    def is_polynomial(self) -> bool: ...
    @property
    def degree(self) -> int: ...
    @property
    def strip(self) -> float: ...
    @property
    def growth(self) -> float: ...

def named_kinds() -> list[str]: ...
def evaluate(
    activation: Activation, z: npt.NDArray[Any], order: int = ..., out: npt.NDArray[Any] | None = ...
) -> npt.NDArray[Any]: ...

class Network:
    def __init__(
        self, activation: Activation, *, output: str = ..., bias: str = ..., sphere: bool = ...
    ) -> None: ...
    def row(self, d: int) -> int: ...

class Sampler:
    @property
    def dimension(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def concurrent(self) -> bool: ...
    def draw(self, seed: int, first: int, count: int) -> tuple[_Array, _Array]: ...

class Link:
    @property
    def dimension(self) -> int: ...
    def __call__(self, z: _Array) -> _Array: ...

# what ends calls early
class OutOfTime(KeyboardInterrupt): ...

class Deadline:
    def __init__(self, seconds: float) -> None: ...
    def open(self) -> None: ...
    def close(self) -> None: ...
    @property
    def expired(self) -> bool: ...

def check_stop() -> None: ...

# run
class End(enum.Enum):
    reached = 0
    out_of_time = 1
    interrupted = 2
    stationary = 3
    diverged = 4
    stuck = 5
    unresolved = 6
    open_end = 7

def resolve_threads(requested: int = ...) -> int: ...
def all_finite(x: _Array) -> bool: ...
def build_info() -> dict[str, Any]: ...
def fma_peak(threads: int = ..., single_precision: bool = ...) -> float: ...
def memory_bandwidth(threads: int = ...) -> float: ...

# random
PURPOSES: dict[str, int]

def philox4x32(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]: ...
def uniforms(
    seed: int, purpose: str | int, step: int, first: int, count: int, dtype: str = ...
) -> npt.NDArray[Any]: ...
def normals(
    seed: int, purpose: str | int, step: int, first: int, count: int, dtype: str = ...
) -> npt.NDArray[Any]: ...
def fill_rows(
    out: _Array,
    kind: str,
    shift: float,
    scale: float,
    seed: int,
    purpose: str | int,
    step: int,
    threads: int = ...,
    first: int = ...,
) -> None: ...
def chi_squares(seed: int, step: int, degrees: float, first: int, count: int) -> _Array: ...
def signs(seed: int, purpose: str | int, step: int, first: int, count: int) -> _Array: ...
def permutation(seed: int, purpose: str | int, step: int, n: int) -> npt.NDArray[np.int64]: ...

# data
def hermite_link(p: int, terms: list[tuple[float, list[tuple[int, int]]]]) -> Link: ...
def python_link(p: int, function: Callable[[_Array], _Array]) -> Link: ...
def network_link(network: Network, theta: _Array, d: int) -> Link: ...
def isotropic_gaussians(d: int, delta: float) -> Sampler: ...
def anisotropic_gaussians(d: int, s0: int, delta: float, basis: _Array | None = ...) -> Sampler: ...
def multi_index(
    inputs: str,
    d: int,
    link: Link,
    directions: _Array | None = ...,
    noise: float = ...,
    root: _Array | None = ...,
) -> Sampler: ...
def gaussian_mixture(means: _Array, roots: list[_Array], labels: _Array, weights: _Array) -> Sampler: ...
def linear_law(w: _Array, root: _Array | None = ..., noise: float = ...) -> Sampler: ...
def cube_nodes(d: int, link: Link, directions: _Array | None = ...) -> Sampler: ...
def finite_law(X: _Array, y: _Array) -> Sampler: ...
def scaled_labels(law: Sampler, factor: float) -> Sampler: ...
def passes(nodes: Sampler) -> Sampler: ...
def resampled(nodes: Sampler) -> Sampler: ...
def python_sampler(d: int, draw: Callable[[int, int, int], tuple[_Array, _Array]]) -> Sampler: ...

# exact Gaussian expectations
def smooth(activation: Activation, m: _Array, R: _Array) -> tuple[_Array, _Array, _Array]: ...
def slope_coefficients(activation: Activation, m: _Array, R: _Array, count: int) -> _Array: ...
def bivariate_normal(h: _Array, k: _Array, rho: _Array) -> _Array: ...
def has_exact_pairs(first: Activation, second: Activation) -> bool: ...
def pair_matrix(
    network: Network,
    theta: _Array,
    other: _Array,
    threads: int = ...,
    *,
    other_network: Network | None = ...,
) -> _Array: ...
def pair_nanoseconds(network: Network) -> float: ...
def pair_slopes(network: Network, theta: _Array, other: _Array, threads: int = ...) -> _Array: ...
def pair_kernel(
    network: Network,
    theta: _Array,
    other: _Array,
    value: float,
    constant: float,
    along: float,
    threads: int = ...,
) -> _Array: ...
def pair_potential(
    network: Network,
    theta: _Array,
    other: _Array,
    weights: _Array,
    want_grad: bool = ...,
    threads: int = ...,
    *,
    other_network: Network | None = ...,
) -> tuple[_Array, Any]: ...
def own_potential(
    network: Network,
    theta: _Array,
    weights: _Array,
    shares: Sequence[float],
    ends: Sequence[int],
    scales: Sequence[float],
    want_grad: bool = ...,
    threads: int = ...,
) -> tuple[_Array, Any]: ...

# reductions
def gauss_gegenbauer(d: float, n: int) -> tuple[_Array, _Array]: ...
def gauss_chi(d: float, n: int) -> tuple[_Array, _Array]: ...
def gauss_hermite(n: int) -> tuple[_Array, _Array]: ...
def gauss_legendre(n: int) -> tuple[_Array, _Array]: ...
def panels_chi(d: float, panels: int) -> tuple[_Array, _Array]: ...
def chi_rule(d: float) -> tuple[_Array, _Array]: ...
def angle_rule(d: float, spacing: float) -> tuple[_Array, _Array]: ...
def direction_tail(d: npt.ArrayLike, tau: npt.ArrayLike) -> Any: ...
def direction_moment(d: npt.ArrayLike, tau: npt.ArrayLike) -> Any: ...
def direction_density(d: npt.ArrayLike, tau: npt.ArrayLike) -> Any: ...
def compress(values: _Array, tolerance: float) -> tuple[_Array, _Array, float]: ...
def product(a: _Array, b: _Array) -> _Array: ...
def qr(a: _Array) -> tuple[_Array, _Array]: ...
def svd(a: _Array) -> tuple[_Array, _Array, _Array]: ...
def pivots(a: _Array) -> list[int]: ...
def solve_lower(lower: _Array, b: _Array) -> _Array: ...

class Smoother:
    def __init__(self, activation: Activation, d: float) -> None: ...
    def evaluate(self, m: _Array, R: _Array) -> tuple[_Array, _Array, _Array]: ...
    def curvature(self, m: _Array, R: _Array) -> tuple[_Array, _Array, _Array]: ...

class ChiPanels:
    def __init__(self, d: float, panels: int = ...) -> None: ...
    @property
    def panels(self) -> int: ...
    @property
    def rule(self) -> tuple[_Array, _Array]: ...

class NormalPanels:
    def __init__(self, panels: int, end: float = ...) -> None: ...
    @property
    def panels(self) -> int: ...
    @property
    def end(self) -> float: ...
    @property
    def rule(self) -> tuple[_Array, _Array]: ...

class ReducedFeatures:
    def __init__(
        self,
        activation: Activation,
        *,
        has_a: bool,
        has_b: bool,
        dims: list[float],
        nodes: _Array,
        panels: ChiPanels | None = ...,
        along: NormalPanels | None = ...,
        scale: float = ...,
        centres: list[float] = ...,
    ) -> None: ...
    @property
    def coordinates(self) -> int: ...
    @property
    def size(self) -> int: ...
    def features(self, z: _Array, threads: int = ...) -> _Array: ...
    def gradients(self, z: _Array, threads: int = ...) -> _Array: ...
    @property
    def nanoseconds(self) -> int: ...

class SeparableFeatures:
    def __init__(
        self, axes: list[tuple[_Array, _Array, bool]], core: _Array, target: list[float], rest: float
    ) -> None: ...
    @property
    def coordinates(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def columns(self) -> int: ...
    def basis(self, coordinate: int, z: _Array, order: int = ...) -> tuple[_Array, int]: ...
    def moments(self, z: _Array, weights: _Array | None = ..., threads: int = ...) -> tuple[_Array, int]: ...
    def residual(self, moments: _Array, threads: int = ...) -> tuple[_Array, float]: ...
    def potential(
        self, coefficients: _Array, z: _Array, order: int = ..., threads: int = ...
    ) -> tuple[_Array, _Array, _Array, int]: ...

# features and estimates
def predict(
    network: Network, points: _Array, weights: _Array | None, X: _Array, threads: int = ...
) -> _Array: ...
def potential(
    network: Network,
    theta: _Array,
    points: _Array | None,
    weights: _Array | None,
    sampler: Sampler,
    seed: int,
    samples: int,
    *,
    value: bool = ...,
    gradient: bool = ...,
    threads: int = ...,
) -> tuple[Any, Any, float]: ...
def estimate(
    network: Network,
    theta: _Array,
    sampler: Sampler,
    seed: int,
    samples: int,
    *,
    chunk: int = ...,
    interactions: bool = ...,
    gradient: bool = ...,
    threads: int = ...,
) -> dict[str, Any]: ...
def interaction(
    network: Network,
    theta: _Array,
    other: _Array,
    sampler: Sampler,
    seed: int,
    samples: int,
    *,
    threads: int = ...,
) -> _Array: ...
def tangent_kernel(
    network: Network,
    points: _Array,
    weights: _Array | None,
    rates: tuple[float, float, float],
    X: _Array,
    other: _Array | None = ...,
    threads: int = ...,
) -> _Array: ...

# dynamics
class Sgd:
    def __init__(
        self,
        network: Network,
        starts: Sequence[_Array | Callable[[int, int], _Array]],
        samplers: list[Sampler],
        seeds: list[int],
        step: float | tuple[float, int, float] | Callable[[int, int], _Array],
        *,
        batch: int = ...,
        ridge: float = ...,
        temperature: float = ...,
        rates: tuple[float, float, float] = ...,
        block: int = ...,
        single_precision: bool = ...,
        threads: int = ...,
        neurons: int = ...,
    ) -> None: ...
    def advance(self, step: int, seconds: float = ...) -> End: ...
    def predict(self, x: _Array) -> list[_Array]: ...
    def state(self) -> dict[str, npt.NDArray[Any]]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    @property
    def steps(self) -> list[int]: ...
    @property
    def diverged_at(self) -> list[int]: ...
    @property
    def block_steps(self) -> int: ...
    def theta(self) -> list[_Array]: ...

class LayerWise:
    def __init__(
        self,
        network: Network,
        start: _Array,
        sampler: Sampler,
        seed: int,
        step: float | tuple[float, int, float] | Callable[[int, int], _Array],
        *,
        batch: int = ...,
        reach: float = ...,
        clip: float = ...,
        rate: float = ...,
    ) -> None: ...
    def advance(self, step: int, seconds: float = ..., threads: int = ...) -> End: ...
    def state(self) -> dict[str, npt.NDArray[Any]]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    @property
    def step(self) -> int: ...
    @property
    def found(self) -> int: ...
    def theta(self) -> _Array: ...

class Apex:
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(self, activation: Activation, columns: list[int], bias: int, speed: list[float]) -> None: ...

class AtomParams:
    def __init__(
        self,
        *,
        rates: list[float],
        decays: list[bool],
        nonnegative: list[bool],
        volume: list[float],
        ridge: float,
        low: list[float] = ...,
        high: list[float] = ...,
        apex: Apex = ...,
    ) -> None: ...

class Panels:
    @overload
    def __init__(self) -> None: ...
    @overload
    def __init__(
        self, *, nodes: int, tail: list[float], weight: list[float], rtol: float, atol: float, at_wall: float
    ) -> None: ...
    def tails(self, z: _Array, nonnegative: Sequence[bool]) -> tuple[_Array, _Array]: ...

class System:
    @staticmethod
    def nodes(
        network: Network,
        neurons: int,
        ridge: float,
        rates: tuple[float, float, float],
        sampler: Sampler,
        seed: int,
        samples: int,
        threads: int = ...,
        masses: Sequence[float] | _Array = ...,
    ) -> System: ...
    @staticmethod
    def calling(
        network: Network,
        neurons: int,
        d: int,
        ridge: float,
        rates: tuple[float, float, float],
        gradient: Callable[[_Array], _Array],
        threads: int = ...,
    ) -> System: ...
    @staticmethod
    def atoms(
        features: ReducedFeatures,
        weights: list[float],
        targets: list[float],
        masses: list[float],
        params: AtomParams,
        panels: Panels = ...,
        threads: int = ...,
    ) -> System: ...
    @staticmethod
    def atoms_separable(
        features: SeparableFeatures,
        masses: list[float],
        params: AtomParams,
        panels: Panels = ...,
        threads: int = ...,
    ) -> System: ...
    @staticmethod
    def atoms_calling(
        gradient: Callable[[_Array], _Array],
        masses: list[float],
        params: AtomParams,
        panels: Panels = ...,
    ) -> System: ...
    @staticmethod
    def function(
        speed: Sequence[float] | _Array,
        velocity: Callable[[_Array], _Array],
        nonnegative: Sequence[bool] | npt.NDArray[np.bool_] = ...,
        apex: Apex = ...,
        row: int = ...,
    ) -> System: ...
    @property
    def size(self) -> int: ...
    @property
    def speed(self) -> list[float]: ...
    def resting_radius(self, start: _Array, rtol: float) -> float: ...
    def folded(self, delta: float) -> System: ...
    def fold(self, theta: _Array) -> _Array: ...
    def unfold(self, y: _Array) -> _Array: ...
    def __call__(self, theta: _Array) -> _Array: ...

def factors_of_table(table: _Array, last: int, tolerance: float) -> tuple[_Array, _Array, _Array, _Array]: ...
def fewer_factors(
    first: _Array, second: _Array, core: _Array, nodes: _Array, tolerance: float
) -> tuple[_Array, _Array, _Array, _Array]: ...
def column_span(table: _Array, tolerance: float) -> tuple[_Array, _Array]: ...
def factors_of_line(table: _Array, tolerance: float) -> tuple[_Array, _Array, _Array]: ...

class GridPotential:
    def __init__(
        self,
        first: _Array,
        *,
        second: _Array | None = ...,
        core: _Array | None = ...,
        shift: _Array,
        floor: float,
        decay: _Array,
        threads: int = ...,
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    def potential(self, mass: _Array) -> _Array: ...
    def moments(self, mass: _Array) -> _Array: ...
    def risk(self, mass: _Array) -> float: ...

class GridAxis:
    def __init__(self, width: _Array, conductance: _Array, watched: list[int] = ...) -> None: ...

class GridStepper:
    def __init__(self, potential: GridPotential, axes: list[GridAxis], scheme: str) -> None: ...
    def run(self, mass: _Array, dt: float, steps: int) -> tuple[int, float]: ...
    def bound(self, mass: _Array) -> float: ...

class Flow:
    @staticmethod
    def fixed(
        system: System,
        start: _Array,
        scheme: str,
        step: float,
        *,
        temperature: float = ...,
        seed: int = ...,
        tolerance: float = ...,
        threads: int = ...,
    ) -> Flow: ...
    @staticmethod
    def dopri5(
        system: System,
        start: _Array,
        *,
        rtol: float,
        atol: float,
        tolerance: float = ...,
        first_step: float = ...,
    ) -> Flow: ...
    @staticmethod
    def finite_volume(
        potential: GridPotential,
        axes: list[GridAxis],
        start: _Array,
        scheme: str,
        *,
        t: float = ...,
        first: float = ...,
        step: float = ...,
        accuracy: float = ...,
        tolerance: float = ...,
        most_watched: float = ...,
    ) -> Flow: ...
    def advance(self, t: float, seconds: float = ...) -> End: ...
    def finish(self, t: float) -> End: ...
    def state(self) -> dict[str, _Array]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    @property
    def t(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def limiting_row(self) -> int: ...
    @property
    def risk_error(self) -> float: ...
    def refused(self) -> _Array: ...
    @property
    def evaluations(self) -> int: ...
    def values(self) -> _Array: ...

class DiffusionAxis:
    def __init__(
        self,
        edges: npt.ArrayLike,
        *,
        rate: float = ...,
        volume: float = ...,
        watched: Sequence[int] = ...,
    ) -> None: ...

class FokkerPlanck(Flow):
    def __init__(
        self,
        potential: GridPotential,
        axes: Sequence[DiffusionAxis],
        start: _Array,
        *,
        temperature: float,
        t: float = ...,
        rtol: float,
        first: float = ...,
        step: float = ...,
        order: int = ...,
        coupling: str = ...,
        tolerance: float = ...,
        most_watched: float = ...,
        threads: int = ...,
    ) -> None: ...
    @property
    def free_energy(self) -> float: ...
    @property
    def risk(self) -> float: ...
    @property
    def dissipation(self) -> float: ...
    @property
    def largest_rise(self) -> float: ...

def log_cell_volume(low: npt.ArrayLike, high: npt.ArrayLike, e: npt.ArrayLike) -> Any: ...
def diffuse(
    axes: Sequence[DiffusionAxis],
    temperature: float,
    psi: _Array,
    dt: float,
    mass: _Array,
    threads: int = ...,
) -> _Array: ...

class SplitStep:
    def __init__(
        self,
        network: Network,
        theta: _Array,
        X: _Array,
        total: int,
        *,
        ridge: float = ...,
        temperature: float = ...,
        rates: tuple[float, float, float] = ...,
        seed: int = ...,
        first_neuron: int = ...,
        threads: int = ...,
    ) -> None: ...
    def forward(self) -> _Array: ...
    def backward(self, residual: _Array, h: float, step: int) -> bool: ...

def sgd_step(
    network: Network,
    theta: _Array,
    X: _Array,
    y: _Array,
    h: float,
    step: int,
    *,
    ridge: float = ...,
    temperature: float = ...,
    rates: tuple[float, float, float] = ...,
    seed: int = ...,
    threads: int = ...,
) -> bool: ...
def sgd_run(
    network: Network,
    theta: _Array,
    X: _Array,
    y: _Array,
    h: _Array,
    first: int,
    *,
    ridge: float = ...,
    temperature: float = ...,
    rates: tuple[float, float, float] = ...,
    seed: int = ...,
    threads: int = ...,
) -> tuple[int, bool]: ...
