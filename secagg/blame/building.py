"""Verdicts that a server makes of the messages of a round (docs/protocol.md, §14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg import shamir
from secagg.blame import layout
from secagg.blame.case import published
from secagg.blame.layout import Dealt, Openings, Shown
from secagg.errors import Verdict
from secagg.protocol import RoundParams, dealing, keys
from secagg.protocol.keys import U8, U64
from secagg.shamir.reed_solomon import off_polynomial

Places = NDArray[np.intp]


class Dealing(NamedTuple):
    """Values that a dealer sent to the server in round 1, with a row for each holder.

    Attributes
    ----------
    dealer : int
        Id of the dealer.
    commitment, mask_key, dealt : bytes
        Commitment to b_v, masking key s_v, and signature over `dealing.signed_dealt`.
    hashes : uint8 array, shape (h, 64)
        Hash of the share of b, then of s.
    checks, boxes : uint8 arrays, shape (h, 32)
        See `dealing.with_own`.
    """

    dealer: int
    commitment: bytes
    mask_key: bytes
    dealt: bytes
    hashes: U8
    checks: U8
    boxes: U8


class Signed(NamedTuple):
    """List of leaves or of answers, and the holder's signature.

    Attributes
    ----------
    content : bytes
        `dealing.accepted_list` or `dealing.answer_list`.
    signature : bytes
        The holder's signature over `dealing.signed_accepted` or `dealing.signed_answer`.
    """

    content: bytes
    signature: bytes


class Accuser:
    """Maker of a round's verdicts.

    A place is the index of a holder among all holders. All signatures, and the hashes of all
    shares, are verified before.

    Parameters
    ----------
    params : RoundParams
    roster : bytes
        Digest of the roster, 32 bytes.
    holders : uint64 array, shape (h,)
        Ids of the roster, ascending.
    """

    def __init__(self, params: RoundParams, roster: bytes, holders: U64) -> None:
        self._params, self._roster, self._holders = params, roster, holders
        self._session = keys.session_id(params.digest, roster)
        self._siblings = dealing.siblings(holders.size)

    def shares(self, dealt: Dealing, kind: int, places: Places, shares: U64) -> Verdict | None:
        """Return a verdict on a dealer with shares that do not give the published secret.

        The secret of the first t shares is not published, or these t shares lie on the
        polynomial of the published secret. If another share is off this polynomial, t shares
        with that share give another secret.

        Parameters
        ----------
        dealt : Dealing
        kind : int
            `dealing.B_SHARE` or `dealing.S_SHARE`.
        places : intp array, shape (m,)
            Places of t holders or more, ascending.
        shares : uint64 array, shape (m, 5)
            Limbs of the holders' shares, in [0, 2^61 − 1).

        Returns
        -------
        Verdict or None
            None if all shares are on the polynomial of the published secret.
        """
        count, points = self._params.threshold, (places + 1).astype(np.uint64)
        chosen = np.arange(count)
        if self._gives_published(dealt, kind, points[:count], shares[:count]):
            rest = np.arange(count, places.size)
            wrong = off_polynomial(points, shares, rest, count).any(axis=1)
            if not wrong.any():
                return None
            chosen[-1] = rest[wrong][0]
        laid = self._laid(dealt)
        shown = laid.shown(kind, places[chosen], shares[chosen])
        return self._verdict(layout.SHARES, dealt.dealer, laid.signed, bytes([kind]), *shown)

    def answer(
        self, dealt: Dealing, place: int, accepted: Signed | None, answer: Signed
    ) -> Verdict:
        """Return a verdict on a holder that revealed another share than the accepted share.

        Parameters
        ----------
        dealt : Dealing
            Values of the dealer of the share.
        place : int
            Place of the holder.
        accepted : Signed or None
            The leaves that the holder accepted; None if the holder is the dealer.
        answer : Signed
            The holder's answers.
        """
        laid, holder = self._laid(dealt), int(self._holders[place])
        said, opened = (laid.signed, b""), laid.opened(place)
        if accepted is not None:
            said, opened = accepted, opened[: layout.OPENED_BYTES]
        dealer = dealt.dealer.to_bytes(layout.ID_BYTES, "little")
        return self._verdict(layout.ANSWER, holder, dealer, *said, *answer, opened)

    def complaints(self, dealt: Dealing, complaints: Mapping[int, Signed]) -> Verdict:
        """Return a verdict on a dealer of whom more holders complain than may collude.

        Parameters
        ----------
        dealt : Dealing
        complaints : mapping of int to Signed
            The list of each other holder that complains of the dealer, by the holder's
            place. At most 2t − n lists are taken, which convict under every policy.
        """
        laid = self._laid(dealt)
        parts = [laid.signed]
        for place in sorted(complaints)[: self._params.most_liars + 1]:
            parts += *complaints[place], laid.opened(place)
        return self._verdict(layout.COMPLAINTS, dealt.dealer, *parts)

    def contribution(self, dealt: Dealing, places: Places, shares: U64, about: int) -> Verdict:
        """Return a verdict on a dealer whose check for a holder is not of the dealer's seed.

        Shares that are not of the seed convict by themselves; see `shares`.

        Parameters
        ----------
        dealt : Dealing
        places : intp array, shape (m,)
            Places of t holders or more, ascending.
        shares : uint64 array, shape (m, 5)
            Limbs of the holders' shares of the masking seed.
        about : int
            Place of the holder with the wrong check.
        """
        verdict = self.shares(dealt, dealing.S_SHARE, places, shares)
        if verdict is not None:
            return verdict
        laid, first = self._laid(dealt), slice(self._params.threshold)
        shown = laid.shown(dealing.S_SHARE, places[first], shares[first])
        parts = laid.signed, *shown, laid.opened(about)
        return self._verdict(layout.CONTRIBUTION, dealt.dealer, *parts)

    def complainer(
        self, place: int, accepted: Signed, dealings: Callable[[int], Dealing]
    ) -> Verdict:
        """Return a verdict on a holder that complains of more than 2t − n − 1 dealers.

        Parameters
        ----------
        place : int
            Place of the holder.
        accepted : Signed
            The holder's list.
        dealings : callable
            Function that returns the values of a dealer, by id.
        """
        parts = [*accepted]
        items = np.frombuffer(accepted.content, dealing.LIST_ITEM)
        for dealer in items["dealer"][items["complaint"] != dealing.ACCEPTED].tolist():
            laid = self._laid(dealings(dealer))
            parts += laid.signed, laid.opened(place)
        return self._verdict(layout.COMPLAINER, int(self._holders[place]), *parts)

    def _gives_published(self, dealt: Dealing, kind: int, points: U64, shares: U64) -> bool:
        """Return True if t shares give the secret that the dealer published."""
        limbs = shamir.combine_limbs(points, shares)
        secret = shamir.from_limbs(limbs, keys.SEED_BYTES)
        if secret is None:
            return False
        values = Dealt(dealt.commitment, dealt.mask_key, b"", dealt.dealt)
        return published(secret, kind, self._session, dealt.dealer, values)

    def _laid(self, dealt: Dealing) -> _Laid:
        points = np.arange(1, self._holders.size + 1, dtype=np.uint64)
        columns = self._holders, points, dealt.hashes, dealt.checks, dealt.boxes
        nodes = dealing.tree(dealing.leaves(self._session, dealt.dealer, *columns))
        leaves = Openings(*columns, nodes[self._siblings])
        values = dealt.commitment, dealt.mask_key, nodes[-1].tobytes(), dealt.dealt
        return _Laid(b"".join(values), leaves)

    def _verdict(self, kind: str, client: int, *parts: bytes) -> Verdict:
        return layout.pack(kind, self._params.to_bytes(), self._roster, client, parts)


class _Laid(NamedTuple):
    """A dealer's values as a part of a verdict, and the dealer's leaves."""

    signed: bytes
    leaves: Openings

    def opened(self, place: int) -> bytes:
        """Return the part that opens the leaf of a holder."""
        (part,) = self.leaves.at([place]).parts()
        return part

    def shown(self, kind: int, at: Places, shares: U64) -> list[bytes]:
        """Return the parts that show the shares of some holders."""
        holders, points, hashes, *rest = self.leaves.at(at)
        other = slice(32) if kind == dealing.S_SHARE else slice(32, 64)
        limbs = shares.astype("<u8").view(np.uint8)
        return Shown(holders, points, limbs, hashes[:, other], *rest).parts()
