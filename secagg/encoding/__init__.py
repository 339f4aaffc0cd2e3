"""Encoding of vectors as integers modulo R, to be masked, encrypted and summed.

Choose `FixedPoint` for floats and `Integers` for counts, or implement the `Encoding` protocol.
`flatten` makes a single vector of a model's arrays.
A client encodes a vector into Z_R, the protocol adds the encodings, and the sum is decoded.
The sum is exact if R exceeds the largest possible sum, which `secagg.RoundParams` checks.
"""

from __future__ import annotations

from secagg.encoding.encoding import Encoding, Entropy, Lanes, Ring, Vector
from secagg.encoding.fixed_point import FixedPoint, Suggestion, from_canonical
from secagg.encoding.integers import Integers
from secagg.encoding.schema import Schema, flatten

__all__ = [
    "Encoding",
    "Entropy",
    "FixedPoint",
    "Integers",
    "Lanes",
    "Ring",
    "Schema",
    "Suggestion",
    "Vector",
    "flatten",
    "from_canonical",
]
