"""Encoding of vectors as integers modulo R, to be masked, encrypted and summed.

Choose `FixedPoint` for floats, `Integers` for counts and `Bounded` for vectors of bounded norm,
or implement the `Encoding` protocol.
`flatten` makes a single vector of a model's arrays.
A client encodes a vector into Z_R, the protocol adds the encodings, and the sum is decoded.
The sum is exact if R exceeds the largest possible sum, which `secagg.RoundParams` checks.
"""

from __future__ import annotations

from secagg.encoding.bounded import Bounded, Rotated
from secagg.encoding.encoding import Encoding, Entropy, Lanes, Ring, Vector
from secagg.encoding.fixed_point import FixedPoint, Suggestion, from_canonical
from secagg.encoding.integers import Integers
from secagg.encoding.schema import Schema, flatten

__all__ = [
    "Bounded",
    "Encoding",
    "Entropy",
    "FixedPoint",
    "Integers",
    "Lanes",
    "Ring",
    "Rotated",
    "Schema",
    "Suggestion",
    "Vector",
    "flatten",
    "from_canonical",
]
