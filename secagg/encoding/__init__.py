"""Encoding of vectors as integers modulo R, to be masked, encrypted and summed.

A client encodes its vector into Z_R, the protocol adds the encodings, and the sum is decoded.
`FixedPoint` encodes floats, `Integers` counts. The sum is exact as long as R exceeds the
largest possible sum, which `secagg.RoundParams` checks. Your own encoding implements the
`Encoding` protocol.
"""

from __future__ import annotations

from secagg.encoding.encoding import Encoding, Entropy, Vector
from secagg.encoding.fixed_point import FixedPoint, Integers
from secagg.encoding.ring import Lanes, Ring

__all__ = ["Encoding", "Entropy", "FixedPoint", "Integers", "Lanes", "Ring", "Vector"]
