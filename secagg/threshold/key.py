"""Public side of a threshold key, which verifies and combines partial decryptions."""

from __future__ import annotations

import hashlib
import math
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg.errors import ParameterError, TooFewSurvivors
from secagg.paillier import Ciphertexts, DecryptedSum, EncryptedVector, PublicKey
from secagg.paillier.gmp import gmpy2
from secagg.paillier.vectors import checked_sum, decode_sum
from secagg.threshold.combination import combine_parts
from secagg.threshold.partials import PHASE, PartialDecryption, decode_partial, violation
from secagg.threshold.proofs import Statement, proof_bytes

MAX_TRUSTEES = 100
"""Largest l: Δ = 100! lengthens every exponent by 525 bits, and l trustees send l answers."""
HEADER = struct.Struct("<4sBBBH")  # magic, version, threshold, trustees, bytes of the key
MAGIC = b"SATK"
VERSION = 1
ID_BYTES = 32


@dataclass(frozen=True, eq=False)
class ThresholdKey:
    """Public side of a threshold key, made by `deal` and given to all parties.

    Parameters
    ----------
    public_key : PublicKey
        Key that clients encrypt with.
    threshold : int
        t, the number of trustees that can decrypt together, 1 ≤ t ≤ l.
    base : int
        v, a generator of the squares of Z*_{n²}.
    images : tuple of int
        v_i = v^(Δ s_i) mod n² for the share s_i of every trustee i = 1 … l, l ≤ 100. The images
        verify the trustees' proofs.

    Raises
    ------
    ParameterError
        A value is of the wrong type or out of range, v or a v_i is not in Z*_{n²}, or n has a
        factor of at most l.
    """

    public_key: PublicKey
    threshold: int
    base: int
    images: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kind("public_key", self.public_key, PublicKey, "a PublicKey")
        check_integer("trustees", self.trustees, 1, MAX_TRUSTEES)
        check_integer("threshold", self.threshold, 1, self.trustees)
        if gmpy2.gcd(self.public_key.n, self.delta) != 1:  # combining divides by Δ modulo n
            raise ParameterError(
                f"n has a factor of at most {self.trustees}, the number of trustees; it must "
                "be the product of two large primes"
            )
        square = self.public_key.modulus.value
        for value in (self.base, *self.images):
            if not 1 < value < square or gmpy2.gcd(value, square) != 1:
                raise ParameterError("a verification value is not in Z*_{n²}")

    def __eq__(self, other: object) -> bool:
        """Return True for the same key id; every dealing gives another id."""
        return self.key_id == other.key_id if isinstance(other, ThresholdKey) else False

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __repr__(self) -> str:
        return (
            f"ThresholdKey({self.threshold} of {self.trustees}, {self.public_key.bits} bits, "
            f"{self.key_id.hex()[:8]})"
        )

    @property
    def trustees(self) -> int:
        """l, the number of trustees."""
        return len(self.images)

    @property
    def delta(self) -> int:
        """Δ = l!, the factor that makes all Lagrange coefficients integers."""
        return math.factorial(self.trustees)

    @property
    def exponent_bits(self) -> int:
        """Largest length of an exponent Δ s_i in bits, for s_i < n²."""
        return self.delta.bit_length() + 2 * self.public_key.bits

    @cached_property
    def key_id(self) -> bytes:
        """SHA-256 of the key, the key's id in shares and partial decryptions."""
        return hashlib.sha256(self._encoded()).digest()

    def statement(self, index: int, inputs: Ciphertexts, outputs: Ciphertexts) -> Statement:
        """Return the statement that `outputs` are the parts of `inputs` by trustee `index`."""
        modulus = self.public_key.modulus
        context = self.key_id + bytes([index])
        image = self.images[index - 1]
        return Statement(modulus, self.base, image, inputs.batch, outputs.batch, context)

    def check_ciphertexts(self, ciphertexts: Ciphertexts) -> None:
        """Raise `ParameterError` for ciphertexts under another key."""
        self.public_key.check_own(ciphertexts)

    def load_partial(self, data: bytes) -> PartialDecryption:
        """Decode the output of `PartialDecryption.to_bytes`; `combine` verifies the proof.

        Raises
        ------
        RemoteProtocolError
            The bytes are no partial decryption under this key. The failed check is "length",
            "version", "key", "trustee" or "values".
        """
        size = proof_bytes(self.exponent_bits)
        return decode_partial(as_bytes(data), self.public_key, self.key_id, self.trustees, size)

    def combine(
        self, ciphertexts: Ciphertexts, partials: Iterable[PartialDecryption]
    ) -> list[int]:
        """Return the messages of a batch, as signed integers (Damgård and Jurik 2001, §4.1).

        Parameters
        ----------
        ciphertexts : Ciphertexts
            The batch that the trustees decrypted, with the same bytes. Each `to_bytes()` of a
            sum gives other bytes, so send one output to all trustees, and load this output
            here.
        partials : iterable of PartialDecryption
            Partial decryptions of at least t different trustees; all are verified.

        Raises
        ------
        ParameterError
            The ciphertexts are under another key.
        RemoteProtocolError
            Check "key", "duplicate", "ciphertexts" or "proof": the partial decryption of the
            error's `sender` is invalid. Check "dealing": all are valid, but the dealer's shares
            are not shares of the same key.
        TooFewSurvivors
            Fewer than t partial decryptions were given.
        """
        self.check_ciphertexts(ciphertexts)
        check_kind("partials", partials, Iterable, "several, such as a list")
        partials = list(partials)
        self._check_partials(ciphertexts, partials)
        self._check_proofs(ciphertexts, partials)
        # any t valid parts give the same messages, so further parts would only cost time
        parts = [(partial.index, partial.values) for partial in partials[: self.threshold]]
        return combine_parts(parts, self.delta)

    def combine_vector(
        self, vector: EncryptedVector | Literal[0], partials: Iterable[PartialDecryption]
    ) -> DecryptedSum:
        """Return the decrypted sum in a vector; see `combine` for `partials` and all errors.

        Raises
        ------
        RemoteProtocolError
            Also check "sum", "summands" or "weight": the decrypted values are not the sum of
            as many vectors as the header states.
        """
        total = checked_sum(vector)
        return decode_sum(total, self.combine(total.ciphertexts, partials))

    def _check_partials(
        self, ciphertexts: Ciphertexts, partials: Sequence[PartialDecryption]
    ) -> None:
        for partial in partials:
            check_kind("each of partials", partial, PartialDecryption, "a PartialDecryption")
            if partial.key_id != self.key_id:
                raise violation(partial.index, "key", "made with a share of another key")
        for index, times in Counter(partial.index for partial in partials).items():
            if times > 1:
                raise violation(index, "duplicate", f"given {times} times; give it once")
        # before the proofs: a proof for other ciphertexts fails, and blames an honest trustee
        digest = ciphertexts.digest()
        for partial in partials:
            if partial.digest != digest or len(partial.values) != len(ciphertexts):
                remedy = "send the same to_bytes() to every trustee and combine its parts"
                message = f"made of other ciphertexts; {remedy}"
                raise violation(partial.index, "ciphertexts", message)
        count, needed = len(partials), self.threshold
        if count < needed:
            message = f"{count} partial decryptions are too few; {needed} are needed"
            raise TooFewSurvivors(message, phase=PHASE, survivors=count, needed=needed)

    def _check_proofs(
        self, ciphertexts: Ciphertexts, partials: Sequence[PartialDecryption]
    ) -> None:
        # all proofs before the error, which can then name every bad trustee at once
        bad = [
            p.index
            for p in partials
            if not self.statement(p.index, ciphertexts, p.values).holds(p.proof)
        ]
        if bad:
            named, left = ", ".join(map("trustee {}".format, bad)), len(partials) - len(bad)
            needed = f"{left} valid parts are left and {self.threshold} are needed"
            message = f"no valid proof from {named}; without these, {needed}"
            raise violation(bad[0], "proof", message)

    def to_bytes(self) -> bytes:
        """Return the key as bytes to publish; the last 32 bytes are the key's id."""
        return self._encoded() + self.key_id

    @classmethod
    def from_bytes(cls, data: bytes, *, allow_insecure: bool = False) -> Self:
        """Decode the output of `to_bytes`; `allow_insecure` accepts keys below 2048 bits.

        Raises
        ------
        RemoteProtocolError
            Check "threshold_key": the bytes are damaged or are not a threshold key. Check
            "public_key": see `PublicKey.from_bytes`.
        """
        data = as_bytes(data, "a key")
        try:
            if len(data) < HEADER.size + ID_BYTES:
                raise ParameterError(f"{len(data)} bytes are not a key")
            magic, version, threshold, trustees, size = HEADER.unpack_from(data)
            if magic != MAGIC or version != VERSION:
                raise ParameterError(f"not a key of this kind and version {VERSION}")
            if hashlib.sha256(data[:-ID_BYTES]).digest() != data[-ID_BYTES:]:
                raise ParameterError("damaged: its digest differs from the id at its end")
            body = data[HEADER.size : -ID_BYTES]
            public_key = PublicKey.from_bytes(body[:size], allow_insecure=allow_insecure)
            modulus = public_key.modulus
            if len(body) != size + (1 + trustees) * modulus.width:
                raise ParameterError(f"{len(data)} bytes do not fit its header")
            base, *images = (int(x) for x in modulus.unpack(modulus.unwrap(body[size:])))
            return cls(public_key, threshold, base, tuple(images))
        except ParameterError as error:
            raise violation(None, "threshold_key", str(error)) from None

    def _encoded(self) -> bytes:
        public = self.public_key.to_bytes()
        head = HEADER.pack(MAGIC, VERSION, self.threshold, self.trustees, len(public))
        modulus = self.public_key.modulus
        return head + public + modulus.wrap(modulus.pack([self.base, *self.images]))
