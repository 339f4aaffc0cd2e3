"""Rounds 1 and 2 at the client.

Round 1 shares the secrets, and seals (encrypts) the shares for their holders. Round 2 opens the
shares of others, encodes the input modulo R, adds noise and all masks, and packs. These steps
follow each other for a block of elements at a time, in a small array. A copy of the whole
vector would need new memory, and the first touch of new memory takes longer than the steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from secagg import _fast, shamir
from secagg._check import is_integer
from secagg._threads import in_slices
from secagg.client.checks import reject
from secagg.client.states import Advertised, Shared
from secagg.encoding import Entropy, FixedPoint, Lanes, Vector
from secagg.encoding.pieces import FixedPointPieces, Whole, check_encoded
from secagg.errors import ParameterError
from secagg.protocol import Phase, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES, ShareKeys, pack_ids
from secagg.protocol.shape import Shape
from secagg.shamir.field import M61

_BLOCK = 1 << 16
"""Elements that are encoded, masked and packed together; a multiple of 8."""
_ALONE = 1 << 19
"""Elements that one thread encodes in a millisecond."""
_NOISED = 1 << 15
"""Elements that one thread draws noise for in a millisecond."""


def seal_for(
    holders: Mapping[int, tuple[bytes, bytes]],
    own: Advertised,
    me: int,
    session: bytes,
    threshold: int,
    hedged: Callable[..., Entropy],
    due: Phase,
) -> tuple[Shared, ShareKeys]:
    """Share b_u and the seed of s_u among the holders (Bonawitz 2017, round 1).

    Parameters
    ----------
    holders : mapping of int to (bytes, bytes)
        Sealing and masking key by ascending id, client `me` included. Holder i gets the share
        at the point i + 1.
    own, me, session, threshold
        State, id, session and t of the client.
    hedged : callable
        Source of random bytes for a purpose: ``Client._hedged``.
    due : Phase
        Phase of the new state.

    Returns
    -------
    Shared, ShareKeys
        New state of the client, and the client's message.
    """
    # b must stay secret when the server rebuilds the masking seed, which cannot hedge b
    seed = hedged(b"b", own.sealing.pair.seed, session)(keys.SEED_BYTES)
    about = struct.pack("<Q", threshold) + pack_ids(tuple(holders))
    coefficients = hedged(b"shares", seed + own.mask_pair.seed, session, about)
    # b comes first: the first half of a share is of b, the second half of s
    limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(own.mask_pair.seed)])
    points = np.arange(1, len(holders) + 1, dtype=np.uint64)
    shares = shamir.split_limbs(limbs, threshold, points, coefficients)
    rows = shares.astype("<u8").view(np.uint8)
    peers = [v for v in holders if v != me]
    others = np.array([v != me for v in holders])
    ids, half = np.array(peers, np.uint64), keys.KEY_BYTES
    # the sealing key comes first in `publics`, and the secret agreed on with it in `secrets`
    publics = keys.rows_of(key for v in peers for key in holders[v]).reshape(-1, 2 * half)
    joined = list[bytes]()
    for v in peers:
        peer_seal, peer_mask = holders[v]
        of_seal, of_mask = own.sealing.agree(v, peer_seal), own.mask_pair.agree(peer_mask)
        if of_seal is None or of_mask is None:
            which = "sealing" if of_seal is None else "masking"
            why = f"client {v}'s {which} key is of low order or not canonical"
            reject(Phase.SHARE_KEYS, "public key", why)
        joined += (of_seal, of_mask)
    secrets = keys.rows_of(joined).reshape(-1, 2 * half)
    seal_key, mask_key = holders[me]
    sending, opening = keys.seal_keys(secrets, session, (me, seal_key + mask_key), ids, publics)
    masks = keys.pairwise_mask_keys(
        secrets[:, half:], session, (me, mask_key), ids, publics[:, half:]
    )
    sealed = keys.seal(sending, session, me, ids, rows[others])
    state = Shared(
        phase=due,
        session=session,
        seed=seed,
        own_share=rows[~others, :SHARE_BYTES].tobytes(),
        mask_keys=dict(zip(peers, map(bytes, masks), strict=True)),
        opening=dict(zip(peers, map(bytes, opening), strict=True)),
    )
    commitment = keys.commitment(seed, session, me)
    return state, ShareKeys(me, session, commitment, sealed.tobytes())


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
