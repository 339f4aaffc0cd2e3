"""The derivations of docs/protocol.md §5 and §6 once more, from the document alone.

Plain Python and the primitives of `cryptography`; nothing of the package is imported, so that a
misreading of the document on one side shows as a difference. Slow and simple on purpose.
"""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

P = 2**61 - 1
LIMB_BYTES = (7, 7, 7, 7, 4)


def u8(x: int) -> bytes:
    return x.to_bytes(1, "little")


def u32le(x: int) -> bytes:
    return x.to_bytes(4, "little")


def u64le(x: int) -> bytes:
    return x.to_bytes(8, "little")


def ids(of: list[int]) -> bytes:
    return b"".join(u64le(u) for u in of)


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def draw(label: str, count: int) -> bytes:
    """Test entropy: SHA-256 in counter mode over a label."""
    blocks = (sha256(label.encode(), u64le(i)) for i in range(-(-count // 32)))
    return b"".join(blocks)[:count]


def hkdf(ikm: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 with SHA-256."""
    prk = hmac.digest(salt, ikm, "sha256")
    out = block = b""
    for i in range(1, -(-length // 32) + 1):
        block = hmac.digest(prk, block + info + u8(i), "sha256")
        out += block
    return out[:length]


def hedged(secret: bytes, fresh: bytes, sizes: list[int], *statement: bytes) -> list[bytes]:
    """§5.13: outputs of these sizes, one after the other, of one source."""
    assert len(fresh) == 32
    out, pieces = [], 0
    for size in sizes:
        whole = b""
        while len(whole) < size:
            info = sha256(*statement) + u64le(pieces)
            whole += hkdf(fresh, secret or bytes(32), info, min(8160, size - len(whole)))
            pieces += 1
        out.append(whole)
    return out


def hedging_secret(identity: bytes | None) -> bytes:
    """§5.13: the SHA-256 of a signature that is never sent."""
    return sha256(ed25519_sign(identity, b"secagg/2 hedged identity")) if identity else b""


def x25519_public(seed: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def x25519(seed: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(seed).exchange(
        X25519PublicKey.from_public_bytes(public)
    )


def ed25519_public(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def aes_blocks(key: bytes, counters: list[tuple[int, int]]) -> bytes:
    """block(D, B) of §5.7 for each (D, B)."""
    ecb = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - a PRG, not a seal
    return ecb.update(b"".join(struct.pack(">QQ", *pair) for pair in counters))


# §5.2-§5.6


def roster_digest(keys: dict[int, tuple[bytes, bytes]]) -> bytes:
    return sha256(b"secagg/2 roster", *(u64le(u) + c + s for u, (c, s) in sorted(keys.items())))


def session_id(params: bytes, roster: bytes) -> bytes:
    return sha256(b"secagg/2 session", params, roster)


def pair_info(label: bytes, one: tuple[int, bytes], two: tuple[int, bytes]) -> bytes:
    (lo, key_lo), (hi, key_hi) = sorted((one, two))
    return label + u64le(lo) + u64le(hi) + key_lo + key_hi


def seal_keys(
    session: bytes, shared: bytes, one: tuple[int, bytes], two: tuple[int, bytes]
) -> tuple[bytes, bytes]:
    """The key from the lower id to the higher, and the one back; of (id, c ‖ s) each.

    `shared` are the secrets of the sealing and of the masking keys.
    """
    out = hkdf(shared, session, pair_info(b"secagg/3 seal", one, two), 64)
    return out[:32], out[32:]


def pairwise_key(
    session: bytes, shared: bytes, one: tuple[int, bytes], two: tuple[int, bytes]
) -> bytes:
    return hkdf(shared, session, pair_info(b"secagg/2 pairwise mask", one, two), 16)


def self_mask_key(session: bytes, u: int, b: bytes) -> bytes:
    return hkdf(b, session, b"secagg/2 self mask" + u64le(u), 16)


def shares_ad(session: bytes, sender: int, receiver: int) -> bytes:
    return b"secagg/2 shares" + session + u64le(sender) + u64le(receiver) + u8(1)


def seal(key: bytes, session: bytes, sender: int, receiver: int, share: bytes) -> bytes:
    return AESGCM(key).encrypt(bytes(12), share, shares_ad(session, sender, receiver))


def commitment(session: bytes, u: int, b: bytes) -> bytes:
    return sha256(b"secagg/2 self mask commitment", session, u64le(u), b)


def limbs(secret: bytes) -> list[int]:
    return [int.from_bytes(secret[7 * j : 7 * j + 7], "little") for j in range(5)]


def from_limbs(of: list[int]) -> bytes:
    return b"".join(x.to_bytes(size, "little") for x, size in zip(of, LIMB_BYTES, strict=True))


def evaluate(constants: list[int], coefficients: list[list[int]], x: int) -> list[int]:
    """Every polynomial at x; coefficients[j - 1] holds the factors of X^j."""
    out = []
    for c, constant in enumerate(constants):
        out.append((constant + sum(a[c] * x**j for j, a in enumerate(coefficients, 1))) % P)
    return out


def combine(points: list[int], values: list[list[int]]) -> list[int]:
    out = [0] * len(values[0])
    for i, x_i in enumerate(points):
        factor = 1
        for j, x_j in enumerate(points):
            if j != i:
                factor = factor * x_j * pow(x_j - x_i, -1, P) % P
        for c, value in enumerate(values[i]):
            out[c] = (out[c] + value * factor) % P
    return out


# §5.7-§5.9


def prg(key: bytes, count: int, modulus: int) -> list[int]:
    if modulus & (modulus - 1) == 0:
        size = 4 if modulus <= 2**32 else 8
        stream = aes_blocks(key, [(0, i) for i in range(-(-count * size // 16))])
        words = (stream[size * i : size * i + size] for i in range(count))
        return [int.from_bytes(word, "little") % modulus for word in words]
    return [value for value, _ in prg_attempts(key, count, modulus)]


def prg_attempts(key: bytes, count: int, modulus: int) -> list[tuple[int, int]]:
    """For a modulus that is no power of two: each element, and the D that gave it."""
    out = [(0, 0)] * count
    open_ = list(range(count))
    attempt = 0
    while open_:
        stream = aes_blocks(key, [(attempt, i // 2) for i in open_])
        rejected = []
        for row, i in enumerate(open_):
            at = 16 * row + 8 * (i % 2)
            product = int.from_bytes(stream[at : at + 8], "little") * modulus
            if product % 2**64 >= 2**64 % modulus:
                out[i] = (product // 2**64, attempt)
            else:
                rejected.append(i)
        open_, attempt = rejected, attempt + 1
    return out


def pack(elements: list[int], bits: int) -> bytes:
    number = 0
    for x in reversed(elements):
        number = number << bits | x
    return number.to_bytes(-(-len(elements) * bits // 8), "little")


# §5.10 and §6.1


def signed_keys(params: bytes, u: int, c: bytes, s: bytes) -> bytes:
    return b"secagg/2 signed keys" + params + u64le(u) + u8(0) + c + s


def signed_survivors(session: bytes, u: int, survivors: bytes) -> bytes:
    return b"secagg/2 signed survivors" + session + u64le(u) + u8(3) + survivors


def mp_int(x: int) -> bytes:
    if x < 0:
        return b"\xd3" + struct.pack(">q", x) if x < -32 else struct.pack("b", x)
    if x < 128:
        return u8(x)
    for first, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4)):
        if x < 256**size:
            return u8(first) + x.to_bytes(size, "big")
    return b"\xcf" + x.to_bytes(8, "big")


def mp_bin(x: bytes) -> bytes:
    for first, size in ((0xC4, 1), (0xC5, 2), (0xC6, 4)):
        if len(x) < 256**size:
            return u8(first) + len(x).to_bytes(size, "big") + x
    raise OverflowError(len(x))


def mp(field: int | bytes) -> bytes:
    return mp_bin(field) if isinstance(field, bytes) else mp_int(field)


Message = list[int | bytes]


def encode(message: Message) -> bytes:
    """A message, its tag first."""
    return b"\x03" + u8(0x90 | len(message)) + b"".join(mp(field) for field in message)
