"""Removal of the masks from the sum of U3 (Bonawitz 2017, round 4)."""

from __future__ import annotations

import numpy as np

from secagg.encoding import Lanes
from secagg.protocol import keys, pair_masks
from secagg.protocol.masks import MaskSum
from secagg.server.summed import Summed


class Removal:
    """Masks of a sum, collected from the rebuilt secrets of all clients; see `apply`.

    Attributes
    ----------
    mismatches : dict of id to id
        In suite hybrid: each client that dropped out and whose check misses the contributions
        of the seed, with the first survivor that the check is for.
    """

    def __init__(self, summed: Summed) -> None:
        self._summed = summed
        self._masks = MaskSum()
        self._pairs: dict[int, keys.KeyPair] = {}
        self.mismatches: dict[int, int] = {}

    def is_published(self, owner: int, seed: bytes) -> bool:
        """Return True if `seed` is the b or s that `owner` published a value of."""
        cohort = self._summed.cohort
        if owner in self._summed.asked:
            commitment = keys.commitment(seed, cohort.session, owner)
            return commitment == self._summed.commitments[owner]
        pair = keys.KeyPair.masking(seed)
        if pair.public != cohort.publics[owner].mask:
            return False
        self._pairs[owner] = pair  # `add` comes next
        return True

    def add(self, owner: int, secret: bytes) -> None:
        """Collect the masks that follow from a secret that `is_published`.

        The secret of a survivor is b, the secret of a client that dropped out is s. Never add
        both secrets of an owner: with b and s the server could read the owner's input.
        """
        if owner in self._summed.asked:
            key = keys.self_mask_key(secret, self._summed.cohort.session, owner)
            self._masks.add(key, negate=True)
        else:
            self._add_pairwise(owner, self._pairs.pop(owner))

    def apply(self, total: Lanes) -> None:
        """Remove all masks from the total, in place.

        Of two survivors of which one left out the mask with the other, the mask of the other is
        removed, too, by the secrets that the first disclosed.
        """
        for holder, dealers, found in self._summed.contributions.disclosed_keys():
            # as if the holder's half, which it never put on, were added
            self._masks.add(found, negate=pair_masks.subtracts(holder, dealers))
        ring = self._summed.cohort.params.ring
        self._masks.apply(total, ring)
        ring.reduce(total)

    def _add_pairwise(self, u: int, pair: keys.KeyPair) -> None:
        """Undo the masks that the survivors made with the dropped client u.

        Of each pair of masks that cancel, the survivor's half is in the total. So u's half,
        which u never sent, is added here.
        """
        cohort, complaints = self._summed.cohort, self._summed.complaints
        peers = cohort.seen_by(u, self._summed.asked)
        if complaints is not None:
            # a survivor that left u out of its mask has no half in the total
            peers = [v for v in peers if not complaints.left_out(v, u)]
        ids = np.array(peers, np.uint64)
        rows = keys.rows_of(cohort.publics[v].mask for v in peers)
        agreed = pair_masks.revealed_agreements(pair, cohort.session, u, ids, rows)
        found, right = self._summed.contributions.keys_with(pair, u, ids, agreed)
        if not right.all():
            self.mismatches[u] = peers[int(right.argmin())]
        self._masks.add(found, negate=pair_masks.subtracts(u, ids))
