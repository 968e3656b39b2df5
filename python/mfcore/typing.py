"""Types that signatures of mfcore name, for the annotations of your own functions: `mfcore.typing`.

`AnyModel`, `FloatArray`, `Measure` (what a run may end with), `MeasureLike` (what functions take for one,
arrays included), `Expectation`, `RNG` (what seeds are made of), `Force` (a number, or a function of t),
`Schedule`, `Stopper` (what `stop=` takes), `Observers`, `Runs` (what plots take) and `Monomials` are
aliases; the others are classes and interfaces.
"""

from ._base.check import FloatArray
from ._base.course import Force
from ._base.rng import RNG
from .data._multi_index import Monomials
from .expectations._evaluator import Evaluator
from .expectations._rules import Expectation
from .init._blocks import BlockLaw
from .measures._place import AnyModel, MeasureLike
from .measures._replicas import Run
from .measures._tangent import LinearMeasure
from .neurons._methods import Schedule
from .plots._runs import Runs
from .runs._run import Observers
from .runs._stopping import Stopper
from .runs._trajectory import Measure

__all__ = [
    "RNG",
    "AnyModel",
    "BlockLaw",
    "Evaluator",
    "Expectation",
    "FloatArray",
    "Force",
    "LinearMeasure",
    "Measure",
    "MeasureLike",
    "Monomials",
    "Observers",
    "Run",
    "Runs",
    "Schedule",
    "Stopper",
]
