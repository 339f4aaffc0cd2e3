"""Hedged randomness: repeated or known entropy does not repeat or reveal secrets."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import ReplayedEntropy, make_identity, make_params, registry_of
from secagg import Client, ParameterError, Registry, RoundParams, Server, shamir
from secagg._hedging import Hedged
from secagg.shamir.field import M61

IDS = range(3)


def constant(size: int, /) -> bytes:
    """A broken source of entropy that everybody knows."""
    return b"\x5a" * size


def clients_of(
    params: RoundParams, entropy: Callable[[int], bytes] = constant, others: object = 0
) -> dict[int, Client]:
    """Clients 0 to 2, of which only client 0 has this entropy."""
    made = {}
    for u in IDS:
        active = params.active
        made[u] = Client(
            u,
            params,
            identity=make_identity(u) if active else None,
            registry=registry_of(IDS) if active else None,
            entropy=entropy if u == 0 else ReplayedEntropy((others, u)),
        )
    return made


def secrets_of(
    params: RoundParams, entropy: Callable[[int], bytes] = constant, others: object = 0
) -> dict[str, bytes]:
    """Secrets of client 0 after round 1, and the shares that the others got of them."""
    clients = clients_of(params, entropy, others)
    server = Server(params, registry=registry_of(IDS) if params.active else None)
    for u, client in clients.items():
        server.receive(u, client.advertise_keys())
    pairs = clients[0]._state
    inbox = server.close_round()
    for u, client in clients.items():
        server.receive(u, client.share_keys(inbox[u]))
    made = {
        "sealing seed": pairs.sealing.pair.seed,
        "masking seed": pairs.mask_pair.seed,
        "b": clients[0]._state.seed,
        "session": clients[0]._state.session,
    }
    inbox = server.close_round()
    vector = np.zeros(params.length)
    for u, client in clients.items():
        client.masked_input(inbox[u], vector)
        state = client._state
        made[f"b-share of {u}"] = state.self_shares[0]
        if u:
            made[f"s-share of {u}"] = state.mask_shares[0]
    return made


def coefficients(made: dict[str, bytes]) -> list[int]:
    """The second coefficients of the five polynomials of the masking seed, t = 2."""
    words = [np.frombuffer(made[f"s-share of {u}"], "<u8").tolist() for u in (1, 2)]
    return [(b - a) % M61 for a, b in zip(*words, strict=True)]


def test_check45_repeated_entropy_has_other_secrets_in_another_session() -> None:
    """The seeds of two sessions are unrelated, though all entropy of the client repeats."""
    first, again, other = (
        secrets_of(make_params(3, 2, session=name)) for name in (b"one", b"one", b"two")
    )
    assert first == again, "a replay gives the same bytes"
    assert not set(first.values()) & set(other.values())
    assert len(set(first.values())) == len(first)


def test_check45_repeated_entropy_has_other_secrets_with_another_roster() -> None:
    """The same keys, as after a snapshot, but another session: b and the polynomials differ."""
    first, other = (secrets_of(make_params(3, 2), others=name) for name in (0, 1))
    for name in ("sealing seed", "masking seed"):
        assert first[name] == other[name]
    assert first["b"] != other["b"]
    assert not set(coefficients(first)) & set(coefficients(other))


def test_check45_repeated_entropy_has_other_keys_for_another_client() -> None:
    params = make_params(3, 2)
    publics = {Client(u, params, entropy=constant).advertise_keys()[-66:-2] for u in range(9)}
    assert len(publics) == 9


def test_check45_known_entropy_does_not_give_the_secrets_of_an_identity() -> None:
    """Two identities with one entropy and one statement have unrelated keys."""
    params = make_params(3, security="active")
    made = set()
    for u in (0, 1):
        client = Client(
            0,
            params,
            identity=make_identity(u),
            registry=Registry({v: make_identity(u + 9 * v).public for v in IDS}),
            entropy=constant,
        )
        client.advertise_keys()
        made |= {client._state.sealing.pair.seed, client._state.mask_pair.seed}
    assert len(made) == 4


def test_check45_known_entropy_does_not_give_b_and_the_shares() -> None:
    """The server may rebuild the masking seed; b must not follow from it and the entropy."""
    made = secrets_of(make_params(3, security="active"))
    about = made["session"] + bytes(8)
    for known in (b"", made["masking seed"]):
        assert Hedged(constant, known, b"secagg/2 hedged b" + about)(32) != made["b"]
    about += struct.pack("<4Q", 3, *IDS)
    limbs = np.concatenate([shamir.to_limbs(made[name]) for name in ("b", "masking seed")])
    points = np.arange(1, 4, dtype=np.uint64)
    dealt = [made["b-share of 1"], made["s-share of 1"]]
    for known, equal in ((b"", False), (made["b"] + made["masking seed"], True)):
        source = Hedged(constant, known, b"secagg/2 hedged shares" + about)
        row = shamir.split_limbs(limbs, 3, points, source)[1].astype("<u8")
        assert [row[:5].tobytes() == dealt[0], row[5:].tobytes() == dealt[1]] == [equal] * 2


@pytest.mark.parametrize("draw", range(4))
def test_check45_every_draw_of_fresh_entropy_counts(draw: int) -> None:
    """Entropy differs in one draw: the secrets from this draw on differ."""

    def source(changed: int) -> Callable[[int], bytes]:
        draws = iter(range(9))
        return lambda size: (b"\x01" if next(draws) == changed else b"\x00") * size

    params = make_params(3, 2)
    usual, other = (secrets_of(params, source(changed)) for changed in (-1, draw))
    names = ["sealing seed", "masking seed", "b", "s-share of 1"]
    assert usual[names[draw]] != other[names[draw]]
    assert all(usual[name] == other[name] for name in names[:draw])


def test_check45_client_draws_32_bytes_for_each_secret() -> None:
    """The same entropy gives the same messages; a short source is rejected."""
    entropy = ReplayedEntropy("draws")
    secrets_of(make_params(3, 2), entropy)
    assert [len(drawn) for drawn in entropy.drawn] == [32] * 4
    client = Client(0, make_params(3, 2), entropy=lambda size: bytes(size - 1))
    with pytest.raises(ParameterError, match="entropy"):
        client.advertise_keys()


def test_check45_repeated_entropy_shares_two_secrets_by_unrelated_polynomials() -> None:
    """With one polynomial for both, a single holder would learn the secrets' difference."""
    secrets = [bytes([7]) * 32, bytes([9]) * 32]
    one, two = (shamir.split(secret, 2, 3, entropy=constant) for secret in secrets)
    differences = {
        tuple((a - b) % M61 for a, b in zip(x.limbs, y.limbs, strict=True))
        for x, y in zip(one, two, strict=True)
    }
    assert len(differences) == 3
    assert [shamir.combine(shares[1:]) for shares in (one, two)] == secrets


@examples(50)
@given(st.binary(max_size=80), st.binary(min_size=32, max_size=32), st.binary(max_size=50))
def test_check45_source_is_hkdf(secret: bytes, fresh: bytes, statement: bytes) -> None:
    """RFC 8937 is HKDF with the secret as salt and the statement as info."""
    digest = SHA256.digest_size
    source = Hedged(lambda size: fresh[:size], secret, statement)
    for j, size in enumerate((1, digest, 8160)):
        info = hashlib.sha256(statement).digest() + j.to_bytes(8, "little")
        assert source(size) == HKDF(SHA256(), size, salt=secret, info=info).derive(fresh)


def test_check45_long_outputs_do_not_repeat() -> None:
    source = Hedged(constant, b"secret", b"statement")
    data = source(3 * 8160 + 5) + source(8160)
    blocks = {data[at : at + 8] for at in range(0, len(data) - 8)}
    assert len(data) == 4 * 8160 + 5
    assert len(blocks) > len(data) - 10
