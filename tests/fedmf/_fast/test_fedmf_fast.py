"""The compiled steps against their twins, bit for bit, and both against plain formulas."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedmf import _fast
from fedmf._fast import reference

every = pytest.mark.parametrize("kernels", [reference, _fast], ids=["reference", "active"])
compiled = pytest.mark.skipif(not _fast.COMPILED, reason="compares compiled code with its twin")
M = 9


def drawn(seed, counts, k):
    """Return a block of users with so many ratings each, and factors for it."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    items = np.concatenate(
        [np.zeros(0, np.int64), *(rng.choice(M, n, replace=False) for n in counts)]
    )
    values = rng.integers(1, 6, items.size).astype(np.float64)
    q, p = rng.normal(size=(M, k)), rng.normal(size=(len(counts), k))
    return indptr, items.astype(np.int32), values, q, p


blocks = st.tuples(
    st.integers(0, 2**32), st.lists(st.integers(0, M), max_size=6), st.integers(1, 7)
)


@compiled
@settings(deadline=None)
@given(blocks, st.booleans(), st.sampled_from([0.0, 1e-9, 0.1]))
def test_kernels_equal_their_twins_bit_for_bit(block, fixed, reg):
    indptr, items, values, q, p = drawn(*block)
    fixed = int(fixed and q.shape[1] > 1)
    centre = np.random.default_rng(block[0]).normal(size=q.shape[1])
    results = []
    for kernels in (_fast, reference):
        stepped, found = p.copy(), p.copy()
        kernels.descend(indptr, items, values, q, stepped, fixed, 0.01, reg)
        solved = kernels.solve(indptr, items, values, q, found, fixed, reg, centre)
        eta = np.empty((items.size, max(1, q.shape[1] - fixed)))
        kernels.gradients(indptr, items, values, q, stepped, eta, reg, centre)
        floats, integers = np.zeros((M, eta.shape[1])), np.zeros((M, eta.shape[1]), np.int64)
        kernels.add_rows(floats, items, eta)
        kernels.add_rows(integers, items, np.rint(eta * 1000).astype(np.int64))
        predictions = np.empty(items.size)
        users = np.repeat(np.arange(len(p)), np.diff(indptr))
        kernels.predict(p, q, users, items.astype(np.int64), predictions)
        results.append((stepped, found, solved, eta, floats, integers, predictions))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def prior(block, fixed, definite):
    """Return the arguments of a draw beyond those of a block: scale, P, shifts and noise."""
    n, k = block[-1].shape
    rng = np.random.default_rng(n)
    root = rng.normal(size=(k - fixed, k - fixed))
    precision = root @ root.T + (np.eye(k - fixed) if definite else -30 * np.eye(k - fixed))
    return rng.gamma(2.0, size=n), precision, *rng.normal(size=(2, n, k - fixed))


@compiled
@settings(deadline=None)
@given(blocks, st.booleans(), st.booleans())
def test_draws_equal_their_twins_bit_for_bit(block, fixed, definite):
    block = indptr, items, values, q, p = drawn(*block)
    fixed = int(fixed and q.shape[1] > 1)
    more = scale, precision, shifts, noise = prior(block, fixed, definite)
    results = []
    for kernels in (_fast, reference):
        users, rows = p.copy(), np.zeros_like(noise)
        solved = kernels.draw_users(indptr, items, values, q, users, fixed, *more)
        tables = np.concatenate((scale[:, None, None] * precision, shifts[:, None]), axis=1)
        ready = kernels.draw(tables, noise, rows)
        results.append((users, solved, rows, ready))
        assert ready.all() == (definite or not len(p))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@every
def test_draws_without_noise_are_the_solutions(kernels):
    """With a constant column; the user without ratings has the mean of the prior."""
    block = indptr, items, values, q, p = drawn(3, [5, 0, 9], 4)
    scale, precision, shifts, _ = prior(block, 1, definite=True)
    found = p.copy()
    more = scale, precision, shifts, np.zeros((3, 3))
    assert kernels.draw_users(*block[:4], found, 1, *more).all()
    np.testing.assert_array_equal(found[:, 0], p[:, 0])
    for u in range(3):
        row = slice(indptr[u], indptr[u + 1])
        free, rest = q[items[row], 1:], values[row] - q[items[row], 0] * p[u, 0]
        normal = precision + scale[u] * free.T @ free
        right = shifts[u] + scale[u] * free.T @ rest
        np.testing.assert_allclose(found[u, 1:], np.linalg.solve(normal, right))


