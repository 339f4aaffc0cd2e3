"""Sizes and offsets of messages for one-shot sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from secagg.oneshot.seeds import COMMITMENT_BYTES, SEED_BYTES
from secagg.oneshot.suites import OVERHEAD
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.suites import SuiteName

ID_BYTES = 8
DIGEST_BYTES = 32
START_BYTES = 2 + DIGEST_BYTES
"""Version, kind and the parameters' digest."""


@dataclass(frozen=True)
class Layout:
    """Sizes and offsets under some parameters.

    Attributes
    ----------
    head : int
        Bytes of id and commitments.
    boxes : tuple of int
        Offset of each helper's box in a report, and of the end of the last box.
    signature : int
        Bytes of a signature, 0 or 64.
    packed : int
        Bytes of a packed vector.
    """

    head: int
    boxes: tuple[int, ...]
    signature: int
    packed: int

    @classmethod
    def of(
        cls, suite: SuiteName, seeds: int, held: Sequence[int], packed: int, *, signed: bool
    ) -> Layout:
        """Return the layout for `seeds` seeds of a client, with `held` seeds at each helper."""
        head = ID_BYTES + COMMITMENT_BYTES * seeds
        sizes = (OVERHEAD[suite] + SEED_BYTES * count for count in held)
        ends = tuple(accumulate(sizes, initial=START_BYTES + head))
        return cls(head, ends, SIGNATURE_BYTES if signed else 0, packed)

    @property
    def values(self) -> int:
        """Offset of the packed vector in a report."""
        return self.boxes[-1] + self.signature

    @property
    def report(self) -> int:
        """Bytes of a report."""
        return self.values + self.packed

    def box(self, helper: int) -> slice:
        """Return the place of a helper's box in a report."""
        return slice(self.boxes[helper - 1], self.boxes[helper])

    def record(self, helper: int) -> int:
        """Return the bytes of a client's head, box and signature in a chunk for a helper."""
        return self.head + self.boxes[helper] - self.boxes[helper - 1] + self.signature
