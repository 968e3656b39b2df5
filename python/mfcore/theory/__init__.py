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
"""

from ..lazy._bounds import LazyBounds, lazy_bounds
from ..lazy._kernel import tangent_kernel
from ..lazy._laziness import Laziness, laziness
from ._budget import GAPS, RUNGS, Bound, Ladder
from ._kernel_ridge import RegressionDraws, kernel_ridge
from ._coefficients import fourier, hermite
from ._filtered import filtered_pca
from ._ladder import ladder
from ._leap import information_exponent, isoleap, leap
from ._rates import Rate, Rates, rates_in_dimension
from ._spectrum import RegressionRisk, Spectrum, regression_risk, zonal_spectrum
from ._steps import StepProposal, modified_flow, propose_step

__all__ = [
    "GAPS",
    "RUNGS",
    "Bound",
    "Ladder",
    "Laziness",
    "LazyBounds",
    "Rate",
    "Rates",
    "RegressionDraws",
    "RegressionRisk",
    "Spectrum",
    "StepProposal",
    "filtered_pca",
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
    "propose_step",
    "rates_in_dimension",
    "regression_risk",
    "tangent_kernel",
    "zonal_spectrum",
]
