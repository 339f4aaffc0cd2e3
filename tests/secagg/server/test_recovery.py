"""Recovery under wrong shares: bad dealers, bad holders, and both at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Cohort, altered, make_params, read
from secagg import Dispute, LocalProtocolError, Phase, RemoteProtocolError, _fast, shamir
from secagg.protocol.messages import (
    SHARE_BYTES,
    ShareKeys,
    UnmaskRequest,
    UnmaskShares,
    unpack_ids,
)
from secagg.server.recovery import Recovery


def changed(data: bytes, owners: Iterable[int]) -> bytes:
    """Return an answer with other shares of the owners, given by their places in it."""
    shares = bytearray(read(data, UnmaskShares).shares)
    for owner in owners:
        shares[SHARE_BYTES * owner] ^= 1
    return altered(data, UnmaskShares, shares=bytes(shares))


def dealt_badly(
    cohort: Cohort, patch: pytest.MonkeyPatch, rows: Mapping[int, Collection[int]]
) -> Cohort:
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


def decodings(patch: pytest.MonkeyPatch) -> list[int]:
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
    sent = cohort.step()
    request = read(cohort.inbox[0], UnmaskRequest)
    owners = [*unpack_ids(request.survivors), *unpack_ids(request.dropped)]
    place = owners.index(9 if owner == 8 else owner)
    cohort.deliver(sent | {liar: changed(sent[liar], [place])})
    result = cohort.server.result()
    assert result.disputes == (Dispute(owners[place], liar),)
    assert result.integers.tolist() == cohort.expected(range(9))


def test_check11_wrong_share_beyond_the_first_t_is_disputed() -> None:
    cohort = Cohort(make_params(7, 6))
    cohort.advance(3)
    sent = cohort.step()
    cohort.deliver(sent | {6: changed(sent[6], [2])})
    assert cohort.server.result().disputes == ((2, 6),)


@pytest.mark.parametrize("dropped", [[], [9]])
def test_check11_shares_beyond_repair_raise(
    dropped: list[int],
) -> None:
    """With exactly t shares no share is known to be wrong, but the secret is checked."""
    cohort = Cohort(make_params(10, 9))
    cohort.advance(2)
    cohort.advance(1, without=dropped)
    sent = cohort.step()
    for u in (1, 2):
        sent[u] = changed(sent[u], [9 if dropped else 3])
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.deliver(sent)
    assert caught.value.check == "shares"
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
            stage.cohort.publics[3] = (stage.cohort.publics[3][0], os.urandom(32))
        else:
            sent[3] = altered(sent[3], ShareKeys, commitment=os.urandom(32))
        cohort.deliver(sent)
        cohort.advance(1, without=dropped)
        with pytest.raises(RemoteProtocolError) as caught:
            cohort.advance(1)
        assert caught.value.check == "shares"


def test_check11_disputes_are_ascending() -> None:
    cohort = Cohort(make_params(9, 5), [0, 1, 2, 3, 4, 5, 6, 7, 16])
    cohort.advance(3)
    sent = cohort.step()
    cohort.deliver(sent | {u: changed(sent[u], [2]) for u in (1, 16)})
    assert cohort.server.result().disputes == ((2, 1), (2, 16))


def test_check11_one_wrong_share_of_t_plus_one_is_disputed() -> None:
    """Each of the t + 1 shares in turn."""
    for liar in range(7):
        cohort = Cohort(make_params(7, 6))
        cohort.advance(3)
        sent = cohort.step()
        cohort.deliver(sent | {liar: changed(sent[liar], [2])})
        assert cohort.server.result().disputes == ((2, liar),)
        assert cohort.server.result().integers.tolist() == cohort.expected(range(7))


def test_check11_undecidable_shares_are_in_no_dispute() -> None:
    """Three of eight are wrong and t is 5: the first five give the secret, no more is known."""
    cohort = Cohort(make_params(8, 5))
    cohort.advance(3)
    sent = cohort.step()
    cohort.deliver(sent | {u: changed(sent[u], [2]) for u in (5, 6, 7)})
    assert cohort.server.result().disputes == ()
    assert cohort.server.result().integers.tolist() == cohort.expected(range(8))


def test_check41_undecidable_liars_cost_a_few_decodings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven of 32 clients change every share, t = 20: no dispute is found, the sum is right."""
    cohort = Cohort(make_params(32, 20))
    cohort.advance(3)
    sent, calls = cohort.step(), decodings(monkeypatch)
    cohort.deliver(sent | {u: changed(sent[u], range(32)) for u in range(25, 32)})
    result = cohort.server.result()
    assert result.disputes == ()
    assert len(calls) <= 5 + 3 * 2
    assert result.integers.tolist() == cohort.expected(range(32))


