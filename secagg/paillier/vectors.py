"""Vectors under homomorphic encryption: encryption, arithmetic, transport and decoding."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from secagg._check import as_bytes, check_integer, check_kind, is_integer
from secagg.encoding import Entropy, Vector
from secagg.errors import ParameterError
from secagg.paillier.ciphertexts import CiphertextGroup, Ciphertexts, remote
from secagg.paillier.packing import LANES, Packing

__all__ = ["DecryptedSum", "EncryptedVector", "decode_sum", "encrypt_vector", "load_vector"]

HEADER = struct.Struct("<4sB32s32sQQ")  # magic, version, key id, packing, added, subtracted
MAGIC = b"SAEV"
VERSION = 1


@dataclass(frozen=True, eq=False)
class EncryptedVector:
    """Vector of one client, or a sum of several, under a key.

    Made by `PublicKey.encrypt_vector`, by arithmetic, or from a peer's bytes by
    `PublicKey.load_vector`. `sum` of several works.

    Attributes
    ----------
    packing : Packing
        Layout of the elements in plaintexts.
    ciphertexts : Ciphertexts
    added, subtracted : int
        Number of clients' vectors with either sign, each counted as often as it was multiplied.
        Together at most `packing.summands`.
    clipped : int
        Clipped elements of a vector that was encrypted here; 0 for all others. It is not sent.
    """

    packing: Packing
    ciphertexts: Ciphertexts
    added: int = 1
    subtracted: int = 0
    clipped: int = 0

    __array_ufunc__: ClassVar[None] = None  # so that numpy leaves array + vector to __radd__

    def __repr__(self) -> str:
        clipped = f", {self.clipped} elements clipped" if self.clipped else ""
        return (
            f"EncryptedVector({self.packing.length} elements in {self.ciphertexts!r}, "
            f"{self.added} added, {self.subtracted} subtracted{clipped})"
        )

    @property
    def group(self) -> CiphertextGroup:
        """The public key's group."""
        return self.ciphertexts.group

    def __add__(self, other: EncryptedVector) -> Self:
        """Add a vector.

        Raises
        ------
        ParameterError
            They differ in key or packing, or the packing has no room for so many summands.
        """
        self._check_alike(other)
        return self._derived(
            self.added + other.added,
            self.subtracted + other.subtracted,
            lambda: self.ciphertexts + other.ciphertexts,
        )

    def __radd__(self, other: int) -> Self:
        """Return the vector for the 0 of `sum`; raise `ParameterError` for all else."""
        if not is_integer(other) or other != 0:
            raise ParameterError(
                f"cannot add this {type(other).__name__} to an encrypted vector; encrypt it "
                "first"
            )
        return self

    def __sub__(self, other: EncryptedVector) -> Self:
        """Subtract a vector, which uses as much room as adding it; see `__add__`."""
        self._check_alike(other)
        return self._derived(
            self.added + other.subtracted,
            self.subtracted + other.added,
            lambda: self.ciphertexts - other.ciphertexts,
        )

    def __mul__(self, factor: int) -> Self:
        """Multiply by a public integer, which uses as much room as adding so often.

        Raises
        ------
        ParameterError
            The factor is 0 or no int, or the packing has no room for so many summands.
        """
        if not is_integer(factor) or factor == 0:
            shown = "0" if is_integer(factor) else f"a {type(factor).__name__}"
            raise ParameterError(f"the factor must be an int and not 0, not {shown}")
        times = abs(int(factor))
        counts = (self.added * times, self.subtracted * times)
        added, subtracted = counts if factor > 0 else counts[::-1]
        return self._derived(added, subtracted, lambda: self.ciphertexts * int(factor))

    __rmul__ = __mul__

    def to_bytes(self, entropy: Entropy = os.urandom) -> bytes:
        """Return the vector as it is sent: a header and ciphertexts of fixed width.

        A computed vector is blinded again first. Only the header's counts and the messages then
        show how it was computed.
        """
        header = HEADER.pack(
            MAGIC,
            VERSION,
            self.group.key_id,
            self.packing.digest,
            self.added,
            self.subtracted,
        )
        return header + self.ciphertexts.to_bytes(entropy)

    def _derived(self, added: int, subtracted: int, compute: Callable[[], Ciphertexts]) -> Self:
        if added + subtracted > self.packing.summands:
            raise ParameterError(
                f"{added + subtracted} summands; the packing has room for "
                f"{self.packing.summands}: choose one with room for more"
            )
        return replace(
            self, ciphertexts=compute(), added=added, subtracted=subtracted, clipped=0
        )

    def _check_alike(self, other: EncryptedVector) -> None:
        check_kind("the other vector", other, EncryptedVector, "an EncryptedVector")
        if other.packing.digest != self.packing.digest:
            raise ParameterError(
                f"the vectors are packed differently: {self.packing} and {other.packing}"
            )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DecryptedSum:
    """Decrypted sum, with the integers that secret sharing gives.

    Attributes
    ----------
    sum : array, shape (d,)
        float64 for FixedPoint, int64 for Integers; weighted if the packing is.
    integers : int64 array, shape (d,)
        The exact sum of the encoded vectors.
    summands : int
        Number of vectors added, minus those subtracted.
    weight : int or None
        The sum of their weights, if the packing is weighted.
    """

    sum: NDArray[np.float64] | NDArray[np.int64]
    integers: NDArray[np.int64]
    summands: int
    weight: int | None = None

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f", weight {self.weight:,}"
        return f"<DecryptedSum: {self.summands:,} summands, {self.sum.size:,} elements{weight}>"

    @property
    def mean(self) -> NDArray[np.float64]:
        """The sum divided by the total weight or by `summands`; `ParameterError` for 0."""
        total = self.summands if self.weight is None else self.weight
        if total == 0:
            raise ParameterError("the weights add up to 0: there is no mean")
        return np.asarray(self.sum / total, dtype=np.float64)


