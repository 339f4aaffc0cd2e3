"""Facts of a claim, each verified or rejected: signatures, lists, leaves and secrets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg import shamir
from secagg.blame.layout import (
    DEALT_BYTES,
    SHOWN_BYTES,
    Dealt,
    Openings,
    Parts,
    Shown,
    unproven,
)
from secagg.protocol import Registry, RoundParams, dealing, keys
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.shamir.field import M61

ITEM_BYTES = dealing.LIST_ITEM.itemsize


class Case(NamedTuple):
    """Round and client of a claim. All methods raise RemoteProtocolError for a false fact.

    Attributes
    ----------
    params : RoundParams
    session : bytes
    registry : Registry
    client : int
        Id of the accused client.
    colluders : int
        Number of clients that may collude, c.
    """

    params: RoundParams
    session: bytes
    registry: Registry
    client: int
    colluders: int

    def dealt(self, dealer: int, parts: Parts) -> Dealt:
        """Return the published values of a dealer, in the next part, that the dealer signed."""
        dealt = Dealt.of(parts.take(DEALT_BYTES))
        *values, signature = dealt
        self._verify(dealer, dealing.signed_dealt(self.session, dealer, *values), signature)
        return dealt

    def listed(self, holder: int, listed: bytes, signature: bytes) -> NDArray[np.void]:
        """Return the `dealing.LIST_ITEM` of each dealer, which a holder signed."""
        self._verify(holder, dealing.signed_accepted(self.session, holder, listed), signature)
        items = np.frombuffer(listed, dealing.LIST_ITEM)
        # with two leaves of a dealer, the holder would have accepted and complained
        if (items["dealer"][1:] <= items["dealer"][:-1]).any():
            raise unproven("ids", f"the dealers that client {holder} lists do not ascend")
        return items

    def answered(self, holder: int, parts: Parts) -> NDArray[np.void]:
        """Return the `dealing.ANSWER_ITEM` of each share, which a holder signed."""
        answers = parts.take_items(ITEM_BYTES)
        content = dealing.signed_answer(self.session, holder, answers)
        self._verify(holder, content, parts.take(SIGNATURE_BYTES))
        return np.frombuffer(answers, dealing.ANSWER_ITEM)

    def check_leaf(
        self, items: NDArray[np.void], dealer: int, opened: Openings, *, complaint: bool
    ) -> None:
        """Raise unless a list has an opened leaf of a dealer, accepted or complained of."""
        self._check_known(dealer)
        (leaf,) = opened.leaves(self.session, dealer)
        item = items[items["dealer"] == np.uint64(dealer)]
        said = {dealing.ACCEPTED}
        if complaint:
            said = {dealing.COMPLAINT}
            if self.params.suite == "hybrid":  # in x25519 no mask depends on a box
                said.add(dealing.UNMASKED)
        if not (item.size and (item["leaf"] == leaf).all() and item["complaint"][0] in said):
            what = "complaint of" if complaint else "acceptance of"
            raise unproven("leaf", f"the list has no {what} this leaf of client {dealer}")

    def check_root(self, dealer: int, root: bytes, opened: Openings) -> None:
        """Raise unless opened leaves are at their places under a dealer's root.

        Different holders then have different points.
        """
        points, paths = opened.points, opened.paths
        # of any other point, the low bits would be taken for the place
        if ((points < 1) | (points > 1 << paths.shape[1])).any():
            raise unproven("ids", f"a point is no place among the holders of client {dealer}")
        leaves = opened.leaves(self.session, dealer)
        roots = dealing.roots(leaves, points - np.uint64(1), paths)
        if (roots != np.frombuffer(root, np.uint8)).any():
            raise unproven("root", f"client {dealer} signed no such leaf at this place")

    def secret(self, dealer: int, dealt: Dealt, kind: int, parts: Parts) -> tuple[bytes, bool]:
        """Return the secret that t shares give, and whether the dealer published this secret.

        The secret is empty if the limbs are out of range.
        """
        count = self.params.threshold
        shown = Shown.of(*(parts.take_opened(SHOWN_BYTES) for _ in range(count)))
        holders = shown.holders
        for holder in holders.tolist():
            self._check_known(holder)
        if (holders[1:] <= holders[:-1]).any():
            raise unproven("ids", "the holders of the shares do not ascend")
        limbs = np.frombuffer(shown.shares.tobytes(), "<u8").reshape(count, -1)
        if (limbs >= M61).any():
            raise unproven("share", "a share is not a field element")
        self.check_root(dealer, dealt.root, shown.opened(kind, self.session, dealer))
        found = shamir.combine_limbs(shown.points, limbs.astype(np.uint64))
        secret = shamir.from_limbs(found, keys.SEED_BYTES)
        if secret is None:
            return b"", False
        return secret, published(secret, kind, self.session, dealer, dealt)

    def check_signer(self, opened: Openings, holder: int) -> None:
        """Raise unless an opened leaf is of the holder that signed."""
        if int(opened.holders[0]) != holder:
            raise unproven("ids", f"client {holder} signed, and a leaf is of another holder")

    def _verify(self, signer: int, content: bytes, signature: bytes) -> None:
        self._check_known(signer)
        if not self.registry.verifies(signer, content, signature):
            raise unproven("signature", f"client {signer} did not sign this")

    def _check_known(self, client: int) -> None:
        if client not in self.registry:
            raise unproven("unknown client", f"client {client} is not in the registry")


def published(secret: bytes, kind: int, session: bytes, dealer: int, dealt: Dealt) -> bool:
    """Return True if a secret is the b or s of which a dealer published a value."""
    if kind == dealing.B_SHARE:
        return keys.commitment(secret, session, dealer) == dealt.commitment
    return keys.KeyPair.masking(secret).public == dealt.mask_key
