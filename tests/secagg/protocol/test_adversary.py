"""Attacks by a lying server: each ends in the specified error and reveals nothing.

``LyingServer.learned`` is what the server could work out. The first tests see that it sees a
leak where there is one, and only the sum in an honest round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from adversary import Lie, LyingServer
from dealings import shares_for
from harness import altered, make_params, pieces, read
from rosters import entries_of, roster_of
from secagg import LocalProtocolError, Phase
from secagg.protocol.keys import KeyPair
from secagg.protocol.messages import (
    SEALED_BYTES,
    ConsistencyRequest,
    ConsistencySignature,
    Roster,
    ShareKeys,
    Shares,
    UnmaskRequest,
    encode,
    pack_ids,
    unpack_ids,
)

ids = pack_ids
N = 7
BOX = SEALED_BYTES["x25519"]
BAD_BOX = {"semi-honest": "sealed share", "active": "dealt"}
"""Check of a box that is not the sender's for this client and session."""
EVERYONE = set(range(N))
BOTH = pytest.mark.parametrize("security", ["semi-honest", "active"])


def to(victim: int, lie: Callable[[bytes], bytes]) -> Lie:
    """Send one client a lie and the others the truth."""
    return lambda u, data: lie(data) if u == victim else data


def lied_to(
    security: str, phase: str, lie: Callable[[bytes], bytes], **how: object
) -> LyingServer:
    """A server that has sent client 2 a lie in a phase, and all others the truth."""
    server = LyingServer(security, **how)
    server.play(phase)
    server.send(phase, to(2, lie))
    return server


# ---- the harness


@BOTH
def test_honest_round_reveals_the_honest_sum_only(security):
    """An honest round reveals the sum of the honest survivors and nothing else."""
    server = LyingServer(security, colluders=[0])
    server.play("masked_input")
    server.cohort.inbox.pop(1)  # it drops out after sharing its keys
    server.play("unmasking")
    assert server.learned() == []
    server.send("unmasking")
    assert server.learned() == [{2, 3, 4, 5, 6}]
    assert server.rejections == {}


def test_client_that_gives_both_shares_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check the victim's input is known."""

    def credulous(
        request: tuple[bytes, bytes], *_: object
    ) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(unpack_ids(part) for part in request)

    monkeypatch.setattr("secagg.client.checks.check_unmask_request", credulous)
    server = LyingServer("semi-honest")
    server.play("unmasking")
    server.send(
        "unmasking",
        lambda u, data: altered(data, UnmaskRequest, dropped=ids([3] if u != 3 else [])),
    )
    assert server.learned() == [{0, 1, 2, 4, 5, 6}, {3}]


def test_colluders_reaching_the_threshold_are_detected() -> None:
    server = LyingServer("semi-honest", colluders=range(4))
    server.play("unmasking")
    assert server.learned() == [{4}, {5}, {6}]


# ---- lies about the survivors


def test_split_views_of_the_survivors() -> None:
    """Half receive survivors without 6, half without 0, with every signature there is."""
    server = LyingServer("active", colluders=[3])
    requests = server.play("consistency_check")
    session = read(requests[0], ConsistencyRequest).session
    lists = {u: list(range(6) if u < 3 else range(1, 7)) for u in range(N)}
    signed = server.send(
        "consistency_check",
        lambda u, data: altered(data, ConsistencyRequest, survivors=ids(lists[u])),
    )
    assert signed.keys() == EVERYONE
    signature = {u: read(data, ConsistencySignature).signature for u, data in signed.items()}
    for u in range(N):
        # even clients receive only the valid signatures, odd ones all
        signers = [v for v in lists[u] if u % 2 or lists[v] == lists[u]]
        request = UnmaskRequest(
            session,
            ids(lists[u]),
            ids(sorted(EVERYONE - set(lists[u]))),
            ids(signers),
            b"".join(signature[v] for v in signers),
        )
        assert server.ask(u, "unmasking", encode(request)) is None
    assert server.checks() == {u: "signature" if u % 2 else "size" for u in range(N)}
    assert server.learned() == []


def test_survivors_other_than_those_that_were_signed() -> None:
    server = LyingServer("active", colluders=[0])
    server.play("unmasking")
    server.send(
        "unmasking",
        lambda u, data: altered(
            data, UnmaskRequest, survivors=ids(sorted(EVERYONE - {3})), dropped=ids([3])
        ),
        whom=EVERYONE - {3},
    )
    assert set(server.checks().values()) == {"consistency"}
    assert server.learned() == []


def test_split_views_unsigned_reveal_no_single_input() -> None:
    """Semi-honest: half give b of client 3, half s; a majority of one kind is not to be had."""
    server = LyingServer("semi-honest")
    server.play("unmasking")
    server.send(
        "unmasking",
        lambda u, data: (
            data
            if u < 4
            else altered(
                data, UnmaskRequest, survivors=ids([0, 1, 2, 4, 5, 6]), dropped=ids([3])
            )
        ),
    )
    assert server.rejections == {}
    assert server.learned() == [EVERYONE]


