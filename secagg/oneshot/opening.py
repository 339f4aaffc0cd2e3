"""Sums of masks, packed block by block.

A helper's memory is little more than the helper's answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secagg import _fast
from secagg._records import Ids, Rows
from secagg._threads import in_slices
from secagg.encoding import Lanes
from secagg.oneshot import noise, seeds
from secagg.oneshot.params import OneShotParams
from secagg.protocol.masks import MaskSum

_BLOCK = 1 << 20
"""Elements that are summed and packed together; a multiple of 8, for whole bytes."""
_MASKS = 512
"""Masks that a single pass over a block adds."""


def write_masks(
    packed: memoryview, ids: Ids, drawn: Rows, index: int, digest: bytes, params: OneShotParams
) -> None:
    """Write M_S = Σ_u PRG(k_{u,S}) mod R to `packed`, which is zero before.

    Parameters
    ----------
    packed : memoryview
        ``params.layout.packed`` bytes.
    ids : uint64 array, shape (m,)
        Clients of the list.
    drawn : uint8 array, shape (m, 16)
        The clients' seeds of S.
    index : int
        Index of S.
    digest : bytes
        D of the list. Noise on M_S depends on D, and on all seeds of S.
    params : OneShotParams
    """
    ring, elements = params.ring, params.elements
    # keys are derived here, once, and not again for every block
    passes = []
    for first in range(0, ids.size, _MASKS):
        part = slice(first, first + _MASKS)
        places = ((u, index) for u in ids[part].tolist())
        keys = seeds.mask_keys(drawn[part], params.digest, places)
        passes.append(MaskSum())
        passes[-1].add(keys, negate=np.zeros(len(keys), bool))
    add_noise = _noise(drawn, index, digest, params)
    into = np.frombuffer(packed, np.uint8)
    memory = ring.zeros(min(_BLOCK, elements))
    for start in range(0, elements, _BLOCK):
        values = memory[: min(_BLOCK, elements - start)]
        values[:] = 0
        for masks in passes:
            _add(masks, values, start, params)
        add_noise(values)
        first = start * ring.bits // 8  # packing drops bits above `bits`
        last = first + ring.packed_bytes(values.size)
        _fast.pack_into(values, ring.bits, into[first:last])


def _add(masks: MaskSum, values: Lanes, start: int, params: OneShotParams) -> None:
    """Add masks to the elements of a vector from `start` on, on several threads."""
    add, (least, alone) = masks.adder(params.ring), masks.slices(values.itemsize)
    in_slices(lambda rows: add(values[rows], start + rows.start), values.size, least, alone)


def _noise(
    drawn: Rows, index: int, digest: bytes, params: OneShotParams
) -> Callable[[Lanes], None]:
    """Return a function that adds the noise to M_S, one part after the other."""
    if params.noise is None:
        return lambda values: None
    key = noise.noise_key(index, (row.tobytes() for row in drawn), digest)
    return noise.adder(params.noise, params.ring, key, params.elements)
