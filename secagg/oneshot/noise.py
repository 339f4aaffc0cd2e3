"""Noise for differential privacy: a discrete Gaussian on every mask sum, equal at all holders.

Each holder of the seeds of S adds the same noise, of full σ, to M_S. The noise comes from AES
under a key of *all* clients' seeds of S and of the list. One honest client's seed keeps the
noise secret from the t − 1 helpers in S. Retries and other holders repeat the same noise, so
the noise does not average out.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import is_integer, is_real
from secagg._printable import in_short
from secagg.encoding import Lanes, Ring
from secagg.errors import ParameterError

STEPS = 256
"""Values of σ are multiples of 1 / 256."""
MAX_SIGMA = 1 << 40
_TAIL = 10
_WORDS = 1 << 15
"""Words of the stream at a time, few enough to stay in the cache."""


def as_fraction(value: object) -> Fraction | None:
    """Return a finite real number of Python or numpy, exactly; None for anything else."""
    if isinstance(value, Fraction):
        return value
    if not is_real(value):
        return None
    number = int(value) if is_integer(value) else float(value)
    return Fraction(number) if abs(number) < math.inf else None  # nor NaN


@dataclass(frozen=True)
class Noise:
    """Discrete Gaussian noise, with probability ∝ exp(−y² / 2σ²) for every integer y.

    A sum carries the noise of all C(ℓ, t − 1) seeds. Privacy counts the noise of a single seed;
    see `secagg.oneshot.epsilon`.

    Parameters
    ----------
    sigma : int, float or Fraction
        σ in steps of the encoding, 2^−f of `FixedPoint` or 1 of `Integers`, 0 < σ ≤ 2^40. The
        value is rounded up to a multiple of 1/256 and is then a Fraction.

    Raises
    ------
    ParameterError
        `sigma` is not such a number.
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        exact = as_fraction(self.sigma)
        if exact is None or not 0 < exact <= MAX_SIGMA:
            raise ParameterError(
                "noise must have a sigma above 0 and at most 2^40 steps, not "
                f"{in_short(self.sigma)}"
            )
        # rounded up: a smaller σ would give less privacy than the caller asked for
        object.__setattr__(self, "sigma", Fraction(math.ceil(exact * STEPS), STEPS))

    @property
    def scaled(self) -> int:
        """256 σ, as in the parameters' bytes and in the sampler."""
        return int(self.sigma * STEPS)

    def bound(self, summands: int) -> int:
        """Return ⌈10 σ √k⌉, which a sum of k noises exceeds with probability below 2^−71.

        The discrete Gaussian is subgaussian (Canonne, Kamath and Steinke 2020), so that the
        probability is at most 2 exp(−10² / 2). For all elements of the longest vector together
        the probability is below 2^−40.
        """
        square = _TAIL**2 * summands * self.scaled**2
        return (math.isqrt(square - 1) // STEPS) + 1


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
