"""Homomorphic encryption under a key that nobody holds: trustees decrypt together."""

from __future__ import annotations

from functools import partial

import numpy as np

from secagg.bench import he
from secagg.bench.keyed import Keyed, Opened
from secagg.bench.rows import System
from secagg.paillier import set_threads
from secagg.paillier.public_key import MIN_BITS
from secagg.threshold import KeyShare, ThresholdKey, deal, deal_insecure

__all__ = ["SYSTEM", "Trustees", "generate", "keyed"]

TRUSTEES, THRESHOLD = 3, 2

SYSTEM = System(
    name="he-threshold",
    label=f"HE, {THRESHOLD} of {TRUSTEES} trustees",
    family="he",
    messages=1,
    dropouts=f"who has not sent is not in the sum; {THRESHOLD} trustees must be there",
    decrypts=f"{THRESHOLD} trustees together, and the dealer of their key",
)


class Trustees:
    """As many as it takes, and the aggregator's part of putting together what they answer."""

    def __init__(self, key: bytes, shares: list[bytes], clients: int) -> None:
        set_threads(1)
        self._key = ThresholdKey.from_bytes(key, allow_insecure=True)
        self._shares = [KeyShare.from_bytes(share, self._key) for share in shares]
        self._clients = clients

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Decrypt partially, one trustee after the other, and combine."""
        packed, public = he.packing(length, self._clients), self._key.public_key
        answers = []
        for share in self._shares:
            asked = public.load_vector(total, packed, summands=None)
            answers.append(share.decrypt_partially(asked.ciphertexts).to_bytes())
        vector = public.load_vector(total, packed, summands=None)
        parts = [self._key.load_partial(answer) for answer in answers]
        opened = self._key.combine_vector(vector, parts).sum
        return Opened(np.asarray(opened, dtype=np.float64), sum(map(len, answers)))


def generate(bits: int) -> tuple[ThresholdKey, tuple[KeyShare, ...]]:
    """Deal a key."""
    dealer = deal if bits >= MIN_BITS else deal_insecure
    return dealer(TRUSTEES, THRESHOLD, bits=bits)


def keyed(key: ThresholdKey, shares: tuple[KeyShare, ...], clients: int) -> Keyed:
    """Say how the parties are made."""
    some = [share.to_bytes() for share in shares[:THRESHOLD]]
    holder = partial(Trustees, key.to_bytes(), some, clients)
    return he.under(SYSTEM, key.public_key, clients, holder, trustees=THRESHOLD)
