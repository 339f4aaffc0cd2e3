"""ML-KEM-768 (FIPS 203), by which suite hybrid hides boxes from a later quantum computer.

A pair is for one round only, also where the sealing pair is kept (docs/protocol.md, §5.1).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cryptography.exceptions import UnsupportedAlgorithm

from secagg._secrets import Confined
from secagg.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey

SEED_BYTES = 64
"""Bytes of d and z, of which a key pair is made (FIPS 203, algorithm 16)."""
KEY_BYTES = 1184
"""Bytes of an encapsulation key."""
CIPHERTEXT_BYTES = 1088


class KemPair(Confined):
    """Key pair of ML-KEM-768, for the boxes of one round.

    Parameters
    ----------
    seed : bytes
        d and z, 64 uniform bytes.

    Attributes
    ----------
    public : bytes
        Encapsulation key e_u, 1,184 bytes.
    seed : bytes

    Raises
    ------
    ParameterError
        The installed cryptography lacks ML-KEM.
    """

    __slots__ = ("_private", "public", "seed")
    _remedy = "it is for one process"

    def __init__(self, seed: bytes) -> None:
        require()  # before the import, which a version without ML-KEM lacks
        from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

        self.seed = seed
        self._private = MLKEM768PrivateKey.from_seed_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"KemPair(public={self.public[:8].hex()}…)"

    def decapsulate(self, ciphertext: bytes) -> bytes:
        """Return the secret K of a ciphertext of 1,088 bytes.

        A wrong ciphertext gives another secret, and no error (FIPS 203, algorithm 18).
        """
        return self._private.decapsulate(ciphertext)


def is_valid(public: bytes) -> bool:
    """Return True if an encapsulation key has the right length and reduced coefficients.

    FIPS 203 §7.2 asks for that. Two keys of different bytes could otherwise be one key.
    """
    require()  # a ValueError, too
    try:
        _load(public)
    except ValueError:
        return False
    return True


def encapsulate(public: bytes) -> tuple[bytes, bytes]:
    """Return a secret K of 32 bytes and a ciphertext for the owner of a `public` key.

    The randomness is the library's, which takes none of the caller's.

    Raises
    ------
    ValueError
        The key is not valid; the message of the library may give another reason.
    """
    return _load(public).encapsulate()


@cache  # of a success alone
def require() -> None:
    """Raise `ParameterError` if the installed cryptography lacks ML-KEM."""
    try:
        from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

        MLKEM768PrivateKey.from_seed_bytes(bytes(SEED_BYTES))
    except (ImportError, UnsupportedAlgorithm):
        raise ParameterError(
            "suite is 'hybrid', which needs ML-KEM, and the installed cryptography has none: "
            "take version 48 or later with OpenSSL 3.5 or later, as the wheels on PyPI are, or "
            "suite='x25519'"
        ) from None


def _load(public: bytes) -> MLKEM768PublicKey:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey

    return MLKEM768PublicKey.from_public_bytes(public)