def test_check41_secret_after_undecidable_ones_is_rebuilt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many shares of five secrets are wrong, beyond the first t, and one of the first."""
    cohort = Cohort(make_params(9, 5))
    cohort.advance(3)
    sent = cohort.step()
    sent |= {u: changed(sent[u], range(4, 9)) for u in (5, 6, 7)}
    sent[1] = changed(sent[1], [0])
    cohort.deliver(sent)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(9))


def test_check11_undecided_shares_are_repaired_where_needed() -> None:
    """The first owner's secret is known without a decoding, the third's is not."""
    cohort = Cohort(make_params(9, 5))
    cohort.advance(3)
    sent = cohort.step()
    for u in (6, 7, 8):
        sent[u] = changed(sent[u], [0])
    sent[1] = changed(sent[1], [2])
    cohort.deliver(sent)
    assert cohort.server.result().disputes == ((2, 1),)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(9))


@pytest.mark.parametrize(("threshold", "security"), [(16, "semi-honest"), (21, "active")])
def test_check39_a_bad_dealer_is_in_every_dispute(
    monkeypatch: pytest.MonkeyPatch, threshold: int, security: str
) -> None:
    """Honest holders stand in disputes with the bad dealer and with no other client."""
    holders = range(10, 10 + (30 - threshold) // 2)
    cohort = Cohort(make_params(30, threshold, security=security))
    dealt_badly(cohort, monkeypatch, {4: holders})
    cohort.advance(len(cohort.phases()))
    result = cohort.server.result()
    assert result.disputes == tuple(Dispute(4, holder) for holder in holders)
    assert result.integers.tolist() == cohort.expected(range(30))


def test_check39_dealer_and_liar_are_disputed_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = dealt_badly(Cohort(make_params(12, 7)), monkeypatch, {3: [8, 9]})
    cohort.advance(3)
    sent = cohort.step()
    cohort.deliver(sent | {5: changed(sent[5], range(4, 12))})
    expected = [Dispute(3, 8), Dispute(3, 9), *(Dispute(dealer, 5) for dealer in range(4, 12))]
    assert cohort.server.result().disputes == tuple(expected)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(12))


def test_check39_secret_beyond_repair_is_disputed_by_all_holders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cohort = dealt_badly(Cohort(make_params(10, 7)), monkeypatch, {2: [0, 4, 6]})
    cohort.advance(3)
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.deliver(cohort.step())
    assert (caught.value.check, caught.value.sender) == ("shares", None)
    assert caught.value.disputes == tuple(Dispute(2, holder) for holder in range(10))


def test_check39_a_search_cut_short_names_a_bad_dealer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three bad dealers end the search before it corrects one wrong share of the others."""
    bad = {dealer: range(3) for dealer in (9, 10, 11)}
    cohort = dealt_badly(Cohort(make_params(12, 7)), monkeypatch, bad)
    cohort.advance(3)
    sent = cohort.step()
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.deliver(sent | {3: changed(sent[3], range(9))})
    assert caught.value.check == "shares"
    assert {dealer for dealer, _ in caught.value.disputes} < {9, 10, 11}


def test_check40_liars_up_to_the_capacity_are_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fourteen of 60 clients lie, t = 31, and a bad dealer made 14 others suspect before."""
    cohort = dealt_badly(Cohort(make_params(60, 31)), monkeypatch, {0: range(20, 34)})
    cohort.advance(3)
    sent, liars = cohort.step(), range(40, 54)
    cohort.deliver(sent | {u: changed(sent[u], range(1, 60)) for u in liars})
    result = cohort.server.result()
    disputes = [Dispute(0, holder) for holder in range(20, 34)]
    disputes += [Dispute(dealer, liar) for dealer in range(1, 60) for liar in liars]
    assert result.disputes == tuple(disputes)
    assert result.integers.tolist() == cohort.expected(range(60))


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


def test_check41_all_liars_cost_one_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    cohort = Cohort(make_params(20, 11))
    cohort.advance(3)
    sent, calls = cohort.step(), decodings(monkeypatch)
    cohort.deliver(sent | {u: changed(sent[u], range(20)) for u in (3, 5, 11, 19)})
    assert len(cohort.server.result().disputes) == 80
    assert len(calls) == 1


def test_check41_one_bad_dealer_among_liars_costs_a_logarithm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cohort = dealt_badly(Cohort(make_params(32, 17)), monkeypatch, {9: range(20, 27)})
    cohort.advance(3)
    sent, calls = cohort.step(), decodings(monkeypatch)
    others = [dealer for dealer in range(32) if dealer != 9]
    cohort.deliver(sent | {u: changed(sent[u], others) for u in range(7)})
    assert len(cohort.server.result().disputes) == 7 + 7 * 31
    assert len(calls) <= 2 * 5 + 1


def test_check41_undecidable_secrets_do_not_make_the_rest_costly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three secrets end the first search; the rest need corrections, all of the same liars."""
    cohort = Cohort(make_params(32, 20))
    cohort.advance(3)
    sent, calls = cohort.step(), decodings(monkeypatch)
    sent |= {u: changed(sent[u], range(29, 32)) for u in range(25, 32)}
    sent |= {u: changed(sent[u], range(29)) for u in range(3)}
    cohort.deliver(sent)
    assert len(calls) <= 5 + 3 * 2 + 1
    assert cohort.server.result().integers.tolist() == cohort.expected(range(32))


def test_check41_right_shares_cost_no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = decodings(monkeypatch)
    cohort = Cohort(make_params(20, 4, neighbours=6))
    cohort.advance(4)
    assert cohort.server.result().disputes == ()
    assert calls == []


def test_check41_coefficients_follow_from_all_answers(monkeypatch: pytest.MonkeyPatch) -> None:
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
    cohort = Cohort(make_params(12, 4, neighbours=8))
    cohort.advance(3)
    sent = cohort.step()
    places = len(read(sent[7], UnmaskShares).shares) // SHARE_BYTES
    cohort.deliver(sent | {7: changed(sent[7], range(places))})
    result = cohort.server.result()
    assert {holder for _, holder in result.disputes} == {7}
    assert len(result.disputes) == places == 9
    assert result.integers.tolist() == cohort.expected(range(12))
