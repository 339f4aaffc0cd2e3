"""Vector of a step: integers of any size, in digits that no sum of sites overflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, TypeAlias, TypeVar

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
_Value = TypeVar("_Value")
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
    factor : Fraction
        With noise, an element is the sum times `factor`, rounded. 0: the sum is exact.
    rho : float
        With noise, budget of the field.
    """

    name: str
    shape: tuple[int, ...]
    bits: int = 1
    factor: Fraction = Fraction(0)
    rho: float = 0.0

    @property
    def size(self) -> int:
        """Number of the integers."""
        return prod(self.shape)

    @property
    def digits(self) -> int:
        """Digits of each integer; with noise, an element."""
        return 1 if self.factor else -(-(self.bits + RECORD_BITS) // BASE_BITS)


@dataclass(frozen=True)
class Step:
    """Exact step of a study: the digits of each field.

    Parameters
    ----------
    fields : sequence of Field
        Fields of the vector; [] after the last step.
    """

    fields: Sequence[Field]
    encoding: ClassVar[Integers] = ENCODING

    @property
    def length(self) -> int:
        """Number of elements of the vector."""
        return sum(field.size * field.digits for field in self.fields)

    def pack(self, sums: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the vector of a site's sums, each ≥ 0."""
        parts, mask = [np.zeros(0, np.int64)], (1 << BASE_BITS) - 1
        for field in self.fields:
            numbers = [int(number) for number in np.asarray(sums[field.name], object).flat]
            shifts = range(0, BASE_BITS * field.digits, BASE_BITS)
            digits = [[number >> shift & mask for number in numbers] for shift in shifts]
            parts.append(np.array(digits, np.int64).reshape(-1))
        return np.concatenate(parts)

    def unpack(self, digits: NDArray[np.int64]) -> dict[str, Exact]:
        """Return the exact integers of a sum of vectors, by field."""
        found, at = dict[str, Exact](), 0
        for field in self.fields:
            total = np.zeros(field.size, object)
            for shift in range(0, BASE_BITS * field.digits, BASE_BITS):
                total += digits[at : at + field.size].astype(object) << shift
                at += field.size
            found[field.name] = total.reshape(field.shape)
        return found


def own(place: int, found: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return what belongs to the statistic at a place, without the place before the name."""
    return {k.partition(".")[2]: v for k, v in found.items() if k.startswith(f"{place}.")}
