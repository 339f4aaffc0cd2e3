"""Masks from AES-128-CTR, through ``cryptography``: the specification of ``src/masks.c``.

CPUs without AES instructions run this code besides the compiled kernels, because AES by tables
in C would leak keys through the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_lanes

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

KEY_BYTES = 16
_CHUNK = 2**17  # bytes of keystream at a time: buffer and slice of the vector stay in cache
_ZEROS = bytes(_CHUNK)


def keystream(key: bytes, length: int, *, domain: int = 0, offset: int = 0) -> bytes:
    """Return bytes [offset, offset + length) of a key's stream in a domain.

    The stream is AES-128-CTR (NIST SP 800-38A, 6.5) over zeros. A counter block is the domain,
    then the block index, 8 bytes big-endian each. Domain 0 is the ordinary CTR stream with a
    zero IV. The 2^64 counter blocks of a domain are not used in any other domain.
    """
    return _cipher(key, domain, offset).update(bytes(length))


def mask_words(acc: U32 | U64, keys: bytes, negate: bytes, start: int = 0) -> None:
    """Add or subtract the mask of every key: acc[i] ± word(start + i), mod 2^32 or 2^64.

    Parameters
    ----------
    acc : uint32[d] or uint64[d]
        Vector that is changed in place. Word i of a key is the little-endian number in bytes
        [i w, (i + 1) w) of the key's stream in domain 0; w is 4 for uint32 and 8 for uint64.
    keys : bytes of length 16 k
        k AES-128 keys.
    negate : bytes of length k
        For each key 0 to add the mask, or 1 to subtract the mask.
    start : int, 0 <= start <= 2^60 - d
        Index of the word that belongs to acc[0].

    Raises
    ------
    ValueError
        A length, dtype, sign or start is out of range.
    """
    _check_masks(acc, keys, negate, start)
    width = acc.itemsize
    ciphers = [_cipher(key, 0, start * width) for key in _split(keys)]
    buffer = bytearray(_CHUNK + KEY_BYTES)  # update_into asks for room for a last block
    words = np.frombuffer(buffer, f"<u{width}")
    for first in range(0, acc.size, _CHUNK // width):
        part = acc[first : first + _CHUNK // width]
        for cipher, minus in zip(ciphers, negate, strict=True):
            cipher.update_into(memoryview(_ZEROS)[: part.nbytes], buffer)
            combine = np.subtract if minus else np.add
            combine(part, words[: part.size], out=part)


def mask_mod(acc: U64, keys: bytes, negate: bytes, modulus: int, start: int = 0) -> None:
    """Add or subtract the mask of every key modulo R, exactly uniform over [0, R)^d.

    Element i of a key's mask comes from the 64-bit word w = word(start + i) of domain 0 by
    Lemire's method (ACM TOMACS 29(1), 2019). With m = w R, the value m >> 64 is accepted if m
    mod 2^64 >= 2^64 mod R. Otherwise the same word of domain 1, 2, ... is tried, so the mask
    depends on the key and the index alone. `acc` is uint64 in [0, R), and 2 <= R <= 2^62; see
    ``mask_words`` for the other parameters.
    """
    _check_masks(acc, keys, negate, start)
    if acc.dtype != np.uint64:
        raise ValueError("masks of another modulus than 2^b need uint64")
    if not 2 <= modulus <= 2**62:
        raise ValueError(f"modulus {modulus} is outside [2, 2^62]")
    for key, minus in zip(_split(keys), negate, strict=True):
        for first in range(0, acc.size, _CHUNK // 8):
            part = acc[first : first + _CHUNK // 8]
            mask = _uniform(key, start + first, part.size, modulus)
            # R ≤ 2^62, so the sum of two elements fits a uint64 before the reduction
            part[:] = (part + (modulus - mask if minus else mask)) % modulus


def _cipher(key: bytes, domain: int, offset: int) -> CipherContext:
    """Return an encryptor positioned at byte `offset` of the stream."""
    block, skip = divmod(offset, 16)
    counter = domain.to_bytes(8, "big") + block.to_bytes(8, "big")
    encryptor = Cipher(AES(key), CTR(counter)).encryptor()
    encryptor.update(bytes(skip))
    return encryptor


def _uniform(key: bytes, start: int, count: int, modulus: int) -> U64:
    """Return the elements start .. start + count - 1 of a key's mask over Z_R."""
    values = np.empty(count, np.uint64)
    pending = np.arange(count)
    domain = 0
    # a rejected word is replaced from the next domain, not by the next word: so every part of
    # a vector can be computed alone
    while pending.size:
        first = int(pending[0])
        length = 8 * (int(pending[-1]) - first + 1)
        stream = keystream(key, length, domain=domain, offset=8 * (start + first))
        words = np.frombuffer(stream, "<u8").astype(np.uint64)[pending - first]
        high, low = _multiply_wide(words, modulus)
        accepted = low >= 2**64 % modulus
        values[pending[accepted]] = high[accepted]
        pending = pending[~accepted]
        domain += 1
    return values


def _multiply_wide(words: U64, modulus: int) -> tuple[U64, U64]:
    """Return the high and low 64 bits of words · modulus, from 32-bit halves."""
    half = 2**32 - 1
    w1, w0 = words >> 32, words & half
    r1, r0 = modulus >> 32, modulus & half
    carry = w1 * r0 + (w0 * r0 >> 32)
    return w1 * r1 + (carry >> 32) + (w0 * r1 + (carry & half) >> 32), words * modulus


def _split(keys: bytes) -> Iterator[bytes]:
    return (keys[i : i + KEY_BYTES] for i in range(0, len(keys), KEY_BYTES))


def _check_masks(acc: U32 | U64, keys: bytes, negate: bytes, start: int) -> None:
    check_lanes(acc)
    if len(keys) != KEY_BYTES * len(negate):
        raise ValueError(f"{len(keys)} bytes of keys for {len(negate)} signs")
    if max(negate, default=0) > 1:
        raise ValueError("a sign is neither 0 nor 1")
    if not 0 <= start <= 2**60 - acc.size:
        raise ValueError(f"start {start} is outside [0, 2^60 - {acc.size}]")
