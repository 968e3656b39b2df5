"""Steppers `SGD` and `Flow` for loops of the user's own: neurons, samples and step sizes are the caller's,
updated in place.

A stepper keeps nothing to itself: all its state is the caller's array and the counters it shows. When a step
would leave the finite numbers it raises `FloatingPointError`, and the array holds the last finite state.
The array keeps its size and shape as long as the stepper is there.
Threads that share a stepper wait for each other, step by step; which comes first is not determined.

- `_sgd`: `SGD`, whole steps, runs, and the two halves of a step
- `_flow`: `Flow`
- `_torch`: `mf.to_torch` and `mf.from_torch`
- `_arrays`: what is asked of the caller's arrays
"""

from ..density._steppers import FiniteVolume1D, FiniteVolume2D
from ._flow import Flow
from ._sgd import SGD

__all__ = ["SGD", "FiniteVolume1D", "FiniteVolume2D", "Flow"]
