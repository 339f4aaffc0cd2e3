"""Input of a client in round 2: encoded modulo R, with noise and all masks, and packed.

These steps follow each other for a block of elements at a time, in a small array. A copy of the
whole vector would need new memory, and the first touch of new memory takes longer than the
steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secagg import _fast
from secagg._check import is_integer
from secagg._threads import in_slices
from secagg.encoding import Entropy, FixedPoint, Lanes, Vector
from secagg.encoding.pieces import FixedPointPieces, Whole, check_encoded, check_largest
from secagg.errors import ParameterError
from secagg.protocol.masks import MaskSum
from secagg.protocol.shape import Shape

_BLOCK = 1 << 16
"""Elements that are encoded, masked and packed together; a multiple of 8."""
_ALONE = 1 << 19
"""Elements that one thread encodes in a millisecond."""
_NOISED = 1 << 15
"""Elements that one thread draws noise for in a millisecond."""


class Input:
    """Vector and weight of a client, which `write` encodes, masks and packs.

    In a weighted sum the vector is multiplied by its weight, which follows as an element. With
    ``params.count_clipped`` the last element is the number of clipped elements. A weight that
    was `lowered` to the largest weight counts as a clipped element. With `Bounded` neither
    follows: the encoding has the count in the rotated vector.

    Raises
    ------
    ParameterError
        The vector or weight is invalid. `write` checks the elements themselves.
    """

    def __init__(
        self,
        vector: Vector,
        weight: int | None,
        params: Shape,
        entropy: Entropy,
        *,
        lowered: bool = False,
    ) -> None:
        most, encoding, ring = params.max_weight, params.encoding, params.ring
        if weight is None:
            if most is not None:
                raise ParameterError(f"the weight is missing; pass an int from 0 to {most}")
        elif most is None:
            raise ParameterError(
                "a weight was given, but this round's sum is unweighted; leave the weight out"
            )
        elif not is_integer(weight) or not 0 <= weight <= most:
            # the weight is private, so its value is not repeated
            raise ParameterError(
                f"weight must be an int from 0 to {most}; this one, of type "
                f"{type(weight).__name__}, is not"
            )
        factor = 1 if weight is None else int(weight)
        self._pieces: FixedPointPieces | Whole
        wanted = params.length
        if params.rotated is not None:
            self._pieces = Whole(*params.rotated.encode(vector, ring, entropy))
            wanted = params.elements
        elif type(encoding) is FixedPoint:  # a subclass may have another `encode`
            self._pieces = encoding.pieces(vector, ring, factor, entropy)
        else:
            values, clipped = encoding.encode(vector, ring, factor, entropy)
            check_encoded(values, ring)
            if params.noise is not None:  # which is for elements of this size
                check_largest(values, ring, encoding.max_encoded * factor)
            self._pieces = Whole(values, clipped)
        size = self._pieces.values.size
        if size != wanted:
            raise ParameterError(
                f"the vector has {size} elements; the vectors of this round have "
                f"{params.length}"
            )
        self._params = params
        self._size, self._more = size, [] if weight is None else [int(weight)]
        self._lowered = lowered

    def write(
        self,
        packed: memoryview,
        masks: MaskSum,
        noise: Callable[[Lanes, int], None] | None = None,
    ) -> int:
        """Write the masked input to `packed`, and return the number of clipped elements.

        `packed` is overwritten with ⌈log2 R⌉ bits for each element. After an error the bytes of
        `packed` have no meaning. `noise` adds noise to a part of the vector; see `Share.adder`.

        Raises
        ------
        ParameterError
            An element of the vector is invalid.
        """
        params, pieces = self._params, self._pieces
        ring, bits, dtype = params.ring, params.ring.bits, params.ring.dtype
        add = masks.adder(ring)
        into = np.frombuffer(packed, np.uint8)

        def finish(values: Lanes, start: int) -> None:
            if noise is not None:
                noise(values, start)
            add(values, start)  # packing drops all bits above `bits`
            first = start * bits // 8
            last = first + ring.packed_bytes(values.size)
            _fast.pack_into(values, bits, into[first:last])

        def part(rows: slice) -> None:
            memory = np.empty(min(_BLOCK, rows.stop - rows.start), dtype)
            for start in range(rows.start, rows.stop, _BLOCK):
                stop = min(start + _BLOCK, rows.stop)
                values = memory[: stop - start]
                pieces.write(values, slice(start, stop))
                finish(values, start)

        whole = self._size // 8 * 8  # eight elements are whole bytes
        least, alone = masks.slices(dtype.itemsize)
        alone = min(alone, _ALONE if noise is None else _NOISED)
        in_slices(part, whole, min(least, alone), alone)
        # the last elements, the weight and the count share bytes, so one thread writes them
        last = ring.zeros(params.elements - whole)
        if self._size > whole:
            pieces.write(last[: self._size - whole], slice(whole, self._size))
        clipped = pieces.clipped()
        if params.rotated is None:
            counted = min(clipped + self._lowered, params.length)  # the server's bound
            more = [*self._more, counted] if params.count_clipped else self._more
            last[self._size - whole :] = more
        if last.size:
            finish(last, whole)
        return clipped
