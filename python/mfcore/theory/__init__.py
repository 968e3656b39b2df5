"""Theory made measurable: the ladder from the limit to SGD with its error budget, rates, and steps.

Examples:
    >>> import mfcore as mf
    >>> from mfcore import theory
    >>> model = mf.Model(
    ...     data=mf.data.IsotropicGaussians(d=40, delta=0.5),
    ...     network=mf.Network(mf.activations.relu),
    ...     init=mf.init.Radial(1.0),
    ... )
    >>> budget = theory.ladder(model, neurons=[20, 40], step=[0.02], horizon=0.4, replicas=2, rng=0)
    >>> budget.gap("PDE-ND").shape  # neurons, step, replica, t
    (2, 1, 2, 21)

- `_ladder`, with `_runs`: all rungs from the same neurons; `_budget`: their gaps; `_rates`: slopes of gaps
- `_explain`: `mf.explain`, which rungs run on a model
- `_steps`: the bias of SGD with a finite step
- `_coefficients`, `_leap`, `_filtered`, `_second_layer`: targets of few directions, and how hard they are
- `_spectrum`, `_regression`, `_kernel_ridge`: kernels of the angle, and what regression with them learns

The tangent kernel and its bounds are in `mfcore.lazy`, stability and fluctuations in `mfcore.perturbations`.
"""

from ..lazy._bounds import LazyBounds, lazy_bounds
from ..lazy._kernel import tangent_kernel
from ..lazy._laziness import Laziness, laziness
from ..perturbations._approximation import approximation_gap, path_norm
from ..perturbations._bounds import bounds
from ..perturbations._diagnose import Diagnosis, diagnose
from ..perturbations._fixed_points import FixedPoint, fixed_points
from ..perturbations._fluctuations import Fluctuations, fluctuations
from ..perturbations._paths import RiskPath, along
from ..perturbations._quantise import quantise
from ..perturbations._relaxation import Relaxation, relaxation
from ..perturbations._stability import Stability, stability
from ..perturbations._theorem import Theorem
from ._budget import GAPS, RUNGS, Bound, Ladder
from ._coefficients import fourier, hermite
from ._filtered import filtered_pca
from ._kernel_ridge import RegressionDraws, kernel_ridge
from ._ladder import ladder
from ._leap import information_exponent, isoleap, leap
from ._rates import Rate, Rates, rates_in_dimension
from ._regression import RegressionRisk, regression_risk
from ._second_layer import second_layer
from ._spectrum import Spectrum, zonal_spectrum
from ._steps import StepProposal, modified_flow, propose_step

__all__ = [
    "GAPS",
    "RUNGS",
    "Bound",
    "Diagnosis",
    "FixedPoint",
    "Fluctuations",
    "Ladder",
    "Laziness",
    "LazyBounds",
    "Rate",
    "Rates",
    "RegressionDraws",
    "RegressionRisk",
    "Relaxation",
    "RiskPath",
    "Spectrum",
    "Stability",
    "StepProposal",
    "Theorem",
    "along",
    "approximation_gap",
    "bounds",
    "diagnose",
    "filtered_pca",
    "fixed_points",
    "fluctuations",
    "fourier",
    "hermite",
    "information_exponent",
    "isoleap",
    "kernel_ridge",
    "ladder",
    "laziness",
    "lazy_bounds",
    "leap",
    "modified_flow",
    "path_norm",
    "propose_step",
    "quantise",
    "rates_in_dimension",
    "regression_risk",
    "relaxation",
    "second_layer",
    "stability",
    "tangent_kernel",
    "zonal_spectrum",
]
