"""A loop of one's own in numba: 100 neurons learn y = tanh(x₁) by SGD on fresh samples.

The loop and the samples are compiled by numba; the steps are those of mfcore's shared library, which the loop
calls without Python between them.

Run: python examples/loop_numba.py
"""

import ctypes
from typing import Any

import mfcore as mf
import numba
import numpy as np

NEURONS, D, BATCH, STEPS = 100, 5, 20, 2000

library = ctypes.CDLL(mf.get_library())
whole, pointer = ctypes.c_int64, ctypes.c_void_p


def function(name: str, *arguments: Any, result: Any = ctypes.c_int) -> Any:
    """One of mfcore.h, with its types, which numba needs."""
    found = getattr(library, name)
    found.argtypes, found.restype = arguments, result
    return found


create = function(
    "mfcore_create", ctypes.c_char_p, ctypes.c_int, ctypes.c_int, whole, whole, pointer, pointer
)
step = function("mfcore_step", pointer, whole, pointer, pointer, ctypes.c_double, ctypes.c_int)
predict = function("mfcore_predict", pointer, whole, pointer, pointer, ctypes.c_int)
free = function("mfcore_free", pointer, result=None)
message = function("mfcore_message", result=ctypes.c_char_p)


@numba.njit
def draw(rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> None:
    """Fill a mini-batch."""
    for i in range(len(x)):
        for j in range(x.shape[1]):
            x[i, j] = rng.uniform(-1.0, 1.0)
        y[i] = np.tanh(x[i, 0])


@numba.njit
def learn(network: int | None, rng: np.random.Generator, steps: int, h: float) -> tuple[float, int]:
    """The risk on a mini-batch after `steps` steps, and the code of the last call."""
    x, y, f = np.empty((BATCH, D)), np.empty(BATCH), np.empty(BATCH)
    for _ in range(steps):
        draw(rng, x, y)
        code = step(network, BATCH, x.ctypes, y.ctypes, h, 1)
        if code != 0:
            return np.nan, code
    draw(rng, x, y)
    code = predict(network, BATCH, x.ctypes, f.ctypes, 1)
    return np.square(y - f).sum() / BATCH, code


def main() -> None:
    """Create a network, let it learn, and ask for something wrong."""
    rng = np.random.default_rng(0)
    theta = rng.uniform(-1.0, 1.0, (NEURONS, 1 + D))  # rows [a, w]
    network = pointer()
    trained, absent = 2, 0
    if create(b"tanh", trained, absent, NEURONS, D, theta.ctypes.data, ctypes.byref(network)):
        raise ValueError(message().decode())
    risk, code = learn(network.value, rng, STEPS, 0.2)
    print(f"risk {risk:.4f} after {STEPS} steps, code {code}")
    _, code = learn(network.value, rng, 1, -1.0)
    print(f"code {code}: {message().decode()}")
    free(network)


if __name__ == "__main__":
    main()
