"""Batches of Paillier ciphertexts, and the group of the ciphertexts (Paillier 1999).

The ciphertext of a message m is E(m, r) = (1 + n)^m · r^n mod n², with random r. The product of
two ciphertexts encrypts the sum of their messages. The k-th power of a ciphertext encrypts k
times the message. Messages are integers with |m| < n / 2; a larger message would wrap. So every
batch has a bound of the messages, and operations that could exceed n / 2 raise an error.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from secagg._check import as_bytes, check_integer, check_kind
from secagg._secrets import without_frames
from secagg._threads import in_slices
from secagg.encoding import Entropy
from secagg.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.paillier.gmp import as_int, checked_ints, gmpy2
from secagg.paillier.modular import Batch, Modulus
from secagg.paillier.noise import Noise
from secagg.paillier.operators import Operators, checked_factor

PHASE = "paillier"


def remote(check: str, message: str) -> RemoteProtocolError:
    """Return the error for invalid bytes or ciphertexts of another party."""
    return RemoteProtocolError(message, sender=None, phase=PHASE, check=check)


def signed(residue: int, n: int) -> int:
    """Return the message m, |m| < n / 2, that a residue modulo n stands for."""
    return int(residue - n if 2 * residue > n else residue)


class CiphertextGroup:
    """Group Z*_{n²} of a public key, with the operations that need no secret.

    Attributes
    ----------
    n, bits : int
        Modulus of the key, and the length of n in bits.
    key_id : bytes
        SHA-256 of the public key, which identifies the key in every header.
    modulus : Modulus
        n², for arithmetic with batches.
    """

    def __init__(self, n: int, key_id: bytes, modulus: Modulus, noise: Noise) -> None:
        self.n = int(n)
        self.bits = self.n.bit_length()
        self.key_id = key_id
        self.modulus = modulus
        self._noise = noise

    @without_frames
    def encrypt(self, messages: Iterable[int], entropy: Entropy = os.urandom) -> Ciphertexts:
        """Return ciphertexts of integers m, |m| < n / 2, each with fresh noise.

        A single number is a list, too: ``encrypt([5])``.

        Raises
        ------
        ParameterError
            `messages` is no iterable in an order, a message is not an int, or |m| is too large.
        """
        numbers = checked_ints("message", messages, "; pass floats to encrypt_vector")
        for position, number in enumerate(numbers):
            if abs(2 * number) >= self.n:
                raise ParameterError(
                    f"message {position} has {number.bit_length()} bits; its absolute "
                    f"value must be below n / 2, of {self.bits} bits: take a larger key"
                )
        n, modulus = gmpy2.mpz(self.n), self.modulus
        made = self._blinded(
            lambda rows: modulus.pack((1 + m * n) % modulus.value for m in numbers[rows]),
            len(numbers),
            entropy,
        )
        return replace(made, largest=max(map(abs, numbers), default=0), private=True)

    def rerandomise(
        self, ciphertexts: Ciphertexts, entropy: Entropy = os.urandom
    ) -> Ciphertexts:
        """Return new ciphertexts of the same messages, unlinkable without the private key.

        Raises
        ------
        ParameterError
            The ciphertexts are under another key.
        """
        self.check_own(ciphertexts)
        batch = ciphertexts.batch
        made = self._blinded(lambda rows: batch[rows], len(batch), entropy)
        return replace(made, largest=ciphertexts.largest, private=ciphertexts.private)

    def check_own(self, ciphertexts: Ciphertexts) -> None:
        """Raise `ParameterError` for ciphertexts under another key."""
        kind = "Ciphertexts: a vector's .ciphertexts, or public_key.encrypt([5]) for a 5"
        check_kind("ciphertexts", ciphertexts, Ciphertexts, kind)
        theirs, mine = (group.key_id.hex()[:8] for group in (ciphertexts.group, self))
        if ciphertexts.group.key_id != self.key_id:
            raise ParameterError(f"the ciphertexts are under the key {theirs}, not {mine}")

    def _blinded(
        self, batch: Callable[[slice], Batch], count: int, entropy: Entropy
    ) -> Ciphertexts:
        """Return `count` ciphertexts times fresh noise; `batch` returns the rows of a slice."""
        modulus = self.modulus
        # drawn before threads start: they would change the order of draws from run to run
        seeds = self._noise.draw(count, entropy)
        out = np.empty((count, modulus.limbs), dtype=np.uint64)

        def part(rows: slice) -> None:
            out[rows] = modulus.multiply(batch(rows), self._noise.residues(seeds[rows]))

        in_slices(part, count)
        return Ciphertexts(self, out, fresh=True)

    def load_ints(self, values: Sequence[int], largest: int | None = None) -> Ciphertexts:
        """Validate ciphertexts of another implementation, such as phe, given as integers.

        Parameters
        ----------
        values : sequence of int
            Ciphertexts, each in (0, n²).
        largest : int, optional
            The largest absolute value that a message may have, 0 to n / 2, by agreement with
            the sender: ciphertexts do not show messages. None: n / 2, so that a sum is an
            error.

        Raises
        ------
        ParameterError
            `values` is no list of ints, or `largest` is out of range.
        RemoteProtocolError
            Check "ciphertext": a ciphertext lies outside (0, n²) or has a factor in common
            with n.
        """
        numbers = checked_ints("ciphertext", values)
        for position, number in enumerate(numbers):
            if not 0 < number < self.modulus.value:
                raise remote("ciphertext", f"ciphertext {position} is outside (0, n²)")
        return self._checked(self.modulus.pack(numbers), largest)

    def load(self, data: bytes, count: int, largest: int | None = None) -> Ciphertexts:
        """Decode `count` ciphertexts as `Ciphertexts.to_bytes` wrote them.

        See `load_ints` for `largest`.

        Raises
        ------
        ParameterError
            `count` is no int of at least 0, or `largest` is out of range.
        RemoteProtocolError
            Check "length": `data` has a wrong length. Check "ciphertext": see `load_ints`.
        """
        data = as_bytes(data)
        check_integer("count", count, 0, 1 << 63)
        size = count * self.modulus.width
        if len(data) != size:
            raise remote("length", f"{len(data)} bytes; {count} ciphertexts take {size}")
        return self._checked(self.modulus.unwrap(data), largest)

    def _checked(self, batch: Batch, largest: int | None) -> Ciphertexts:
        """Return the rows as ciphertexts if all are in Z*_{n²}; others could reveal the key."""
        if largest is not None:
            stated = as_int(largest)  # of gmpy2, too
            check_integer("largest", largest if stated is None else stated, 0, self.n // 2)
            largest = stated
        highest = np.uint64(self.modulus.value >> 64 * (self.modulus.limbs - 1))
        for row in np.flatnonzero((batch[:, -1] >= highest) | ~batch.any(axis=1)):
            if not 0 < self.modulus.unpack(batch[row : row + 1])[0] < self.modulus.value:
                raise remote("ciphertext", f"ciphertext {row} is outside (0, n²)")
        # one gcd for the whole batch; the slow search for the culprit runs for bad input only
        if gmpy2.gcd(self.modulus.product(batch), self.n) != 1:
            values = enumerate(self.modulus.unpack(batch))
            bad = next(row for row, value in values if gmpy2.gcd(value, self.n) != 1)
            raise remote("ciphertext", f"ciphertext {bad} has a factor in common with n")
        return Ciphertexts(self, batch, fresh=True, largest=largest)


@dataclass(frozen=True, eq=False)
class Ciphertexts(Operators):
    """Batch of ciphertexts under one key, made with the methods of `CiphertextGroup`.

    Parameters
    ----------
    group : CiphertextGroup
        Group of the public key.
    batch : uint64 array, shape (count, limbs)
        Ciphertexts in [0, n²), a ciphertext in each row; see `Modulus`.
    fresh : bool
        True for new and received ciphertexts. Computed ciphertexts, such as sums, reveal the
        computation, so they are blinded again before they are sent.
    largest : int or None
        Bound of the messages' absolute values, or None, where n / 2 is the only one known. The
        bytes do not have it.
    private : bool
        True if `largest` comes from messages that were encrypted here. A pickle would reveal
        it, so pickling raises `LocalProtocolError`. Copies have all.
    """

    group: CiphertextGroup
    batch: Batch
    fresh: bool
    largest: int | None = field(default=None, repr=False)
    private: bool = field(default=False, repr=False)

    def __copy__(self) -> Self:
        return replace(self)

    def __deepcopy__(self, memo: object) -> Self:
        return replace(self, batch=self.batch.copy())

    def __getstate__(self) -> dict[str, object]:
        if self.private:
            raise LocalProtocolError(
                "a pickle of these Ciphertexts would show the bound of their messages; send "
                "to_bytes(), and load them with largest=…, a bound that may be known"
            )
        return self.__dict__

    def __len__(self) -> int:
        return len(self.batch)

    def __repr__(self) -> str:
        return f"Ciphertexts({len(self)} under {self.group.key_id.hex()[:8]})"

    def __add__(self, other: Ciphertexts) -> Self:
        """Add the messages pairwise.

        Raises
        ------
        ParameterError
            Key or length differ, or a sum could exceed n / 2.
        """
        self._check_alike(other)
        largest = self._checked(self._bound + other._bound)
        batch = self.group.modulus.multiply(self.batch, other.batch)
        return self._derived(batch, largest, private=self.private or other.private)

    def __neg__(self) -> Self:
        """Return ciphertexts of the negated messages."""
        modulus = self.group.modulus
        inverses = (gmpy2.invert(c, modulus.value) for c in modulus.unpack(self.batch))
        return self._derived(modulus.pack(inverses), self.largest, private=self.private)

    def __sub__(self, other: Ciphertexts) -> Self:
        """Subtract the messages pairwise; see `__add__` for the errors."""
        self._check_alike(other)
        return self + -other

    def __mul__(self, factor: int) -> Self:
        """Multiply every message by an int.

        Raises
        ------
        ParameterError
            The factor is not an int, or a product could exceed n / 2.
        """
        number = checked_factor(factor)
        if 2 * abs(number) >= self.group.n:
            raise ParameterError(
                f"the factor has {number.bit_length()} bits; its absolute value must be below "
                f"n / 2, of {self.group.bits - 1} bits: take a smaller factor or a larger key"
            )
        largest = self._checked(self._bound * abs(number))
        base = -self if number < 0 else self
        batch = self.group.modulus.power(base.batch, abs(number))
        return self._derived(batch, largest, private=self.private)

    __rmul__ = __mul__

    @property
    def _bound(self) -> int:
        return self.group.n // 2 if self.largest is None else self.largest

    def _checked(self, largest: int) -> int:
        """Return a result's bound; raise `ParameterError` if the messages could wrap."""
        if 2 * largest >= self.group.n:
            raise ParameterError(
                f"the result could wrap beyond n / 2, of {self.group.bits - 1} bits; state the "
                "largest message of received ciphertexts by largest=… of load or load_ints, "
                "take smaller factors and fewer summands, or a larger key"
            )
        return largest

    def to_ints(self, entropy: Entropy = os.urandom) -> list[int]:
        """Return the ciphertexts as integers in (0, n²), blinded again like in `to_bytes`."""
        return [int(c) for c in self.group.modulus.unpack(self._shown(entropy).batch)]

    def to_bytes(self, entropy: Entropy = os.urandom) -> bytes:
        """Return the bytes, of fixed width; computed ciphertexts are blinded again first."""
        return self.group.modulus.wrap(self._shown(entropy).batch)

    def digest(self) -> bytes:
        """Return the SHA-256 of these ciphertexts, without blinding them again."""
        return hashlib.sha256(self.group.modulus.wrap(self.batch)).digest()

    def _shown(self, entropy: Entropy) -> Ciphertexts:
        return self if self.fresh else self.group.rerandomise(self, entropy)

    def _derived(self, batch: Batch, largest: int | None, *, private: bool) -> Self:
        return replace(self, batch=batch, fresh=False, largest=largest, private=private)

    def _check_alike(self, other: Ciphertexts) -> None:
        self.group.check_own(other)
        if len(other) != len(self):
            both = f"{len(self)} and {len(other)} ciphertexts"
            raise ParameterError(f"{both} cannot be added; their numbers must be equal")
