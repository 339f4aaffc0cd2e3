"""Shape of a sum: the parameters that decide the vectors.

`Shape` has the parameters that rounds and one-shot sums share, and checks that the modulus has
room for every sum.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Literal

from secagg._check import check_flag, check_integer, check_session, is_integer
from secagg._printable import in_short
from secagg.encoding import Bounded, Encoding, Ring, Rotated, from_canonical
from secagg.errors import ParameterError
from secagg.protocol.noise import STEPS, Noise, Share
from secagg.protocol.params_bytes import MAX_ENCODING_BYTES, malformed

_WORD = 32
"""Bits of the default modulus where 32 bits suffice: words that need no packing."""
Security = Literal["semi-honest", "active"]


class Shape:
    """Base of `RoundParams` and `OneShotParams`, dataclasses with these fields.

    Attributes
    ----------
    n_clients, length : int
        n and d.
    encoding : FixedPoint, Integers or Bounded
    modulus_bits, modulus : int or None
    max_weight : int or None
    session : bytes
    security : "semi-honest" or "active"
    count_clipped : bool
    noise : Noise or None
    """

    n_clients: int
    length: int
    encoding: Encoding
    modulus_bits: int | None
    modulus: int | None
    max_weight: int | None
    session: bytes
    security: Security
    count_clipped: bool = False
    noise: Noise | None = None

    def _take_integers(self) -> None:
        """Convert integers of numpy to Python's, because products of numpy's would wrap."""
        for name, value in vars(self).items():
            if is_integer(value):
                object.__setattr__(self, name, int(value))

    def _check_shape(self) -> None:
        """Raise `ParameterError` unless fields are valid, and R and an int64 hold every sum."""
        check_flag("count_clipped", self.count_clipped)
        check_integer("length", self.length, 1, 1 << 31)
        check_encoding(self.encoding)
        if self.max_weight is not None:
            check_integer("max_weight", self.max_weight, 1, 1 << 53)
            if isinstance(self.encoding, Bounded):
                raise ParameterError(
                    "vectors of bounded norm have no weights; leave max_weight out, and sum "
                    "weight · vector and the weight together, under one norm"
                )
        check_session(self.session)
        if self.active and not self.session:
            raise ParameterError(
                "session is empty, but the signatures of an active round name it; pass "
                "session=b'…', a new one for every round"
            )
        if self.modulus is not None and self.modulus_bits is not None:
            raise ParameterError("give modulus_bits or modulus, not both")
        if self.modulus_bits is not None:
            check_integer("modulus_bits", self.modulus_bits, 1, 64)
        if self.rotated is not None:
            check_integer("the padded length", self.elements, 1, 1 << 31)
        weight, noise = self.max_weight or 1, self.noise_bound
        largest, needed, clipped = _range(self)
        if self.ring.modulus < needed and self.rotated is not None:
            raise ParameterError(
                f"modulus {self.ring} has no headroom: a sum of {self.n_clients} rotated "
                f"vectors with {self.encoding.max_encoded} steps"
                f"{f' and noise up to {noise}' if noise else ''} needs R ≥ {needed} to wrap "
                f"with chance 2^-10 at most; take modulus_bits={(needed - 1).bit_length()} or "
                "more, or fewer steps"
            )
        if self.ring.modulus < needed:
            raise ParameterError(
                f"modulus {self.ring} has no headroom: the sum of {self.n_clients} vectors "
                f"with elements up to {self.encoding.max_encoded}"
                f"{f' and weights up to {weight}' if self.max_weight else ''}"
                f"{f' and noise up to {noise}' if noise else ''} needs R ≥ "
                f"{needed}; {_remedy((needed - 1).bit_length())}"
            )
        if self.ring.modulus <= clipped:
            raise ParameterError(
                f"modulus {self.ring} has no headroom: {clipped} elements in all can be "
                f"clipped{f', noise up to {noise} included' if noise else ''}; take "
                f"modulus_bits={clipped.bit_length()} or more, or leave count_clipped out"
            )
        # the header of a MessagePack byte string has at most 32 bits for the length
        packed = self.ring.packed_bytes(self.elements)
        if packed >= 1 << 32:
            raise ParameterError(
                f"length {self.length} at {self.ring.bits} bits makes a message of {packed} "
                "bytes, above 2^32 - 1; split the vector over several rounds"
            )
        if largest >= 1 << 63:
            raise ParameterError(
                f"sums up to {largest} do not fit an int64; encode smaller values"
            )

    @property
    def active(self) -> bool:
        """True if `security` is "active", with signatures."""
        return self.security == "active"

    @property
    def elements(self) -> int:
        """Number of elements of a masked vector.

        `length`, and 1 each for weight and count; with `Bounded`, padded to a power of two.
        """
        if self.rotated is not None:
            return self.rotated.elements
        return self.length + (self.max_weight is not None) + bool(self.count_clipped)

    @property
    def noise_bound(self) -> int:
        """Bound on the absolute value of noise in each element of the sum; 0 without noise."""
        return 0

    @property
    def noised_survivors(self) -> int | None:
        """Smallest number of inputs for which clients share noise; None without shares."""
        return None

    @property
    def share(self) -> Share | None:
        """Noise that each client adds to each element; None if clients add none."""
        return None

    @cached_property
    def rotated(self) -> Rotated | None:
        """Encoding of this sum's vectors if `encoding` is `Bounded`, else None."""
        if not isinstance(self.encoding, Bounded):
            return None
        return self.encoding.of_round(self.session, self.length, counts=self.count_clipped)

    @cached_property
    def ring(self) -> Ring:
        """Ring Z_R, in which masked vectors are added."""
        if self.modulus is not None:
            return Ring(self.modulus)
        if self.modulus_bits is not None:
            return Ring(1 << self.modulus_bits)
        return Ring(1 << min(64, max(_WORD, smallest_bits(self))))


