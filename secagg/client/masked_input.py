"""Round 2 at the client: open the shares, encode the input modulo R, add all masks, and pack.

The last three steps follow each other for a block of elements at a time, in a small array. A
copy of the whole vector would need new memory, and the first touch of new memory takes longer
than the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secagg import _fast
from secagg._check import is_integer
from secagg._threads import in_slices
from secagg.client.checks import reject
from secagg.client.states import Shared
from secagg.encoding import Entropy, FixedPoint, Lanes, Vector
from secagg.encoding.pieces import FixedPointPieces, Whole, check_encoded
from secagg.errors import ParameterError
from secagg.protocol import Phase, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES
from secagg.protocol.shape import Shape
from secagg.shamir.arithmetic import M61

_BLOCK = 1 << 16
"""Elements that are encoded, masked and packed together; a multiple of 8."""
_ALONE = 1 << 19
"""Elements that one thread encodes in a millisecond."""


class Input:
    """Vector and weight of a client, which `write` encodes, masks and packs.

    In a weighted sum the vector is multiplied by its weight, which follows as an element. With
    ``params.count_clipped`` the last element is the number of clipped elements. A weight that
    was `lowered` to the largest weight counts as a clipped element.

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
        if type(encoding) is FixedPoint:  # a subclass may have another `encode`
            self._pieces = encoding.pieces(vector, ring, factor, entropy)
        else:
            values, clipped = encoding.encode(vector, ring, factor, entropy)
            check_encoded(values, ring)
            self._pieces = Whole(values, clipped)
        size = self._pieces.values.size
        if size != params.length:
            raise ParameterError(
                f"the vector has {size} elements; the vectors of this round have "
                f"{params.length}"
            )
        self._params = params
        self._more = [] if weight is None else [int(weight)]
        self._lowered = lowered

    def write(self, packed: memoryview, masks: MaskSum) -> int:
        """Write the masked input to `packed`, and return the number of clipped elements.

        `packed` is overwritten with ⌈log2 R⌉ bits for each element. After an error the bytes of
        `packed` have no meaning.

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

        whole = params.length // 8 * 8  # eight elements are whole bytes
        least, alone = masks.slices(dtype.itemsize)
        in_slices(part, whole, least, min(alone, _ALONE))
        # the last elements, the weight and the count share bytes, so one thread writes them
        last = ring.zeros(params.elements - whole)
        if params.length > whole:
            pieces.write(last[: params.length - whole], slice(whole, params.length))
        clipped = pieces.clipped()
        counted = min(clipped + self._lowered, params.length)  # the server's bound for a client
        more = [*self._more, counted] if params.count_clipped else self._more
        last[params.length - whole :] = more
        if last.size:
            finish(last, whole)
        return clipped


def masks_of(own: Shared, me: int, others: Sequence[int]) -> MaskSum:
    """Return a client's masks: PRG(b_u), and ± PRG(s_uv) for every client v in `others`."""
    total = MaskSum()
    total.add(keys.self_mask_key(own.seed, own.session, me))
    derived = keys.rows_of((own.mask_keys[v] for v in others), keys.MASK_KEY_BYTES)
    total.extend(derived, keys.subtracts(me, np.array(others, np.uint64)))
    return total


def open_from(
    senders: Sequence[int], sealed: bytes, own: Shared, me: int
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Open the shares that the other clients of U2 sealed for this client, `me`.

    `sealed` has one sealed pair of shares for each sender, in the order of `senders`.

    Returns
    -------
    self_shares, mask_shares : dict of id to bytes
        Shares of b, this client's own share included, and shares of s, by the owner's id.
    """
    phase = Phase.MASKED_INPUT
    if len(sealed) != SEALED_BYTES * len(senders):
        reject(phase, "length", f"expected one sealed share for each of {len(senders)} senders")
    opened, whole = keys.open_sealed(
        keys.rows_of(own.opening[v] for v in senders),
        own.session,
        np.array(senders, np.uint64),
        me,
        keys.rows_of([sealed], SEALED_BYTES),
    )
    if whole < len(senders):
        why = f"client {senders[whole]}'s sealed share fails authentication"
        reject(phase, "sealed share", why)
    # a peer can seal any bytes, so an authentic share may still be outside the field
    beyond = np.flatnonzero((opened.view("<u8") >= M61).any(axis=1))
    if beyond.size:
        reject(phase, "share", f"client {senders[beyond[0]]}'s share is not a field element")
    self_shares, mask_shares = (
        dict(zip(senders, map(bytes, half), strict=True))
        for half in (opened[:, :SHARE_BYTES], opened[:, SHARE_BYTES:])
    )
    return {me: own.own_share} | self_shares, mask_shares
