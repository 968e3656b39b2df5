"""Convert the argument `rng` of users to the 64-bit seeds that address the random numbers of the core."""

from __future__ import annotations

import numbers

import numpy as np

from .. import _core


class Seed(int):
    """A 64-bit seed that is used as it is; a plain int given as `rng` would be scrambled first."""


RNG = int | np.integer | np.random.SeedSequence | np.random.Generator | None


def number_of(rng: RNG = None) -> int:
    """The integer that stands for `rng` in records: used as `rng` again it gives the same numbers.

    Args:
        rng: None for a fresh integer; an int >= 0, which stands for itself; a `numpy.random.SeedSequence`,
            not modified; or a `numpy.random.Generator`, which is advanced by 64 bits, so that two calls give
            two integers.

    Returns:
        The integer, >= 0.

    Raises:
        TypeError: `rng` is anything else.
        ValueError: `rng` is a negative int.

    Examples:
        >>> import numpy as np
        >>> from mfcore._base.rng import number_of
        >>> number_of(3), number_of(np.random.SeedSequence(3))
        (3, 3)
        >>> generator = np.random.default_rng(0)
        >>> number_of(generator) == number_of(generator)
        False
    """
    if isinstance(rng, Seed):
        return rng
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63, dtype=np.uint64))  # of 63 bits, as TOML files hold them
    if isinstance(rng, np.random.SeedSequence):
        if isinstance(rng.entropy, numbers.Integral) and not rng.spawn_key:
            return int(rng.entropy)
        return int(rng.generate_state(1, np.uint64)[0]) >> 1
    if rng is None:
        return number_of(np.random.default_rng())
    if isinstance(rng, numbers.Integral) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError(f"rng must be >= 0, got {int(rng)}")
        return int(rng)
    raise TypeError(f"rng must be None, an int, a SeedSequence or a Generator, got {rng!r}")


def seed_of(rng: RNG = None) -> int:
    """The 64-bit seed for `rng`, 0 <= seed < 2**64: `number_of(rng)`, scrambled.

    Neighbouring ints give unrelated seeds.

    Examples:
        >>> import numpy as np
        >>> from mfcore._base.rng import seed_of
        >>> seed_of(0) == seed_of(np.random.SeedSequence(0))
        True
    """
    number = number_of(rng)
    if isinstance(number, Seed):
        return int(number)
    return int(np.random.SeedSequence(number).generate_state(1, np.uint64)[0])


def derive(seed: int, index: int) -> int:
    """The 64-bit seed of replica `index` of a computation seeded by `seed`.

    Args:
        seed: The parent's seed, 0 <= seed < 2**64.
        index: Number of the replica, 0 <= index < 2**64.

    Returns:
        Half of block `index` of the stream of purpose ``replica``.

    Examples:
        >>> from mfcore._base.rng import derive
        >>> derive(1, 0) == derive(1, 0), derive(1, 0) == derive(1, 1)
        (True, False)
    """
    counter = (*_words(index, "index"), 0, _core.PURPOSES["replica"] << 24)
    low, high, *_ = _core.philox4x32(counter, _words(seed, "seed"))
    return int(low | high << 32)


def _words(number: int, name: str) -> tuple[int, int]:
    if not 0 <= number < 2**64:
        raise ValueError(f"{name} must be >= 0 and < 2**64, got {number}")
    return number & 0xFFFFFFFF, number >> 32
