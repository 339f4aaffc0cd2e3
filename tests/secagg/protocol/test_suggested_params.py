"""Suggested parameters, safe under the policy of the same assumptions, and its remedies."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from harness import make_params
from secagg import ClientPolicy, FixedPoint, Integers, ParameterError, RoundParams
from secagg.graph import recommend
from secagg.oneshot import Noise, OneShotParams, OneShotPolicy
from secagg.simulate import temporary_journals

ENCODING = FixedPoint(8.0)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_default_policy_accepts_the_suggestion_for_every_n(security: str) -> None:
    for n in [*range(3, 210), 999, 1000, 4097, 1 << 17, 1 << 20]:
        params = RoundParams.suggest(n, 4, ENCODING, security=security, session=b"name")
        ClientPolicy().check(params)
        assert ClientPolicy().objection(params, n) is None
        complete = n <= 100 or security == "active"
        assert (params.neighbours is None) == complete
        if complete:
            rule = 2 * n // 3 + 1 if security == "active" else -(-7 * n // 10)
            assert params.threshold == rule
        else:
            assert (params.neighbours, params.threshold) == recommend(n, 0.2, 0.1)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("corrupt", [0.0, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("dropout", [0.0, 0.05, 0.3, 0.45])
def test_a_policy_accepts_the_suggestion_for_its_assumptions(corrupt, dropout, security):
    policy = ClientPolicy(corrupt=corrupt, dropout=dropout)
    made = 0
    for n in [*range(3, 60), 100, 150]:
        stated = {"corrupt": corrupt, "dropout": dropout, "security": security}
        try:
            params = RoundParams.suggest(n, 4, ENCODING, **stated, session=b"name")
        except ParameterError:
            continue
        policy.check(params)
        if params.neighbours is None:
            assert params.threshold <= n - int(dropout * n)
        made += 1
    assert made or corrupt + dropout > 0.7 or security == "active"


def test_too_many_colluders_and_dropouts_are_an_error() -> None:
    for n, assumed in [(50, {"dropout": 0.6}), (50, {"corrupt": 0.95}), (3, {"corrupt": 0.5})]:
        with pytest.raises(ParameterError):
            RoundParams.suggest(n, 4, ENCODING, **assumed)
        with pytest.raises(ParameterError):
            RoundParams.suggest(n, 4, ENCODING, **assumed, security="active", session=b"name")


def test_choices_of_the_caller_take_the_place_of_the_suggestion() -> None:
    def pair(n: int, **given: object) -> tuple[int | None, int]:
        params = RoundParams.suggest(n, 4, ENCODING, **given)  # type: ignore[arg-type]
        return params.neighbours, params.threshold

    assert pair(200, neighbours=None) == (None, 140)
    assert pair(200, neighbours=None, threshold=120) == (None, 120)
    assert pair(200, neighbours=60) == (60, 43)
    assert pair(200, neighbours=2) == (2, 2)
    assert pair(200, threshold=32) == (50, 32)
    assert pair(10, threshold=8) == (None, 8)
    assert RoundParams.suggest(np.int64(10), 4, ENCODING).threshold == 7
    for wrong in ({"neighbours": 7}, {"neighbours": "all"}, {"threshold": 5}, {"session": "x"}):
        with pytest.raises(ParameterError):
            RoundParams.suggest(10, 4, ENCODING, **wrong)
    with pytest.raises(ParameterError):
        RoundParams.suggest(2, 4, ENCODING)


@pytest.mark.parametrize("encoding", [ENCODING, Integers(1), Integers(100), FixedPoint(1.0, 0)])
@pytest.mark.parametrize("more", [{}, {"max_weight": 9999}, {"count_clipped": True}], ids=str)
@pytest.mark.parametrize("n", [3, 10_000])
def test_modulus_is_the_smallest_that_fits(n: int, more: dict, encoding: object) -> None:
    params = RoundParams.suggest(n, 1000, encoding, **more)
    assert params.modulus_bits is not None
    with pytest.raises(ParameterError):
        replace(params, modulus_bits=params.modulus_bits - 1)
    assert RoundParams.suggest(n, 1000, encoding, **more, modulus_bits=60).modulus_bits == 60
    default = replace(params, modulus_bits=None)
    assert default.ring.bits == max(32, params.modulus_bits)


# ---- what exposes a vector to the policy's colluders is rejected, with a remedy that is not


def better(error: ParameterError, params: RoundParams) -> RoundParams:
    """The parameters with the neighbours and the threshold that an error proposes."""
    graph = re.search(r"neighbours=(\w+)\W+\w*\W*threshold=(\d+)", str(error))
    if graph is not None:
        k = None if graph[1] == "None" else int(graph[1])
        return replace(params, neighbours=k, threshold=int(graph[2]))
    found = re.search(r"threshold of (\d+)", str(error))
    assert found is not None, error
    return replace(params, threshold=int(found[1]))


@pytest.mark.parametrize(
    ("n", "k", "t", "demands"),
    [
        (10, 4, 2, {}),
        (50, 8, 4, {}),
        (200, 22, 11, {}),
        (10, 8, 2, {"min_clients": 8}),
        (200, 60, 12, {"min_clients": 60, "min_threshold": 12}),
        (100, None, 61, {"corrupt": 0.6}),
        (4, None, 3, {"colluders": 2}),
        (11, 10, 6, {"corrupt": 0.6, "dropout": 0.0}),
    ],
)
def test_check04_remedy_of_an_unsafe_graph_is_accepted(n, k, t, demands):
    policy, params = ClientPolicy(**demands), make_params(n, t, neighbours=k)
    with pytest.raises(ParameterError) as caught:
        policy.check(params)
    policy.check(better(caught.value, params))


def test_remedy_is_the_complete_graph_if_no_sparse_one_is_safe() -> None:
    params = make_params(4, 2, neighbours=2)
    with pytest.raises(ParameterError) as caught:
        ClientPolicy().check(params)
    proposed = better(caught.value, params)
    assert (proposed.neighbours, proposed.threshold) == (None, 3)
    ClientPolicy().check(proposed)


# ---- suites


@pytest.mark.parametrize("neighbours", [None, 6])
def test_suite_is_hybrid_where_its_bytes_are_fewer_than_the_vectors(neighbours) -> None:
    """The keys up: 1,184 bytes, and 1,216 for each other holder, of 10 or 7."""
    more = 1184 + 1216 * (9 if neighbours is None else 6)
    for bits in (8, 20, 32):
        at = {"neighbours": neighbours, "modulus_bits": bits, "encoding": Integers(max=3)}
        longest = more * 8 // bits  # the bytes of this length are no more than those of keys
        for length, suite in ((longest, "x25519"), (longest + 1, "hybrid")):
            params = make_params(10, length=length, **at)
            assert (-(-length * bits // 8) > more) == (suite == "hybrid")
            assert params.suite == suite
            # a weight is one more element
            counted = make_params(10, length=length, max_weight=1, **at)
            assert counted.suite == "hybrid"


def test_suite_is_x25519_of_more_than_300_clients() -> None:
    for n, suite in ((300, "hybrid"), (301, "x25519")):
        params = make_params(n, neighbours=20, threshold=15, length=100_000)
        assert params.suite == suite
        suggested = RoundParams.suggest(n, 100_000, FixedPoint(8.0))
        assert suggested.suite == suite


def test_suite_that_is_given_is_kept() -> None:
    for length in (4, 1 << 20):
        for suite in ("hybrid", "x25519"):
            params = make_params(5, length=length, suite=suite)
            assert params.suite == replace(params, session=b"other").suite == suite
            assert RoundParams.from_bytes(params.to_bytes()).suite == suite
            suggested = RoundParams.suggest(5, length, FixedPoint(8.0), suite=suite)
            assert suggested.suite == suite
    assert make_params(5, suite=None).suite == "x25519"
    for wrong in ("kyber", "", 0, b"hybrid", ["hybrid"]):
        with pytest.raises(ParameterError):
            make_params(5, suite=wrong)


# ---- one-shot sums


def test_one_shot_suggestion_has_the_suite_and_the_smallest_modulus() -> None:
    with temporary_journals(3, "x25519") as journals:
        helpers = [journal.public for journal in journals]
        given = {"helpers": helpers, "security": "semi-honest"}
        sizes = (3, 4, 5, 10, 1 << 20)
        made = [OneShotParams.suggest(n, 9, ENCODING, **given) for n in sizes]
        noisy = OneShotParams.suggest(10, 9, ENCODING, **given, noise=Noise(2**40))
        for params in [*made, noisy]:
            assert params.min_clients == max(3, -(-7 * params.n_clients // 10))
            assert (params.threshold, params.suite) == (2, "x25519")
            OneShotPolicy().check(params)
            with pytest.raises(ParameterError):
                replace(params, modulus_bits=params.modulus_bits - 1)
        assert replace(noisy, modulus_bits=None).ring == noisy.ring
        for n, wrong in ((2, {}), (3, {"corrupt": 0.4}), (10, {"dropout": 0.7})):
            with pytest.raises(ParameterError):
                OneShotParams.suggest(n, 9, ENCODING, **given, **wrong)
        for change, least in (({"dropout": 0.5}, 5), ({"min_clients": 3}, 3)):
            assert (
                OneShotParams.suggest(10, 9, ENCODING, **given, **change).min_clients == least
            )
        alone = OneShotParams.suggest(10, 9, ENCODING, **given | {"helpers": helpers[:1]})
        assert alone.threshold == 1
    for wrong in ([], 3, [b"key"], [(b"key", b"key")]):
        with pytest.raises(ParameterError):
            OneShotParams.suggest(10, 9, ENCODING, helpers=wrong, session=b"name")
