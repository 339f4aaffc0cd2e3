"""Demands of a helper: roles that follow from keys, colluders, and bounds on its work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from oneshot_parties import LENIENT, Parties, parties, rejects
from secagg import ParameterError, Registry
from secagg.oneshot import Accumulator, Helper, Noise, OneShotPolicy, messages, opening, report
from secagg.oneshot.helper import MAX_LENGTH
from secagg.oneshot.messages import Request
from secagg.testing import make_identity


@pytest.fixture(scope="module")
def two() -> Iterator[Parties]:
    with parties(2, 2) as made:
        yield made


def registry_of(clients: int) -> Registry:
    return Registry({u: make_identity(u).public for u in range(clients)})


def rejected(helper: Helper) -> None:
    """Assert that a helper gives nothing away, and reserves nothing."""
    request = messages.write_request(
        Request(0, np.arange(3, dtype=np.uint64), {}), helper.params
    )
    for call in (helper.endorse, lambda: helper.reserve(request), lambda: helper.open(request)):
        with pytest.raises(ParameterError):
            call()


def test_check53_helper_with_a_registry_serves_active_sums_only(two: Parties) -> None:
    """An aggregator that relays the parameters would otherwise choose that nobody signs."""
    weak = two.make_params(n_clients=3, security="semi-honest")
    with pytest.raises(ParameterError):
        Helper(weak, two.journals[0], registry=registry_of(3))
    Helper(weak, two.journals[0]).endorse()
    with pytest.raises(ParameterError):
        Helper(two.make_params(n_clients=3), two.journals[0])


@pytest.mark.parametrize(
    ("clients", "registered", "least"),
    [(3, 3, 3), (3, 5, 3), (3, 6, None), (5, 6, 4), (5, 20, None), (10, 10, 4), (30, 20, 8)],
)
def test_check53_colluders_are_of_the_registry(
    two: Parties, clients: int, registered: int, least: int | None
) -> None:
    """The aggregator chooses n, and which clients of the registry report."""
    registry = registry_of(registered)
    for smallest in range(3, clients + 1):
        params = two.make_params(n_clients=clients, min_clients=smallest)
        helper = Helper(params, two.journals[0], registry=registry)
        if least is None or smallest < least:
            rejected(helper)
        else:
            helper.endorse()


def test_helper_that_opens_longer_lists_accepts_a_smaller_minimum(two: Parties) -> None:
    """Its own minimum is what colluders meet."""
    registry, params = registry_of(10), two.make_params(n_clients=10)
    rejected(Helper(params, two.journals[0], registry=registry))
    for changes in ({"min_clients": 4}, {"policy": OneShotPolicy(min_clients=4)}):
        helper = Helper(params, two.journals[0], registry=registry, **changes)  # type: ignore[arg-type]
        helper.endorse()
        ask = Request(0, np.arange(3, dtype=np.uint64), {})
        request = messages.write_request(ask, params)
        rejects("count", lambda helper=helper, request=request: helper.reserve(request))


@pytest.mark.parametrize(
    ("security", "changes", "policy"),
    [
        ("semi-honest", {"length": MAX_LENGTH + 1}, None),
        ("active", {"length": MAX_LENGTH + 1}, None),
        ("active", {"length": 101}, OneShotPolicy(max_length=100)),
        ("semi-honest", {"n_clients": (1 << 17) + 1, "min_clients": 1 << 16}, None),
        ("semi-honest", {"n_clients": 5}, OneShotPolicy(max_clients=4)),
        ("semi-honest", {"n_clients": 5}, OneShotPolicy(require_active=True)),
    ],
)
def test_check53_work_that_costs_the_aggregator_nothing_is_bounded(
    two: Parties, security: str, changes: dict[str, Any], policy: OneShotPolicy | None
) -> None:
    params = two.make_params(**{"n_clients": 5, "security": security, **changes})
    registry = registry_of(5) if params.active else None
    rejected(Helper(params, two.journals[0], registry=registry, policy=policy))


def test_registry_bounds_the_clients_of_active_sums(two: Parties) -> None:
    params = two.make_params(n_clients=9, min_clients=4)
    policy = OneShotPolicy(max_clients=4)
    Helper(params, two.journals[0], registry=registry_of(5), policy=policy).endorse()


@pytest.mark.parametrize("modulus", [1 << 32, 1 << 33, 100_003, 1 << 64])
@pytest.mark.parametrize("noise", [None, Noise(3)])
def test_answer_is_the_same_in_blocks(
    modulus: int, noise: Noise | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties(3, 2, modulus=modulus, noise=noise, length=53, max_weight=3) as made:
        accumulator = made.accumulator(range(8))
        request, whole = made.answers(accumulator)
        monkeypatch.setattr(opening, "_BLOCK", 16)
        monkeypatch.setattr(opening, "_MASKS", 3)
        assert [one.open(request) for one in made.helpers] == whole
        if noise is None:
            found = accumulator.result(whole)
            assert found.integers.tolist() == made.expected(range(8))


def test_helper_needs_little_more_memory_than_its_answer() -> None:
    """It was three times the answer: the sum, the packed masks, and both joined.

    Beside the answer it needs a block, whose size does not depend on the length.
    """

    def opened(length: int) -> tuple[int, int]:
        with parties(2, 2, security="semi-honest", length=length, n_clients=3) as made:
            accumulator = Accumulator(made.params)
            for u in range(3):
                zeros = np.zeros(length, np.int64)
                accumulator.add(report(zeros, made.params, u, policy=LENIENT))
            made.check(accumulator)
            request = accumulator.request()
            tracemalloc.start()
            answer = made.helpers[0].open(request)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return len(answer), peak

    (short, less), (long, more) = (opened(blocks * opening._BLOCK) for blocks in (1, 4))
    assert 0.9 * (long - short) < more - less < 1.2 * (long - short)