@every
def test_draws_add_noise_of_the_inverse_precision(kernels):
    precision = np.array([[4.0, 2.0], [2.0, 3.0]])
    tables, noise = np.zeros((2, 3, 2)), np.eye(2)
    tables[:, :2] = precision
    roots = np.empty((2, 2))
    assert kernels.draw(tables, noise, roots).all()
    np.testing.assert_allclose(roots.T @ roots, np.linalg.inv(precision))


@every
@given(blocks)
def test_users_do_not_depend_on_their_block(kernels, block):
    indptr, items, values, q, p = drawn(*block)
    stepped, found = p.copy(), p.copy()
    kernels.descend(indptr, items, values, q, stepped, 0, 0.01, 0.1)
    centre = np.arange(q.shape[1], dtype=np.float64)
    kernels.solve(indptr, items, values, q, found, 0, 0.1, centre)
    scale, precision, *more = prior((indptr, items, values, q, p), 0, definite=True)
    drawn_all = p.copy()
    kernels.draw_users(indptr, items, values, q, drawn_all, 0, scale, precision, *more)
    for u in range(len(p)):
        row = slice(indptr[u], indptr[u + 1])
        alone = np.array([0, row.stop - row.start]), items[row], values[row], q
        mine, solved = p[u : u + 1].copy(), p[u : u + 1].copy()
        kernels.descend(*alone, mine, 0, 0.01, 0.1)
        kernels.solve(*alone, solved, 0, 0.1, centre)
        np.testing.assert_array_equal(mine[0], stepped[u])
        np.testing.assert_array_equal(solved[0], found[u])
        own = (scale[u : u + 1], precision, *(one[u : u + 1] for one in more))
        kernels.draw_users(*alone, mine, 0, *own)
        np.testing.assert_array_equal(mine[0], drawn_all[u])


@every
@pytest.mark.parametrize("n", range(1, 10))
def test_solve_equals_lapack(kernels, n):
    """With a constant column, whose part of the ratings is taken off first."""
    indptr, items, values, q, p = drawn(n, [n, 0, n], 4)
    found, centre = p.copy(), np.array([9.0, 1.0, -2.0, 0.5])
    assert kernels.solve(indptr, items, values, q, found, 1, 0.3, centre).all()
    np.testing.assert_array_equal(found[:, 0], p[:, 0])
    np.testing.assert_array_equal(found[1], p[1])
    for u in (0, 2):
        row = slice(indptr[u], indptr[u + 1])
        free, rest = q[items[row], 1:], values[row] - q[items[row], 0] * p[u, 0]
        normal = free.T @ free + 0.3 * n * np.eye(3)
        right = free.T @ rest + 0.3 * n * centre[1:]
        np.testing.assert_allclose(found[u, 1:], np.linalg.solve(normal, right))


@every
def test_gradients_equal_the_formula(kernels):
    indptr, items, values, q, p = drawn(3, [2, 0, 4], 3)
    eta, centre = np.empty((6, 2)), np.array([1.0, -2.0, 0.5])
    kernels.gradients(indptr, items, values, q, p, eta, 0.3, centre)
    users = np.repeat(np.arange(3), np.diff(indptr))
    errors = values - (q[items] * p[users]).sum(axis=1)
    meant = 0.3 * (q[items] - centre) - errors[:, None] * p[users]
    np.testing.assert_allclose(eta, meant[:, :2])


@every
def test_solve_of_singular_equations_reports_and_keeps_p(kernels):
    """Two ratings cannot determine three factors without λ; nor can equal columns of Q."""
    indptr, items, values, q, p = drawn(0, [2, 9, 9], 3)
    found = p.copy()
    solved = kernels.solve(indptr, items, values, q, found, 0, 0.0, np.zeros(3))
    assert solved.tolist() == [False, True, True]
    np.testing.assert_array_equal(found[0], p[0])
    q[:, 2] = q[:, 1]
    assert not kernels.solve(indptr, items, values, q, found, 0, 0.0, np.zeros(3)).any()


@every
def test_add_rows_adds_repeated_rows(kernels):
    table = np.zeros((3, 2), np.int64)
    rows = np.array([2, 0, 2], np.int32)
    kernels.add_rows(table, rows, np.array([[1, 2], [3, 4], [10, 20]]))
    assert table.tolist() == [[3, 4], [0, 0], [11, 22]]


