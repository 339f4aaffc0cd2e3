"""Seeds of masks, their replicated shares and commitments.

One seed of 16 bytes for each subset S of t − 1 helpers goes to every helper *not* in S (Ito,
Saito, Nishizeki 1987; Cramer, Damgård, Ishai 2005). Any t helpers together have all seeds. Any
t − 1 of them lack exactly one, that of the subset that they are. Subsets are in lexicographic
order, and their indices, like the helpers' numbers, begin with 1.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cache
from itertools import combinations

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SEED_BYTES = 16
COMMITMENT_BYTES = 32
_PLACE = struct.Struct("<QH")


@cache
def held(helper: int, helpers: int, threshold: int) -> tuple[int, ...]:
    """Return the ascending indices of the seeds that a helper gets."""
    subsets = combinations(range(1, helpers + 1), threshold - 1)
    return tuple(i for i, subset in enumerate(subsets, 1) if helper not in subset)


def mask_key(seed: bytes, params: bytes, client_id: int, index: int) -> bytes:
    """Return the key k_S of the mask PRG(k_S), 16 bytes; `params` is their digest."""
    info = b"secagg/1 one-shot mask" + _PLACE.pack(client_id, index)
    return HKDF(algorithm=SHA256(), length=16, salt=params, info=info).derive(seed)


def commitment(seed: bytes, params: bytes, client_id: int, index: int) -> bytes:
    """Return the commitment to a seed, which helpers compare with the content of their box.

    It hides the seed, which is 16 uniform bytes; SHA-256 is collision resistant, so it binds.
    """
    label = b"secagg/1 one-shot seed"
    return hashlib.sha256(label + params + _PLACE.pack(client_id, index) + seed).digest()
