"""Sums of products of functions of one coordinate in the core, against Chebyshev series summed by NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mfcore import _core


def panels(rng, count, terms, rank):
    return np.cumsum(rng.uniform(0.2, 1, count + 1)) - 1, rng.standard_normal((count, terms, rank))


def series_at(axis, z, order):
    """A derivative of Chebyshev series on panels, the slow way."""
    edges, coefficients = axis
    out = np.empty((len(z), coefficients.shape[2]))
    for i, x in enumerate(z):
        p = min(max(np.searchsorted(edges, x, side="right") - 1, 0), len(coefficients) - 1)
        low, high = edges[p : p + 2]
        series = np.polynomial.chebyshev.chebder(coefficients[p], order, scl=2 / (high - low))
        out[i] = np.polynomial.chebyshev.chebval((2 * x - low - high) / (high - low), series)
    return out


@settings(max_examples=40, deadline=None)
@given(
    shapes=st.integers(1, 4).flatmap(
        lambda k: st.lists(
            st.tuples(st.integers(1, 3), st.integers(2, 9), st.integers(1, 15 if k < 3 else 5)),
            min_size=k,
            max_size=k,
        )
    ),
    n=st.integers(0, 19),
    columns=st.integers(1, 5),
    seed=st.integers(0, 999),
)
def test_the_core_computes_what_series_mean(shapes, n, columns, seed):
    rng = np.random.default_rng(seed)
    axes = [panels(rng, *shape) for shape in shapes]
    k = len(axes)
    z = np.column_stack([rng.uniform(edges[0], edges[-1], n) for edges, _ in axes]).reshape(n, k)
    w = rng.random(n)
    size = math.prod(a.shape[2] for _, a in axes)
    L, v, g = rng.standard_normal((size, columns)), rng.standard_normal(columns), rng.standard_normal(size)
    core = _core.SeparableFeatures([(*axis, False) for axis in axes], L, v.tolist(), 0.5)
    assert (core.coordinates, core.size, core.columns) == (k, size, columns)

    def products(*orders):
        out = np.ones((n, 1))
        for c, order in enumerate(orders):
            out = (out[:, :, None] * series_at(axes[c], z[:, c], order)[:, None, :]).reshape(
                n, math.prod(out.shape[1:]) * axes[c][1].shape[2]
            )
        return out

    def close(got, want):  # rounding, relative to the largest number and to sums over `size` of them
        scale = max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale * size)

    for order in range(3):
        close(core.basis(k - 1, z[:, -1], order)[0], series_at(axes[-1], z[:, -1], order))
    moments, outside = core.moments(z, w)
    assert outside == 0
    close(moments, w @ products(*[0] * k))
    if n:
        close(core.moments(z)[0], products(*[0] * k).mean(axis=0))
    close(core.residual(moments)[0], L @ (L.T @ moments - v))
    want_risk = np.sum((L.T @ moments - v) ** 2) + 0.5
    assert core.residual(moments)[1] == pytest.approx(want_risk, rel=1e-12)
    value, gradient, hessian, _ = core.potential(g, z, order=2)
    close(value, products(*[0] * k) @ g)
    unit = np.eye(k, dtype=int)
    for c in range(k):
        close(gradient[:, c], products(*unit[c]) @ g)
        for e in range(k):
            close(hessian[:, c, e], products(*(unit[c] + unit[e])) @ g)


@pytest.mark.parametrize("n", [1, 255, 257, 20_001])
def test_the_number_of_threads_changes_no_bit(n):
    rng = np.random.default_rng(1)
    axes = [(*panels(rng, 3, 12, 40), False), (*panels(rng, 3, 12, 35), True)]
    core = _core.SeparableFeatures(axes, rng.standard_normal((1400, 90)), [0.0] * 90, 0.0)
    z = np.column_stack([rng.uniform(edges[0], edges[-1], n) for edges, _, _ in axes])
    w = rng.random(n)
    g = rng.standard_normal(core.size)

    def everything(threads):
        moments, _ = core.moments(z, w, threads)
        return moments, core.residual(moments, threads)[0], *core.potential(g, z, 1, threads)[:2]

    for one, many in zip(everything(1), everything(3), strict=True):
        np.testing.assert_array_equal(one, many)


def test_the_core_refuses_shapes_that_do_not_fit():
    rng = np.random.default_rng(0)
    edges, series = panels(rng, 2, 5, 3)
    good = (edges, series, False)
    for axes, core, message in [
        ([(edges[:2], series, False)], np.ones((3, 1)), "series"),
        ([(edges[::-1], series, False)], np.ones((3, 1)), "edges must increase"),
        ([good], np.ones((4, 1)), "core must have a row"),
        ([good], np.ones((3, 2)), "core must have a column"),
        ([good] * 5, np.ones((243, 1)), "axes must be between 1 and 4"),
        ([], np.ones((1, 1)), "axes must be between 1 and 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            _core.SeparableFeatures(axes, core, [0.0], 0.0)
    core = _core.SeparableFeatures([good], np.ones((3, 1)), [0.0], 0.0)
    with pytest.raises(ValueError, match="weights"):
        core.moments(np.zeros((2, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="z must have 1 columns, got 2"):
        core.potential(np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="order"):
        core.basis(0, np.zeros(1), 3)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 30), n=st.integers(1, 30))
def test_products_and_factorisations_are_those_of_numpy(seed, m, n):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(m, n)), rng.normal(size=(n, 7))
    # A few hundred roundings of numbers of size 10.
    np.testing.assert_allclose(_core.product(a, b), a @ b, atol=1e-13)
    q, r = _core.qr(a)
    np.testing.assert_allclose(q @ r, a, atol=1e-13)
    np.testing.assert_allclose(q.T @ q, np.eye(min(m, n)), atol=1e-13)
    assert not np.tril(r, -1).any()
    left, sizes, right = _core.svd(a)
    np.testing.assert_allclose((left * sizes) @ right, a, atol=1e-13)
    np.testing.assert_allclose(sizes, np.linalg.svd(a, compute_uv=False), atol=1e-13)
    order = _core.pivots(a)
    assert sorted(order) == list(range(n))
    norms = np.linalg.norm(a, axis=0)
    assert norms[order[0]] == pytest.approx(norms.max(), rel=1e-12)
    lower = np.tril(rng.normal(size=(n, n))) + 30 * np.eye(n)  # well conditioned
    np.testing.assert_allclose(lower @ _core.solve_lower(lower, b), b, atol=1e-13)


def test_shapes_that_do_not_fit_are_refused():
    a = np.ones((3, 4))
    with pytest.raises(ValueError, match="b must have as many rows as a has columns, got 3"):
        _core.product(a, a)
    with pytest.raises(ValueError, match="lower must be square"):
        _core.solve_lower(a, a)
    with pytest.raises(ValueError, match="a must be finite"):
        _core.svd(np.full((20, 20), np.nan))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1)])
def test_one_row_or_column_is_its_length_and_its_direction(shape):
    a = np.random.default_rng(3).normal(size=shape)
    left, sizes, right = _core.svd(a)
    assert sizes == pytest.approx([np.linalg.norm(a)], rel=1e-15)
    np.testing.assert_allclose(left * sizes @ right, a, rtol=0, atol=1e-15)
    basis, coefficients, error = _core.compress(a, 1e-12)
    np.testing.assert_allclose(basis @ coefficients, a, rtol=0, atol=1e-15)
    assert error < 1e-15


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (1, 4), (4, 1)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_table_that_is_not_finite_has_an_error_that_is_not(shape, value):
    a = np.ones(shape)
    a[0, 0] = value
    _, _, error = _core.compress(a, 1e-12)
    assert np.isnan(error)
