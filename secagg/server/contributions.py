"""Contributions to the masks of pairs at the server, in suite hybrid (docs/protocol.md, §5.16).

The server keeps the check of each contribution, the survivors' deposits, and the secrets of
pairs that complaints disclose. With the rebuilt seed of a client that dropped out, or with the
disclosed secrets, a deposit gives the other contribution and so the key of the mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secagg.protocol import pair_masks
from secagg.protocol.keys import KEY_BYTES, U8, U64, KeyPair, rows_of
from secagg.protocol.messages import DISCLOSED_BYTES
from secagg.protocol.pair_masks import Contributed
from secagg.server.cohort import PerPeer

_P, _Q = slice(KEY_BYTES), slice(KEY_BYTES, 2 * KEY_BYTES)


class Contributions:
    """Checks, deposits and disclosed secrets of a round; in suite x25519 all are empty.

    Parameters
    ----------
    session : bytes
    checks : PerPeer or None
        Checks of each client of U2; None in suite x25519.
    senders : mapping of id to ids
        For each client that may send an input, the clients whose shares it was sent.
    """

    def __init__(
        self,
        session: bytes,
        checks: PerPeer[np.uint8] | None,
        senders: Mapping[int, Sequence[int]],
    ) -> None:
        self._session, self._checks = session, checks
        peers = {
            u: np.array(own, np.uint64) for u, own in senders.items() if checks is not None
        }
        self._deposits = PerPeer(peers, KEY_BYTES, np.uint8)
        self._disclosed: dict[int, tuple[U64, U8]] = {}

    def read(self, v: int, data: bytes) -> U8 | None:
        """Return the deposits in a message of client v, not yet stored; None for a length."""
        if self._checks is None:
            return None if data else np.empty((0, KEY_BYTES), np.uint8)
        return self._deposits.read(v, data)

    def are_disclosed(self, w: int, dealers: U64, data: bytes) -> bool:
        """Return whether a message has the secrets of holder w and dealers without a mask.

        p and q of w must match the checks of w. Nobody can verify the agreement A.
        """
        if len(data) != DISCLOSED_BYTES * dealers.size:
            return False
        if self._checks is None or not dealers.size:
            return True
        both = rows_of([data], DISCLOSED_BYTES)[:, KEY_BYTES:]
        return bool(self._matches(w, dealers, both).all())

    def keep(self, v: int, deposits: U8, dealers: U64, disclosed: bytes) -> None:
        """Store the deposits of client v, and the secrets that v disclosed about dealers."""
        if self._checks is not None:
            self._deposits.keep(v, deposits)
            if dealers.size:
                self._disclosed[v] = dealers, rows_of([disclosed], DISCLOSED_BYTES)

    def keys_with(
        self, pair: KeyPair, u: int, peers: U64, agreed: U8
    ) -> tuple[U8, NDArray[np.bool_]]:
        """Return the keys of the masks of survivors with a client u that dropped out.

        Parameters
        ----------
        pair : KeyPair
            Masking pair of u, made from the rebuilt seed.
        u : int
        peers : uint64 array, shape (m,)
            Survivors, ascending, with a mask with u in the sum.
        agreed : uint8 array, shape (m, 32)
            A of u with each.

        Returns
        -------
        keys : uint8 array, shape (m, 16)
        right : bool array, shape (m,)
            False where u's contributions miss the check; then the key has no meaning.
        """
        if self._checks is None:
            right = np.ones(peers.size, np.bool_)
            return pair_masks.mask_keys(agreed, self._session, u, peers), right
        both = pair_masks.contributions(pair.seed, self._session, u, peers)
        rows = self._rows.get(u, np.empty(0, np.intp))
        left = self._deposits.items[rows[np.isin(self._deposits.senders(rows), peers)]]
        theirs = pair_masks.deposits(both[:, _Q], self._session, peers, u, left)
        contributed = Contributed(both[:, _P], theirs)
        keys = pair_masks.mask_keys(agreed, self._session, u, peers, contributed)
        return keys, self._matches(u, peers, both)

    def disclosed_keys(self) -> Iterator[tuple[int, U64, U8]]:
        """Yield each holder, the dealers left out of the holder's mask, and the masks' keys.

        Only dealers in U3 are yielded that did not leave the holder out, too: their masks with
        the holder are in the sum.
        """
        for w, (dealers, secrets) in sorted(self._disclosed.items()):
            alone = [
                v in self._deposits.came and not self._left_out(v, w) for v in dealers.tolist()
            ]
            ids, rows = dealers[alone], secrets[alone]
            if not ids.size:
                continue
            agreed, p, q = (np.ascontiguousarray(part) for part in np.split(rows, 3, axis=1))
            about = np.array([w], np.uint64)
            left = np.concatenate([self._deposits.of(v, about) for v in ids.tolist()])
            theirs = pair_masks.deposits(q, self._session, ids, w, left)
            keys = pair_masks.mask_keys(agreed, self._session, w, ids, Contributed(p, theirs))
            yield w, ids, keys

    @cached_property
    def _rows(self) -> dict[int, NDArray[np.intp]]:
        """For each client, the rows of the survivors' deposits."""
        return self._deposits.by_peer()

    def _left_out(self, w: int, v: int) -> bool:
        """Return whether holder w left v out of the mask."""
        return w in self._disclosed and v in self._disclosed[w][0]

    def _matches(self, u: int, peers: U64, both: U8) -> NDArray[np.bool_]:
        """Return for each peer whether p and q of client u fit the check."""
        assert self._checks is not None, "suite hybrid"  # noqa: S101
        found = pair_masks.checks(self._session, u, peers, both)
        return np.asarray((found == self._checks.of(u, peers)).all(axis=1))
