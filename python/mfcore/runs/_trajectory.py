"""The result of a run: times, risks, observables, measures, and how it ended; on disk as one .npz file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from .._base import check
from .._base.archive import read_archive, reading, write_archive
from .._base.check import FloatArray
from .._base.registry import from_config, to_config
from ..measures._measure import Cloud, Density
from ..measures._tangent import LinearMeasure, Tangent, TangentLimit

if TYPE_CHECKING:
    import xarray
    from typing_extensions import TypeVar  # which type checkers know without having it installed

    # The type of the measures of a run: an array of neurons, a `Cloud`, …
    M = TypeVar("M", covariant=True, default=Any)
else:
    from typing import TypeVar

    M = TypeVar("M", covariant=True)

Measure = FloatArray | Cloud | Density | LinearMeasure

_ARRAY = "array of this file"  # marks where an array belongs in what is stored as JSON


@dataclass(frozen=True, eq=False)
class Trajectory(Generic[M]):
    """A run on the clock t, recorded at its save points.

    To type checkers it is a ``Trajectory[M]``, M the class of `final` as far as the method tells: an array
    for `mf.SGD`, a `Cloud` for `mf.Atoms`, Any for `mf.JKO`, `mf.Linearized` and what `mf.load` reads. `risk`
    and `error` are arrays to them, though None at run time with ``risk=False``.

    Attributes:
        t: Times of the save points reached, shape (T,).
        risk: R(ρ_t), shape (T,), or (T, replicas) for several replicas; None when not asked for.
        error: Estimated error of `risk`, same shape: the standard error of a Monte-Carlo risk, 0 where it is
            exact; for the rungs of the limit the error of their discretisation.
        observed: Name to values, one row per save point.
        final: The measure at the end of the run: an (N, D) array of neurons, or (replicas, N, D), a `Cloud`
            of atoms or a `Density`; of `mf.Linearized` a `Tangent` or `TangentLimit`.
        kept: Save point, as it was asked for, to measure.
        status: ``"completed"``, ``"stationary"``, ``"stopped"`` (by `stop`), ``"diverged"``,
            ``"interrupted"`` or ``"out of time"``; while `stop` is asked, ``"running"``.
        message: One sentence on how the run ended.
        meta: Model, method, seed (given as `rng` it repeats the run), version, ISA, threads, timings, the
            builds of mfcore that it comes from (several, if it was resumed with another), and what the method
            adds.

    Examples:
        >>> import mfcore as mf
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=20, step=1e-3), horizon=0.1, save_at=3, rng=0)
        >>> run.t.tolist(), run.status, run.final.shape
        ([0.0, 0.05, 0.1], 'completed', (20, 4))
    """

    t: FloatArray
    risk: FloatArray | Any  # not FloatArray | None: who asks for the risk need not show that it is there
    error: FloatArray | Any
    observed: Mapping[str, FloatArray]
    final: M
    kept: Mapping[float, M]
    status: str
    message: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "observed", _Observed(self.observed))

    def __repr__(self) -> str:
        method = type(self.meta.get("method")).__name__
        risk = "" if self.risk is None or not len(self.t) else f", risk={np.mean(self.risk[-1]):.6g}"
        at = f" at t={self.t[-1]:g}" if risk else ""
        end = f"t={self.meta['t']:g}, " if "t" in self.meta else ""
        return f"Trajectory({method}, {end}save points={len(self.t)}{risk}{at}, status={self.status!r})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to `path`, a NumPy .npz archive without pickles; whole or not at all.

        Model and method are stored as in `save_config`; one that has no such form (a Python function as link
        or schedule) is stored as its repr, and read back as that string.
        """
        arrays, info = pack(self)
        write_archive(path, arrays, info)

    def to_xarray(self) -> xarray.Dataset:
        """The series over t as an `xarray.Dataset`, with the run's description as attributes."""
        try:
            import xarray
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'mfcore[xarray]'") from None
        series = dict(self.observed)
        if self.risk is not None and self.error is not None:
            series |= {"risk": self.risk, "error": self.error}
        variables = {}
        for name, values in series.items():
            rest = ["replica"] if self.risk is not None and values.shape == self.risk.shape else []
            dims = ["t", *rest, *(f"{name}_{k}" for k in range(1 + len(rest), values.ndim))][: values.ndim]
            variables[name] = (dims, values)
        attributes = {"status": self.status, "message": self.message}
        attributes |= {name: str(value) for name, value in self.meta.items()}
        return xarray.Dataset(variables, coords={"t": self.t}, attrs=attributes)


class _Observed(dict[str, FloatArray]):
    """The series of a run by name; one that is not there is answered with those there are."""

    def __missing__(self, name: str) -> FloatArray:
        raise KeyError(f"the run has no observable {name!r}{check.hint(name, self, 'it has')}")