def smallest_bits(shape: Shape) -> int:
    """Return b of the smallest modulus 2^b with room for every sum; see `_range`.

    The modulus of `shape` has no influence. A result above 64 means that no modulus has room.
    """
    _, needed, clipped = _range(shape)
    # R = 2^b must reach `needed`, and exceed the number of clipped elements
    return max(needed - 1, clipped).bit_length()


def _range(shape: Shape) -> tuple[int, int, int]:
    """Return the largest element of a sum, the number of an element's values, and of clipped.

    There are n clients, weights up to W, encoded integers up to M and noise up to Y. The
    results are L = n · max(M · W, W) + Y and, for a signed encoding, 2 L + 1, else L + Y + 1,
    and the largest number of clipped elements with noise, 0 without a count.

    Sums of rotated vectors may wrap; see `Rotated.smallest_modulus` for the second result.
    """
    n = shape.n_clients
    if shape.rotated is not None:
        share = shape.share
        variance = Fraction(0) if share is None else Fraction(share.scaled**2, STEPS**2)
        return 0, shape.rotated.smallest_modulus(n, variance), 0
    weight, noise = shape.max_weight or 1, shape.noise_bound
    largest = n * max(shape.encoding.max_encoded * weight, weight) + noise
    values = largest + (largest if shape.encoding.signed else noise) + 1
    clipped = n * shape.length + 2 * noise if shape.count_clipped else 0
    return largest, values, clipped


def _remedy(bits: int) -> str:
    if bits > 64:
        return "no modulus is that large: lower the clip, the fractional bits or the weights"
    return f"take modulus_bits={bits} or more, or a smaller range of values (a lower clip)"


def check_encoding(encoding: object) -> None:
    """Raise `ParameterError` unless `encoding` is an instance with short canonical bytes."""
    if isinstance(encoding, type) or not isinstance(encoding, Encoding):
        raise ParameterError(
            f"encoding must be a FixedPoint or Integers, not {in_short(encoding)}"
        )
    name: object = encoding.canonical()  # of an application's class
    if not isinstance(name, bytes) or len(name) > MAX_ENCODING_BYTES:
        raise ParameterError(
            f"{type(encoding).__name__}.canonical() must return at most {MAX_ENCODING_BYTES} "
            "bytes; take a hash of longer ones"
        )
    largest: object = encoding.max_encoded
    if not isinstance(largest, int):  # products of numpy's would wrap, and find headroom
        raise ParameterError(
            f"{type(encoding).__name__}.max_encoded must be an int of Python, not a "
            f"{type(largest).__name__}; convert it with int()"
        )


def read_encoding(canonical: bytes, own: Encoding | None) -> Encoding:
    """Return the encoding of these canonical bytes: `own`, the reader's, if it is not None.

    Raise `ParameterError` if `own` is not an encoding. Raise RemoteProtocolError, "parameters",
    if `own` has other bytes, or if `own` is missing and the bytes are unknown.
    """
    if own is not None:
        check_encoding(own)
        if own.canonical() != canonical:
            why = "their encoding differs from the encoding= that was passed"
            raise malformed("parameters", why)
        return own
    try:
        known = from_canonical(canonical)
    except ParameterError as error:
        raise malformed("parameters", str(error)) from None
    if known is None:
        raise malformed("parameters", "their encoding is unknown; pass it as encoding=")
    return known