@BOTH
@pytest.mark.parametrize(
    ("survivors", "dropped", "check"),
    [
        (range(N), [3], "both shares"),
        (range(N - 1), [9], "unknown id"),
        ([2, 3], [0, 1, 4, 5, 6], "size"),
        ([0, 1, 2, 3, 4, 5], [], "missing id"),
    ],
)
def test_altered_unmask_requests(security, survivors, dropped, check):
    """Both kinds of share, unknown clients, too few."""
    changed = {"survivors": ids(survivors), "dropped": ids(dropped)}
    lie = partial(altered, kind=UnmaskRequest, **changed)
    server = lied_to(security, "unmasking", lie, colluders=[0])
    assert server.checks() == {2: check}
    assert server.learned() == [EVERYONE - {0}]  # the others', with 2's part still in it


@BOTH
def test_survivors_without_an_input(security: str) -> None:
    """Client 6's input never came, but it is listed as a survivor.

    No client can detect this: the server gets b of client 6, of whose input it has
    nothing, and no s, so that its own masks with the others stay in their sum (protocol 2.3).
    """
    server = LyingServer(security)
    server.play("masked_input")
    server.cohort.inbox.pop(6)
    everyone = {"survivors": ids(range(N))}
    if security == "semi-honest":
        server.play("unmasking")
        lie = everyone | {"dropped": b""}
        server.send("unmasking", lambda _, data: altered(data, UnmaskRequest, **lie))
    else:
        server.play("consistency_check")
        signed = server.send(
            "consistency_check", lambda _, data: altered(data, ConsistencyRequest, **everyone)
        )
        messages = {u: read(data, ConsistencySignature) for u, data in signed.items()}
        request = UnmaskRequest(
            messages[0].session,
            everyone["survivors"],
            b"",
            ids(list(messages)),
            b"".join(message.signature for message in messages.values()),
        )
        for u in messages:
            server.ask(u, "unmasking", encode(request))
    assert server.rejections == {}
    assert server.learned() == []
    assert {("b", u) for u in range(N)} == server.known()


@BOTH
def test_repeated_unmask_request(security: str) -> None:
    """No second request is answered, after an answer or after a rejection."""
    server = LyingServer(security, colluders=[0])
    requests = server.play("unmasking")
    server.send("unmasking", to(2, lambda data: altered(data, UnmaskRequest, dropped=ids([3]))))
    before = server.learned()
    other = {"survivors": ids(sorted(EVERYONE - {3})), "dropped": ids([3])}
    for u in range(N):
        for again in (requests[u], altered(requests[u], UnmaskRequest, **other)):
            with pytest.raises(LocalProtocolError):
                server.cohort.clients[u].unmask(again)
    assert server.learned() == before
    assert server.cohort.clients[2].phase is Phase.FAILED


# ---- lies about the cohort


@BOTH
def test_lowered_threshold(security: str) -> None:
    """The server runs the round with other parameters than the clients were given."""
    low = {"semi-honest": 4, "active": 5}[security]
    server = LyingServer(security, threshold=low + 1)
    lowered = make_params(N, low, security=security)
    server.play("share_keys")
    server.send(
        "share_keys", lambda _, data: altered(data, Roster, parameters=lowered.to_bytes())
    )
    assert set(server.checks().values()) == {"parameters"}
    assert server.learned() == []


def own_keys(data: bytes) -> bytes:
    """Clients 3 and 4 with keys that the server made."""
    entries = entries_of(data)
    for u in (3, 4):
        entries[u][:2] = [KeyPair(bytes([u + i]) * 32).public for i in (0, 100)]
    return roster_of(data, entries)


def exchanged_keys(data: bytes) -> bytes:
    """Clients 3 and 4 with each other's keys."""
    entries = entries_of(data)
    entries[3], entries[4] = entries[4], entries[3]
    return roster_of(data, entries)


def invented_clients(data: bytes) -> bytes:
    """Everyone but client 2 is the server's own."""
    entries = entries_of(data)
    for u in set(entries) - {2}:
        entries[u][:2] = [KeyPair(bytes([u + i]) * 32).public for i in (1, 101)]
    return roster_of(data, entries)


@pytest.mark.parametrize("lie", [own_keys, exchanged_keys, invented_clients])
def test_swapped_keys_active(lie: Callable[[bytes], bytes]) -> None:
    assert lied_to("active", "share_keys", lie).checks() == {2: "signature"}


