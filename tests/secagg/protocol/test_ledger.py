"""The ledger of cohorts, in clients and servers, and its bytes."""

from __future__ import annotations

import signal
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Cohort, make_identity, make_params, registry_of, rejects
from interruptions import interrupted
from secagg import (
    Client,
    CohortLedger,
    LocalProtocolError,
    ParameterError,
    Phase,
    RoundParams,
    Server,
    TooFewSurvivors,
)
from secagg.testing import toy_policy

IDS = st.integers(0, 30) | st.integers(0, (1 << 64) - 1)
COHORTS = st.sets(IDS, max_size=12)


def ledger_of(*cohorts: object, least: int = 3, kind: str = "") -> CohortLedger:
    ledger = CohortLedger(min_difference=least)
    for cohort in cohorts:
        assert ledger.record(iter(cohort), kind) == 0
    return ledger


# ---- the rule


def test_check30_kinds_of_input_are_apart() -> None:
    ledger = ledger_of(range(10), kind="gradients")
    assert ledger.record(range(9), "counts") == 0
    assert ledger.record(range(9), "gradients") == 1
    assert ledger.record(range(10), "counts") == 1


@given(st.lists(COHORTS, max_size=12), st.integers(2, 9))
def test_check30_record_is_that_of_the_sets(cohorts: list[set[int]], least: int) -> None:
    """Against every earlier cohort, as sets."""
    ledger, kept = CohortLedger(min_difference=least), list[set[int]]()
    for cohort in cohorts:
        differences = [len(cohort ^ earlier) for earlier in kept]
        found = ledger.record(cohort)
        if cohort in kept or all(d >= least for d in differences):
            assert found == 0
            kept.append(cohort)
        else:
            assert found in differences
            assert 0 < found < least


def test_check30_ids_in_one_bucket_are_compared_one_by_one() -> None:
    """The sketch has 1,024 bits; among 4,000 clients most share theirs with others."""
    ledger = ledger_of(range(0, 4000, 2))
    assert ledger.record(range(1, 4000, 2)) == 0
    assert ledger.record(range(0, 3998, 2)) == 1
    assert ledger.record([*range(0, 3998, 2), 3999]) == 2


# ---- in a client


def at_survivors(params: RoundParams, ledger: CohortLedger, gone: int) -> tuple[Client, bytes]:
    """Client 2 with the ledger, and the first message that names the survivors."""
    active = params.active
    client = Client(
        2,
        params,
        policy=toy_policy(params),
        identity=make_identity(2) if active else None,
        registry=registry_of(range(params.n_clients)) if active else None,
        ledger=ledger,
    )
    cohort = Cohort(params)
    cohort.clients[2] = client
    cohort.advance(2)
    return client, cohort.advance(1, without=[gone])[2]


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_check30_client_rejects_a_sum_too_close_to_an_earlier_one(security: str) -> None:
    """Before it signs or reveals anything; the rejected cohort is not recorded."""
    params = make_params(7, 5, security=security)
    ledger = ledger_of(range(7))
    before = ledger.to_bytes()
    client, request = at_survivors(params, ledger, 6)
    rejects(client, request, "ledger")
    assert ledger.to_bytes() == before


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_check30_client_records_before_it_answers(security: str) -> None:
    params = make_params(7, 5, security=security)
    ledger = CohortLedger(min_difference=3)
    client, request = at_survivors(params, ledger, 6)
    assert "0 cohorts" in repr(ledger)
    client.answer(request)
    assert ledger.record(range(6)) == 0
    assert ledger.record(range(7)) == 1
    client, request = at_survivors(params, ledger, 6)  # the same cohort again
    client.answer(request)


def test_check30_client_on_a_graph_has_no_ledger() -> None:
    """It sees other neighbours in every round, which would always differ enough."""
    params = make_params(9, neighbours=4)
    with pytest.raises(ParameterError):
        Client(0, params, policy=toy_policy(params), ledger=CohortLedger(min_difference=2))


# ---- in a server


@pytest.mark.parametrize("changes", [{}, {"neighbours": 4}, {"security": "active"}])
def test_check30_server_asks_for_no_sum_too_close_to_an_earlier_one(changes):
    params = make_params(9, **changes)
    ledger = CohortLedger(min_difference=3)
    for gone, accepted in [([], True), ([8], False), ([], True), ([6, 7], False)]:
        cohort = Cohort(params)
        registry = registry_of(range(9)) if params.active else None
        cohort.server = Server(params, registry=registry, ledger=ledger, kind="gradients")
        cohort.advance(2)
        if accepted:
            assert cohort.advance(1, without=gone)
            while cohort.server.phase is not Phase.FINISHED:
                cohort.advance(1)
            continue
        with pytest.raises(TooFewSurvivors) as caught:
            cohort.advance(1, without=gone)
        assert (caught.value.survivors, caught.value.needed) == (len(gone), 3)
        assert caught.value.phase == "masked_input"
        assert cohort.server.phase is Phase.FAILED
        assert not cohort.server.outbox
    assert "1 cohorts" in repr(ledger)


