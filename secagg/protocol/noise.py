"""Noise of a sum, and shares of the noise: each client adds a part of the variance.

Noise and shares are discrete Gaussians, with probability ∝ exp(−y² / 2σ²) for every integer y.
The sum of h shares of variance s² is a discrete Gaussian of variance h s², up to a factor e^±τ
of every probability: Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism for
Federated Learning with Secure Aggregation" (ICML 2021). With s ≥ 4, τ is below h · 10^−66.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import check_integer, is_integer, is_real
from secagg._printable import in_short
from secagg.encoding import Lanes, Ring
from secagg.errors import ParameterError

STEPS = 256
"""Deviations are multiples of 1 / 256."""
LEAST_SHARE, LARGEST_SHARE = 4 * STEPS, (1 << 28) * STEPS
"""Bounds of 256 s."""
MAX_SIGMA = 1 << 40
"""Bound of σ."""
_TAIL = 10
_GAUSSIAN = 1
"""First byte of the noise in parameters: the kind, a discrete Gaussian."""
_CANONICAL = struct.Struct("<BQI")
_BLOCK = 1 << 12
"""Samples that begin at their own place in the stream, so that threads can draw blocks."""
_REGION = 1 << 16
"""Words of the stream for a block: three times the number that the block takes on average."""
_WORDS = 3 * (1 << 13)
"""Words at a time, few enough to stay in the cache, and nearly always enough for a block."""
_DIGITS, _FAR = 60, 40
"""Decimal digits of the law, whose table has 127 bits, and values of x, beyond the table."""


def as_fraction(value: object) -> Fraction | None:
    """Return a finite real number of Python or numpy, exactly; None for anything else."""
    if isinstance(value, Fraction):
        return value
    if not is_real(value):
        return None
    number = int(value) if is_integer(value) else float(value)
    return Fraction(number) if abs(number) < math.inf else None  # nor NaN


def tail(scaled: int, summands: int) -> int:
    """Return ⌈10 s √k⌉, which a sum of k noises exceeds with probability below 2^−71.

    The argument is 256 s. The discrete Gaussian is subgaussian (Canonne, Kamath and Steinke
    2020), so that the probability is at most 2 exp(−10² / 2). For all elements of the longest
    vector together the probability is below 2^−40.
    """
    square = _TAIL**2 * summands * scaled**2
    return (math.isqrt(square - 1) // STEPS) + 1


@dataclass(frozen=True)
class Noise:
    """Discrete Gaussian noise of a sum, for differential privacy.

    In a round (`secagg.RoundParams`) each client adds a share, so that any survivors' shares
    without the colluders' have the variance σ². In a one-shot sum (`secagg.oneshot`) each
    helper adds all noise, and the sum has the noise of all C(ℓ, t − 1) seeds. Privacy counts
    the noise of a single seed; see `secagg.privacy.epsilon`. `secagg.privacy.against` says
    against whom the noise holds.

    Parameters
    ----------
    sigma : int, float or Fraction
        σ in steps of the encoding, 0 < σ ≤ 2^40: 2^−f of `FixedPoint`, 1 of `Integers`, C / S
        of `Bounded`. The value is rounded up to a multiple of 1/256 and is then a Fraction.
    colluders : int
        c, the largest number of survivors that tell the server their shares of the noise, 0 to
        2^20. Always 0 in one-shot sums.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    sigma: Fraction
    colluders: int = 0

    def __post_init__(self) -> None:
        exact = as_fraction(self.sigma)
        if exact is None or not 0 < exact <= MAX_SIGMA:
            raise ParameterError(
                "noise must have a sigma above 0 and at most 2^40 steps, not "
                f"{in_short(self.sigma)}"
            )
        # rounded up: a smaller σ would give less privacy than the caller asked for
        object.__setattr__(self, "sigma", Fraction(math.ceil(exact * STEPS), STEPS))
        check_integer("colluders", self.colluders, 0, 1 << 20)
        object.__setattr__(self, "colluders", int(self.colluders))

    @property
    def scaled(self) -> int:
        """256 σ, as in the parameters' bytes and in the sampler."""
        return int(self.sigma * STEPS)

    def bound(self, summands: int) -> int:
        """Return a bound on a sum of k such noises, ⌈10 σ √k⌉; see `tail`."""
        return tail(self.scaled, summands)

    def canonical(self) -> bytes:
        """Return the bytes of the noise in the parameters of a round."""
        return _CANONICAL.pack(_GAUSSIAN, self.scaled, self.colluders)

    @classmethod
    def from_canonical(cls, data: bytes) -> Self:
        """Return the noise of `canonical` bytes.

        Raises
        ------
        ParameterError
            The bytes are of no noise that this release knows.
        """
        if len(data) != _CANONICAL.size or data[0] != _GAUSSIAN:
            raise ParameterError(
                f"the noise {in_short(data)} is of an unknown kind; run a release of secagg "
                "that knows this kind"
            )
        _, scaled, colluders = _CANONICAL.unpack(data)
        return cls(Fraction(scaled, STEPS), colluders)


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
        check_integer("256 sigma", sigma, STEPS, MAX_SIGMA * STEPS)
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