@pytest.mark.parametrize("lie", [own_keys, exchanged_keys, invented_clients])
def test_swapped_keys_semi_honest(lie: Callable[[bytes], bytes]) -> None:
    """Without identities such a roster may stand, but it is another session's.

    What the others sealed for the client does not open, and what it sealed does not open for
    them.
    """
    server = LyingServer("semi-honest")
    server.play("masked_input", {"share_keys": to(2, lie)})
    session = server.cohort.clients[2]._state.session
    others = server.cohort.clients[1]._state.session
    assert session != others
    senders = ids(sorted(EVERYONE - {2}))
    pretended = Shares(session, senders, bytes(BOX * (N - 1)), *[b""] * 6)
    server.ask(2, "masked_input", encode(pretended))
    assert server.checks()[2] == "sealed share"
    assert server.learned() == []


@BOTH
@pytest.mark.parametrize(
    ("order", "check"),
    [
        ([0, 1, 2, 3, 3, 4, 5], "ids"),
        ([0, 1, 2, 3], "size"),
        ([1, 2], "size"),
        ([0, 1, 3, 4, 5, 6], "own keys"),
    ],
)
def test_duplicate_ids_and_shrunken_cohorts(security, order, check):
    lie = lambda data: roster_of(data, entries_of(data), order)  # noqa: E731
    assert lied_to(security, "share_keys", lie, threshold=5).checks() == {2: check}


@BOTH
def test_one_key_under_two_ids(security: str) -> None:
    def twice(data: bytes) -> bytes:
        entries = entries_of(data)
        entries[4] = entries[3]
        return roster_of(data, entries)

    assert lied_to(security, "share_keys", twice).checks() == {2: "duplicate key"}


@BOTH
@pytest.mark.parametrize("u2", [{2}, {1, 2}, {1, 2, 3, 4}])
def test_cohort_that_shrinks_before_the_masks(security: str, u2: set[int]) -> None:
    """The client shall believe that few clients shared keys."""

    def shrunken(data: bytes) -> bytes:
        message = read(data, Shares)
        sealed = dict(
            zip(unpack_ids(message.senders), pieces(message.sealed, BOX), strict=True)
        )
        kept = sorted(u2 - {2})
        return altered(
            data, Shares, senders=ids(kept), sealed=b"".join(sealed[v] for v in kept)
        )

    server = lied_to(security, "masked_input", shrunken, threshold=5)
    assert server.checks() == {2: "size"}
    assert server.learned() == []


# ---- altered shares


def with_piece(position: int, piece: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        sealed = pieces(read(data, Shares).sealed, BOX)
        sealed[position] = piece
        return altered(data, Shares, sealed=b"".join(sealed))

    return change


@BOTH
def test_replayed_shares(security: str) -> None:
    """Client 0's shares for client 2 in another round, with the same keys or without."""
    for seed in (0, 1):
        old = LyingServer(security, seed=seed, session=b"an earlier round")
        earlier = old.play("masked_input")[2]
        server = lied_to(security, "masked_input", lambda _, data=earlier: data)
        assert server.checks() == {2: "session"}
        piece = read(earlier, Shares).sealed[:BOX]
        server = lied_to(security, "masked_input", with_piece(0, piece))
        assert server.checks() == {2: BAD_BOX[security]}


@BOTH
def test_reflected_and_exchanged_shares(security: str) -> None:
    """Client 2's shares for client 0 come back as client 0's; and 0's as 1's."""
    server = LyingServer(security)
    inbox = server.play("masked_input")
    own = read(server.cohort.sent[1][2], ShareKeys).sealed[:BOX]
    other = pieces(read(inbox[2], Shares).sealed, BOX)[1]
    for piece in (own, other):
        server = lied_to(security, "masked_input", with_piece(0, piece))
        assert server.checks() == {2: BAD_BOX[security]}
    named = altered(inbox[2], Shares, senders=ids([0, 1, 2, 3, 4, 5]))
    assert lied_to(security, "masked_input", lambda _: named).checks() == {2: "reflection"}


@BOTH
def test_two_worlds_cannot_open_each_others_shares(security: str) -> None:
    """Half of the clients see a roster without 6, half one without 0."""
    server = LyingServer(security)

    def split(u: int, data: bytes) -> bytes:
        return roster_of(data, entries_of(data), list(range(6) if u < 3 else range(1, 7)))

    server.play("share_keys")
    shared = server.send("share_keys", split)
    assert shared.keys() == EVERYONE
    assert len({read(data, ShareKeys).session for data in shared.values()}) == 2
    worlds = {u: list(range(6) if u < 3 else range(1, 7)) for u in range(N)}
    dealt = {u: (data, worlds[u]) for u, data in shared.items()}
    for u in range(N):
        message = shares_for(server.cohort.params, u, worlds[u], dealt)
        assert server.ask(u, "masked_input", message) is None
    assert set(server.checks().values()) == {BAD_BOX[security]}
    assert server.learned() == []
