"""Round 4 of version 4 at the server: answers, wrong shares and what they prove."""

from __future__ import annotations

from collections.abc import Collection
from unittest import mock

import pytest

from harness import (
    altered,
    finish,
    make_identity,
    make_params,
    pieces,
    read,
    server_rejects,
)
from lying_clients import (
    LiarsCohort,
    Lie,
    active_params,
    complains,
    convicted,
    reveals_others,
)
from secagg import Dispute, TooFewSurvivors
from secagg.client.complaints import signed_answer
from secagg.protocol import dealing
from secagg.protocol.messages import SHARE_BYTES, UnmaskRequest, UnmaskShares, unpack_ids
from secagg.server import recovery
from secagg.shamir.field import M61

SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])
N, T = 9, 7


def asked(lies: dict[int, list[Lie]] | None = None, gone: Collection[int] = ()) -> LiarsCohort:
    """Return a round in phase unmasking."""
    cohort = LiarsCohort(active_params(N), lies)
    cohort.advance(2)
    cohort.advance(1, without=gone)
    cohort.advance(1)
    return cohort


def signed(cohort: LiarsCohort, u: int, shares: bytes) -> dict[str, bytes]:
    """Return shares as client u would sign them."""
    request = read(cohort.inbox[u], UnmaskRequest)
    owners = unpack_ids(request.survivors), unpack_ids(request.dropped)
    content = signed_answer(cohort.server._stage.session, u, *owners, shares)
    return {"shares": shares, "answer": make_identity(u).sign(content)}


def put(shares: bytes, place: int, share: bytes) -> bytes:
    start = place * SHARE_BYTES
    return shares[:start] + share + shares[start + SHARE_BYTES :]


# ---- messages


def test_check22_a_semi_honest_answer_is_not_signed() -> None:
    cohort = LiarsCohort(make_params(5))
    cohort.advance(3)
    sent = cohort.step()
    server_rejects(cohort.server, 1, altered(sent[1], UnmaskShares, answer=bytes(64)), "length")
    cohort.deliver(sent)
    finish(cohort)


@pytest.mark.parametrize(
    ("place", "share"),
    [
        (3, dealing.NO_SHARE),  # without a complaint
        (8, M61.to_bytes(8, "little") + bytes(32)),
        (0, bytes(SHARE_BYTES)),  # a share of client 0, of which client 5 complained
        (0, dealing.NO_SHARE[:-1] + b"\xfe"),
    ],
)
def test_check22_shares_are_withheld_exactly_after_complaints(place: int, share: bytes) -> None:
    """Also if the holder signs them: else a complainer could reveal and be unjudgeable."""
    cohort = asked({5: [complains({0: 1})]})
    sent = cohort.step()
    old = read(sent[5], UnmaskShares).shares
    assert old.startswith(dealing.NO_SHARE)
    forged = altered(sent[5], UnmaskShares, **signed(cohort, 5, put(old, place, share)))
    server_rejects(cohort.server, 5, forged, "share")
    cohort.deliver(sent)
    finish(cohort)
    assert cohort.server.result().disputes == (Dispute(0, 5),)


@pytest.mark.parametrize("what", ["none", "another share", "another client", "flipped"])
def test_check59_shares_that_are_not_signed_convict_nobody(what: str) -> None:
    """A bit that flips on the way is rejected, and the client may send again."""
    cohort = asked()
    sent = cohort.step()
    shares = read(sent[5], UnmaskShares).shares
    other = put(shares, 2, bytes(SHARE_BYTES))
    changes = {
        "none": {"answer": b""},
        "another share": {"answer": signed(cohort, 5, other)["answer"]},
        "another client": {"answer": read(sent[4], UnmaskShares).answer},
        "flipped": {"shares": other},
    }
    server_rejects(cohort.server, 5, altered(sent[5], UnmaskShares, **changes[what]), "answer")
    cohort.deliver(sent)
    finish(cohort)
    assert cohort.server.result().verdicts == ()


def test_answers_of_an_earlier_session_are_rejected() -> None:
    first, second = asked(), LiarsCohort(active_params(N, session=b"another"))
    second.advance(4)
    sent, old = second.step(), first.step()
    answer = read(old[5], UnmaskShares).answer
    same = read(sent[5], UnmaskShares).shares
    forged = altered(sent[5], UnmaskShares, shares=same, answer=answer)
    server_rejects(second.server, 5, forged, "answer")


# ---- wrong shares of holders


@SUITES
def test_check59_all_holders_beyond_t_may_lie(suite: str) -> None:
    """m − t wrong shares of each secret; decoding alone would correct half of them."""
    lies = {u: [reveals_others(range(N))] for u in (3, 8)}
    cohort = LiarsCohort(active_params(N, suite), lies)
    cohort.run()
    result = cohort.server.result()
    assert convicted(cohort, result.verdicts) == [(3, "answer"), (8, "answer")]
    assert result.integers.tolist() == cohort.expected(range(N))
    assert result.disputes == ()


def test_check58_a_verdict_on_a_holder_shows_no_share() -> None:
    """Answers of t holders in the clear would give the secrets of honest dealers."""
    cohort = asked({u: [reveals_others(range(N))] for u in (3, 8)})
    sent = cohort.step()
    cohort.deliver(sent)
    messages = [read(data, UnmaskShares).shares for data in sent.values()]
    shares = [share for one in messages for share in pieces(one, SHARE_BYTES)]
    verdicts = cohort.server.result().verdicts
    assert [verdict.client for verdict in verdicts] == [3, 8]
    assert not any(share in verdict.data for verdict in verdicts for share in shares)


@pytest.mark.parametrize("gone", [(), (1,)])
def test_check19_good_shares_are_counted_first(
    gone: tuple[int, ...],
) -> None:
    """Only one dealer lacks a good share."""
    liars = range(2, 5 - len(gone))
    cohort = LiarsCohort(active_params(N), {u: [reveals_others([7])] for u in liars})
    cohort.advance(2)
    cohort.advance(1, without=gone)
    cohort.advance(1)
    with (
        mock.patch.object(recovery.shamir, "from_limbs", side_effect=AssertionError),
        pytest.raises(TooFewSurvivors) as caught,
    ):
        cohort.advance(1)
    assert (caught.value.survivors, caught.value.needed) == (T - 1, T)
    assert convicted(cohort, caught.value.verdicts) == [(u, "answer") for u in liars]


@pytest.mark.parametrize("owner", [1, 5, 6])
def test_check59_one_wrong_share_convicts_its_holder(owner: int) -> None:
    """The share is of another b, of the own b, or of s of client 6, which dropped out."""
    cohort = asked({5: [reveals_others([owner])]}, gone=[6])
    cohort.advance(1)
    result = cohort.server.result()
    assert convicted(cohort, result.verdicts) == [(5, "answer")]
    assert result.integers.tolist() == cohort.expected(result.survivors)
