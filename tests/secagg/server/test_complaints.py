"""Round 2 of version 4 at the server: deposits, words on shares, and the closing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from harness import Cohort, altered, finish, make_identity, make_params, read, server_rejects
from lying_clients import LiarsCohort, active_params, complains, convicted, named, seals_noise
from raised import rejects
from secagg import Dispute, Verdict
from secagg.blame import Accuser
from secagg.protocol import dealing
from secagg.protocol.messages import MaskedInput

SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])


def due(suite: str, security: str = "active", without: tuple[int, ...] = ()) -> Cohort:
    """Return a round in phase masked_input; some clients have not shared keys."""
    cohort = Cohort(make_params(7, 5, suite=suite, security=security))
    cohort.advance(1)
    cohort.advance(1, without=without)
    return cohort


def signed_word(cohort: Cohort, w: int, kinds: Mapping[int, int]) -> dict[str, bytes]:
    """Return complaints of w, of any content, as the client would sign them."""
    stage = cohort.server._stage
    senders = [v for v in sorted(stage._commitments) if v != w]
    dealings = stage._complaints.dealings
    word = np.array([kinds.get(v, 0) for v in senders], np.uint8)
    rows = dealings.places_of(senders)
    listed = dealings.listed(w, np.array(senders, np.uint64), rows, word)
    content = dealing.signed_accepted(stage.session, w, listed)
    packed = b"".join(v.to_bytes(8, "little") + bytes([kind]) for v, kind in kinds.items())
    return {"complaints": packed, "accepted": make_identity(w).sign(content)}


# ---- lengths


@pytest.mark.parametrize(
    ("suite", "field", "change"),
    [
        ("x25519", "deposits", lambda _: bytes(32)),
        ("hybrid", "deposits", lambda old: old[:-32]),
        ("hybrid", "deposits", lambda old: old + old[:32]),
        ("hybrid", "deposits", lambda _: b""),
        ("x25519", "complaints", lambda _: bytes(9)),
        ("hybrid", "disclosed", lambda _: bytes(1)),
        ("x25519", "accepted", lambda _: bytes(64)),
    ],
)
def test_check22_fields_of_another_length_are_rejected(
    suite: str, field: str, change: Callable[[bytes], bytes]
) -> None:
    cohort = due(suite, "semi-honest", (6,))
    sent = cohort.step()
    changed = change(getattr(read(sent[3], MaskedInput), field))
    forged = altered(sent[3], MaskedInput, **{field: changed})
    server_rejects(cohort.server, 3, forged, "length")
    cohort.deliver(sent)
    finish(cohort)


# ---- words


@pytest.mark.parametrize(
    ("suite", "kinds"),
    [
        ("x25519", {4: 1, 2: 1}),  # not ascending
        ("x25519", {3: 1}),  # itself
        ("x25519", {6: 1}),  # shared no keys
        ("x25519", {99: 1}),
        ("x25519", {2: 0}),
        ("x25519", {2: 2}),
        ("hybrid", {2: 3}),
        ("hybrid", {1: 1, 2: 0}),
    ],
)
def test_check59_malformed_complaints_are_rejected(suite: str, kinds: dict[int, int]) -> None:
    """Also if the client signs its leaves with them."""
    cohort = due(suite, without=(6,))
    sent = cohort.step()
    forged = altered(sent[3], MaskedInput, **signed_word(cohort, 3, kinds))
    server_rejects(cohort.server, 3, forged, "accepted")
    cohort.deliver(sent)
    finish(cohort)


@pytest.mark.parametrize("packed", [bytes(8), b"\2" + bytes(7) + b"\1\1", b"\2" * 18])
def test_complaints_of_other_bytes_are_rejected(packed: bytes) -> None:
    cohort = due("hybrid")
    sent = cohort.step()
    forged = altered(sent[3], MaskedInput, complaints=packed)
    server_rejects(cohort.server, 3, forged, "accepted")


@SUITES
@pytest.mark.parametrize("what", ["none", "another word", "another holder", "another leaf"])
def test_check59_who_signs_acceptance_of_anything_is_rejected(suite: str, what: str) -> None:
    cohort = due(suite)
    sent = cohort.step()
    accepted = {"none": b"", "another holder": read(sent[2], MaskedInput).accepted}.get(what)
    if what == "another word":
        accepted = signed_word(cohort, 3, {2: 1})["accepted"]
    if what == "another leaf":
        dealings = cohort.server._stage._complaints.dealings
        own = dealings._leaves[4, 3, 0]
        dealings._leaves[4, 3, 0] ^= 1
        accepted = signed_word(cohort, 3, {})["accepted"]
        dealings._leaves[4, 3, 0] = own
    forged = altered(sent[3], MaskedInput, accepted=accepted)
    server_rejects(cohort.server, 3, forged, "accepted")
    cohort.deliver(sent)
    finish(cohort)


def of_noise(suite: str) -> tuple[Cohort, dict[int, bytes]]:
    """Clients 1 and 2 seal noise for client 0, which complains of them by kind 2 in hybrid."""
    lies = {1: [seals_noise([0])], 2: [seals_noise([0])]}
    cohort = LiarsCohort(active_params(10, suite), lies)
    cohort.advance(2)
    return cohort, cohort.step()


@pytest.mark.parametrize(
    "change",
    [
        lambda old: b"",
        lambda old: old[:96],
        lambda old: old[:-1],
        lambda old: old + old[:96],
        lambda old: old[96:] + old[:96],
        lambda old: old[:32] + bytes(32) + old[64:],
        lambda old: old[:160] + bytes(32),
    ],
)
def test_check57_secrets_that_miss_the_own_check_are_rejected(
    change: Callable[[bytes], bytes],
) -> None:
    cohort, sent = of_noise("hybrid")
    old = read(sent[0], MaskedInput).disclosed
    assert len(old) == 192
    forged = altered(sent[0], MaskedInput, disclosed=change(old))
    server_rejects(cohort.server, 0, forged, "disclosed")
    cohort.deliver(sent)
    finish(cohort)


def test_suite_x25519_discloses_nothing() -> None:
    cohort, sent = of_noise("x25519")
    message = read(sent[0], MaskedInput)
    assert (len(message.complaints), message.disclosed) == (18, b"")
    forged = altered(sent[0], MaskedInput, disclosed=bytes(96))
    server_rejects(cohort.server, 0, forged, "disclosed")


def test_a_rejected_message_leaves_no_word_and_no_sum() -> None:
    """Values out of range come last; the complaints with them do not count."""
    cohort, sent = of_noise("hybrid")
    forged = altered(sent[0], MaskedInput, values=bytes(1))
    server_rejects(cohort.server, 0, forged, "length")
    cohort.deliver({u: data for u, data in sent.items() if u != 0})
    finish(cohort)
    assert cohort.server.result().disputes == ()


# ---- more complaints than liars


@SUITES
def test_check60_a_complainer_of_too_many_is_rejected_and_convicted(suite: str) -> None:
    """2t − n − 1 is 3 for ten clients: four complaints are a verdict."""
    cohort = LiarsCohort(active_params(10, suite), {4: [complains({0: 1, 1: 1, 2: 1, 3: 1})]})
    cohort.advance(2)
    sent = cohort.step()
    error = rejects("dealer", lambda: cohort.server.receive(4, sent[4]))
    assert error.sender == 4
    assert convicted(cohort, error.verdicts) == [(4, "complainer")]
    rejects("dealer", lambda: cohort.server.receive(4, sent[4]))  # no second verdict
    assert cohort.server.verdicts == error.verdicts
    del sent[4]
    cohort.deliver(sent)
    finish(cohort)  # it counts as dropped out
    result = cohort.server.result()
    assert result.verdicts == error.verdicts
    assert (4 in result.survivors, result.disputes) == (False, ())


def test_a_verdict_on_a_complainer_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes h² hashes, and a message of other complaints is as short as the first."""
    lies = {4: [complains({0: 1, 1: 1, 2: 1, 3: 1})], 5: [complains({0: 1, 1: 1, 2: 1, 3: 1})]}
    cohort = LiarsCohort(active_params(10), lies)
    cohort.advance(2)
    sent, made = cohort.step(), []
    complainer = Accuser.complainer

    def counted(self: Accuser, place: int, *more: Any) -> Verdict:
        made.append(place)
        return complainer(self, place, *more)

    monkeypatch.setattr(Accuser, "complainer", counted)
    other = altered(
        sent[4], MaskedInput, **signed_word(cohort, 4, dict.fromkeys(range(5, 9), 1))
    )
    errors = [
        rejects("dealer", lambda u=u, data=data: cohort.server.receive(u, data))
        for u, data in [(4, sent[4]), (4, sent[4]), (4, other), (5, sent[5])]
    ]
    assert made == [4, 5]
    assert [named(error.verdicts) for error in errors] == [[(4, "complainer")]] * 3 + [
        [(5, "complainer")]
    ]
    assert named(cohort.server.verdicts) == [(4, "complainer"), (5, "complainer")]


@SUITES
def test_check60_as_many_complaints_as_liars_are_accepted(suite: str) -> None:
    """Three, 2t − n − 1 for ten clients, are disputes."""
    cohort = LiarsCohort(active_params(10, suite), {4: [complains({0: 1, 1: 1, 2: 1})]})
    finish(cohort)
    result = cohort.server.result()
    assert (4 in result.survivors, result.verdicts) == (True, ())
    assert result.disputes == (Dispute(0, 4), Dispute(1, 4), Dispute(2, 4))


def test_a_complainer_may_still_send_a_right_message() -> None:
    lies = {4: [complains({0: 1, 1: 1, 2: 1, 3: 1})]}
    cohort = LiarsCohort(active_params(10), lies)
    cohort.advance(2)
    forged = signed_word(cohort, 4, dict.fromkeys(range(4), 1))
    sent = Cohort.step(cohort)
    cohort.lies = {}
    honest = altered(sent[4], MaskedInput, **signed_word(cohort, 4, {}))
    rejects("dealer", lambda: cohort.server.receive(4, altered(honest, MaskedInput, **forged)))
    cohort.deliver(sent | {4: honest})
    assert named(cohort.server.verdicts) == [(4, "complainer")]
