"""Keys and dealings of version 4 at the server: what it rejects, and what it passes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from harness import Cohort, altered, finish, make_params, read, server_rejects
from secagg.client import sharing
from secagg.protocol import dealing, keys
from secagg.protocol.messages import AdvertiseKeys, Roster, ShareKeys, Shares, unpack_ids

BOTH = pytest.mark.parametrize("security", ["semi-honest", "active"])
SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])
BEYOND = b"\x01\x0d"
"""The coefficient 3,329 of twelve bits, and four bits of the next."""


def begun(phase: int, suite: str, security: str = "semi-honest") -> Cohort:
    cohort = Cohort(make_params(5, suite=suite, security=security))
    if phase:
        cohort.advance(phase)
    return cohort


# ---- round 0


@BOTH
@pytest.mark.parametrize(
    ("suite", "change"),
    [
        ("x25519", lambda _: bytes(1)),
        ("x25519", lambda _: bytes(200)),
        ("hybrid", lambda _: b""),
        ("hybrid", lambda key: key[:-1]),
    ],
)
def test_a_key_of_another_length_is_rejected(
    suite: str, security: str, change: Callable[[bytes], bytes]
) -> None:
    cohort = begun(0, suite, security)
    sent = cohort.step()
    key = change(read(sent[1], AdvertiseKeys).kem_key)
    server_rejects(cohort.server, 1, altered(sent[1], AdvertiseKeys, kem_key=key), "length")
    cohort.deliver(sent)
    finish(cohort)


@BOTH
@pytest.mark.parametrize(("suite", "other"), [("hybrid", "x25519"), ("x25519", "hybrid")])
def test_check56_a_client_does_not_change_the_suite(
    suite: str, other: str, security: str
) -> None:
    cohort = begun(0, suite, security)
    sent = cohort.step()
    lie = replace(cohort.params, suite=other).to_bytes()
    forged = altered(sent[1], AdvertiseKeys, parameters=lie)
    server_rejects(cohort.server, 1, forged, "parameters")
    cohort.deliver(sent)
    finish(cohort)


@pytest.mark.parametrize("place", [0, 3, 1149])
def test_check07_unreduced_encapsulation_key_does_not_enter_the_roster(place: int) -> None:
    cohort = begun(0, "hybrid")
    sent = cohort.step()
    key = read(sent[1], AdvertiseKeys).kem_key
    wrong = key[:place] + BEYOND + key[place + 2 :]
    forged = altered(sent[1], AdvertiseKeys, kem_key=wrong)
    server_rejects(cohort.server, 1, forged, "public key")
    cohort.deliver(sent)
    finish(cohort)


def test_check07_encapsulation_key_of_another_does_not_enter_the_roster() -> None:
    cohort = begun(0, "hybrid")
    sent = cohort.step()
    cohort.server.receive(0, sent[0])
    key = read(sent[0], AdvertiseKeys).kem_key
    forged = altered(sent[1], AdvertiseKeys, kem_key=key)
    server_rejects(cohort.server, 1, forged, "duplicate key")
    cohort.deliver(sent)
    finish(cohort)


def test_check24_the_signature_covers_the_encapsulation_key() -> None:
    cohort, other = begun(0, "hybrid", "active"), Cohort(make_params(5, suite="hybrid"), seed=1)
    sent, key = cohort.step(), read(other.step()[1], AdvertiseKeys).kem_key
    forged = altered(sent[1], AdvertiseKeys, kem_key=key)
    server_rejects(cohort.server, 1, forged, "signature")
    cohort.deliver(sent)
    finish(cohort)


@SUITES
def test_the_roster_has_all_encapsulation_keys(suite: str) -> None:
    cohort = begun(1, suite)
    keys = [read(cohort.sent[0][u], AdvertiseKeys).kem_key for u in cohort.ids]
    assert {read(data, Roster).kem_keys for data in cohort.inbox.values()} == {b"".join(keys)}
    assert len(keys[0]) == (1184 if suite == "hybrid" else 0)


# ---- round 1


LENGTHS = [
    ("x25519", "semi-honest", "sealed", lambda old: old[:-1]),
    ("x25519", "semi-honest", "checks", lambda _: bytes(32)),
    ("x25519", "semi-honest", "hashes", lambda _: bytes(64)),
    ("x25519", "semi-honest", "dealt", lambda _: bytes(64)),
    ("x25519", "active", "hashes", lambda old: old[:-64]),
    ("x25519", "active", "hashes", lambda old: old + old[:64]),
    ("x25519", "active", "hashes", lambda _: b""),
    ("hybrid", "semi-honest", "sealed", lambda old: old[:-1248]),
    ("hybrid", "semi-honest", "sealed", lambda old: old[: 96 * 4]),
    ("hybrid", "semi-honest", "checks", lambda old: old[:-1]),
    ("hybrid", "active", "checks", lambda old: old + old[:32]),
    ("hybrid", "active", "checks", lambda _: b""),
]


@pytest.mark.parametrize(("suite", "security", "field", "change"), LENGTHS)
def test_check22_another_length_of_a_column_is_rejected(
    suite: str, security: str, field: str, change: Callable[[bytes], bytes]
) -> None:
    cohort = begun(1, suite, security)
    sent = cohort.step()
    changed = change(getattr(read(sent[3], ShareKeys), field))
    forged = altered(sent[3], ShareKeys, **{field: changed})
    server_rejects(cohort.server, 3, forged, "length")
    cohort.deliver(sent)
    finish(cohort)


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda old: old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :]


@SUITES
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("commitment", flipped(0)),
        ("sealed", flipped(0)),
        ("sealed", flipped(-2)),
        ("hashes", flipped(0)),
        ("hashes", flipped(32)),
        ("hashes", lambda old: old[64:128] + old[:64] + old[128:]),
        ("dealt", flipped(9)),
        ("dealt", lambda _: b""),
    ],
)
def test_check59_a_dealing_that_is_not_signed_is_rejected(
    suite: str, field: str, change: Callable[[bytes], bytes]
) -> None:
    cohort = begun(1, suite, "active")
    sent = cohort.step()
    changed = change(getattr(read(sent[3], ShareKeys), field))
    server_rejects(cohort.server, 3, altered(sent[3], ShareKeys, **{field: changed}), "dealt")
    cohort.deliver(sent)
    finish(cohort)


def test_the_dealing_covers_the_checks() -> None:
    cohort = begun(1, "hybrid", "active")
    sent = cohort.step()
    checks = flipped(40)(read(sent[3], ShareKeys).checks)
    server_rejects(cohort.server, 3, altered(sent[3], ShareKeys, checks=checks), "dealt")


@pytest.mark.parametrize("what", ["points", "another's mask key", "another's leaves"])
def test_check59_a_dealing_over_other_values_is_rejected(what: str) -> None:
    """The dealer signs another point of a holder, or values of another client."""
    leaves, signed = dealing.leaves, dealing.signed_dealt

    def moved(session: bytes, dealer: int, holders: object, points: object, *rest: object):
        return leaves(session, dealer, holders, points + np.uint64(1), *rest)

    cohort = begun(1, "x25519", "active")
    patches = {
        "points": mock.patch.object(dealing, "leaves", moved),
        "another's leaves": mock.patch.object(
            dealing, "leaves", lambda session, dealer, *rest: leaves(session, 0, *rest)
        ),
        "another's mask key": mock.patch.object(
            sharing.dealing,
            "signed_dealt",
            lambda session, v, commitment, _, root: signed(
                session, v, commitment, bytes(32), root
            ),
        ),
    }
    with patches[what]:
        forged = cohort.answer(3, cohort.inbox[3])
    server_rejects(cohort.server, 3, forged, "dealt")


@SUITES
@pytest.mark.parametrize("gone", [(), (0, 3), (6,)])
def test_shares_have_what_each_dealer_signed_for_the_receiver(
    suite: str, gone: tuple[int, ...]
) -> None:
    """Points count all of U1, and paths lead to the signed roots."""
    n = 7
    cohort = Cohort(make_params(n, 5, suite=suite, security="active"))
    cohort.advance(1)
    cohort.advance(1, without=gone)
    session = cohort.server._stage.session
    dealt = {v: read(data, ShareKeys) for v, data in cohort.sent[1].items()}
    for w, data in cohort.inbox.items():
        shares = read(data, Shares)
        senders = np.array(unpack_ids(shares.senders), np.uint64)
        assert senders.tolist() == [v for v in dealt if v != w]
        count = senders.size
        assert np.frombuffer(shares.points, "<u4").tolist() == [w + 1] * count
        columns = {
            name: np.frombuffer(getattr(shares, name), np.uint8).reshape(count, -1)
            for name in ("sealed", "commitments", "dealt", "hashes", "paths")
        }
        checks = np.zeros((count, 32), np.uint8)
        if suite == "hybrid":
            checks = np.frombuffer(shares.checks, np.uint8).reshape(count, 32)
        boxes = keys.digests(columns["sealed"])
        leaves = dealing.leaves(session, senders, w, w + 1, columns["hashes"], checks, boxes)
        roots = dealing.roots(leaves, w, columns["paths"].reshape(count, -1, 32))
        for row, v in enumerate(senders.tolist()):
            message, own = dealt[v], w - (w > v)
            width = columns["sealed"].shape[1]
            assert bytes(columns["sealed"][row]) == message.sealed[own * width :][:width]
            assert bytes(columns["hashes"][row]) == message.hashes[64 * w :][:64]
            assert bytes(columns["commitments"][row]) == message.commitment
            assert bytes(columns["dealt"][row]) == message.dealt
            if suite == "hybrid":
                assert bytes(checks[row]) == message.checks[32 * own :][:32]
            signed = dealing.signed_dealt(
                session,
                v,
                message.commitment,
                read(cohort.sent[0][v], AdvertiseKeys).mask_key,
                bytes(roots[row]),
            )
            assert cohort.registry.verifies(v, signed, message.dealt)
