"""ML-KEM-768 with given randomness: FIPS 203, algorithm 17 with 14, 7, 8, 9, 10, 11 and §4.2.1.

`cryptography` encapsulates with randomness of its own; here the caller gives it. It makes keys
and decapsulates. A private key is its seed d ‖ z of 64 bytes.
"""

import hashlib

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

Q = 3329
ZETAS = [pow(17, int(f"{i:07b}"[::-1], 2), Q) for i in range(128)]
Polynomial = list[int]


def public_key(seed: bytes) -> bytes:
    return MLKEM768PrivateKey.from_seed_bytes(seed).public_key().public_bytes_raw()


def decapsulate(seed: bytes, ciphertext: bytes) -> bytes:
    return MLKEM768PrivateKey.from_seed_bytes(seed).decapsulate(ciphertext)


def is_valid(public: bytes) -> bool:
    """FIPS 203, 7.2, of a key of 1,184 bytes: its coefficients are reduced."""
    return all(x < Q for i in range(3) for x in decode(public[384 * i : 384 * i + 384], 12))


def encapsulate(public: bytes, m: bytes) -> tuple[bytes, bytes]:
    """Shared secret and ciphertext of ML-KEM.Encaps_internal."""
    joint = hashlib.sha3_512(m + hashlib.sha3_256(public).digest()).digest()
    shared, r = joint[:32], joint[32:]
    t = [decode(public[384 * i : 384 * i + 384], 12) for i in range(3)]
    rho = public[1152:]
    noise = [cbd2(hashlib.shake_256(r + bytes([i])).digest(128)) for i in range(7)]
    y = [ntt(p) for p in noise[:3]]
    out = b""
    for i in range(3):  # the transpose: A[j][i]
        column = [sample_ntt(rho + bytes([i]) + bytes([j])) for j in range(3)]
        u = add(inverse_ntt(dot(column, y)), noise[3 + i])
        out += encode([compress(x, 10) for x in u], 10)
    message = [(Q + 1) // 2 * bit for bit in decode(m, 1)]
    v = add(add(inverse_ntt(dot(t, y)), noise[6]), message)
    return shared, out + encode([compress(x, 4) for x in v], 4)


def compress(x: int, d: int) -> int:
    return (2 * x * 2**d + Q) // (2 * Q) % 2**d


def encode(values: list[int], d: int) -> bytes:
    return sum(x << (d * i) for i, x in enumerate(values)).to_bytes(32 * d, "little")


def decode(data: bytes, d: int) -> Polynomial:
    number = int.from_bytes(data, "little")
    return [number >> (d * i) & (2**d - 1) for i in range(256)]


def cbd2(data: bytes) -> Polynomial:
    bits = decode(data, 4)
    return [((x & 1) + (x >> 1 & 1) - (x >> 2 & 1) - (x >> 3)) % Q for x in bits]


def sample_ntt(seed: bytes) -> Polynomial:
    stream, out = hashlib.shake_128(seed).digest(3 * 1024), []
    for a, b, c in zip(stream[::3], stream[1::3], stream[2::3], strict=True):
        out += [x for x in (a + 256 * (b % 16), b // 16 + 16 * c) if x < Q]
        if len(out) >= 256:
            break
    return out[:256]


def ntt(p: Polynomial) -> Polynomial:
    p, i, size = list(p), 1, 128
    while size >= 2:
        for start in range(0, 256, 2 * size):
            for j in range(start, start + size):
                t = ZETAS[i] * p[j + size]
                p[j + size], p[j] = (p[j] - t) % Q, (p[j] + t) % Q
            i += 1
        size //= 2
    return p


def inverse_ntt(p: Polynomial) -> Polynomial:
    p, i, size = list(p), 127, 2
    while size <= 128:
        for start in range(0, 256, 2 * size):
            for j in range(start, start + size):
                p[j], p[j + size] = p[j] + p[j + size], ZETAS[i] * (p[j + size] - p[j]) % Q
            i -= 1
        size *= 2
    return [x * 3303 % Q for x in p]


def dot(left: list[Polynomial], right: list[Polynomial]) -> Polynomial:
    """The sum of products in the NTT's domain."""
    out = [0] * 256
    for a, b in zip(left, right, strict=True):
        for i in range(128):
            (a0, a1), (b0, b1) = a[2 * i : 2 * i + 2], b[2 * i : 2 * i + 2]
            gamma = ZETAS[64 + i // 2] * (-1 if i % 2 else 1)
            out[2 * i] = (out[2 * i] + a0 * b0 + a1 * b1 * gamma) % Q
            out[2 * i + 1] = (out[2 * i + 1] + a0 * b1 + a1 * b0) % Q
    return out


def add(a: Polynomial, b: Polynomial) -> Polynomial:
    return [(x + y) % Q for x, y in zip(a, b, strict=True)]
