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

from . import activations, conventions, data, experiments, init, plots, steppers, theory
from ._build import build_info, get_cmake_dir, get_include
from ._reduced_init import ReducedInit
from .atoms import Atoms
from .certificate import Certificate, certificate
from .config import load_config, save_config
from .density import PDE
from .distance import distance, kl
from .energy import dissipation, free_energy
from .estimate import Estimate, estimate
from .expectation import Exact, MonteCarlo
from .functions import U, V, grad_psi, predict, psi, risk
from .gibbs import Stationary, gibbs, gibbs_path
from .jko import JKO
from .measure import Cloud, Density
from .methods import GD, SGD, Particles
from .model import Model
from .network import Network
from .nonlinear import Nonlinear
from .optimum import Optimum, optimum
from .reduce import ReducedModel
from .solve import log_times, resume, solve
from .trajectory import Trajectory, load

__version__: str = build_info()["version"]

__all__ = [
    "GD",
    "JKO",
    "PDE",
    "SGD",
    "Atoms",
    "Certificate",
    "Cloud",
    "Density",
    "Estimate",
    "Exact",
    "Model",
    "MonteCarlo",
    "Network",
    "Nonlinear",
    "Optimum",
    "Particles",
    "ReducedInit",
    "ReducedModel",
    "Stationary",
    "Trajectory",
    "U",
    "V",
    "activations",
    "build_info",
    "certificate",
    "conventions",
    "data",
    "dissipation",
    "distance",
    "estimate",
    "experiments",
    "free_energy",
    "get_cmake_dir",
    "get_include",
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
    "resume",
    "risk",
    "save_config",
    "solve",
    "steppers",
    "theory",
]
