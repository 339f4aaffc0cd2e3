"""The rules of the policies, computed from the documents alone, give the package's verdicts.

`independent_policy` follows docs/protocol.md §3.4 and §3.5, and docs/oneshot.md §3.6 and §3.7.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import independent_oneshot
import independent_policy as independent
import protocol_doc
from effort import examples
from independent_views import as_bounds, as_one_shot_policy, as_parameters, as_policy
from secagg import Bounds, ClientPolicy, FixedPoint, Identity, Integers, Noise, ParameterError
from secagg.graph import finder, graph, tails
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.protocol import RoundParams
from vectors_reader import b, load

ENCODINGS = (Integers(1), Integers(2), FixedPoint(1.0, 4), FixedPoint(1.0, 5))
EXAMPLE = load("oneshot")["sessions"][0]
SECRETS = [Identity(b(secret)) for _, secret in EXAMPLE["secrets"]]
HELPERS = [(b(key), b(identity)) for key, identity in EXAMPLE["parameters"]["helpers"]]

decimals = st.one_of(
    st.builds(lambda digits, places: digits / 10**places, st.integers(0, 99), st.just(2)),
    st.builds(lambda digits: float(f"{digits}e-4"), st.integers(0, 4999)),
    st.floats(0, 0.5),
)
"""Fractions, most of which have few decimals and no exact binary64."""


def accepted(check: Callable[[], object]) -> bool:
    try:
        check()
    except ParameterError:
        return False
    return True


def bounds() -> st.SearchStrategy[Bounds | None]:
    made = st.builds(
        lambda encoding, weight: Bounds(encoding=encoding, max_weight=weight),
        st.sampled_from(ENCODINGS[::2]),
        st.none() | st.integers(1, 2),
    )
    return st.none() | st.none() | made


@st.composite
def round_params(draw: st.DrawFn, most: int = 300) -> RoundParams:
    n = draw(st.integers(2, 12) | st.integers(2, most))
    neighbours = None
    if n > 2 and draw(st.booleans()):
        neighbours = 2 * draw(st.integers(1, (n - 1) // 2))
    active = neighbours is None and draw(st.booleans())
    least = 2 if neighbours else 2 * n // 3 + 1 if active else n // 2 + 1
    threshold = draw(st.integers(least, neighbours or n))
    two = n == 2 or draw(st.booleans())
    most = max(threshold, 2 if two else 3) - 2
    noise = st.integers(0, most) | st.just(most)
    return RoundParams(
        n_clients=n,
        threshold=threshold,
        noise=draw(st.none() | noise.map(lambda colluders: Noise(100, colluders))),
        length=draw(st.integers(1, 9)),
        encoding=draw(st.sampled_from(ENCODINGS[::2])),
        neighbours=neighbours,
        max_weight=draw(st.none() | st.integers(1, 2)),
        session=b"policy",
        allow_two_clients=two,
        security="active" if active else "semi-honest",
    )


@st.composite
def policies(draw: st.DrawFn, params: RoundParams, population: int) -> ClientPolicy:
    """Policies near the edge of the verdict."""
    n, t, two = params.n_clients, params.threshold, draw(st.booleans())
    edge = 2 * t - n if params.active else t
    if params.noise is not None:
        edge = draw(st.sampled_from([edge, params.noise.colluders + 1]))
    colluders = max(0, draw(st.integers(edge - 3, edge + 1) | st.integers(0, n)))
    return ClientPolicy(
        min_clients=draw(
            st.just(3)
            | st.integers(2 if two else 3, n + 3)
            | st.integers(colluders + 1, colluders + 3).map(lambda x: max(3, x))
        ),
        min_cohort=draw(st.none() | st.integers(2, n + 1)),
        min_threshold=draw(st.just(1) | st.integers(1, n)),
        max_length=draw(st.just(1 << 28) | st.integers(1, 9)),
        allow_two_clients=two,
        require_active=draw(st.sampled_from([False, False, True])),
        corrupt=draw(st.just(min(colluders / population, 0.99)) | decimals),
        colluders=draw(st.sampled_from([None, colluders])),
        dropout=draw(decimals),
        sigma=draw(st.integers(1, 60) | st.integers(1, 128)),
        bounds=draw(bounds()),
    )


@given(st.data(), round_params())
@examples(200)
def test_rounds_and_cohorts_have_the_verdict_of_the_document(data, params):
    n = params.n_clients
    registered = data.draw(st.integers(n, 3 * n)) if params.active else 0
    policy = data.draw(policies(params, max(n, registered)))
    p, theirs = as_parameters(params), as_policy(policy)
    assert theirs.in_range()
    assert accepted(lambda: policy.check(params, registered)) == theirs.accepts(p, registered)
    for size in {*data.draw(st.lists(st.integers(params.min_survivors, n))), n}:
        ours = policy.objection(params, size, registered) is None
        assert ours == theirs.accepts_cohort(p, size, registered), size


@given(
    st.integers(5, 40) | st.integers(5, 600),
    st.integers(1, 120),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 0.4),
    decimals,
    st.integers(0, 1),
)
@examples(400)
def test_close_cases_on_a_graph_have_the_verdict_of_the_document(
    n, half, place, corrupt, dropout, beside
):
    """`sigma` is the last whole number of bits that the graph keeps, or the next."""
    k, c = min(2 * half, (n - 2) // 2 * 2), int(corrupt * n)
    mean = c * k / (n - 1)
    t = max(2, round(mean + place * (k - mean)))
    bound = independent.too_many(n, k, t, c)
    bound += independent.in_pieces(n, k, c + independent.rounded_up(dropout, n))
    bits = math.log2(bound.denominator) - math.log2(bound.numerator) if bound else 128
    sigma = min(max(1, math.floor(bits) + beside), 128)
    params = RoundParams(n_clients=n, threshold=t, length=1, encoding=Integers(1), neighbours=k)
    policy = ClientPolicy(colluders=c, dropout=dropout, sigma=sigma)
    ours = policy.objection(params, n) is None
    assert ours == independent.is_private(n, k, t, c, dropout, sigma)


@pytest.mark.parametrize(
    ("n", "k", "t", "c", "sigma"),
    [
        (200, 38, 29, 82, 12),
        (200, 44, 36, 98, 13),
        (300, 50, 37, 127, 12),
        (300, 74, 45, 127, 4),
    ],
)
def test_graph_is_accepted_that_only_the_whole_sum_accepts(n, k, t, c, sigma):
    """A bound of the tail in the place of the sum would reject these."""
    for t_, sigma_, expected in (
        (t, sigma, True),
        (t, sigma + 1, False),
        (t - 1, sigma, False),
    ):
        assert independent.is_private(n, k, t_, c, 0.1, sigma_) == expected
        assert finder.is_private(n, k, t_, 0.0, 0.1, sigma_, colluders=c) == expected


@given(
    st.integers(2100, 1 << 20),
    st.integers(1025, 1600),
    st.floats(0, 0.4),
    st.integers(1, 128),
    st.integers(-2, 2),
)
@examples(30)
def test_close_cases_above_2048_neighbours_are_within_the_document(
    n, half, corrupt, sigma, beside
):
    k, c = min(2 * half, (n - 2) // 2 * 2), int(corrupt * n)
    mean = c * k / (n - 1)  # near the edge: sigma bits above the mean, as a normal tail
    bits = (sigma + math.log2(n)) * math.log(2)
    t = min(max(2, round(mean + math.sqrt(2 * bits * mean)) + beside), k)
    D = independent.rounded_up(0.1, n)
    if n - c - D < 2:
        return
    bound = independent.too_many(n, k, t, c) + independent.in_pieces(n, k, c + D)
    there = -math.log2(bound.numerator) + math.log2(bound.denominator) if bound else math.inf
    ours = finder.is_private(n, k, t, 0.0, 0.1, sigma, colluders=c)
    if not sigma <= there <= sigma + 2**-15:
        assert ours == (there > sigma)


@given(st.integers(4, 60), st.integers(1, 20), st.integers(0, 60))
@examples(200)
def test_worst_number_of_missing_clients_is_that_of_the_document(m, half, missing):
    K, missing = min(2 * half, m - 2), min(missing, m - 2)
    each = [independent.pairs_of_gaps(m, K, g) for g in range(K, missing + 1)]
    worst = max(each, default=0)
    assert independent.in_pieces(m, K, missing) == worst
    assert tails.in_pieces(m, missing, K) == min(1, worst)


def test_table_of_graphs_is_right() -> None:
    table = [row.strip("| ").split(" | ") for row in protocol_doc.section("graphs").split("\n")]
    assert len(table) >= 10 + 2
    for *numbers, shown, word in table[2:]:
        m, k, t, c = map(int, numbers)
        policy = ClientPolicy(colluders=c)
        params = RoundParams(
            n_clients=m, threshold=t, length=1, encoding=Integers(1), neighbours=k
        )
        assert accepted(lambda: policy.check(params)) == (word == "yes")  # noqa: B023
        assert independent.is_private(m, k, t, c, 0.1, 40) == (word == "yes")
        if shown == "–":
            assert m - c - independent.rounded_up(0.1, m) < 2 or m == k + 1
            continue
        bits = finder.privacy_bits(m, k, t, 0.0, 0.1, colluders=c)
        assert shown == ("∞" if math.isinf(bits) else f"{math.floor(bits * 10) / 10:.1f}")


@given(
    decimals | st.floats(0, 1, exclude_max=True),
    st.integers(2, 1 << 20) | st.integers(1, 9).map(lambda i: 100 * i),
)
@examples(300)
def test_fractions_are_the_decimals_as_written(fraction: float, n: int) -> None:
    assert graph.count(fraction, n) == independent.rounded_up(fraction, n)
    narrow = np.float32(fraction)
    if narrow < 1:
        assert graph.count(narrow, n) == independent.rounded_up(narrow, n)


FIELDS = st.sampled_from(
    [
        *(("min_threshold", value) for value in (0, 1, 2**20, 2**20 + 1, -1)),
        *(("min_clients", value) for value in (1, 2, 3, 2**20, 2**20 + 1)),
        *(("min_cohort", value) for value in (None, 0, 1, 2, 2**20, 2**20 + 1)),
        *(("max_length", value) for value in (0, 1, 2**31, 2**31 + 1)),
        *(("corrupt", value) for value in (-0.1, 0, 0.0, 0.999, 1, 1.5)),
        *(("dropout", value) for value in (-1e-9, 0, 0.0, 0.999, 1.0, 2)),
        *(("colluders", value) for value in (None, -1, 0, 2**20, 2**20 + 1)),
        *(("sigma", value) for value in (0, 1, 128, 129)),
        *(("allow_two_clients", value) for value in (False, True)),
        *(("max_clients", value) for value in (0, 1, 2, 2**20, 2**20 + 1)),
    ]
)


@given(st.lists(FIELDS, min_size=1, max_size=3).map(dict))
@examples(300)
def test_ranges_of_the_policies_are_those_of_the_documents(fields: dict[str, object]) -> None:
    for ours, theirs in (
        (ClientPolicy, independent.Policy),
        (OneShotPolicy, independent.OneShotPolicy),
    ):
        there = {name: fields[name] for name in fields if hasattr(ours(), name)}
        in_range = theirs(**there).in_range()
        assert accepted(lambda: ours(**there)) == in_range, there  # noqa: B023


@given(st.data())
@examples(200)
def test_one_shot_sums_have_the_verdict_of_the_document(data: st.DataObject) -> None:
    draw = data.draw
    n = draw(st.integers(2, 300))
    registered = draw(st.integers(1, 3 * n))
    least, own = draw(st.integers(2, n)), draw(st.just(2) | st.integers(2, n + 1))
    colluders = max(
        0, draw(st.sampled_from([least, max(least, own)])) - draw(st.sampled_from([1, 1, 2, 3]))
    )
    active = draw(st.booleans())
    population = max(n, registered) if active and draw(st.booleans()) else n
    params = OneShotParams(
        n_clients=n,
        length=draw(st.integers(1, 9)),
        encoding=draw(st.sampled_from(ENCODINGS[::2])),
        helpers=tuple(HELPERS),
        threshold=draw(st.integers(1, 3)),
        min_clients=least,
        max_weight=draw(st.none() | st.integers(1, 2)),
        security="active" if active else "semi-honest",
        suite="x25519",
        session=b"policy",
    )
    identities = [identity for _, identity in HELPERS]
    trusted = st.sampled_from([identities, identities[1:], [*identities, bytes(32)]])
    policy = OneShotPolicy(
        min_threshold=draw(st.integers(1, 4)),
        min_clients=own,
        require_active=draw(st.sampled_from([False, False, True])),
        helpers=draw(st.none() | trusted.map(frozenset)),
        corrupt=draw(st.just(min(colluders / population, 0.99)) | decimals),
        colluders=draw(st.sampled_from([None, None, colluders])),
        max_length=draw(st.just(1 << 28) | st.integers(1, 9)),
        max_clients=draw(st.just(1 << 17) | st.integers(2, n + 1)),
        bounds=draw(bounds()),
        require_hybrid=draw(st.sampled_from([False, False, True])),
    )
    right = [one.sign(b"secagg/1 one-shot endorsed" + params.digest) for one in SECRETS]
    given_ = draw(st.sampled_from([[], right, right, right[::-1], right[:2], [b"x"]]))
    p, theirs = (
        independent_oneshot.Parameters.decode(params.to_bytes()),
        as_one_shot_policy(policy),
    )
    assert theirs.in_range()
    assert accepted(lambda: policy.check(params, given_)) == theirs.accepts(p, given_)
    at_helper = dataclasses.replace(policy, helpers=None)
    known = registered if params.active else None
    ours = accepted(lambda: at_helper.check_at_helper(params, known))
    assert ours == as_one_shot_policy(at_helper).accepts_at_helper(p, known)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("weight", [None, 1, 1 << 53])
def test_bounds_have_the_bytes_of_the_document(encoding, weight) -> None:
    made = as_bounds(Bounds(encoding=encoding, max_weight=weight))
    assert independent.is_bounds(made)