def load(path: str | os.PathLike[str]) -> Any:
    """Read a trajectory that `Trajectory.save` wrote, or the folder of a sweep. Nothing in it is executed.

    Returns:
        A `Trajectory`; of a folder the `xarray.Dataset` that `mf.sweep` returned, or would return if it had
        been stopped now, without the function that made it.

    Raises:
        ValueError: The file or folder is another one, or damaged; the message says where.

    Examples:
        >>> import mfcore as mf, tempfile
        >>> model = mf.Model(
        ...     data=mf.data.IsotropicGaussians(d=4, delta=0.5),
        ...     network=mf.Network(mf.activations.relu),
        ...     init=mf.init.Radial(0.5),
        ... )
        >>> run = mf.solve(model, mf.SGD(neurons=20, step=1e-3), horizon=0.1, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run.save(f"{folder}/run.npz")
        ...     mf.load(f"{folder}/run.npz").meta["model"] == model
        True
    """
    if isinstance(path, str | os.PathLike) and os.path.isdir(path):
        from ..sweeps._folder import read_folder

        return read_folder(Path(path)).dataset()
    arrays, info = read_archive(path, "status")
    with reading(path, "path"):
        return unpack(arrays, info)


def pack(run: Trajectory) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a trajectory under flat names, and the rest as plain values."""
    arrays: dict[str, np.ndarray] = {"t": run.t}
    if run.risk is not None and run.error is not None:
        arrays |= {"risk": run.risk, "error": run.error}
    arrays |= {f"observed/{name}": values for name, values in run.observed.items()}
    _pack_measure(arrays, "final", run.final)
    for k, measure in enumerate(run.kept.values()):
        _pack_measure(arrays, f"kept/{k}", measure)
    arrays["kept_t"] = np.array(list(run.kept), dtype=np.float64)
    meta = {name: plain(value, arrays, f"meta/{name}") for name, value in run.meta.items()}
    return arrays, {"status": run.status, "message": run.message, "meta": meta}


def unpack(arrays: Mapping[str, np.ndarray], info: Mapping[str, Any]) -> Trajectory:
    """The inverse of `pack`."""
    observed = {name.partition("/")[2]: a for name, a in arrays.items() if name.startswith("observed/")}
    kept = {float(t): _unpack_measure(arrays, f"kept/{k}") for k, t in enumerate(arrays["kept_t"])}
    return Trajectory(
        t=arrays["t"],
        risk=arrays.get("risk"),
        error=arrays.get("error"),
        observed=observed,
        final=_unpack_measure(arrays, "final"),
        kept=kept,
        status=info["status"],
        message=info["message"],
        meta={name: from_plain(value, arrays) for name, value in info["meta"].items()},
    )


def plain(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """`value` in types JSON has, if it has a form in configuration files; else its repr.

    Long lists of numbers, such as a dataset, go to `arrays` under names that begin with `name`.
    """
    try:
        config = to_config(value)
    except (TypeError, ValueError):
        return repr(value)
    return _without_arrays(config, arrays, name)


def from_plain(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The inverse of `plain`; what was stored as its repr stays a string."""
    return from_config(_with_arrays(value, arrays))


def _without_arrays(config: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    if isinstance(config, dict):
        return {key: _without_arrays(entry, arrays, f"{name}/{key}") for key, entry in config.items()}
    if not isinstance(config, list):
        return config
    try:
        numbers = np.asarray(config)
    except ValueError:  # rows of different lengths
        numbers = np.empty(0)
    if numbers.dtype.kind == "f" and numbers.size > 16:
        arrays[name] = numbers
        return {_ARRAY: name}
    return [_without_arrays(entry, arrays, f"{name}/{k}") for k, entry in enumerate(config)]


def _with_arrays(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if _ARRAY in value:
            return arrays[value[_ARRAY]]
        return {key: _with_arrays(entry, arrays) for key, entry in value.items()}
    return [_with_arrays(entry, arrays) for entry in value] if isinstance(value, list) else value


def _pack_measure(arrays: dict[str, np.ndarray], name: str, measure: Measure) -> None:
    if isinstance(measure, Cloud):
        arrays |= {f"{name}/points": measure.points, f"{name}/weights": measure.weights}
    elif isinstance(measure, Density):
        arrays |= {f"{name}/edges/{k}": e for k, e in enumerate(measure.edges)}
        arrays[f"{name}/mass"] = measure.mass
    elif isinstance(measure, Tangent):
        arrays |= {f"{name}/start": measure.start, f"{name}/theta": measure.theta}
    elif isinstance(measure, TangentLimit):
        arrays |= {f"{name}/inputs": measure.inputs, f"{name}/coefficients": measure.coefficients}
    elif isinstance(measure, np.ndarray):
        arrays[f"{name}/neurons"] = measure


def _unpack_measure(arrays: Mapping[str, np.ndarray], name: str) -> Measure:
    if f"{name}/neurons" in arrays:
        return arrays[f"{name}/neurons"]
    if f"{name}/points" in arrays:
        return Cloud(arrays[f"{name}/points"], arrays[f"{name}/weights"])
    if f"{name}/theta" in arrays:
        return Tangent(arrays[f"{name}/start"], arrays[f"{name}/theta"])
    if f"{name}/inputs" in arrays:
        return TangentLimit(arrays[f"{name}/inputs"], arrays[f"{name}/coefficients"])
    edges: list[np.ndarray] = []
    while f"{name}/edges/{len(edges)}" in arrays:
        edges.append(arrays[f"{name}/edges/{len(edges)}"])
    return Density(tuple(edges), arrays[f"{name}/mass"])
