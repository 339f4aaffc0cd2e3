"""Entropy that repeats itself, so that a round can be replayed byte for byte in a test."""

from __future__ import annotations

import hashlib

__all__ = ["InsecureReplayedEntropy"]


class InsecureReplayedEntropy:
    """Bytes that look random and follow from a seed. **For tests only**: they hide nothing.

    Parameters
    ----------
    seed : object
        Whatever tells this stream from others; its ``repr`` counts.

    Attributes
    ----------
    drawn : list of bytes
        Everything that was drawn, in order.
    """

    def __init__(self, seed: object) -> None:
        self._state = hashlib.sha256(repr(seed).encode()).digest()
        self._count = 0
        self.drawn: list[bytes] = []

    def __call__(self, size: int, /) -> bytes:
        """Return the next `size` bytes."""
        out = b""
        while len(out) < size:
            self._count += 1
            out += hashlib.sha256(self._state + self._count.to_bytes(8, "little")).digest()
        self.drawn.append(out[:size])
        return out[:size]