NAMES = "indptr", "items", "values", "q", "p", "fixed"
PRIOR = "scale", "precision", "shifts", "noise"


@compiled
@pytest.mark.parametrize(
    "change",
    [
        *({"indptr": np.array(indptr)} for indptr in ([0, 2], [1, 2, 4], [0, 5, 4])),
        *({"items": np.array([0, 1, 2, item], np.int32)} for item in (M, -1)),
        *({"values": x} for x in (np.zeros(3), np.zeros(8)[::2], np.zeros(4, np.float32))),
        {"q": np.zeros((M, 4))},
        {"p": np.zeros((3, 3))},
        *({"fixed": fixed} for fixed in (3, -1, 1)),
        {"scale": np.ones(3)},
        {"precision": np.ones((3, 2))},
        {"shifts": np.ones((2, 2))},
        {"noise": np.ones((1, 3))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_kernels_with_wrong_shapes_raise(change):
    """A bad array is rejected before any memory is touched."""
    block = drawn(0, [2, 2], 3)
    good = dict(zip(NAMES, (*block, 0), strict=True))
    prior_of = dict(zip(PRIOR, prior(block, 0, definite=True), strict=True))
    wrong = (good | prior_of | change).values()
    with pytest.raises((ValueError, IndexError, OverflowError)):
        _fast.draw_users(*wrong)
    if good.keys() >= change.keys() and change != {"fixed": 1}:
        arguments = good | change
        with pytest.raises((ValueError, IndexError, OverflowError)):
            _fast.solve(*arguments.values(), 0.1, np.zeros(arguments["q"].shape[1]))


@compiled
def test_tables_of_wrong_shapes_raise():
    for tables, noise, out in (((2, 3, 3), 3, 3), ((2, 4, 3), 2, 3), ((2, 4, 3), 3, 2)):
        with pytest.raises(ValueError, match="table"):
            _fast.draw(np.ones(tables), np.ones((2, noise)), np.ones((2, out)))


@compiled
def test_rows_and_pairs_out_of_range_raise():
    table, rows, block = np.zeros((3, 2)), np.array([0, 3], np.int32), drawn(0, [2], 3)
    p, out, eta, zeros = np.zeros((2, 2)), np.zeros(1), np.zeros((2, 3)), np.zeros
    for call in (
        lambda: _fast.add_rows(table, rows, zeros((2, 2))),
        lambda: _fast.add_rows(table, rows[:1], zeros((1, 3))),
        *(
            lambda u=u, i=i: _fast.predict(p, table, np.array(u), np.array(i), out)
            for u, i in (([2], [0]), ([0], [3]), ([-1], [0]), ([0], [0, 1]))
        ),
        lambda: _fast.gradients(*block, zeros((2, 4)), 0.1, zeros(3)),
        *(lambda n=n: _fast.gradients(*block, eta, 0.1, zeros(n)) for n in (2, 4, 0)),
        *(lambda n=n: _fast.solve(*block, 0, 0.1, zeros(n)) for n in (2, 4, 0)),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()


@compiled
@pytest.mark.parametrize(
    "how", ["environment", pytest.param("no extension", marks=pytest.mark.large)]
)
def test_twins_run_if_forced_or_not_compiled(how):
    """The twins run where they are wanted or nothing was compiled."""
    code = "from fedmf import _fast; print(_fast.COMPILED, _fast.solve.__module__)"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SECAGG_")}
    if how == "environment":
        environment["SECAGG_PURE"] = "1"
    else:
        code = f"import sys; sys.modules['fedmf._fast._kernels'] = None; {code}"
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["False", "fedmf._fast.reference"]


@every
@pytest.mark.parametrize(("power", "meant"), [(-19.9, True), (-20.1, False)])
def test_equations_count_as_singular_from_one_pivot_on(kernels, power, meant):
    """The second pivot of ((1, 1), (1, 1 + δ²)) is δ² of its diagonal: above 2^-40, or not."""
    q = np.array([[1.0, 1.0], [0.0, 2.0**power]])
    block = np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2)
    assert kernels.solve(*block, q, np.zeros((1, 2)), 0, 0.0, np.zeros(2)).tolist() == [meant]
