"""HPKE suites that seal seeds to a helper (RFC 9180, base mode, single shot).

``"hybrid"`` is X25519 with ML-KEM-768 (KEM 0x647a), ``"x25519"`` is X25519 alone. Both have
HKDF-SHA256 and AES-128-GCM. `cryptography` takes no associated data and no entropy. So the info
has everything that a box must be bound to, and boxes differ from run to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from secagg._secrets import Confined, without_frames
from secagg.errors import MissingExtra, ParameterError
from secagg.protocol.keys import is_usable
from secagg.protocol.suites import SuiteName

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import hpke

    PublicKey = X25519PublicKey | hpke.MLKEM768X25519PublicKey
    PrivateKey = X25519PrivateKey | hpke.MLKEM768X25519PrivateKey

KEY_BYTES = {"hybrid": 1184 + 32, "x25519": 32}
"""Bytes of a public key; a key of the hybrid suite is ML-KEM ‖ X25519."""
SECRET_BYTES = {"hybrid": 64 + 32, "x25519": 32}
"""Bytes of a private key: ML-KEM's seed ‖ X25519's scalar, or the scalar."""
OVERHEAD = {"hybrid": 1088 + 32 + 16, "x25519": 32 + 16}
"""Bytes of a box beyond the content: the encapsulated key and the tag."""
_NEEDED = {"hybrid": "48, with ML-KEM,", "x25519": "47"}


def suite_of(key: object) -> SuiteName:
    """Return the suite of a public key of this length, without other checks."""
    short = isinstance(key, bytes) and len(key) == KEY_BYTES["x25519"]
    return "x25519" if short else "hybrid"


def check_keys(suite: SuiteName, keys: Sequence[bytes]) -> None:
    """Raise `ParameterError` unless the helpers' public keys are valid, and all differ."""
    for number, key in enumerate(keys, 1):
        try:
            load_key(suite, key)
        except ParameterError as error:
            raise ParameterError(f"helper {number} has {error}") from None
    # a key at two places would get the seeds of both places
    lattices = [key[:-32] for key in keys] if suite == "hybrid" else []
    for parts in (lattices, [key[-32:] for key in keys]):
        if len(set(parts)) != len(parts):
            raise ParameterError(
                "two helpers have a key in common, so that one could open the boxes of both; "
                "give every helper a journal of its own"
            )


class BoxKey(Confined):
    """Private key of a helper, which opens the helper's boxes. A key cannot be pickled.

    Parameters
    ----------
    suite : "hybrid" or "x25519"
    secret : bytes
        Private key, of `SECRET_BYTES`.

    Attributes
    ----------
    public : bytes
        Public key for the parameters, of `KEY_BYTES`.

    Raises
    ------
    MissingExtra
        The installed cryptography lacks the suite.
    """

    __slots__ = ("_private", "_suite", "public")
    _remedy = "open the journal that it is in with HelperJournal.open"

    @without_frames
    def __init__(self, suite: SuiteName, secret: bytes) -> None:
        self._suite = _suite(suite)
        scalar = X25519PrivateKey.from_private_bytes(secret[-32:])
        self.public = scalar.public_key().public_bytes_raw()
        self._private: PrivateKey = scalar
        if suite == "hybrid":
            from cryptography.hazmat.primitives import hpke
            from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

            lattice = MLKEM768PrivateKey.from_seed_bytes(secret[:-32])
            self.public = lattice.public_key().public_bytes_raw() + self.public
            self._private = hpke.MLKEM768X25519PrivateKey(lattice, scalar)

    def __repr__(self) -> str:
        return f"BoxKey(public={self.public[-32:].hex()})"

    def open(self, box: bytes, info: bytes) -> bytes | None:
        """Return the content of a box, or None if key, info or box do not match `seal`."""
        # a bad box of one client is a rejection, never an error that stops the whole chunk
        try:
            return self._suite.decrypt(box, self._private, info)
        except (InvalidTag, ValueError):
            return None


def seal(suite: SuiteName, public: bytes, content: bytes, info: bytes) -> bytes:
    """Return a box for the owner of `public`, `OVERHEAD` bytes longer than the content."""
    return _suite(suite).encrypt(content, load_key(suite, public), info)


@lru_cache(maxsize=64)  # a client's report costs less than loading a key
def load_key(suite: SuiteName, public: bytes) -> PublicKey:
    """Return a helper's public key.

    Raises
    ------
    ParameterError
        The key has another length, is not canonical or is of low order.
    MissingExtra
        The installed cryptography lacks the suite.
    """
    if len(public) != KEY_BYTES[suite]:
        raise ParameterError(
            f"an HPKE key of {len(public)} bytes; those of suite {suite!r} have "
            f"{KEY_BYTES[suite]}"
        )
    if not is_usable(public[-32:]):
        raise ParameterError(
            f"the X25519 key {public[-32:].hex()} is not canonical or of low order; take the "
            "one of HelperJournal.public"
        )
    curve = X25519PublicKey.from_public_bytes(public[-32:])
    if suite == "x25519":
        return curve
    _suite(suite)
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey

    try:
        lattice = MLKEM768PublicKey.from_public_bytes(public[:-32])
    except ValueError:
        raise ParameterError(
            "the ML-KEM-768 part of an HPKE key is not canonical; take the key of "
            "HelperJournal.public"
        ) from None
    return hpke.MLKEM768X25519PublicKey(lattice, curve)


@cache
def _suite(name: SuiteName) -> hpke.Suite:
    """Return the suite; raise `MissingExtra` if the installed cryptography lacks the suite."""
    try:
        from cryptography.hazmat.primitives import hpke
        from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

        kem = hpke.KEM.MLKEM768_X25519 if name == "hybrid" else hpke.KEM.X25519
        # the class exists without the algorithm: only use of it shows that OpenSSL lacks ML-KEM
        if name == "hybrid":
            MLKEM768PrivateKey.from_seed_bytes(bytes(64))
        return hpke.Suite(kem, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
    except (ImportError, AttributeError, UnsupportedAlgorithm):
        raise MissingExtra(
            f"suite {name!r} of a one-shot sum needs cryptography {_NEEDED[name]} or newer; "
            "install it with pip install --upgrade cryptography"
        ) from None
