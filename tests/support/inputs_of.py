"""Elements of a client's input before its masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from secagg import RoundParams, _fast
from secagg.client.masked_input import Input
from secagg.encoding import Entropy, Lanes, Vector
from secagg.protocol.masks import MaskSum

Noising = Callable[[Lanes, int], None] | None


def encoded(
    vector: Vector, weight: int | None, params: RoundParams, entropy: Entropy
) -> tuple[Lanes, int]:
    """Return the elements of an input, and the number of clipped elements."""
    packed = bytearray(params.ring.packed_bytes(params.elements))
    clipped = Input(vector, weight, params, entropy).write(memoryview(packed), MaskSum())
    values = params.ring.zeros(params.elements)
    _fast.unpack_bits(packed, params.ring.bits, values)
    return values, clipped


class Altered(Input):
    """Input of which `alter` changes the masked elements; it gets the unmasked ones, too."""

    def __init__(
        self, vector: Vector, weight: int | None, params: RoundParams, *more: Any, **named: Any
    ) -> None:
        super().__init__(vector, weight, params, *more, **named)
        self.params = params

    def alter(self, masked: Lanes, plain: Lanes) -> None:
        """Change `masked` in place."""
        raise NotImplementedError

    def write(self, packed: memoryview, masks: MaskSum, noise: Noising = None) -> int:
        """Write the altered input."""
        ring = self.params.ring
        plain, masked = (ring.zeros(self.params.elements) for _ in range(2))
        for values, some in ((plain, MaskSum()), (masked, masks)):
            clipped = super().write(packed, some, noise)
            _fast.unpack_bits(packed, ring.bits, values)
        self.alter(masked, plain)
        _fast.pack_into(masked, ring.bits, np.frombuffer(packed, np.uint8))
        return clipped