def encrypt_vector(
    group: CiphertextGroup,
    vector: Vector,
    packing: Packing,
    weight: int | None,
    entropy: Entropy,
) -> EncryptedVector:
    """Encode, pack and encrypt; see `PublicKey.encrypt_vector`."""
    check_kind("packing", packing, Packing, "a Packing")
    integers, clipped = packing.encode(vector, weight, entropy)
    ciphertexts = group.encrypt(packing.pack(integers, group.bits), entropy)
    return EncryptedVector(packing, ciphertexts, clipped=clipped)


def load_vector(
    group: CiphertextGroup, data: bytes, packing: Packing, summands: int | None
) -> EncryptedVector:
    """Decode a peer's vector; see `PublicKey.load_vector`."""
    data = as_bytes(data)
    check_kind("packing", packing, Packing, "a Packing")
    if summands is not None:
        check_integer("summands", summands, 1, packing.summands)
    if len(data) < HEADER.size:
        raise remote("length", f"{len(data)} bytes; the header alone takes {HEADER.size}")
    magic, version, key_id, digest, added, subtracted = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise remote("version", f"not an encrypted vector of version {VERSION}")
    if key_id != group.key_id:
        raise remote(
            "key", f"encrypted under the key {key_id.hex()[:8]}, not {group.key_id.hex()[:8]}"
        )
    if digest != packing.digest:
        raise remote(
            "packing",
            f"not packed as {packing}; encoding, length, summands, max_weight and session "
            "must be those of the sender",
        )
    if not 1 <= added + subtracted <= packing.summands:
        raise remote(
            "summands",
            f"the sum of {added + subtracted} vectors; the packing has room for 1 to "
            f"{packing.summands}",
        )
    if summands is not None and (added, subtracted) != (summands, 0):
        raise remote(
            "summands",
            f"the sum of {added} vectors less {subtracted} others; it must be of {summands}",
        )
    ciphertexts = group.load(data[HEADER.size :], packing.plaintexts(group.bits))
    return EncryptedVector(packing, ciphertexts, added, subtracted)


def decode_sum(vector: EncryptedVector, plaintexts: Sequence[int]) -> DecryptedSum:
    """Return decrypted plaintexts in the caller's units.

    Raises
    ------
    RemoteProtocolError
        "slots", "summands" or "weight": not the sum of as many vectors as the header states.

    Notes
    -----
    The encrypted count detects mistakes and altered headers. An aggregator can still count one
    vector five times in both, or add its own encryptions.
    """
    packing = vector.packing
    try:
        slots = packing.unpack(plaintexts, vector.group.bits)
    except ParameterError as error:
        raise remote("slots", str(error)) from None
    integers, count = slots[: packing.length], int(slots[-1])
    above, below = vector.added * packing.max_element, vector.subtracted * packing.max_element
    beyond = np.abs(slots).max() > above + below
    if not packing.encoding.signed:
        beyond = beyond or integers.max() > above or integers.min() < -below
    if beyond:
        raise remote(
            "slots",
            f"a slot exceeds the largest sum of {vector.added + vector.subtracted} vectors",
        )
    summands = vector.added - vector.subtracted
    if count != summands:
        raise remote(
            "summands",
            f"the header states {summands} vectors, the encrypted count {count}: the header "
            "or a summand was altered",
        )
    weight = None
    if packing.max_weight is not None:
        weight = int(slots[packing.length])
        lightest = -vector.subtracted * packing.max_weight
        if not lightest <= weight <= vector.added * packing.max_weight:
            raise remote(
                "weight",
                f"the weight is impossible for {vector.added + vector.subtracted} vectors",
            )
    total, exact = packing.encoding.decode(integers.view(np.uint64), LANES)
    return DecryptedSum(
        sum=total,
        integers=exact,
        summands=summands,
        weight=weight,
    )
