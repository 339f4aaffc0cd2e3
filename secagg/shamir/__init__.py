"""Shamir's secret sharing (1979) of byte strings and integers over GF(p).

A secret is the constant term of a random polynomial of degree t − 1; a share is the
polynomial's value at a point. Any t shares give the secret back, fewer reveal nothing.
Shares are a Reed–Solomon word, so wrong shares can be found if enough other shares are right
(`find_wrong`). The default field is the protocol's, GF(2^61 − 1); sharing takes any other
`Field`.
"""

from __future__ import annotations

from secagg.shamir.field import LIMB_BYTES, Field, from_limbs, limb_count, to_limbs
from secagg.shamir.reed_solomon import find_wrong, leave_one_out
from secagg.shamir.sharing import Share, combine, combine_limbs, split, split_limbs

__all__ = [
    "LIMB_BYTES",
    "Field",
    "Share",
    "combine",
    "combine_limbs",
    "find_wrong",
    "from_limbs",
    "leave_one_out",
    "limb_count",
    "split",
    "split_limbs",
    "to_limbs",
]
