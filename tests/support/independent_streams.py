"""Streams of words and masks: docs/protocol.md §5.7."""

from __future__ import annotations

from itertools import count

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from independent_primitives import integers


def stream(key: bytes, D: int, B: int = 0) -> CipherContext:
    """§5.7: stream(D) from block B on, of which an encryptor gives as many bytes as it gets."""
    counter = modes.CTR(D.to_bytes(8, "big") + B.to_bytes(8, "big"))
    return Cipher(algorithms.AES128(key), counter).encryptor()


def words(key: bytes, D: int, size: int, amount: int) -> list[int]:
    """word_size(D, i) for the first i."""
    return integers(stream(key, D).update(bytes(size * amount)), size)


def prg(key: bytes, amount: int, R: int) -> list[int]:
    """§5.7."""
    if R & (R - 1):
        return [x for x, _ in attempts(key, amount, R)]
    return [word % R for word in words(key, 0, 4 if R <= 2**32 else 8, amount)]


def attempts(key: bytes, amount: int, R: int) -> list[tuple[int, int]]:
    """For an R that is no power of two: each element, and the D that gave it."""
    found: dict[int, tuple[int, int]] = {}
    for D in count():
        for i, word in enumerate(words(key, D, 8, amount)):
            M = word * R
            if i not in found and M % 2**64 >= 2**64 % R:
                found[i] = M >> 64, D
        if len(found) == amount:
            break
    return [found[i] for i in range(amount)]
