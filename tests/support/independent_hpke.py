"""HPKE in base mode, single shot: RFC 9180, and the hybrid of docs/oneshot.md §4.4."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import independent_mlkem
from independent_primitives import curve, curve_key, expand, extract, split


def public_key(secret: bytes) -> bytes:
    """§3.2: of either suite's private key."""
    if len(secret) == 32:
        return curve_key(secret)
    lattice = MLKEM768PrivateKey.from_seed_bytes(secret[:64]).public_key()
    return lattice.public_bytes_raw() + curve_key(secret[64:])


def labelled_extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    """RFC 9180 §4."""
    return extract(salt, b"HPKE-v1" + suite + label + ikm)


def labelled_expand(suite: bytes, prk: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return expand(prk, size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, size)


def shared_secret(dh: bytes, enc: bytes, public: bytes, lattice: bytes | None) -> bytes:
    """RFC 9180 §4.1, or the hybrid's combination."""
    if lattice is not None:
        joint = lattice + dh + enc[-32:] + public[-32:] + bytes.fromhex("5c2e2f2f5e5c")
        return hashlib.sha3_256(joint).digest()
    suite = b"KEM" + bytes.fromhex("0020")
    prk = labelled_extract(suite, b"", b"eae_prk", dh)
    return labelled_expand(suite, prk, b"shared_secret", enc + public, 32)


def schedule(shared: bytes, info: bytes, hybrid: bool) -> tuple[AESGCM, bytes]:
    """RFC 9180 §5.1: the key and the nonce of the first message."""
    suite = b"HPKE" + bytes.fromhex("647a" if hybrid else "0020") + bytes.fromhex("00010001")
    context = b"\0" + labelled_extract(suite, b"", b"psk_id_hash", b"")
    context += labelled_extract(suite, b"", b"info_hash", info)
    secret = labelled_extract(suite, shared, b"secret", b"")
    key = labelled_expand(suite, secret, b"key", context, 16)
    return AESGCM(key), labelled_expand(suite, secret, b"base_nonce", context, 12)


def seal(
    public: bytes, info: bytes, content: bytes, ephemeral: bytes, aad: bytes = b""
) -> bytes:
    """enc ‖ ciphertext; `ephemeral` is the randomness of ML-KEM, then the scalar."""
    lattice, enc = None, b""
    if len(public) > 32:
        lattice, enc = independent_mlkem.encapsulate(public[:-32], ephemeral[:-32])
    enc += curve_key(ephemeral[-32:])
    dh = curve(ephemeral[-32:], public[-32:])
    aead, nonce = schedule(shared_secret(dh, enc, public, lattice), info, len(public) > 32)
    return enc + aead.encrypt(nonce, content, aad)


def unseal(secret: bytes, info: bytes, box: bytes, aad: bytes = b"") -> bytes | None:
    hybrid, lattice = len(secret) > 32, None
    enc, sealed = split(box, 1120 if hybrid else 32)
    try:
        if hybrid:
            lattice = MLKEM768PrivateKey.from_seed_bytes(secret[:64]).decapsulate(enc[:-32])
        if (dh := curve(secret[-32:], enc[-32:])) is None:
            return None
        shared = shared_secret(dh, enc, public_key(secret), lattice)
        aead, nonce = schedule(shared, info, hybrid)
        return aead.decrypt(nonce, sealed, aad)
    except (InvalidTag, ValueError):
        return None
