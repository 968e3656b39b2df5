"""mfcore: the mean-field limit of two-layer neural networks, computable.

One model (data law, network, initial law, decay, temperature, rates) and functions of it on your own arrays:
V, U, Ψ, ∇Ψ and the risk, exactly where mathematics allows it and by streaming Monte Carlo everywhere; its
reduction to the few coordinates that symmetry leaves.

Examples:
    >>> import math, mfcore as mf
    >>> model = mf.Model(
    ...     data=mf.data.IsotropicGaussians(d=320, delta=0.5),
    ...     network=mf.Network(mf.activations.piecewise_linear(knots=[0.5, 1.5], values=[-2.5, 7.5])),
    ...     init=mf.init.Gaussian(std=0.4 / math.sqrt(320)),
    ... )
    >>> reduced = model.reduce()
    >>> reduced.coordinates
    ('r',)
    >>> round(mf.risk(reduced, [[0.0]]), 6)
    7.25
"""

import sys as _sys

from . import _core as _core  # refuses sub-interpreters before NumPy is imported
from . import activations, conventions, data, experiments, init, plots, steppers, theory, typing
from ._base import keywords as _keywords
from ._base.build import build_info, get_cmake_dir, get_include, get_library
from .atoms._atoms import Atoms
from .config import load_config, save_config
from .density._pde import PDE
from .expectations._rules import Exact, MonteCarlo
from .lazy._linearized import Linearized
from .measures._classification import classification_error
from .measures._distance import distance, kl
from .measures._energy import dissipation, free_energy
from .measures._estimate import Estimate, estimate
from .measures._functions import U, V, grad_psi, predict, psi, risk
from .measures._measure import Cloud, Density
from .measures._pull import pull
from .measures._tangent import Tangent, TangentLimit
from .model import Model
from .movements._jko import JKO
from .network import Network
from .neurons._independent import Nonlinear
from .neurons._layer_wise import LayerWise
from .neurons._methods import GD, SGD, Particles
from .reductions._init import ReducedInit
from .reductions._model import ReducedModel
from .runs._observe import all_replicas
from .runs._rung import Method
from .runs._solve import log_times, resume, solve
from .runs._split import gather
from .runs._trajectory import Trajectory, load
from .stationary._certificate import Certificate, certificate
from .stationary._gibbs import gibbs, gibbs_path
from .stationary._optimum import Optimum, optimum
from .stationary._stationary import Stationary
from .steppers._torch import from_torch, to_torch
from .sweeps._cases import Bisection
from .sweeps._sweep import sweep
from .theory._explain import Explanation, explain

__version__: str = build_info()["version"]

__all__ = [
    "GD",
    "JKO",
    "PDE",
    "SGD",
    "Atoms",
    "Bisection",
    "Certificate",
    "Cloud",
    "Density",
    "Estimate",
    "Exact",
    "Explanation",
    "LayerWise",
    "Linearized",
    "Method",
    "Model",
    "MonteCarlo",
    "Network",
    "Nonlinear",
    "Optimum",
    "Particles",
    "ReducedInit",
    "ReducedModel",
    "Stationary",
    "Tangent",
    "TangentLimit",
    "Trajectory",
    "U",
    "V",
    "activations",
    "all_replicas",
    "build_info",
    "certificate",
    "classification_error",
    "conventions",
    "data",
    "dissipation",
    "distance",
    "estimate",
    "experiments",
    "explain",
    "free_energy",
    "from_torch",
    "gather",
    "get_cmake_dir",
    "get_include",
    "get_library",
    "gibbs",
    "gibbs_path",
    "grad_psi",
    "init",
    "kl",
    "load",
    "load_config",
    "log_times",
    "optimum",
    "plots",
    "predict",
    "psi",
    "pull",
    "resume",
    "risk",
    "save_config",
    "solve",
    "steppers",
    "sweep",
    "theory",
    "to_torch",
    "typing",
]

_keywords.cover(
    _sys.modules[__name__], activations, conventions, data, experiments, init, plots, steppers, theory
)
