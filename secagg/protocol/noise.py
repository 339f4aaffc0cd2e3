"""Shares of the noise of a sum: each client adds a discrete Gaussian of a part of the variance.

The sum of h shares of variance s² is a discrete Gaussian of variance h s², up to a factor e^±τ
of every probability: Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism for
Federated Learning with Secure Aggregation" (ICML 2021). With s ≥ 4, τ is below h · 10^−66.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer
from secagg.encoding import Lanes, Ring
from secagg.errors import ParameterError

STEPS = 256
"""Deviations are multiples of 1 / 256."""
LEAST_SHARE, LARGEST_SHARE = 4 * STEPS, (1 << 28) * STEPS
"""Bounds of 256 s."""
MAX_SIGMA = (1 << 40) * STEPS
"""Bound of 256 σ."""
_BLOCK = 1 << 12
"""Samples that begin at their own place in the stream, so that threads can draw blocks."""
_REGION = 1 << 16
"""Words of the stream for a block: three times the number that the block takes on average."""
_WORDS = 3 * (1 << 13)
"""Words at a time, few enough to stay in the cache, and nearly always enough for a block."""
_DIGITS, _FAR = 60, 40
"""Decimal digits of the law, whose table has 127 bits, and values of x, beyond the table."""


class Law(NamedTuple):
    """Arguments of `secagg._fast.gaussian_shares` that depend on s."""

    table: NDArray[np.uint64]
    k: int
    scale: int
    shift: int

    @property
    def largest(self) -> int:
        """Largest absolute value of a sample."""
        return self.k * (len(self.table) + 1) - 1


@dataclass(frozen=True)
class Share:
    """Noise of a single client, discrete Gaussian with deviation s.

    Parameters
    ----------
    scaled : int
        256 s, 4 ≤ s ≤ 2^28.

    Raises
    ------
    ParameterError
        `scaled` is not an int in this range.
    """

    scaled: int

    def __post_init__(self) -> None:
        check_integer("256 s", self.scaled, LEAST_SHARE, LARGEST_SHARE)
        object.__setattr__(self, "scaled", int(self.scaled))

    @classmethod
    def of(cls, sigma: int, survivors: int, colluders: int) -> Self:
        """Return the least share with which any survivors' honest shares have variance σ².

        Parameters
        ----------
        sigma : int
            256 σ, 1 ≤ σ ≤ 2^40.
        survivors : int
            m, the smallest number of inputs of a sum, 2 ≤ m ≤ 2^20.
        colluders : int
            c, the largest number of survivors whose noise the adversary knows, 0 ≤ c ≤ m − 2.

        Raises
        ------
        ParameterError
            A number is out of range, or σ / √(m − c) is below 4 or above 2^28.
        """
        check_integer("256 sigma", sigma, STEPS, MAX_SIGMA)
        check_integer("survivors", survivors, 2, 1 << 20)
        check_integer("colluders", colluders, 0, survivors - 2)
        honest = int(survivors) - int(colluders)
        # the least p with p² (m − c) ≥ (256 σ)²
        scaled = math.isqrt((int(sigma) ** 2 - 1) // honest) + 1
        if not LEAST_SHARE <= scaled <= LARGEST_SHARE:
            raise ParameterError(
                f"the noise of {honest} honest survivors has a deviation of "
                f"{scaled / STEPS:.4g} steps each, outside [4, 2^28]; take an encoding with "
                f"{'smaller' if scaled < LEAST_SHARE else 'larger'} steps"
            )
        return cls(scaled)

    @cached_property
    def law(self) -> Law:
        """Table and numbers of the sampler, the same on every machine.

        k = ⌊s / 1.2⌋. The table has ⌊2^127 P(X ≤ x)⌋ for P(X = x) ∝ exp(−(k x)² / 2s²), x ≥ 0,
        as far as P(X > x) > 2^−127.
        """
        p = self.scaled
        k = 5 * p // (6 * STEPS)
        with localcontext(prec=_DIGITS):
            squares = [Decimal((STEPS * k * x) ** 2) / (2 * p * p) for x in range(_FAR)]
            sums = list(accumulate((-square).exp() for square in squares))
            steps = [int(below * (1 << 127) / sums[-1]) for below in sums]
            scale = int(STEPS**2 * (1 << 192) / (2 * p * p * Decimal(2).ln()))
        table = [divmod(step, 1 << 64) for step in steps if step < (1 << 127) - 1]
        spare = scale.bit_length() - 63
        return Law(np.array(table, np.uint64), k, scale >> spare, 128 - spare)

    def blocks(self, key: bytes, start: int, count: int) -> Iterator[NDArray[np.int64]]:
        """Yield the samples of a key from number `start` on, `count` in all, in blocks.

        Samples 4096 b to 4096 b + 4095 are drawn from the words of the key's stream that begin
        with number 65,536 b; see `secagg._fast.mask_words` for the stream. A block is
        overwritten when the next block is asked for.
        """
        words, block, law = np.empty(_WORDS, np.uint64), np.empty(_BLOCK, np.int64), self.law
        for number in range(start // _BLOCK, -(-(start + count) // _BLOCK)):
            skipped = max(0, start - _BLOCK * number)
            samples = block[: start + count - _BLOCK * number]
            drawn, used = 0, 0
            while drawn < samples.size:
                # a block of more rejections than the region has has probability below 2^−5000
                some = words[: _REGION - used]
                some.fill(0)
                _fast.mask_words(some, key, b"\x00", _REGION * number + used)
                more, taken = _fast.gaussian_shares(some, samples[drawn:], *law)
                drawn, used = drawn + more, used + taken
            yield samples[skipped:]

    def adder(self, key: bytes, ring: Ring) -> Callable[[Lanes, int], None]:
        """Return a function that adds the noise of a key to a part of a vector, in place.

        The arguments of this function are elements in the lanes of `ring`, and the number of
        the first element in the vector. Several threads may call the function.
        """
        is_small = ring.is_power_of_two or self.law.largest < ring.modulus

        def add(values: Lanes, start: int) -> None:
            done = 0
            for block in self.blocks(key, start, values.size):
                noise = ring.residues(block if is_small else block % ring.modulus)
                ring.add_into(values[done : done + noise.size], noise)
                done += noise.size

        return add
