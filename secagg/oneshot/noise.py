"""Noise for differential privacy: a discrete Gaussian on every mask sum, equal at all holders.

Each holder of the seeds of S adds the same noise, of full σ, to M_S. The noise comes from AES
under a key of *all* clients' seeds of S and of the list. One honest client's seed keeps the
noise secret from the t − 1 helpers in S. Retries and other holders repeat the same noise, so
the noise does not average out.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.encoding import Lanes, Ring
from secagg.protocol.noise import Noise

__all__ = ["Noise", "adder", "blocks", "noise_key"]

_WORDS = 1 << 15
"""Words of the stream at a time, few enough to stay in the cache."""


def noise_key(index: int, seeds: Iterable[bytes], digest: bytes) -> bytes:
    """Return the key of the noise on M_S, 16 bytes.

    Parameters
    ----------
    index : int
        Index of S.
    seeds : iterable of bytes
        The seeds of S of all clients of the list, by ascending ids.
    digest : bytes
        D of the list.
    """
    total = hashlib.sha256(b"secagg/1 one-shot noise" + struct.pack("<H", index))
    for seed in seeds:
        total.update(seed)
    total.update(digest)
    return total.digest()[:16]


def adder(noise: Noise, ring: Ring, key: bytes, count: int) -> Callable[[Lanes], None]:
    """Return a function that adds the noise of a key to a vector, one part after the other.

    Call the function with consecutive parts of the vector, which have `count` elements
    together. The function adds in place, as `Ring.add_into` does.
    """
    stream = blocks(noise, key, count)
    rest = np.empty(0, np.int64)  # drawn, and not added yet

    def add(values: Lanes) -> None:
        nonlocal rest
        while values.size:
            rest = rest if rest.size else next(stream)
            lanes = ring.zeros(min(rest.size, values.size))
            some, rest = rest[: lanes.size], rest[lanes.size :]
            lanes[:] = some.view(np.uint64) if ring.is_power_of_two else some % ring.modulus
            ring.add_into(values[: lanes.size], lanes)
            values = values[lanes.size :]

    return add


def blocks(noise: Noise, key: bytes, count: int) -> Iterator[NDArray[np.int64]]:
    """Yield `count` noises in order, in blocks, from the words of the mask of `key`."""
    words, start = np.empty(_WORDS, np.uint64), 0
    out = np.empty(_WORDS, np.int64)
    while count:
        words[:] = 0
        _fast.mask_words(words, key, b"\x00", start)
        drawn, used = _fast.discrete_gaussian(words, out[:count], noise.scaled)
        yield out[:drawn]
        count -= drawn
        # rejections take words, too: the next block begins at the first word that is left
        start += used
