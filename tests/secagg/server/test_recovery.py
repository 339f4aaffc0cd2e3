"""Recovery under wrong shares: bad dealers, bad holders, and both at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Cohort, altered, make_params, read
from raised import rejects
from secagg import Dispute, LocalProtocolError, Phase, RemoteProtocolError, _fast, shamir
from secagg.protocol.messages import (
    SHARE_BYTES,
    ShareKeys,
    UnmaskRequest,
    UnmaskShares,
    unpack_ids,
)
from secagg.server.recovery import Recovery

Patch = pytest.MonkeyPatch


def changed(data: bytes, owners: Iterable[int]) -> bytes:
    """Return an answer with other shares of the owners, given by their places in it."""
    shares = bytearray(read(data, UnmaskShares).shares)
    for owner in owners:
        shares[SHARE_BYTES * owner] ^= 1
    return altered(data, UnmaskShares, shares=bytes(shares))


def lied_to(
    cohort: Cohort, *lies: tuple[Iterable[int], Iterable[int]], patch: Patch | None = None
) -> tuple[tuple[Dispute, ...], int]:
    """Run a round in which clients change shares, and check that the sum is right.

    Each of the `lies` has the clients and the places that they change. Return the disputes and,
    with a `patch`, the number of decodings.
    """
    while len(cohort.sent) < 3:
        cohort.advance(1)
    sent, calls = cohort.step(), decodings(patch) if patch else []
    for liars, places in lies:
        sent |= {u: changed(sent[u], places) for u in liars}
    cohort.deliver(sent)
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(result.survivors)
    assert result.survivors == tuple(cohort.sent[2])
    return result.disputes, len(calls)


def dealt_badly(cohort: Cohort, patch: Patch, rows: Mapping[int, Collection[int]]) -> Cohort:
    """Let clients deal shares of their b off the polynomial, to the holders in these rows."""
    split, answer = shamir.split_limbs, cohort.answer

    def answering(u: int, data: bytes) -> bytes:
        def spoilt(*arguments: object) -> np.ndarray:
            values = split(*arguments)
            values[list(rows.get(u, ())), 0] ^= np.uint64(1)
            return values

        patch.setattr(shamir, "split_limbs", spoilt)
        return answer(u, data)

    patch.setattr(cohort, "answer", answering)
    return cohort


def decodings(patch: Patch) -> list[int]:
    """Return a list that grows by one at each decoding."""
    calls, decode = [], _fast.m61_errors
    patch.setattr(_fast, "m61_errors", lambda *a: calls.append(1) or decode(*a))
    return calls


@pytest.mark.parametrize("liar", [0, 5, 8])
@pytest.mark.parametrize("owner", [0, 7, 8])
def test_check11_wrong_share_is_disputed_and_corrected(liar: int, owner: int) -> None:
    """Nine answer, the threshold is 6: a share of a survivor or a dropped one is wrong."""
    cohort = Cohort(make_params(10, 6))
    cohort.advance(2)
    cohort.advance(1, without=[9])
    request = read(cohort.inbox[0], UnmaskRequest)
    owners = [*unpack_ids(request.survivors), *unpack_ids(request.dropped)]
    place = owners.index(9 if owner == 8 else owner)
    disputes, _ = lied_to(cohort, ([liar], [place]))
    assert disputes == (Dispute(owners[place], liar),)


@pytest.mark.parametrize("dropped", [[], [9]])
def test_check11_shares_beyond_repair_raise(dropped: list[int]) -> None:
    """With exactly t shares no share is known to be wrong, but the secret is checked."""
    cohort = Cohort(make_params(10, 9))
    cohort.advance(2)
    cohort.advance(1, without=dropped)
    sent = cohort.step()
    for u in (1, 2):
        sent[u] = changed(sent[u], [9 if dropped else 3])
    rejects("shares", lambda: cohort.deliver(sent))
    assert cohort.server.phase is Phase.FAILED
    with pytest.raises(LocalProtocolError):
        cohort.server.result()


def test_check11_checks_use_the_published_values() -> None:
    """A client whose commitment is not of its b, or whose shares are of another s."""
    for dropped in ([], [3]):
        cohort = Cohort(make_params(5, 4))
        cohort.advance(1)
        sent = cohort.step()
        stage = cohort.server._stage
        if dropped:
            stage.cohort.publics[3] = stage.cohort.publics[3]._replace(mask=os.urandom(32))
        else:
            sent[3] = altered(sent[3], ShareKeys, commitment=os.urandom(32))
        cohort.deliver(sent)
        cohort.advance(1, without=dropped)
        rejects("shares", partial(cohort.advance, 1))


@pytest.mark.parametrize(
    ("n", "threshold", "lies", "disputes"),
    [
        *((7, 6, [([liar], [2])], [(2, liar)]) for liar in range(7)),  # t + 1 shares
        (9, 5, [((8, 1), [2])], [(2, 1), (2, 8)]),  # ascending
        # the first t are right and give the secret; no more is known
        (8, 5, [((5, 6, 7), [2])], []),
        # the first owner's secret is known without a decoding, the third's is not
        (9, 5, [((6, 7, 8), [0]), ([1], [2])], [(2, 1)]),
    ],
)
def test_check11_wrong_shares_are_disputed_where_decidable(
    n: int, threshold: int, lies: list[tuple[list[int], list[int]]], disputes: object
) -> None:
    assert [*lied_to(Cohort(make_params(n, threshold)), *lies)[0]] == disputes


@pytest.mark.parametrize(
    ("lies", "most"),
    [
        # no dispute is found
        ([(range(25, 32), range(32))], 5 + 3 * 2),
        # three secrets end the first search; the rest need corrections, all of the same liars
        ([(range(25, 32), range(29, 32)), (range(3), range(29))], 5 + 3 * 2 + 1),
    ],
)
def test_check41_undecidable_secrets_cost_a_few_decodings(
    monkeypatch: Patch, lies: list[tuple[range, range]], most: int
) -> None:
    """Seven of 32 clients change shares, t = 20."""
    disputes, calls = lied_to(Cohort(make_params(32, 20)), *lies, patch=monkeypatch)
    assert calls <= most
    assert bool(disputes) == (len(lies) == 2)


def test_check41_secret_after_undecidable_ones_is_rebuilt() -> None:
    """Too many shares of five secrets are wrong, beyond the first t, and one of the first."""
    lied_to(Cohort(make_params(9, 5)), ((5, 6, 7), range(4, 9)), ([1], [0]))


def test_check39_a_bad_dealer_is_in_every_dispute(monkeypatch: Patch) -> None:
    """Honest holders stand in disputes with the bad dealer and with no other client."""
    holders = range(10, 10 + (30 - 16) // 2)
    cohort = dealt_badly(Cohort(make_params(30, 16)), monkeypatch, {4: holders})
    cohort.advance(4)
    result = cohort.server.result()
    assert result.disputes == tuple(Dispute(4, holder) for holder in holders)
    assert result.integers.tolist() == cohort.expected(range(30))


def test_check39_dealer_and_liar_are_disputed_apart(monkeypatch: Patch) -> None:
    cohort = dealt_badly(Cohort(make_params(12, 7)), monkeypatch, {3: [8, 9]})
    expected = [Dispute(3, 8), Dispute(3, 9), *(Dispute(dealer, 5) for dealer in range(4, 12))]
    assert lied_to(cohort, ([5], range(4, 12)))[0] == tuple(expected)


def test_check39_secret_beyond_repair_is_disputed_by_all_holders(monkeypatch: Patch) -> None:
    cohort = dealt_badly(Cohort(make_params(10, 7)), monkeypatch, {2: [0, 4, 6]})
    cohort.advance(3)
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.deliver(cohort.step())
    assert (caught.value.check, caught.value.sender) == ("shares", None)
    assert caught.value.disputes == tuple(Dispute(2, holder) for holder in range(10))


def test_check39_a_search_cut_short_names_a_bad_dealer(monkeypatch: Patch) -> None:
    """Three bad dealers end the search before it corrects one wrong share of the others."""
    bad = {dealer: range(3) for dealer in (9, 10, 11)}
    cohort = dealt_badly(Cohort(make_params(12, 7)), monkeypatch, bad)
    cohort.advance(3)
    sent = cohort.step()
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.deliver(sent | {3: changed(sent[3], range(9))})
    assert caught.value.check == "shares"
    assert {dealer for dealer, _ in caught.value.disputes} < {9, 10, 11}


def test_check40_liars_up_to_the_capacity_are_corrected(monkeypatch: Patch) -> None:
    """Six of 28 clients lie, t = 15, and a bad dealer made six others suspect before."""
    cohort = dealt_badly(Cohort(make_params(28, 15)), monkeypatch, {0: range(8, 14)})
    disputes, _ = lied_to(cohort, (range(16, 22), range(1, 28)))
    expected = [Dispute(0, holder) for holder in range(8, 14)]
    expected += [Dispute(dealer, liar) for dealer in range(1, 28) for liar in range(16, 22)]
    assert disputes == tuple(expected)


@given(st.data(), st.integers(1, 9), st.integers(0, 9), st.integers(1, 6))
def test_check40_every_pattern_within_the_capacity_is_corrected(
    data: st.DataObject, threshold: int, surplus: int, dealers: int
) -> None:
    n = threshold + surplus
    points = np.arange(2, n + 2, dtype=np.uint64)
    secrets = [os.urandom(32) for _ in range(dealers)]
    shares = np.stack(
        [
            shamir.split_limbs(shamir.to_limbs(secret), threshold, points, os.urandom)
            for secret in secrets
        ],
        axis=1,
    )
    disputes = []
    for dealer in range(dealers):
        wrong = data.draw(st.sets(st.integers(0, n - 1), max_size=surplus // 2))
        for row in wrong:
            limb = data.draw(st.integers(0, 4))
            shares[row, dealer, limb] ^= np.uint64(data.draw(st.integers(1, 2**60)))
        disputes += [Dispute(dealer, 100 + row) for row in wrong]
    shares %= np.uint64(2**61 - 1)
    found = Recovery(threshold, b"all answers")
    rebuilt = found.rebuild(
        range(dealers),
        lambda dealer, secret: secret == secrets[dealer],
        range(100, 100 + n),
        points,
        shares,
    )
    assert rebuilt == secrets
    assert sorted(found.disputes) == sorted(disputes)


def test_check41_all_liars_cost_one_decoding(monkeypatch: Patch) -> None:
    cohort = Cohort(make_params(20, 11))
    disputes, calls = lied_to(cohort, ((3, 5, 11, 19), range(20)), patch=monkeypatch)
    assert (len(disputes), calls) == (80, 1)


def test_check41_one_bad_dealer_among_liars_costs_a_logarithm(monkeypatch: Patch) -> None:
    cohort = dealt_badly(Cohort(make_params(32, 17)), monkeypatch, {9: range(20, 27)})
    others = [dealer for dealer in range(32) if dealer != 9]
    disputes, calls = lied_to(cohort, (range(7), others), patch=monkeypatch)
    assert len(disputes) == 7 + 7 * 31
    assert calls <= 2 * 5 + 1


def test_check41_right_shares_cost_no_decoding(monkeypatch: Patch) -> None:
    cohort = Cohort(make_params(20, 4, neighbours=6))
    assert lied_to(cohort, patch=monkeypatch) == ((), 0)


def test_check41_coefficients_follow_from_all_answers(monkeypatch: Patch) -> None:
    """A resumed server draws them again; another answer changes them."""
    drawn: list[bytes] = []
    entropy = Recovery._entropy
    monkeypatch.setattr(
        Recovery, "_entropy", lambda self, size: drawn.append(entropy(self, size)) or drawn[-1]
    )
    for owners in ([], [], [2]):
        cohort = Cohort(make_params(7, 4))
        cohort.advance(3)
        sent = cohort.step()
        cohort.deliver(sent | {6: changed(sent[6], owners)})
    first, again = drawn[:2], drawn[2:4]
    assert first == again
    assert drawn[4] != first[0]


def test_the_disputes_of_a_sparse_graph_are_among_neighbours() -> None:
    """Each owner has other holders; one client changes every share that it holds."""
    disputes, _ = lied_to(Cohort(make_params(12, 4, neighbours=8)), ([7], range(9)))
    assert [holder for _, holder in disputes] == [7] * 9
