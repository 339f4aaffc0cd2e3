"""Trust models of homomorphic encryption, and the parties of each model.

The server adds ciphertexts and cannot read any. A party with the private key can read every
single vector as well as the sum. The trust models differ in the party that has the key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

from fedmf.aggregate.aggregation import Stopwatch
from fedmf.aggregate.vectors import Table
from secagg import Packing
from secagg.paillier import DecryptedSum, EncryptedVector, PrivateKey, PublicKey
from secagg.threshold import KeyShare, ThresholdKey

Trust = Literal["shared client key", "key holder", "threshold"]

WARNINGS: Mapping[Trust, str] = MappingProxyType(
    {
        "shared client key": (
            "all users hold the same private key: one user who colludes with the server, or a "
            "server that poses as a user, reads every user's vector"
        ),
        "key holder": (
            "the key holder is given sums only as long as the server follows the protocol: a "
            "server that does not can have one user's vector read as if it were the sum, and "
            "if the two collude, they read every user's"
        ),
        "threshold": (
            "no single party can decrypt as long as the server follows the protocol: one that "
            "does not can have one user's vector read as if it were the sum; as many trustees "
            "as it takes, if they collude with the server, read every user's vector, and so "
            "does a dealer that kept the key"
        ),
    }
)
"""The assumption behind each trust model, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Decryption:
    """Decrypted sum, with the seconds of each user, of the server and of the key holders."""

    total: DecryptedSum
    user_seconds: float = 0.0
    server_seconds: float = 0.0
    key_holder_seconds: float = 0.0


class Parties(ABC):
    """Keys of the parties of a trust model: users encrypt, one or more parties decrypt."""

    users_decrypt: ClassVar[bool] = False
    """True if the encrypted sum goes to the users."""

    @property
    @abstractmethod
    def public_key(self) -> PublicKey:
        """Key that the server checks and adds with."""

    def encrypt(self, vector: Table, packing: Packing) -> EncryptedVector:
        """Encrypt one user's vector; raises secagg.ParameterError."""
        return self.public_key.encrypt_vector(vector, packing)

    @abstractmethod
    def decrypt(self, data: bytes, packing: Packing, summands: int) -> Decryption:
        """Decrypt `data`, the server's encrypted sum of `summands` vectors."""


@dataclass(frozen=True)
class KeyHolder(Parties):
    """Key holder: a separate party with the private key, which receives sums only."""

    private_key: PrivateKey

    @property
    def public_key(self) -> PublicKey:
        """Key that the server checks and adds with; see `Parties`."""
        return self.private_key.public_key

    def decrypt(self, data: bytes, packing: Packing, summands: int) -> Decryption:
        """Decrypt the sum and time the decryption; see `Parties`."""
        watch = Stopwatch()
        with watch.running():
            vector = self.public_key.load_vector(data, packing, summands)
            total = self.private_key.decrypt_vector(vector)
        return Decryption(total=total, key_holder_seconds=watch.seconds)


@dataclass(frozen=True)
class SharedClientKey(KeyHolder):
    """Users with the private key, and a server without the key (Chai et al. 2020, §4; Basu).

    Users encrypt with the private key, which is faster than with the public key, and each user
    decrypts the sum. A simulation decrypts once and reports that time for every user.
    """

    users_decrypt: ClassVar[bool] = True

    def encrypt(self, vector: Table, packing: Packing) -> EncryptedVector:
        """Encrypt one user's vector with the private key; see `Parties`."""
        return self.private_key.encrypt_vector(vector, packing)

    def decrypt(self, data: bytes, packing: Packing, summands: int) -> Decryption:
        """Decrypt the sum and time the decryption; see `Parties`."""
        read = super().decrypt(data, packing, summands)
        return Decryption(total=read.total, user_seconds=read.key_holder_seconds)


@dataclass(frozen=True)
class Trustees(Parties):
    """Trustees with shares of the private key; `threshold` trustees decrypt together.

    The trustees cannot check that the server's message is a sum of vectors; see `KeyShare`.
    """

    shares: tuple[KeyShare, ...]

    @property
    def key(self) -> ThresholdKey:
        """Public part of the threshold key."""
        return self.shares[0].key

    @property
    def public_key(self) -> PublicKey:
        """Key that the server checks and adds with; see `Parties`."""
        return self.key.public_key

    def decrypt(self, data: bytes, packing: Packing, summands: int) -> Decryption:
        """Decrypt the sum and time the decryption; see `Parties`."""
        trustees, server = Stopwatch(), Stopwatch()
        answers = []
        for share in self.shares[: self.key.threshold]:
            with trustees.running():
                asked = share.key.public_key.load_vector(data, packing, summands)
                answers.append(share.decrypt_partially(asked.ciphertexts).to_bytes())
        with server.running():
            encrypted = self.public_key.load_vector(data, packing, summands)
            partials = [self.key.load_partial(answer) for answer in answers]
            total = self.key.combine_vector(encrypted, partials)
        return Decryption(
            total=total, server_seconds=server.seconds, key_holder_seconds=trustees.seconds
        )
