"""The masks of y_u = x_u + PRG(b_u) + Σ_{v>u} PRG(s_uv) − Σ_{v<u} PRG(s_uv) mod R.

The sign rule makes each pairwise mask appear once with either sign (Bonawitz 2017, §4). The
PRG is AES-128-CTR; a key's stream is uniform over [0, R)^d for every R.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from secagg import _fast
from secagg.encoding import Lanes, Ring

__all__ = ["MaskSum", "subtracts"]


def subtracts(u: int, v: int) -> bool:
    """Tell whether client u subtracts the mask it shares with v: it does for v < u."""
    return v < u


@dataclass
class MaskSum:
    """Masks to be added or subtracted together, in one pass over the vector."""

    _keys: list[bytes] = field(default_factory=list, repr=False)
    _signs: bytearray = field(default_factory=bytearray, repr=False)

    def add(self, key: bytes, *, negate: bool = False) -> None:
        """Count in PRG(key), 16 bytes, with the given sign."""
        self._keys.append(key)
        self._signs.append(negate)

    def apply(self, values: Lanes, ring: Ring) -> None:
        """Add all of them to `values` modulo R, in place.

        Parameters
        ----------
        values : array in the ring's lanes, shape (d,)
            In [0, R) if R is not a power of two; then so is the result. For a power of two,
            the result is only congruent until ``ring.reduce``.
        ring : Ring
        """
        keys, signs = b"".join(self._keys), bytes(self._signs)
        if ring.is_power_of_two:
            _fast.mask_words(values, keys, signs)
        else:
            _fast.mask_mod(values.view(np.uint64), keys, signs, ring.modulus)
