"""Initial laws ρ₀ of the neurons: `mfcore.init`.

A law of the whole row (`Gaussian`, `Points`, or of w alone: `Radial`, `Sphere`) or a `Product` of laws of its
blocks a, b and w; `Chi` is a law of a radius, for reduced coordinates. Neuron i is the same whatever the
number of neurons drawn with it: its randomness is an address. On a network with ``sphere=True`` every drawn w
is divided by its length, so that a Gaussian w is then uniform on the sphere.

- `_laws`: laws of independent blocks
- `_points`: neurons in pairs, and given ones
- `_scalar`: laws of one number
- `_blocks`: the same laws in reduced coordinates
"""

from ._blocks import Chi
from ._laws import Gaussian, InitialLaw, Product, Radial, Sphere
from ._points import Paired, Points
from ._scalar import Constant, Normal, ScalarLaw, Symmetric, Uniform

__all__ = [
    "Chi",
    "Constant",
    "Gaussian",
    "InitialLaw",
    "Normal",
    "Paired",
    "Points",
    "Product",
    "Radial",
    "ScalarLaw",
    "Sphere",
    "Symmetric",
    "Uniform",
]
