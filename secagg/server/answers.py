"""Revealed shares against the hashes that dealers signed, in the active variant.

A share with another hash than the accepted hash convicts the holder, and is dropped. Good
shares that do not give the published secret convict the dealer (docs/protocol.md, §8.5).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from secagg.blame import Signed
from secagg.errors import Verdict
from secagg.protocol import dealing
from secagg.protocol.keys import U8, U64
from secagg.server.cohort import Cohort, PerPeer
from secagg.server.complaints import Complaints
from secagg.server.summed import Question
from secagg.shamir.field import M61

_LIMBS_OF_NO_SHARE = np.frombuffer(dealing.NO_SHARE, "<u8")


class Answers:
    """Signed answers of the holders to a question, which is the same for all of them.

    Parameters
    ----------
    cohort : Cohort
    complaints : Complaints
    question : Question
    shares : PerPeer
        The revealed shares, stored by the caller.

    Attributes
    ----------
    good : bool array
        Which rows of ``shares.items`` are shares as they were dealt.
    """

    def __init__(
        self,
        cohort: Cohort,
        complaints: Complaints,
        question: Question,
        shares: PerPeer[np.uint64],
    ) -> None:
        self._cohort, self._complaints, self._shares = cohort, complaints, shares
        self._dealings = complaints.dealings
        owners = [*question.survivors, *question.dropped]
        self._owners: U64 = np.array(owners, np.uint64)
        self._rows = self._dealings.places_of(owners)
        counts = len(question.survivors), len(question.dropped)
        self._kinds: U8 = np.repeat(
            np.array([dealing.B_SHARE, dealing.S_SHARE], np.uint8), counts
        )
        self._kind_of = dict(zip(owners, self._kinds.tolist(), strict=True))
        self.good = np.zeros(len(shares.items), np.bool_)
        self._wrong: dict[int, int] = {}
        self._signatures: dict[int, bytes] = {}

    def are_due(self, w: int, limbs: U64) -> bool:
        """Return whether each share is in the field, or withheld after a complaint."""
        withheld = self._complaints.withheld(w, self._rows)
        none = (limbs == _LIMBS_OF_NO_SHARE).all(axis=1)
        return bool(np.where(withheld, none, (limbs < M61).all(axis=1)).all())

    def take(self, w: int, limbs: U64, signature: bytes) -> bool:
        """Compare shares that `are_due` with their hashes; return False if not signed.

        Then nothing is stored, so a bit that flips on the way convicts nobody.
        """
        hashes = self._hashes(w, limbs)
        answers = dealing.answer_list(self._owners, self._kinds, hashes)
        content = dealing.signed_answer(self._cohort.session, w, answers)
        if not self._cohort.verifies(w, content, signature):
            return False
        place, withheld = self._dealings.places[w], self._complaints.withheld(w, self._rows)
        dealt = self._dealings.hashes[self._rows, place].reshape(-1, 2, dealing.HASH_BYTES)
        same = (dealt[np.arange(self._kinds.size), self._kinds] == hashes).all(axis=1)
        self.good[self._shares.rows[w]] = same & ~withheld
        wrong = np.flatnonzero(~same & ~withheld)
        if wrong.size:
            self._wrong[w] = int(self._owners[wrong[0]])
        self._signatures[w] = signature
        return True

    def verdicts(self) -> Iterator[Verdict]:
        """Yield a verdict on each holder of a share that is not the accepted share."""
        for w, owner in sorted(self._wrong.items()):
            limbs = self._shares.items[self._shares.rows[w]]
            listed = dealing.answer_list(self._owners, self._kinds, self._hashes(w, limbs))
            # a holder accepts its own leaf by its `dealt`
            accepted = None if w == owner else self._complaints.signed(w)
            yield self._dealings.accuser.answer(
                self._dealings.of(owner),
                self._dealings.places[w],
                accepted,
                Signed(listed, self._signatures[w]),
            )

    def dealt_wrongly(self, owner: int, points: U64, shares: U64) -> Verdict | None:
        """Return a verdict on a dealer whose good shares do not give the published secret."""
        places = (points - np.uint64(1)).astype(np.intp)
        dealt, kind = self._dealings.of(owner), self._kind_of[owner]
        return self._dealings.accuser.shares(dealt, kind, places, shares)

    def contributed_wrongly(self, u: int, points: U64, shares: U64, about: int) -> Verdict:
        """Return a verdict on a client whose seed misses the check for the holder `about`."""
        places, holder = (points - np.uint64(1)).astype(np.intp), self._dealings.places[about]
        return self._dealings.accuser.contribution(self._dealings.of(u), places, shares, holder)

    def _hashes(self, w: int, limbs: U64) -> U8:
        shares = np.ascontiguousarray(limbs, "<u8").view(np.uint8)
        return dealing.share_hashes(self._kinds, self._cohort.session, self._owners, w, shares)
