"""Encrypted vectors: encryption, addition, transport as bytes, and decoding of the sum."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from secagg._check import as_bytes, check_integer, check_kind
from secagg._printable import in_short
from secagg.encoding import Entropy, Vector
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.errors import ParameterError
from secagg.paillier.ciphertexts import CiphertextGroup, Ciphertexts, remote
from secagg.paillier.operators import Operators, checked_factor
from secagg.paillier.packing import LANES, Packing

HEADER = struct.Struct("<4sB32s32sQQ")  # magic, version, key id, packing, added, subtracted
MAGIC = b"SAEV"
VERSION = 1


@dataclass(frozen=True, eq=False)
class EncryptedVector(Operators):
    """Encrypted vector of a client, or encrypted sum of several vectors.

    `PublicKey.encrypt_vector` makes a vector, and `PublicKey.load_vector` decodes a vector.
    Vectors can be added (also by Python's ``sum``), subtracted and multiplied by an int.

    Attributes
    ----------
    packing : Packing
        Layout of the elements in plaintexts.
    ciphertexts : Ciphertexts
    added, subtracted : int
        Number of clients' vectors that were added and subtracted. A vector multiplied by k
        counts |k| times. Together they are at most ``packing.summands``.
    clipped : int
        Number of clipped elements in a vector that was encrypted here; 0 for sums and decoded
        vectors. The bytes to send do not have it; copies and pickles do.
    """

    packing: Packing
    ciphertexts: Ciphertexts
    added: int = 1
    subtracted: int = 0
    clipped: int = 0

    def __repr__(self) -> str:
        clipped = f", {self.clipped} elements clipped" if self.clipped else ""
        return (
            f"EncryptedVector({self.packing.length} elements in {self.ciphertexts!r}, "
            f"{self.added} added, {self.subtracted} subtracted{clipped})"
        )

    @property
    def group(self) -> CiphertextGroup:
        """Group of the public key."""
        return self.ciphertexts.group

    def __add__(self, other: EncryptedVector) -> Self:
        """Return the encrypted sum of two vectors.

        Raises
        ------
        ParameterError
            The vectors differ in key or packing, or the sum has more than ``packing.summands``
            vectors.
        """
        self._check_alike(other)
        return self._derived(
            self.added + other.added,
            self.subtracted + other.subtracted,
            lambda: self._bounded() + other._bounded(),
        )

    def __sub__(self, other: EncryptedVector) -> Self:
        """Return the encrypted difference, with as many summands as a sum: see `__add__`."""
        self._check_alike(other)
        return self._derived(
            self.added + other.subtracted,
            self.subtracted + other.added,
            lambda: self._bounded() - other._bounded(),
        )

    def __mul__(self, factor: int) -> Self:
        """Return the encrypted multiple by a public int k, with |k| times as many summands.

        Raises
        ------
        ParameterError
            The factor is 0 or not an int, or the result has more than ``packing.summands``
            vectors.
        """
        number = checked_factor(factor)
        if number == 0:
            raise ParameterError("the factor is 0, of which no vector is left; leave it out")
        times = abs(number)
        counts = (self.added * times, self.subtracted * times)
        added, subtracted = counts if number > 0 else counts[::-1]
        return self._derived(added, subtracted, lambda: self._bounded() * number)

    __rmul__ = __mul__

    def to_bytes(self, entropy: Entropy = os.urandom) -> bytes:
        """Return the vector as bytes to send: a header and ciphertexts of fixed width.

        A sum or other result is blinded again first. Then only the numbers `added` and
        `subtracted` in the header, and the messages, show how the result was computed.
        """
        about = self.group.key_id, self.packing.digest, self.added, self.subtracted
        return HEADER.pack(MAGIC, VERSION, *about) + self.ciphertexts.to_bytes(entropy)

    def _bounded(self) -> Ciphertexts:
        """Return the ciphertexts with the bound of plaintexts that the packing gives."""
        largest = (self.added + self.subtracted) * self.packing.largest(self.group.bits)
        return replace(self.ciphertexts, largest=largest, private=False)

    def _derived(self, added: int, subtracted: int, compute: Callable[[], Ciphertexts]) -> Self:
        if added + subtracted > self.packing.summands:
            raise ParameterError(
                f"{in_short(added + subtracted)} summands; the packing has room for "
                f"{self.packing.summands}: choose one with room for more"
            )
        # computed only now, so that a rejected result costs no arithmetic
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
    """Decrypted sum of vectors; secret sharing gives the same integers.

    Attributes
    ----------
    sum : array, shape (d,)
        Sum of the vectors, or of weight · vector if the packing has weights; float64 for
        FixedPoint, int64 for Integers.
    integers : int64 array, shape (d,)
        Exact sum of the encoded vectors.
    summands : int
        Number of vectors added minus the number subtracted.
    weight : int or None
        Sum of the weights; None if the packing has none.
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
        """The sum divided by `weight`, or else by `summands`; `ParameterError` if that is 0."""
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
    made = group.encrypt(packing.pack(integers, group.bits), entropy)
    lost = is_lost(vector, packing.encoding)
    warn_of_losses(packing.encoding, clipped, vector.size, lost, stacklevel=5)
    # the bound of all vectors, which may be known
    ciphertexts = replace(made, largest=packing.largest(group.bits), private=False)
    return EncryptedVector(packing, ciphertexts, clipped=clipped)


def checked_sum(vector: EncryptedVector | Literal[0]) -> EncryptedVector:
    """Return a result of Python's ``sum``; raise `ParameterError` for the 0 of no vectors."""
    check_kind("vector", vector, EncryptedVector, "an EncryptedVector, or a sum of some")
    return cast("EncryptedVector", vector)


def load_vector(
    group: CiphertextGroup, data: bytes, packing: Packing, summands: int | None
) -> EncryptedVector:
    """Decode and validate another party's vector; see `PublicKey.load_vector`."""
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
        theirs, mine = key_id.hex()[:8], group.key_id.hex()[:8]
        raise remote("key", f"encrypted under the key {theirs}, not {mine}")
    if digest != packing.digest:
        raise remote(
            "packing",
            f"not packed as {packing}; encoding, length, summands, max_weight and session "
            "must be those of the sender",
        )
    if not 1 <= added + subtracted <= packing.summands:
        room = f"the packing has room for 1 to {packing.summands}"
        raise remote("summands", f"the sum of {added + subtracted} vectors; {room}")
    if summands is not None and (added, subtracted) != (summands, 0):
        remedy = f": pass summands={added} to load_vector, or None for any number"
        if subtracted:
            remedy = ", none subtracted: decrypt it where it was computed"
        found = f"the sum of {added} vectors less {subtracted} others"
        raise remote("summands", f"{found}; it must be of {summands}{remedy}")
    ciphertexts = group.load(data[HEADER.size :], packing.plaintexts(group.bits))
    return EncryptedVector(packing, ciphertexts, added, subtracted)


def decode_sum(vector: EncryptedVector, plaintexts: Sequence[int]) -> DecryptedSum:
    """Unpack the decrypted plaintexts of a vector and decode them as a sum.

    See `PrivateKey.decrypt_vector` for the errors. The encrypted count detects mistakes and
    altered headers. An aggregator can still add a vector five times, which changes both counts
    alike, or add encryptions of the aggregator's own.
    """
    packing = vector.packing
    try:
        slots = packing.unpack(plaintexts, vector.group.bits)
    except ParameterError as error:
        raise remote("sum", str(error)) from None
    integers, count = slots[: packing.length], int(slots[-1])
    above, below = vector.added * packing.max_element, vector.subtracted * packing.max_element
    # tighter than the packing's own check, which leaves room for `summands` vectors
    beyond = np.abs(slots).max() > above + below
    if not packing.encoding.signed:
        beyond = beyond or integers.max() > above or integers.min() < -below
    vectors = f"{vector.added + vector.subtracted} vectors"
    if beyond:
        raise remote("sum", f"a slot exceeds the largest sum of {vectors}")
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
        # subtracted vectors alone can make the weight of a sum negative
        lightest = -vector.subtracted * packing.max_weight
        if not lightest <= weight <= vector.added * packing.max_weight:
            raise remote("weight", f"the weight is impossible for {vectors}")
    total, exact = packing.encoding.decode(integers.view(np.uint64), LANES)
    return DecryptedSum(sum=total, integers=exact, summands=summands, weight=weight)
