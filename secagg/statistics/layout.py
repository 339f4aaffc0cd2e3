"""Vector of a step: integers of any size, in digits that no sum of sites overflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg.encoding import Integers

BASE_BITS = 32
ENCODING = Integers((1 << BASE_BITS) - 1)
"""Encoding of every step: a digit in each element. A sum of 2^30 sites stays below 2^62."""
RECORD_BITS = 32
"""A site has fewer than 2^32 records."""

Exact: TypeAlias = NDArray[np.object_]
"""Array of Python's ints, which have any size."""
Sums: TypeAlias = Mapping[str, Exact]


@dataclass(frozen=True)
class Field:
    """Array of integers in a step.

    Parameters
    ----------
    name : str
    shape : tuple of int
    bits : int
        Bits of the largest contribution of a single record.
    """

    name: str
    shape: tuple[int, ...]
    bits: int = 1

    @property
    def size(self) -> int:
        """Number of the integers."""
        return prod(self.shape)

    @property
    def digits(self) -> int:
        """Digits of each integer."""
        return -(-(self.bits + RECORD_BITS) // BASE_BITS)


def length(fields: Sequence[Field]) -> int:
    """Return the number of elements of a step's vector."""
    return sum(field.size * field.digits for field in fields)


def pack(fields: Sequence[Field], sums: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the vector of a site's sums, each ≥ 0, an int64 array of digits."""
    parts = []
    for field in fields:
        numbers = np.asarray(sums[field.name], object).reshape(-1)
        mask = (1 << BASE_BITS) - 1
        for place in range(field.digits):
            digit = [(int(number) >> (BASE_BITS * place)) & mask for number in numbers]
            parts.append(np.array(digit, np.int64))
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def unpack(fields: Sequence[Field], digits: NDArray[np.int64]) -> dict[str, Exact]:
    """Return the exact integers of a vector, or of a sum of vectors, by field."""
    found, at = dict[str, Exact](), 0
    for field in fields:
        total = np.zeros(field.size, object)
        for place in range(field.digits):
            total += digits[at : at + field.size].astype(object) << (BASE_BITS * place)
            at += field.size
        found[field.name] = total.reshape(field.shape)
    return found
