"""Messages that the server rejects; a rejection leaves the round as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import LOW_ORDER, TOY, Cohort, altered, finish, make_params, read, server_rejects
from secagg import Client, LocalProtocolError, ParameterError, Phase, Server, TooFewSurvivors
from secagg.protocol import NEXT
from secagg.protocol.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
)
from secagg.shamir.field import M61

# ---- dropping out

PHASES = range(4)


@given(
    st.sampled_from([None, 4, 6]),
    st.lists(st.integers(0, 5), min_size=12, max_size=12),
    st.sampled_from([{}, {"modulus": (1 << 61) - 1}, {"modulus_bits": 64, "max_weight": 9}]),
)
@examples(150)
def test_check18_any_dropouts_give_the_sum_of_u3_or_an_abort(
    neighbours: int | None, leaves: list[int], modulus: dict[str, int]
) -> None:
    """`leaves[u]` is the phase in which u drops out before its message; 4 and 5: never."""
    cohort = Cohort(make_params(12, neighbours=neighbours, **modulus))
    try:
        for phase in PHASES:
            cohort.advance(1, without=[u for u in range(12) if leaves[u] <= phase])
    except TooFewSurvivors:
        assert cohort.server.phase is Phase.FAILED
        with pytest.raises(LocalProtocolError):
            cohort.server.result()
    else:
        result = cohort.server.result()
        u3 = list(cohort.sent[2])
        assert list(result.survivors) == u3
        assert result.integers.tolist() == cohort.expected(u3)


@pytest.mark.parametrize("phase", PHASES)
def test_check19_below_the_threshold_nothing_is_unmasked(phase: int) -> None:
    """The threshold is seven of twelve: with six the server ends without a sum."""
    cohort = Cohort(make_params(12, 7, length=100))
    cohort.advance(phase)
    cohort.step(without=range(6))
    for u, data in cohort.sent[-1].items():
        cohort.server.receive(u, data)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.server.close_round()
    assert (caught.value.survivors, caught.value.needed) == (6, 7)
    assert caught.value.phase == list(NEXT["semi-honest"])[phase]
    assert cohort.server.phase is Phase.FAILED
    for call in (cohort.server.result, cohort.server.close_round):
        with pytest.raises(LocalProtocolError):
            call()
    assert not any(
        isinstance(item, np.ndarray) for item in gc.get_referents(cohort.server._stage)
    )


@pytest.mark.parametrize("neighbours", [None, 6])
def test_check19_nobody_answers_at_the_end(neighbours: int | None) -> None:
    cohort = Cohort(make_params(10, 4 if neighbours else 6, neighbours=neighbours))
    cohort.advance(3)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.deliver({})
    assert (caught.value.survivors, caught.value.needed) == (0, cohort.params.threshold)


def test_check25_survivors_in_pieces_are_not_unmasked() -> None:
    """On a ring of eight with every fourth gone, two pieces of three are left."""
    cohort = Cohort(make_params(8, 2, neighbours=2), policy=TOY)
    cohort.advance(2)
    graph = cohort.server._stage.cohort.graph
    cut = 0
    near = [v for v in graph.holders[cut] if v != cut]
    far = next(u for u in range(8) if _distance(graph.holders, cut, u) == 4)
    assert far not in near
    with pytest.raises(TooFewSurvivors):
        cohort.advance(1, without=[cut, far])


@pytest.mark.parametrize(
    ("n", "phase", "apart", "counts"),
    [
        pytest.param(6, Phase.SHARE_KEYS, 3, (0, 3), id="nobody has three holders"),
        pytest.param(5, Phase.MASKED_INPUT, 1, (1, 2), id="one has three holders"),
    ],
)
def test_check19_server_asks_no_client_in_vain(
    n: int, phase: Phase, apart: int, counts: tuple[int, int]
) -> None:
    """A ring with two gone: too few clients still have the holders that an answer takes."""
    cohort = Cohort(make_params(n, 2, neighbours=2), policy=TOY)
    cohort.advance(list(NEXT["semi-honest"]).index(phase))
    holders = cohort.server._stage.cohort.graph.holders
    other = next(u for u in range(1, n) if _distance(holders, 0, u) == apart)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.advance(1, without=[0, other])
    assert caught.value.phase == phase
    assert (caught.value.survivors, caught.value.needed) == counts


def _distance(holders: dict[int, tuple[int, ...]], start: int, end: int) -> int:
    reached, steps = {start}, 0
    while end not in reached:
        reached = {v for u in reached for v in holders[u]}
        steps += 1
    return steps


def test_check06_two_survivors_are_not_unmasked() -> None:
    cohort = Cohort(make_params(3, 2))
    cohort.advance(2)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.advance(1, without=[0])
    assert (caught.value.survivors, caught.value.needed) == (2, 3)


# ---- late, repeated, out of order


@pytest.mark.parametrize("phase", PHASES)
def test_check20_only_the_phases_own_message_counts_and_once(phase: int) -> None:
    """A client cannot run ahead or fall behind, nor speak for others or in other sessions."""
    cohort, complete, other = (Cohort(make_params(5), seed=seed) for seed in ("a", "a", "b"))
    complete.advance(4)
    for each in (cohort, other):
        each.advance(phase)
    sent, others = cohort.step(), other.step()
    for _ in range(2):  # what is rejected stays rejected
        server_rejects(cohort.server, 1, sent[2], "sender")
        if phase:
            server_rejects(cohort.server, 1, others[1], "session")
        for early_or_late in set(PHASES) - {phase}:
            data = altered_session(complete.sent[early_or_late][0], cohort)
            server_rejects(cohort.server, 0, data, "encoding|size")
    cohort.server.receive(0, sent[0])
    server_rejects(cohort.server, 0, others[0], "repeated")
    for u, data in [*sent.items()] * 3:
        cohort.server.receive(u, data)
    assert not cohort.server.waiting
    cohort.inbox = cohort.server.close_round()
    if phase < 3:
        for u, data in sent.items():  # late copies
            cohort.server.receive(u, data)
        assert cohort.server.waiting == set(range(5))
    finish(cohort)


def altered_session(data: bytes, cohort: Cohort) -> bytes:
    """The same message in different bytes, so that it is no repetition."""
    kind = {1: AdvertiseKeys, 3: ShareKeys, 5: MaskedInput, 7: UnmaskShares}[data[2]]
    field = "parameters" if kind is AdvertiseKeys else "session"
    return altered(data, kind, **{field: b"?" * 32})


@pytest.mark.parametrize("phase", [1, 2, 3])
def test_check20_dropped_out_client_cannot_return(phase: int) -> None:
    cohort = Cohort(make_params(6))
    cohort.advance(phase - 1)
    cohort.advance(1, without=[4])
    late = {0: b"", 1: cohort.clients[4].advertise_keys} if phase == 1 else {}
    data = late[1]() if late else altered_session(cohort.sent[phase - 1][0], cohort)
    server_rejects(cohort.server, 4, data, "unknown client")
    finish(cohort)
    with pytest.raises(LocalProtocolError):
        cohort.server.receive(4, data)


# ---- who may take part


def test_check21_unknown_and_repeated_clients_are_rejected() -> None:
    """An unknown client and a second one with the same id are rejected."""
    cohort = Cohort(make_params(5))
    sent = cohort.step()
    cohort.server.receive(0, sent[0])
    twin = Client(0, cohort.params).advertise_keys()
    server_rejects(cohort.server, 0, twin, "repeated")
    cohort.deliver(sent)
    server_rejects(cohort.server, 9, cohort.step()[1], "unknown client")
    cohort.deliver(cohort.sent[-1])
    finish(cohort)


def spelt_otherwise(key: bytes) -> bytes:
    """X25519 ignores the top bit, so these are other bytes of the same key."""
    return key[:31] + bytes([key[31] ^ 0x80])


@pytest.mark.parametrize("field", ["seal_key", "mask_key"])
def test_check07_unusable_or_repeated_keys_do_not_enter_the_roster(field: str) -> None:
    """Keys of low order, keys in a second encoding, and keys that came before."""
    cohort = Cohort(make_params(5))
    sent = cohort.step()
    cohort.server.receive(0, sent[0])
    first, own = read(sent[0], AdvertiseKeys), read(sent[1], AdvertiseKeys)
    unusable = [*LOW_ORDER, spelt_otherwise(getattr(first, field))]
    other = own.seal_key if field == "mask_key" else own.mask_key
    for keys, check in (
        (unusable, "public key"),
        ((first.seal_key, first.mask_key, other), "duplicate key"),
    ):
        for key in keys:
            forged = altered(sent[1], AdvertiseKeys, **{field: key})
            server_rejects(cohort.server, 1, forged, check)
    cohort.deliver(sent)
    finish(cohort)


def test_check21_client_beyond_n_clients_or_with_other_parameters_is_rejected() -> None:
    cohort = Cohort(make_params(5))
    stranger = Client(5, make_params(5, length=5)).advertise_keys()
    server_rejects(cohort.server, 5, stranger, "parameters")
    for u, data in cohort.step().items():
        cohort.server.receive(u, data)
    server_rejects(cohort.server, 5, Client(5, cohort.params).advertise_keys(), "cohort")


# ---- wrong content


@pytest.mark.parametrize(
    ("modulus", "change", "check"),
    [
        ({}, lambda v: v[:-1], "length"),
        ({}, lambda v: v + b"\x00", "length"),
        ({}, lambda _: b"", "length"),
        ({"modulus_bits": 27}, lambda v: v[:-1] + b"\xff", "range"),  # a bit beyond the last
        ({"modulus": (1 << 61) - 1}, lambda v: b"\xff" * 7 + b"\x1f" + v[8:], "range"),
        ({"modulus": 8_000_009}, lambda v: v[:-3] + b"\xff\xff\x0f", "range"),
    ],
)
def test_check22_wrong_length_or_element_spoils_no_sum(
    modulus: dict[str, int], change: Callable[[bytes], bytes], check: str
) -> None:
    """A wrong length or element does not spoil the sum."""
    cohort = Cohort(make_params(5, **modulus))
    cohort.advance(2)
    sent = cohort.step()
    honest = read(sent[3], MaskedInput).values
    forged = altered(sent[3], MaskedInput, values=change(honest))
    if check == "length" and len(forged) > len(sent[3]) + 200:
        check = "size"
    server_rejects(cohort.server, 3, forged, check)
    cohort.deliver(sent)
    finish(cohort)


@pytest.mark.parametrize(
    ("phase", "kind", "field", "change", "check"),
    [
        *(
            (1, ShareKeys, "sealed", lambda sealed, cut=cut: sealed[cut], "length")
            for cut in (slice(0, -1), slice(0, 0), slice(96, None))
        ),
        (3, UnmaskShares, "shares", lambda shares: shares[8:], "length"),
        (3, UnmaskShares, "shares", lambda s: M61.to_bytes(8, "little") + s[8:], "share"),
    ],
)
def test_check22_wrong_shares_are_rejected(
    phase: int, kind: type, field: str, change: Callable[[bytes], bytes], check: str
) -> None:
    """Shares of another length, or that are not field elements."""
    cohort = Cohort(make_params(5))
    cohort.advance(phase)
    sent = cohort.step()
    changed = change(getattr(read(sent[3], kind), field))
    server_rejects(cohort.server, 3, altered(sent[3], kind, **{field: changed}), check)
    cohort.deliver(sent)
    finish(cohort)


# ---- the caller


def test_calls_out_of_order_change_nothing() -> None:
    server = Server(make_params(5))
    with pytest.raises(LocalProtocolError):
        server.result()
    assert server.waiting == frozenset()
    with pytest.raises(TooFewSurvivors):
        server.close_round()
    with pytest.raises(LocalProtocolError):
        server.receive(0, b"")


@pytest.mark.parametrize("phase", [2, 3])
def test_check20_client_without_an_answer_is_rejected(phase: int) -> None:
    """On a graph, a client with too few neighbours gets no answer and is rejected."""
    cohort = Cohort(make_params(10, 3, neighbours=4))
    cohort.advance(phase - 1)
    holders = cohort.server._stage.cohort.graph.holders
    cohort.advance(1, without=[v for v in holders[0] if v != 0][:3])
    assert 0 not in cohort.inbox
    assert 0 not in cohort.server.waiting
    server_rejects(
        cohort.server, 0, altered_session(cohort.sent[-1][0], cohort), "unknown client"
    )


@pytest.mark.parametrize("bad", [-1, 1 << 64, b"0", 1.0, True, None])
def test_check21_invalid_id_is_rejected(bad: object) -> None:
    with pytest.raises(ParameterError):
        Server(make_params(5)).receive(bad, b"")


def test_check22_two_calls_do_not_add_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread calls while the first input is being added."""
    cohort = Cohort(make_params(4))
    cohort.advance(2)
    sent = cohort.step()
    stage, rejected = cohort.server._stage, list[LocalProtocolError]()
    take = stage.take

    def slow(u: int, data: bytes) -> None:
        if u == 0:
            with pytest.raises(LocalProtocolError) as caught, ThreadPoolExecutor(1) as thread:
                thread.submit(cohort.server.receive, 1, sent[1]).result(timeout=60)
            rejected.append(caught.value)
        take(u, data)

    monkeypatch.setattr(stage, "take", slow)
    cohort.server.receive(0, sent[0])
    assert len(rejected) == 1
    cohort.deliver(sent)
    finish(cohort)
