"""Sealing keys that a client keeps over the rounds of a session (docs/protocol.md, §5.1)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness import Cohort, make_params, read
from secagg import Client, LocalProtocolError, ParameterError, RoundParams, SealingKey, testing
from secagg.client import states
from secagg.protocol import keys
from secagg.protocol.messages import AdvertiseKeys


def rounds_of(
    params: RoundParams, count: int, sealing_keys: dict[int, SealingKey] | None = None
) -> Iterator[testing.Cohort]:
    """Rounds of one session, not yet run; the keys are made here or given."""
    if sealing_keys is None:
        sealing_keys = {u: SealingKey(u) for u in range(params.n_clients)}
    for number in range(count):
        own = replace(params, session=b"round %d" % number)
        round = testing.Round(
            params=own,
            vectors=Cohort(own).vectors,
            weights=None,
            dropouts={},
            policy=testing.toy_policy(own),
            seed=number,
            sealing_keys=sealing_keys,
        )
        yield testing.Cohort(round)


def finish(cohort: testing.Cohort) -> None:
    while cohort.server.phase not in ("finished", "failed"):
        cohort.deliver(cohort.step())
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(result.survivors)


@pytest.fixture
def agreements(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The public keys with which X25519 was computed, in order."""
    made: list[bytes] = []
    agree = keys.KeyPair.agree

    def counting(pair: keys.KeyPair, publics: keys.U8) -> keys.U8:
        made.extend(map(bytes, publics))
        return agree(pair, publics)

    monkeypatch.setattr(keys.KeyPair, "agree", counting)
    return made


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_later_round_agrees_with_masking_keys_alone(security, agreements) -> None:
    seen = []  # in round 1, with four others
    for cohort in rounds_of(make_params(5, security=security), 3):
        cohort.deliver(cohort.step())
        agreements.clear()
        cohort.clients[2].answer(cohort.inbox[2])
        seen.append(len(agreements))
    assert seen == [8, 4, 4]


def test_check01_public_sealing_key_stays_and_masking_key_is_fresh() -> None:
    cohorts = rounds_of(make_params(4), 3)
    sent = [read(cohort.step()[1], AdvertiseKeys) for cohort in cohorts]
    assert len({m.seal_key for m in sent}) == 1
    assert len({m.mask_key for m in sent}) == 3


def test_peer_with_another_sealing_key_is_agreed_with_again(agreements) -> None:
    sealing_keys = {u: SealingKey(u) for u in range(4)}
    cohorts = rounds_of(make_params(4), 2, sealing_keys)
    finish(next(cohorts))
    sealing_keys[3] = SealingKey(3)  # client 3 has restarted
    second = next(cohorts)
    second.deliver(second.step())
    agreements.clear()
    second.clients[0].answer(second.inbox[0])
    assert agreements.count(sealing_keys[3].pair.public) == 1
    assert len(agreements) == 4  # with the three masking keys, too


def test_secrets_of_a_bounded_number_of_peers_are_kept(monkeypatch, agreements) -> None:
    monkeypatch.setattr(states, "_PEERS", 2)
    key = SealingKey(0)
    key.draw(lambda: bytes([7]) * 32)
    peers = {u: keys.KeyPair(bytes([u]) * 32).public for u in (1, 2, 3)}
    agreements.clear()
    first, *later = (key.agree(peers).tobytes() for _ in range(3))
    assert later == [first, first]
    assert agreements.count(peers[1]) == agreements.count(peers[2]) == 1
    assert agreements.count(peers[3]) == 3
    fresh = keys.KeyPair(bytes([9]) * 32).public  # of a known peer, while there is no room
    assert key.agree({1: fresh}).tobytes() == key.agree({1: fresh}).tobytes()
    assert agreements.count(fresh) == 1


def test_client_with_the_sealing_key_of_another_is_rejected() -> None:
    with pytest.raises(ParameterError):
        Client(1, make_params(), sealing_key=SealingKey(2))
    with pytest.raises(ParameterError):
        Client(1, make_params(), sealing_key=b"\1" * 32)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        SealingKey(-1)
    assert Client("ada", make_params(), sealing_key=SealingKey("ada")).phase


def test_check29_client_that_shared_keeps_no_pair_of_the_session() -> None:
    sealing_keys = {u: SealingKey(u) for u in range(4)}
    cohort = next(rounds_of(make_params(4), 1, sealing_keys))
    cohort.advance(2)
    for u, client in cohort.clients.items():
        assert client._sealing_key is None
        assert sealing_keys[u] not in vars(client._state).values()
    assert sealing_keys[1].pair.public


def test_sealing_key_is_drawn_once_and_not_pickled_shown_or_copied_apart() -> None:
    key = SealingKey(3)
    with pytest.raises(LocalProtocolError):
        key.agree({2: bytes([9]) * 32})
    key.draw(lambda: bytes(range(32)))
    key.draw(lambda: pytest.fail("drawn twice"))
    assert key.pair.seed == bytes(range(32))
    with pytest.raises(LocalProtocolError):
        pickle.dumps(key)
    assert copy.deepcopy(key) is key
    assert repr(key) == "SealingKey(3)"
