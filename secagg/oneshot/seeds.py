"""Seeds of masks, their replicated shares and commitments.

One seed of 16 bytes for each subset S of t − 1 helpers goes to every helper *not* in S (Ito,
Saito, Nishizeki 1987; Cramer, Damgård, Ishai 2005). Any t helpers together have all seeds. Any
t − 1 helpers lack exactly one seed, the seed of their own subset. Subsets are in lexicographic
order, and their indices, like the helpers' numbers, begin with 1.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from functools import cache
from itertools import combinations

import numpy as np

from secagg._records import Rows
from secagg.protocol.keys import MASK_KEY_BYTES, derive_each

SEED_BYTES = 16
COMMITMENT_BYTES = 32
_MASK = b"secagg/1 one-shot mask"
_PLACE = struct.Struct("<QH")


@cache
def held(helper: int, helpers: int, threshold: int) -> tuple[int, ...]:
    """Return the ascending indices of the seeds that a helper gets."""
    subsets = combinations(range(1, helpers + 1), threshold - 1)
    return tuple(i for i, subset in enumerate(subsets, 1) if helper not in subset)


def mask_keys(drawn: Rows, params: bytes, places: Iterable[tuple[int, int]]) -> Rows:
    """Return the keys k_S of masks PRG(k_S), uint8 array of shape (m, 16).

    Parameters
    ----------
    drawn : uint8 array, shape (m, 16)
        Seeds.
    params : bytes
        Digest of the parameters.
    places : m pairs of int
        Id of the client and index of S, for each seed.
    """
    infos = b"".join([_MASK + _PLACE.pack(u, index) for u, index in places])
    rows = np.frombuffer(infos, np.uint8).reshape(len(drawn), -1)
    return derive_each(drawn, params, rows, MASK_KEY_BYTES)


def commitment(seed: bytes, params: bytes, client_id: int, index: int) -> bytes:
    """Return the commitment to a seed, which helpers compare with the content of their box.

    The commitment hides the seed, which is 16 uniform bytes. The commitment binds, because
    SHA-256 is collision resistant.
    """
    label = b"secagg/1 one-shot seed"
    return hashlib.sha256(label + params + _PLACE.pack(client_id, index) + seed).digest()
