"""Signed hashes of shares at the server, in the active variant (docs/protocol.md, §5.15).

The dealers of a round hash the shares of all holders into trees, and sign the roots. The server
verifies each root when the hashes come, and sends each holder the hashes and paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from secagg.blame import Accuser, Dealing
from secagg.protocol import dealing
from secagg.protocol.keys import U8, U64
from secagg.protocol.messages import ShareKeys
from secagg.server.cohort import Cohort

_HASHES = 2 * dealing.HASH_BYTES
_NO_CHECK = np.zeros(dealing.HASH_BYTES, np.uint8)


class Dealings:
    """Hashes, leaves and signatures of the dealers of a round, whose graph is complete.

    All clients of U1 hold shares of all dealers. The place of a client is the index in U1.

    Parameters
    ----------
    cohort : Cohort

    Attributes
    ----------
    holders : uint64 array, shape (h,)
        U1, ascending.
    places : dict of id to int
        Place of each client.
    hashes : uint8 array, shape (h, h, 64)
        The two hashes of each share, by the places of dealer and holder. The rows of dealers in
        U2 have content.
    accuser : Accuser
        Maker of the round's verdicts.
    """

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        self.holders: U64 = np.array([*cohort.publics], np.uint64)
        self.places = {u: place for place, u in enumerate(cohort.publics)}
        h = self.holders.size
        self._points = np.arange(1, h + 1, dtype=np.uint64)
        self._siblings = dealing.siblings(h)
        nodes = len(dealing.tree(np.zeros((h, dealing.HASH_BYTES), np.uint8)))
        # the system gives memory for the rows that are written
        self.hashes: U8 = np.empty((h, h, _HASHES), np.uint8)
        self._checks: U8 | None = None
        if cohort.params.suite == "hybrid":
            self._checks = np.empty((h, h, dealing.HASH_BYTES), np.uint8)
        self._boxes: U8 = np.empty((h, h, dealing.HASH_BYTES), np.uint8)
        self._trees: U8 = np.empty((h, nodes, dealing.HASH_BYTES), np.uint8)
        self._leaves: U8 = self._trees[:, :h]
        self.accuser = Accuser(cohort.params, cohort.digest, self.holders)
        self._commitments: U8 = np.empty((h, 32), np.uint8)
        self._dealt: U8 = np.empty((h, 64), np.uint8)

    def places_of(self, clients: Sequence[int]) -> NDArray[np.intp]:
        """Return the places of some clients."""
        return np.array([self.places[u] for u in clients], np.intp)

    def fits(self, message: ShareKeys) -> bool:
        """Return whether a message has two hashes for each holder."""
        return len(message.hashes) == self.holders.size * _HASHES

    def take(self, v: int, message: ShareKeys, checks: U8 | None, sealed: U8) -> bool:
        """Store a dealer's hashes; return False, and store nothing, if `dealt` is wrong.

        Parameters
        ----------
        v : int
            Id of the dealer.
        message : ShareKeys
            A message that `fits`.
        checks : uint8 array, shape (h − 1, 32), or None
            Checks of the message; None in suite x25519.
        sealed : uint8 array, shape (h − 1, w)
            Boxes of the message.
        """
        place, session = self.places[v], self._cohort.session
        hashes = np.frombuffer(message.hashes, np.uint8).reshape(-1, _HASHES)
        columns = dealing.with_own(v, self.holders, checks, sealed)
        leaves = dealing.leaves(session, v, self.holders, self._points, hashes, *columns)
        tree = dealing.tree(leaves)
        mask_key, root = self._cohort.publics[v].mask, tree[-1].tobytes()
        signed = dealing.signed_dealt(session, v, message.commitment, mask_key, root)
        if not self._cohort.verifies(v, signed, message.dealt):
            return False
        self.hashes[place], self._trees[place] = hashes, tree
        if self._checks is not None:
            self._checks[place] = columns[0]
        self._boxes[place] = columns[1]
        self._commitments[place] = np.frombuffer(message.commitment, np.uint8)
        self._dealt[place] = np.frombuffer(message.dealt, np.uint8)
        return True

    def sent_to(
        self, w: int, dealers: Sequence[int]
    ) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Return the fields of Shares to a holder, `commitments` to `paths`, in order."""
        rows, place = self.places_of(dealers), self.places[w]
        points = np.full(rows.size, place + 1, "<u4")
        paths = self._trees[rows[:, np.newaxis], self._siblings[place]]
        return (
            self._commitments[rows].tobytes(),
            self._dealt[rows].tobytes(),
            points.tobytes(),
            self.hashes[rows, place].tobytes(),
            paths.tobytes(),
        )

    def forget_paths(self) -> None:
        """Free the memory of the trees above the leaves, when all paths have been sent."""
        self._leaves = self._leaves.copy()
        del self._trees

    def of(self, v: int) -> Dealing:
        """Return the values of a dealer of U2, as verdicts need them."""
        place = self.places[v]
        checks = _NO_CHECK if self._checks is None else self._checks[place]
        return Dealing(
            v,
            self._commitments[place].tobytes(),
            self._cohort.publics[v].mask,
            self._dealt[place].tobytes(),
            self.hashes[place],
            np.broadcast_to(checks, (self.holders.size, dealing.HASH_BYTES)),
            self._boxes[place],
        )

    def listed(self, w: int, dealers: U64, rows: NDArray[np.intp], words: U8) -> bytes:
        """Return the list of leaves that a holder signs, with a word on each.

        Parameters
        ----------
        w : int
            Id of the holder.
        dealers : uint64 array, shape (m,)
            Ids of the dealers that the holder got shares of, ascending.
        rows : intp array, shape (m,)
            Places of these dealers.
        words : uint8 array, shape (m,)
            `dealing.ACCEPTED`, `COMPLAINT` or `UNMASKED` for each dealer.
        """
        return dealing.accepted_list(dealers, self._leaves[rows, self.places[w]], words)