def test_kind_without_a_ledger_and_other_types_raise() -> None:
    params = make_params(5)
    for make in (lambda **given: Client(0, params, **given), lambda **x: Server(params, **x)):
        with pytest.raises(ParameterError):
            make(kind="gradients")
        with pytest.raises(ParameterError):
            make(ledger={})
        for kind in (b"bytes", "\ud800", "x" * 256):
            with pytest.raises(ParameterError):
                make(ledger=CohortLedger(min_difference=2), kind=kind)


def test_invalid_arguments_of_a_ledger_raise() -> None:
    for least in (0, 1, (1 << 16) + 1, 2.0, True):
        with pytest.raises(ParameterError):
            CohortLedger(min_difference=least)
    for cohort in ([-1], [1 << 64], ["a"], [True], [1, 1]):
        with pytest.raises(ParameterError):
            CohortLedger(min_difference=2).record(cohort)


# ---- bytes


@given(st.lists(st.tuples(st.sampled_from(["", "a", "ä"]), COHORTS), max_size=8))
def test_ledger_comes_back_from_its_bytes(entries: list[tuple[str, set[int]]]) -> None:
    """The order of recording does not matter if nothing is rejected."""
    ledger = CohortLedger(min_difference=2)
    recorded = [(kind, ids) for kind, ids in entries if ledger.record(ids, kind) == 0]
    data = ledger.to_bytes()
    again = CohortLedger.from_bytes(data)
    assert again.to_bytes() == data
    assert again.min_difference == 2
    for kind, ids in recorded:
        assert again.record(ids, kind) == 0
        assert again.record(ids ^ {77}, kind) in (0, 1)
    other = CohortLedger(min_difference=2)
    for kind, ids in reversed(recorded):
        assert other.record(ids, kind) == 0
    assert other.to_bytes() == data


def test_included_cohorts_count_and_are_not_compared() -> None:
    ledger, other = ledger_of({1, 2, 3}), ledger_of({1, 2, 3, 4}, kind="x")
    ledger.include(other)
    ledger.include(ledger_of({1, 2}))
    assert ledger.record({1, 2, 3, 5}, "x") == 2
    assert ledger.record({1, 2, 9, 8}) == 2
    assert ledger.record({1, 2, 3}) == 0
    for wrong in (ledger_of(least=4), None):
        with pytest.raises(ParameterError):
            ledger.include(wrong)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals of POSIX")
@pytest.mark.parametrize("call", ["record", "include", "to_bytes"])
def test_check30_handler_of_signals_at_any_instruction(call: str) -> None:
    """It waits for no lock, and no two cohorts that are too close are recorded."""
    accepted = list[set[int]]()

    def handler(*_: object) -> None:
        if call == "record":
            with suppress(LocalProtocolError):
                if ledger.record({1, 2, 3, 4}) == 0:
                    accepted.append({1, 2, 3, 4})
        elif call == "include":
            ledger.include(ledger_of({7, 8, 9}))
        else:
            assert CohortLedger.from_bytes(ledger.to_bytes()).record({21, 22}) == 0

    def record() -> None:
        if ledger.record({1, 2, 3}) == 0:
            accepted.append({1, 2, 3})

    before, at, going_on = signal.signal(signal.SIGUSR1, handler), 0, True
    try:
        while going_on:
            ledger, at = ledger_of({11, 12, 13}, {31, 32, 33}), at + 1
            accepted.clear()
            going_on = interrupted(record, at - 1)
            assert len(accepted) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert at > 50


def test_layout_of_the_bytes() -> None:
    ledger = ledger_of({1, 258}, kind="ab", least=4)
    ids = struct.pack("<QQ", 1, 258)
    assert ledger.to_bytes() == (
        b"secagg ledger 1\0" + struct.pack("<IIB", 4, 1, 2) + b"ab\1\0\0\0\2\0\0\0" + ids
    )


def test_damaged_bytes_raise_a_parameter_error() -> None:
    """Cut, longer, another magic or order, an id twice, no cohort, a kind twice."""
    data = ledger_of({1, 2, 3}, {10, 11}, kind="a").to_bytes()
    head, first, second = data[:-48], data[-48:-28], data[-28:]
    assert len(first) == 4 + 16
    bad = [data[:cut] for cut in range(len(data))]
    bad += [data + b"\0", b"S" + data[1:], head + second + first]
    bad.append(data[:-8] + data[-16:-8])
    bad.append(data[:16] + struct.pack("<I", 1) + data[20:])  # min_difference 1
    empty = struct.pack("<B", 1) + b"a" + struct.pack("<I", 0)
    bad += [data[:20] + struct.pack("<I", count) + empty * count for count in (1, 2)]
    bad.append(data.replace(b"\1a\2", b"\1\xff\2"))
    for damaged in bad:
        with pytest.raises(ParameterError):
            CohortLedger.from_bytes(damaged)
    with pytest.raises(ParameterError):
        CohortLedger.from_bytes("text")


@given(st.binary(max_size=80))
def test_check26_any_bytes_give_a_ledger_or_a_parameter_error(tail: bytes) -> None:
    data = b"secagg ledger 1\0" + tail
    with suppress(ParameterError):
        assert CohortLedger.from_bytes(data).to_bytes() == data
