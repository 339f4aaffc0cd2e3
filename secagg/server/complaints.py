"""Words of holders on the shares that they were sent, in the active variant.

With the masked input a holder signs the leaf of every dealer, and accepts the leaf or complains
of the dealer (docs/protocol.md, §8.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from secagg.blame import Signed
from secagg.errors import Dispute, Verdict
from secagg.graph import Graph
from secagg.protocol import dealing
from secagg.protocol.keys import U8, U64
from secagg.server.cohort import Cohort
from secagg.server.dealings import Dealings


class Complaints:
    """Words of the holders that sent a masked input.

    Parameters
    ----------
    cohort : Cohort
    dealings : Dealings
    dealers : collection of ids
        U2; each holder was sent the shares of all dealers but itself.

    Attributes
    ----------
    dealings : Dealings
    came : set of ids
        Holders with a word.
    """

    def __init__(self, cohort: Cohort, dealings: Dealings, dealers: Collection[int]) -> None:
        self._cohort, self.dealings = cohort, dealings
        self._dealers: U64 = np.array(sorted(dealers), np.uint64)
        self._places = dealings.places_of(self._dealers.tolist())
        h = dealings.holders.size
        # by the places of holder and dealer; a word on a dealer outside U2 stays 0
        self._words = np.zeros((h, h), np.uint8)
        self._kinds = 2 if cohort.params.suite == "hybrid" else 1
        self._signatures: dict[int, bytes] = {}
        self.came: set[int] = set()

    def read(self, w: int, packed: bytes) -> U8 | None:
        """Return the word of holder w in a message, not yet stored.

        Parameters
        ----------
        w : int
        packed : bytes
            The complaints of the message.

        Returns
        -------
        uint8 array, shape (h,), or None
            Word on each dealer, by places. None if the complaints are not in ascending order,
            about clients that w was sent shares of, and of known kinds.
        """
        if len(packed) % dealing.COMPLAINT_ITEM.itemsize:
            return None
        word = np.zeros(len(self._words), np.uint8)
        if not packed:  # almost all words
            return word
        items = np.frombuffer(packed, dealing.COMPLAINT_ITEM)
        dealers, kinds = items["dealer"].astype(np.uint64), items["kind"]
        ascending = bool((dealers[1:] > dealers[:-1]).all())
        known = bool(np.isin(dealers, self._dealers).all()) and w not in dealers.tolist()
        if not (ascending and known and bool(((kinds >= 1) & (kinds <= self._kinds)).all())):
            return None
        word[self.dealings.places_of(dealers.tolist())] = kinds
        return word

    def is_signed(self, w: int, word: U8, signature: bytes) -> bool:
        """Return whether holder w signed all leaves, with this word on each of them."""
        content = dealing.signed_accepted(self._cohort.session, w, self._listed(w, word))
        return self._cohort.verifies(w, content, signature)

    def keep(self, w: int, word: U8, signature: bytes) -> None:
        """Store the word of holder w."""
        self._words[self.dealings.places[w]] = word
        self._signatures[w] = signature
        self.came.add(w)

    def unmasked(self, word: U8) -> U64:
        """Return the ids of the dealers, ascending, that a holder left out of the mask."""
        dealers: U64 = self.dealings.holders[word == dealing.UNMASKED]
        return dealers

    def left_out(self, w: int, dealer: int) -> bool:
        """Return whether holder w left a dealer out of the mask."""
        places = self.dealings.places
        return bool(self._words[places[w], places[dealer]] == dealing.UNMASKED)

    def withheld(self, w: int, dealers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return for each place of a dealer whether holder w complained, and has no share."""
        row = self._words[self.dealings.places[w], dealers]
        return np.asarray(row != dealing.ACCEPTED)

    def about(self, dealer: int) -> list[int]:
        """Return the holders that complained of a dealer, ascending."""
        column = self._words[:, self.dealings.places[dealer]]
        holders: list[int] = self.dealings.holders[column != dealing.ACCEPTED].tolist()
        return holders

    def signed(self, w: int) -> Signed:
        """Return the list of leaves that holder w signed."""
        word = self._words[self.dealings.places[w]]
        return Signed(self._listed(w, word), self._signatures[w])

    def are_too_many(self, word: U8) -> bool:
        """Return whether a word has more complaints than an honest holder's, 2t − n − 1."""
        return int(np.count_nonzero(word)) > self._cohort.params.most_liars

    def complainer(self, w: int, word: U8, signature: bytes) -> Verdict:
        """Return a verdict on holder w for a word that `is_signed` and has too many."""
        said = Signed(self._listed(w, word), signature)
        place = self.dealings.places[w]
        return self.dealings.accuser.complainer(place, said, self.dealings.of)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield a verdict on each dealer of whom more holders complain than may collude."""
        for dealer in self._convicted():
            said = {self.dealings.places[w]: self.signed(w) for w in self.about(dealer)}
            yield self.dealings.accuser.complaints(self.dealings.of(dealer), said)

    def disputes(self) -> tuple[Dispute, ...]:
        """Return the complaints that convict nobody, ascending."""
        accused = set(self._dealers.tolist()) - set(self._convicted())
        return tuple(Dispute(v, w) for v in sorted(accused) for w in self.about(v))

    def lacking(self, threshold: int) -> list[int]:
        """Return the dealers of U2, ascending, whose leaves too few clients of U3 accepted.

        A dealer in U3 accepts the own leaf.
        """
        accepted = len(self.came) - np.count_nonzero(self._words[:, self._places], axis=0)
        dealers: list[int] = self._dealers[accepted < threshold].tolist()
        return dealers

    def graph(self) -> Graph:
        """Return the graph of U3, whose edges are the pairs with a mask in the sum."""
        places = self.dealings.places_of(sorted(self.came))
        ids, apart = self.dealings.holders[places], self._words[np.ix_(places, places)]
        linked = (apart != dealing.UNMASKED) & (apart.T != dealing.UNMASKED)
        return Graph(
            {u: tuple(ids[row].tolist()) for u, row in zip(ids.tolist(), linked, strict=True)}
        )

    def _convicted(self) -> list[int]:
        counts = np.count_nonzero(self._words[:, self._places], axis=0)
        dealers: list[int] = self._dealers[counts > self._cohort.colluders].tolist()
        return dealers

    def _listed(self, w: int, word: U8) -> bytes:
        sent = self._dealers != np.uint64(w)
        places = self._places[sent]
        return self.dealings.listed(w, self._dealers[sent], places, word[places])
