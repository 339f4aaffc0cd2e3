"""Sums of encrypted vectors, as mypy --strict and pyright must accept them; never run.

Python's ``sum`` has the type ``T | Literal[0]``, because it returns 0 for no vectors.
"""

from __future__ import annotations

from secagg.paillier import Ciphertexts, DecryptedSum, EncryptedVector, PrivateKey
from secagg.threshold import PartialDecryption, ThresholdKey


def decrypted(key: PrivateKey, vectors: list[EncryptedVector]) -> DecryptedSum:
    total = sum(vectors)
    return key.decrypt_vector(total)


def sent(vectors: list[EncryptedVector]) -> bytes:
    total = sum(vectors)
    return total.to_bytes()


def combined(
    key: ThresholdKey, vectors: list[EncryptedVector], partials: list[PartialDecryption]
) -> DecryptedSum:
    total = sum(vectors)
    return key.combine_vector(total, partials)


def ciphertexts(first: EncryptedVector, rest: list[EncryptedVector]) -> Ciphertexts:
    total = sum(rest, first)
    return total.ciphertexts


def averaged(key: PrivateKey, vectors: list[EncryptedVector]) -> DecryptedSum:
    return key.decrypt_vector(2 * sum(vectors[1:], vectors[0]))
