"""Packing of a vector into few large plaintexts, each with many elements, with room for sums.

Elements are encoded as signed integers v_i, as for secret sharing, and each gets a slot of b
bits. A plaintext is the signed integer Σ v_i · 2^(b·i) over the slots. So sums, differences and
multiples of plaintexts act on all slots at once. Each slot has guard bits for the largest sum.
Before a sum is unpacked, an offset makes every slot non-negative. After the elements comes a
slot for the weight, in a weighted sum, and then a slot that counts the vectors.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer, check_kind, check_session
from secagg._printable import in_short
from secagg._secrets import without_frames
from secagg.encoding import Bounded, Encoding, Entropy, Ring, Vector
from secagg.errors import ParameterError
from secagg.paillier.gmp import gmpy2

LANES = Ring(1 << 64)
SIGNED_MAX = (1 << 62) - 1  # sums are int64


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Layout of vectors in plaintexts. All vectors of a sum must have the same packing.

    Parameters
    ----------
    encoding : FixedPoint or Integers
        Conversion of elements to integers.
    length : int
        d, the number of elements of a vector, 1 ≤ d ≤ 2^31.
    summands : int
        The largest number of vectors in a sum, 1 to 2^40. A vector that is multiplied by k
        counts |k| times.
    max_weight : int, optional
        The largest weight of a vector, 1 to 2^53. None: an unweighted sum.
    session : bytes, optional
        Name of the sum, at most 64 bytes. Vectors with different names cannot be added.

    Raises
    ------
    ParameterError
        A value is out of range, or the sum could exceed 2^62.
    """

    encoding: Encoding
    length: int
    summands: int
    max_weight: int | None = None
    session: bytes = b""

    def __post_init__(self) -> None:
        # a rotated vector has other elements than the vector itself, and another length
        known = isinstance(self.encoding, Encoding) and not isinstance(self.encoding, Bounded)
        if isinstance(self.encoding, type) or not known:
            shown = in_short(self.encoding)
            raise ParameterError(f"encoding must be a FixedPoint or Integers, not {shown}")
        most = {"length": 1 << 31, "summands": 1 << 40, "max_weight": 1 << 53}
        if self.max_weight is None:
            del most["max_weight"]
        for name, high in most.items():
            check_integer(name, getattr(self, name), 1, high)
            # products of numpy's integers would wrap
            object.__setattr__(self, name, int(getattr(self, name)))
        check_session(self.session)
        # 2 · max_sum fits an int64: an element shifted by the offset cannot overflow
        if self.max_sum > SIGNED_MAX:
            raise ParameterError(
                f"the sum of {self.summands} vectors can reach {self.max_sum}, beyond 2^62; "
                "lower the clip, the fractional bits, max_weight or summands"
            )

    @property
    def max_element(self) -> int:
        """The largest absolute value in a slot of a single client's vector."""
        return (self.max_weight or 1) * self.encoding.max_encoded

    @property
    def max_sum(self) -> int:
        """The largest absolute value in a slot of a sum; the offset when a sum is unpacked."""
        return self.summands * self.max_element

    @property
    def slot_bits(self) -> int:
        """b, the bits of a slot: the length of 2 · max_sum."""
        return (2 * self.max_sum).bit_length()

    @property
    def filled(self) -> int:
        """Number of slots of a vector: elements, weight (if the packing has weights), count."""
        return self.length + (1 if self.max_weight is None else 2)

    def slots(self, key_bits: int) -> int:
        """Return the number of slots in a plaintext for a key of `key_bits` bits.

        `ParameterError` is raised if not even one slot fits.
        """
        # a sum and the offset stay below 2^(key_bits - 1) < n, and |sum| below n / 2
        slots = (key_bits - 1) // self.slot_bits
        if slots < 1:
            raise ParameterError(
                f"a slot takes {self.slot_bits} bits, too many for a key of {key_bits} bits; "
                "take a larger key"
            )
        return slots

    def plaintexts(self, key_bits: int) -> int:
        """Return the number of plaintexts, and so of ciphertexts, of a vector."""
        return -(-self.filled // self.slots(key_bits))

    def largest(self, key_bits: int) -> int:
        """Return the largest absolute value of a plaintext of a single vector; see `slots`."""
        return self.max_element * self._ones(self.slots(key_bits))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of this packing's parameters, which identifies them in every header."""
        encoding = self.encoding.canonical()
        sums = self.length, self.summands, self.max_weight or 0, self.slot_bits
        numbers = struct.pack("<5Q", len(encoding), *sums)
        data = b"secagg packing v1" + numbers + encoding + self.session
        return hashlib.sha256(data).digest()

    @without_frames
    def encode(
        self, vector: Vector, weight: int | None = None, entropy: Entropy = os.urandom
    ) -> tuple[NDArray[np.int64], int]:
        """Return the slots of a client's vector, int64, and the number of clipped elements.

        The slots, shape (filled,), are weight · encode(vector), then the weight if the packing
        has weights, then 1.

        Raises
        ------
        ParameterError
            The encoding rejects the vector, the vector's length is not `length`, or the weight
            is missing, not allowed or out of range.
        """
        if self.max_weight is None and weight is not None:
            raise ParameterError(
                "a weight was given, but the packing has no max_weight; set it or leave the "
                "weight out"
            )
        if self.max_weight is not None:
            if weight is None:
                raise ParameterError("the packing has a max_weight: give the vector's weight")
            check_integer("weight", weight, 0, self.max_weight)
        own = 1 if weight is None else int(weight)
        lanes, clipped = self.encoding.encode(vector, LANES, own, entropy)
        if len(lanes) != self.length:
            raise ParameterError(
                f"the vector has {len(lanes)} elements; the packing is for {self.length}"
            )
        after = np.array([1] if weight is None else [own, 1], dtype=np.int64)
        return np.append(lanes.view(np.int64), after), clipped

    @without_frames
    def pack(self, integers: NDArray[np.int64], key_bits: int) -> list[int]:
        """Return the signed plaintexts of a client's slots, which `encode` returned.

        Raises
        ------
        ParameterError
            `integers` is not an int64 array of shape (filled,), an absolute value exceeds
            `max_element`, or the key has no room for a slot.
        """
        check_kind("integers", integers, np.ndarray, "a numpy array")
        if integers.dtype != np.int64:
            raise ParameterError(
                f"the integers' dtype must be int64, not {integers.dtype}; convert with astype"
            )
        if integers.shape != (self.filled,):
            raise ParameterError(
                f"integers of shape {integers.shape}; a packing of {self.length} elements "
                f"takes ({self.filled},)"
            )
        # not by np.abs, which leaves the smallest int64 negative
        beyond = (integers > self.max_element) | (integers < -self.max_element)
        if beyond.any():
            raise ParameterError(
                f"element {int(beyond.argmax())} lies beyond {self.max_element}, the most "
                "that one summand may add to a slot"
            )
        slots, bits = self.slots(key_bits), self.slot_bits
        # the kernel packs no negative numbers; the shift is taken off the whole plaintext below
        shifted = (integers + self.max_element).astype(np.uint64)
        plaintexts = []
        for start in range(0, len(shifted), slots):
            row = shifted[start : start + slots]
            number = gmpy2.mpz(int.from_bytes(_fast.pack_bits(row, bits), "little"))
            plaintexts.append(int(number - self.max_element * self._ones(len(row))))
        return plaintexts

    def unpack(self, plaintexts: Sequence[int], key_bits: int) -> NDArray[np.int64]:
        """Return the slots of a sum, shape (filled,), in the order of `encode`.

        Raises
        ------
        ParameterError
            The number of plaintexts differs from ``plaintexts(key_bits)``, or a plaintext
            cannot be the sum of up to `summands` vectors.
        """
        slots, bits = self.slots(key_bits), self.slot_bits
        if len(plaintexts) != self.plaintexts(key_bits):
            raise ParameterError(
                f"{len(plaintexts)} plaintexts; a vector takes {self.plaintexts(key_bits)}"
            )
        out = np.empty(self.filled, dtype=np.int64)
        for index, plaintext in enumerate(plaintexts):
            row = out[index * slots : (index + 1) * slots]
            number = plaintext + self.max_sum * self._ones(len(row))
            if not 0 <= number < 1 << (bits * len(row)):
                raise ParameterError(
                    f"plaintext {index} is not the sum of up to {self.summands} packed vectors"
                )
            values = np.empty(len(row), dtype=np.uint64)
            packed = int(number).to_bytes(-(-bits * len(row) // 8), "little")
            _fast.unpack_bits(packed, bits, values)
            row[:] = values.view(np.int64) - self.max_sum
        # b bits can hold more than 2 · max_sum, which no sum of packed vectors reaches
        if (np.abs(out) > self.max_sum).any():
            raise ParameterError(f"a slot exceeds the sum of {self.summands} packed vectors")
        return out

    def _ones(self, slots: int) -> int:
        """Return the plaintext that has 1 in each of `slots` slots."""
        bits = self.slot_bits
        ones: int = ((gmpy2.mpz(1) << (bits * slots)) - 1) // ((1 << bits) - 1)
        return ones
