"""Random numbers are addresses: known answers, the documented mapping, independence of chunks, distributions.

Statistical tests use fixed seeds, so they pass for ever or never; each check accepts a p-value above ALARM,
the odds that it would have failed for a perfect generator when its seed was chosen.
"""

import hashlib
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mfcore import _core
from mfcore._base.rng import derive, number_of, seed_of
from mfcore._core import _loader
from scipy import special, stats

ALARM = 1e-6
KINDS = [
    (_core.uniforms, "float64"),
    (_core.uniforms, "float32"),
    (_core.normals, "float64"),
    (_core.normals, "float32"),
]
LAGS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 64, 100]


# The reference: Philox in plain integers, then the documented mapping with NumPy's logarithm and cosine.


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def halves(seed, purpose, step, block):
    words = philox(
        (block & 0xFFFFFFFF, block >> 32, step & 0xFFFFFFFF, _core.PURPOSES[purpose] << 24 | step >> 32),
        (seed & 0xFFFFFFFF, seed >> 32),
    )
    return words[0] | words[1] << 32, words[2] | words[3] << 32


def parts(address, item, dtype):
    """(bits of the first half, bits of the second half, whether item belongs to the second)."""
    if dtype == "float64":
        group, place = divmod(item, 16)
        return (*halves(*address, 8 * group + place % 8), place >= 8)
    group, place = divmod(item, 32)
    first, second = halves(*address, 8 * group + place % 16 // 2)
    shift = 32 * (place % 2)
    return first >> shift & 0xFFFFFFFF, second >> shift & 0xFFFFFFFF, place >= 16


def reference_uniform(address, item, dtype):
    first, second, is_second = parts(address, item, dtype)
    bits = 52 if dtype == "float64" else 23
    return ((second if is_second else first) % 2**bits + 0.5) / 2**bits


def reference_normal(address, item, dtype):
    radius_bits, angle_bits, is_second = parts(address, item, dtype)
    width, mantissa = (64, 52) if dtype == "float64" else (32, 23)
    if dtype == "float64":
        u = (radius_bits % 2**52 + 0.5) / 2**52
    else:  # rounded to single precision as the core does: near 1 that decides the radius
        u = float(np.float32(radius_bits >> 1) / np.float32(2**31) + np.float32(2.0**-32))
    angle = np.pi / 2 * (angle_bits % 2**mantissa / 2**mantissa - 0.5)
    x, y = np.cos(angle), np.sin(angle)
    if angle_bits >> width - 1:
        x = -x
    if angle_bits >> width - 2 & 1:
        x, y = y, x
    return np.sqrt(-2 * np.log(u)) * (y if is_second else x)


def test_philox_reproduces_the_published_known_answers():
    ones = 0xFFFFFFFF
    known = [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones,) * 4, (ones,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ]
    for counter, key, answer in known:
        assert tuple(_core.philox4x32(counter, key)) == answer
        assert tuple(philox(counter, key)) == answer


def test_purposes_are_numbered_in_order_and_only_ever_appended():
    assert list(_core.PURPOSES.values()) == list(range(len(_core.PURPOSES)))
    published = "init inputs labels label_noise langevin shuffle held_out replica probe"
    assert list(_core.PURPOSES)[:9] == published.split()
    by_name, by_number = (_core.normals(1, p, 0, 0, 20) for p in ("langevin", 4))
    assert np.array_equal(by_name, by_number)


@given(
    seed=st.integers(0, 2**64 - 1),
    purpose=st.sampled_from(list(_core.PURPOSES)),
    step=st.integers(0, 2**56 - 1),
    first=st.integers(0, 2**63),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_every_number_is_the_documented_function_of_its_address(seed, purpose, step, first, dtype):
    address, count = (seed, purpose, step), 5
    got = _core.uniforms(*address, first, count, dtype)
    assert got.dtype == dtype
    assert got.tolist() == [reference_uniform(address, first + k, dtype) for k in range(count)]
    # A logarithm good to 3 units in the last place is halved by the root; root, product, angle add one each.
    want = [reference_normal(address, first + k, dtype) for k in range(count)]
    got = _core.normals(*address, first, count, dtype)
    np.testing.assert_allclose(got, want, rtol=6 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize(("fill", "dtype"), KINDS)
def test_any_slice_of_a_stream_equals_the_numbers_drawn_one_by_one(fill, dtype):
    one_by_one = np.concatenate([fill(5, "probe", 9, k, 1, dtype) for k in range(140)])
    for first, count in itertools.product(range(66), range(70)):  # every place of both ends in a group
        assert np.array_equal(fill(5, "probe", 9, first, count, dtype), one_by_one[first : first + count])


@given(first=st.integers(0, 2**63), counts=st.lists(st.integers(0, 300), min_size=1, max_size=6))
def test_chunks_far_out_in_a_stream_join_without_a_seam(first, counts):
    for fill, dtype in KINDS:
        whole = fill(2, "inputs", 1, first, sum(counts), dtype)
        at = np.cumsum([0, *counts])
        chunks = [
            fill(2, "inputs", 1, first + int(a), n, dtype) for a, n in zip(at[:-1], counts, strict=True)
        ]
        assert np.array_equal(np.concatenate(chunks), whole)


def test_different_seeds_purposes_and_steps_share_no_number():
    seeds, steps = (0, 1, 2, 2**32, 2**63), (0, 1, 2**31, 2**32, 2**55)
    addresses = list(itertools.product(seeds, _core.PURPOSES, steps))
    drawn = np.concatenate([_core.uniforms(*address, 0, 64) for address in addresses])
    # 14400 numbers of 52 bits: two are equal by chance with odds 14400^2 / 2^53 = 2e-8
    assert len(np.unique(drawn)) == drawn.size


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_uniforms_are_uniform_in_one_and_two_dimensions(dtype):
    n = 2**21
    u = _core.uniforms(11, "probe", 0, 0, n, dtype).astype(float)
    assert u.min() > 0
    assert u.max() < 1
    assert stats.chisquare(np.bincount((u * 1024).astype(int), minlength=1024)).pvalue > ALARM
    cell = (u * 64).astype(int)
    for lag in LAGS:
        starts = np.arange(n - lag)
        starts = starts[starts // lag % 2 == 0]  # so that no number is in two pairs
        pairs = np.bincount(64 * cell[starts] + cell[starts + lag], minlength=4096)
        assert stats.chisquare(pairs).pvalue > ALARM
        z = np.sqrt(12 * (n - lag)) * np.mean((u[:-lag] - 0.5) * (u[lag:] - 0.5)) * np.sqrt(12)
        assert 2 * special.ndtr(-abs(z)) > ALARM


def test_every_bit_of_a_uniform_is_fair():
    n = 2**18
    bits = (_core.uniforms(3, "probe", 0, 0, n) * 2**52).astype(np.uint64)  # the added half is cut off
    for k in range(52):
        set_bits = int(np.count_nonzero(bits >> np.uint64(k) & np.uint64(1)))
        assert stats.binomtest(set_bits, n).pvalue > ALARM


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_normals_have_the_moments_tails_and_independence_of_normals(dtype):
    n = 2**22
    x = _core.normals(7, "probe", 0, 0, n, dtype).astype(float)
    # mean, variance, skewness and kurtosis against their standard errors
    moments = [np.mean(x), np.mean(x**2) - 1, np.mean(x**3), np.mean(x**4) - 3]
    for moment, variance in zip(moments, [1, 2, 15, 96], strict=True):
        assert 2 * special.ndtr(-abs(moment) * np.sqrt(n / variance)) > ALARM
    for sigmas in (1, 2, 3, 4, 5):
        for tail in (x > sigmas, x < -sigmas):
            assert stats.binomtest(int(np.count_nonzero(tail)), n, special.ndtr(-sigmas)).pvalue > ALARM
    for lag in LAGS:  # of the numbers and of their squares: radius and angle of a pair must not show
        for y, variance in ((x, 1), (x**2 - 1, 2)):
            z = np.dot(y[:-lag], y[lag:]) / (variance * np.sqrt(n - lag))
            assert 2 * special.ndtr(-abs(z)) > ALARM
    assert stats.kstest(x[: 2**20], special.ndtr, method="asymp").pvalue > ALARM


def test_normals_of_neighbouring_seeds_steps_and_purposes_are_uncorrelated():
    n = 2**16
    addresses = [(1, "init", 0), (2, "init", 0), (1, "init", 1), (1, "inputs", 0), (2**32 + 1, "init", 0)]
    x = np.array([_core.normals(*address, 0, n) for address in addresses])
    z = (x @ x.T / np.sqrt(n))[np.triu_indices(len(x), 1)]
    assert np.all(2 * special.ndtr(-np.abs(z)) > ALARM)


@given(first=st.integers(0, 2**63), count=st.integers(0, 300))
def test_signs_are_the_bits_of_their_blocks(first, count):
    address = (8, "labels", 3)
    items = range(first, first + count)
    blocks = {n // 128: halves(*address, n // 128) for n in items}
    want = [1 - 2 * (blocks[n // 128][n % 128 // 64] >> n % 64 & 1) for n in items]
    assert _core.signs(*address, first, count).tolist() == want


def test_signs_are_fair_and_uncorrelated():
    n = 2**20
    s = _core.signs(4, "labels", 0, 0, n)
    assert stats.binomtest(int(np.count_nonzero(s > 0)), n).pvalue > ALARM
    for lag in [*LAGS, 63, 65, 127, 128, 129]:
        assert 2 * special.ndtr(-abs(np.dot(s[:-lag], s[lag:])) / np.sqrt(n - lag)) > ALARM


@given(seed=st.integers(0, 2**64 - 1), n=st.integers(0, 200))
def test_a_permutation_is_fisher_yates_fed_from_the_stream(seed, n):
    address = (seed, "shuffle", 1)
    words = (parts(address, item, "float64") for item in itertools.count())
    draws = (second if is_second else first for first, second, is_second in words)
    want = list(range(n))
    for i in range(n - 1, 0, -1):  # a draw is refused with odds below 2^-56 here: never
        j = next(draws) * (i + 1) >> 64
        want[i], want[j] = want[j], want[i]
    assert _core.permutation(*address, n).tolist() == want


def test_all_orders_of_four_are_equally_likely():
    drawn = [tuple(_core.permutation(6, "shuffle", step, 4).tolist()) for step in range(24_000)]
    counts = [drawn.count(order) for order in itertools.permutations(range(4))]
    assert sum(counts) == len(drawn)
    assert stats.chisquare(counts).pvalue > ALARM


# Written down at level v3: one installation often has one level, and levels of all machines draw the same.
EXACT_DRAWS = "924b8a049173a5d6cdd451a1c14dcba5b41511524d43eba046ad75c5ff65a971"  # SHA-256
NORMALS = [-0.3521208012532339, 1.3039089836902429, -0.2854241252224717]
SINGLE_NORMALS = [0.4455481767654419, -1.0197361707687378, -0.5767518281936646]


@pytest.mark.parametrize("level", _loader.usable_levels())
def test_all_instruction_sets_draw_the_same_numbers(level):
    program = (
        "import sys, numpy as np; from mfcore import _core as c;"
        "a = 1, 'init', 2;"
        "drawn = [c.uniforms(*a, 3, 999), c.uniforms(*a, 3, 999, 'float32'), c.signs(*a, 3, 999),"
        " c.permutation(*a, 999), c.normals(*a, 3, 999), c.normals(*a, 3, 999, 'float32')];"
        "sys.stdout.buffer.write(np.array(drawn, dtype=float).tobytes())"
    )
    environment = {**os.environ, "MFCORE_ISA": level}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    *exact, double, single = np.frombuffer(run.stdout).reshape(6, 999)
    assert hashlib.sha256(np.array(exact).tobytes()).hexdigest() == EXACT_DRAWS
    # only fused operations differ: a few units in the last place
    np.testing.assert_allclose(double[:3], NORMALS, rtol=2e-15, atol=0)
    np.testing.assert_allclose(single[:3], SINGLE_NORMALS, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, "inits", 0, 0, 1), "purpose must be registered in PURPOSES, got inits"),
        ((1, 99, 0, 0, 1), "purpose must be registered in PURPOSES, got 99"),
        ((1, "init", 2**56, 0, 1), "step must be < 2\\^56, got"),
        ((1, "init", 0, 0, -1), "count must be >= 0, got -1"),
        ((1, "init", 0, 0, 1, "int32"), "dtype must be float64 or float32, got int32"),
    ],
)
def test_misuse_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        _core.normals(*arguments)


def test_a_seed_is_a_function_of_an_int_or_a_seed_sequence():
    sequence = np.random.SeedSequence(42, spawn_key=(3,))
    before = repr(sequence.state)
    assert seed_of(sequence) == seed_of(sequence) != seed_of(42)
    assert repr(sequence.state) == before
    assert seed_of(42) == seed_of(np.int64(42)) == seed_of(np.random.SeedSequence(42))
    seeds = [seed_of(k) for k in range(1000)]
    assert len(set(seeds)) == 1000
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert max(seeds) > 2**63  # all 64 bits are used


@pytest.mark.parametrize(
    "rng",
    [
        *[0, 7, 2**200, np.int64(5), None, np.random.default_rng(2)],
        *[np.random.SeedSequence(k) for k in (4, [1, 2], None)],
        *np.random.SeedSequence(4).spawn(2),
    ],
)
def test_a_number_stands_for_every_kind_of_rng(rng):
    number = number_of(rng)
    assert type(number) is int
    assert number >= 0
    assert number_of(number) == number
    if isinstance(rng, int | np.integer | np.random.SeedSequence):
        assert seed_of(number) == seed_of(rng)
    if isinstance(rng, int | np.integer):
        assert number == rng


def test_fresh_entropy_and_generators_give_new_seeds_every_time():
    assert seed_of(None) != seed_of(None)  # equal with odds 2^-64
    generator = np.random.default_rng(1)
    seeds = [seed_of(generator) for _ in range(100)]
    assert len(set(seeds)) == 100
    again = np.random.default_rng(1)
    assert [seed_of(again) for _ in range(100)] == seeds


@pytest.mark.parametrize("rng", ["0", 1.0, True, [1, 2], np.random.RandomState(0)])
def test_other_kinds_of_rng_are_refused(rng):
    with pytest.raises(TypeError, match=r"rng must be None, an int, a SeedSequence or a Generator, got "):
        seed_of(rng)


def test_a_negative_rng_is_refused():
    with pytest.raises(ValueError, match=r"rng must be >= 0, got -1"):
        seed_of(-1)


@given(seed=st.integers(0, 2**64 - 1), index=st.integers(0, 2**64 - 1))
def test_replica_seeds_are_blocks_of_their_own_purpose(seed, index):
    assert derive(seed, index) == halves(seed, "replica", 0, index)[0]


def test_replica_seeds_differ_and_stay_in_range():
    assert len({derive(seed, index) for seed in range(30) for index in range(30)}) == 900
    for seed, index, name in [(2**64, 0, "seed"), (-1, 0, "seed"), (0, -1, "index")]:
        with pytest.raises(ValueError, match=f"{name} must be >= 0 and < 2\\*\\*64"):
            derive(seed, index)
