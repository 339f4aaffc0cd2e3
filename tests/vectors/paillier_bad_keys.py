"""Damaged keys: bytes that are no key of docs/paillier.md §2."""

from dataclasses import replace
from math import gcd

from faults import flip
from paillier_scheme import Key, plain_prime, start

from independent_primitives import sha256


def public_keys(key: Key, textbook: Key) -> list[dict[str, object]]:
    size, good = key.bits // 8, key.public()
    head, n, h = good[:9], key.n.to_bytes(size, "little"), key.h.to_bytes(size, "little")
    plain = textbook.public()

    def of(n_: int, h_: int, bits: int = key.bits, exponent_bits: int = 128) -> bytes:
        numbers = (x.to_bytes(bits // 8, "little") for x in (n_, h_))
        return start(b"SAPK", bits, exponent_bits) + b"".join(numbers)

    bad = {
        "nothing": b"",
        "header only": head,
        "a byte less": good[:-1],
        "a byte more": good + b"\0",
        "without h": head + n,
        "magic of a private key": b"SASK" + good[4:],
        "a private key": key.private(),
        "version 0": good[:4] + b"\0" + good[5:],
        "version 2": good[:4] + b"\2" + good[5:],
        "0 bits": of(0, 0, 0),
        "bits that are no multiple of 64": of(key.n, key.h, key.bits + 8),
        "n shorter than stated": of(key.n, key.h, key.bits + 64),
        "n a bit shorter than stated": of(key.n >> 1 | 1, key.h >> 1),
        "n even": of(key.n ^ 1, key.h),
        "n is 0": of(0, 0),
        "h is 0, with exponents": head + n + bytes(size),
        "h is n": of(key.n, key.n),
        "h is 1": of(key.n, 1),
        "h is n - 1": of(key.n, key.n - 1),
        "h is no square, nor the negative of one": of(key.n, no_square(key)),
        "exponents of 64 bits": of(key.n, key.h, exponent_bits=64),
        "exponents longer than n": of(key.n, key.h, exponent_bits=key.bits + 8),
        "h above n": of(key.n, key.n + 5),
        "h has the factor p": of(key.n, key.p * 3),
        "h of textbook noise": plain[:-1] + b"\1",
        "h without exponents": of(key.n, key.h, exponent_bits=0),
        "n is prime": of(plain_prime("prime n", key.bits, 1), 4),
        "n is a square": of(key.p**2, 4),
        "n has a factor of 16 bits": of(65521 * (key.n // 65521 - 1 | 1), 4),
        "exponents shorter than half of n": of(long_modulus(1024), 4, 1024, 448),
    }
    assert len(good) == len(head + n + h)
    return [
        {"name": name, "bytes": data, "error": "RemoteProtocolError", "check": "public_key"}
        for name, data in bad.items()
    ]


def long_modulus(bits: int) -> int:
    p, q = (plain_prime(f"long {residue}", bits // 2, residue) for residue in (1, 3))
    return p * q


def no_square(key: Key) -> int:
    """A number whose Jacobi symbol is -1: a square modulo p alone."""
    return next(
        x
        for x in range(2, 1000)
        if pow(x, (key.p - 1) // 2, key.p) == 1 and pow(x, (key.q - 1) // 2, key.q) == key.q - 1
    )


def sealed(content: bytes) -> bytes:
    return content + sha256(content)


def private_keys(key: Key, textbook: Key) -> list[dict[str, object]]:
    good = key.private()
    size, body = key.bits // 16, good[9:-32]
    bad = {
        "nothing": b"",
        "header only": good[:9],
        "a byte less": good[:-1],
        "a byte more": good + b"\0",
        "magic of a public key": sealed(b"SAPK" + good[4:-32]),
        "a public key": key.public(),
        "version 2": sealed(good[:4] + b"\2" + good[5:-32]),
        "other bits": sealed(start(b"SASK", key.bits + 64, 128) + body),
        "bits that are no multiple of 64": sealed(start(b"SASK", key.bits + 8, 128) + body),
        "p and q shorter than stated": replace(key, bits=key.bits + 64).private(),
        "magic of a public key, not sealed again": b"SAPK" + good[4:],
    }
    for at in (4, 5, 7, 9, 9 + size, 9 + 2 * size, len(good) - 32, len(good) - 1):
        bad[f"byte {at} damaged"] = flip(good, at)
    prime = plain_prime("private wrong", key.bits // 2, 3)
    for name, changed in {
        "p is q": replace(key, p=key.q, h=2),
        "p is 0": replace(key, p=0),
        "p is 1": replace(key, p=1),
        "p is even": replace(key, p=key.p - 1),
        "p is no prime": replace(key, p=composite(key)),
        "p has a bit less": replace(key, p=prime >> 1 | 1),
        "h is 0, with exponents": replace(key, h=0),
        "h is 1": replace(key, h=1),
        "h is n": replace(key, h=key.n),
        "exponents of 64 bits": replace(key, exponent_bits=64),
        "h has the factor p": replace(key, h=3 * key.p),
        "h of textbook noise": replace(textbook, h=1),
        "p is 1 modulo 4, with h": replace(key, p=odd_one(key.q, 1, 2), h=16),
        "q is 1 modulo 4, with h": replace(key, q=odd_one(key.p, 1, 2), h=16),
        "p - 1 and q - 1 have 10 in common": replace(key, p=odd_one(key.q, 3, 10), h=16),
    }.items():
        bad[name] = changed.private()
    return [
        {"name": name, "bytes": data, "error": "ParameterError"} for name, data in bad.items()
    ]


def odd_one(other: int, residue: int, common: int) -> int:
    """A prime that is `residue` modulo 4 and has gcd(p - 1, other - 1) = common."""
    bits = other.bit_length()
    primes = (plain_prime(f"odd one {common} {i}", bits, residue) for i in range(1000))
    return next(p for p in primes if gcd(p - 1, other - 1) == common)


def composite(key: Key) -> int:
    """A number of a prime's size that is 3 modulo 4 and has no small factor."""
    half = key.bits // 4
    a, b = plain_prime("composite a", half, 1), plain_prime("composite b", half, 3)
    assert (a * b).bit_length() == key.bits // 2
    return a * b
