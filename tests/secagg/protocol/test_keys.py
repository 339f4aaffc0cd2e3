from __future__ import annotations

import hashlib
import os
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from harness import _P, LOW_ORDER, mask_key_of, opening_of, seal_keys_of, seal_of
from independent_primitives import hkdf
from secagg.protocol import keys

SESSION = bytes(range(32))
A = 486662
L = 2**252 + 27742317777372353535851937790883648493

# the points of order 1, 2, 4 and 8 on Curve25519 and its twist, canonical and not
# (Bernstein, "Curve25519: new Diffie-Hellman speed records", §3; cr.yp.to/ecdh.html#validate)


def times(n: int, u: int) -> int:
    """Return the u of n times a point of v^2 = u^3 + A u^2 + u or its twist; 0 for infinity.

    Montgomery's ladder: (x, z) and (s, t) are multiples that differ by the point itself.
    """
    x, z, s, t = 1, 0, u, 1
    for bit in f"{n:b}":
        total = (x * s - z * t) ** 2 % _P, u * (x * t - z * s) ** 2 % _P
        a, b = (s, t) if bit == "1" else (x, z)
        double = (a * a - b * b) ** 2 % _P, 4 * a * b * (a * a + A * a * b + b * b) % _P
        x, z, s, t = (*total, *double) if bit == "1" else (*double, *total)
    return x * pow(z, _P - 2, _P) % _P


def test_check07_list_of_low_order_keys_is_complete() -> None:
    """The curve has 8 L points and the twist the others of 2 p + 2, 4 times a prime.

    So L times a point, or that prime times one of the twist, has an order that divides 8, and
    some have each of them.
    """
    found = set()
    for u in range(2, 60):
        on_curve = pow(u**3 + A * u**2 + u, (_P - 1) // 2, _P) == 1
        found.add(times(L if on_curve else (2 * _P + 2 - 8 * L) // 4, u))
    assert found == keys._LOW_ORDER


def test_check07_keys_of_the_list_give_zero() -> None:
    private = X25519PrivateKey.generate()
    for u in keys._LOW_ORDER:
        public = X25519PublicKey.from_public_bytes(u.to_bytes(32, "little"))
        with pytest.raises(ValueError, match="shared key"):  # cryptography's for all zero
            private.exchange(public)


def test_check07_canonical_keys_of_32_bytes_are_usable() -> None:
    drawn = [keys.KeyPair.generate(os.urandom).public for _ in range(200)]
    assert all(map(keys.is_usable, [*drawn, (_P - 2).to_bytes(32, "little")]))
    for public in (b"", b"9" * 31, drawn[0] + bytes(1), (_P + 9).to_bytes(32, "little")):
        assert not keys.is_usable(public)


def test_check07_low_order_keys_lead_to_no_secret() -> None:
    pair = keys.KeyPair(os.urandom(32))
    for public in LOW_ORDER:
        assert pair.agree(public) is None
        assert not keys.is_usable(public)
    assert keys.is_usable(pair.public)
    assert pair.agree(pair.public[:31] + bytes([pair.public[31] | 0x80])) is None
    assert pair.agree((_P + 9).to_bytes(32, "little")) is None


def test_x25519_known_answer() -> None:
    """RFC 7748, §6.1."""
    alice = keys.KeyPair(
        bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    )
    bob = keys.KeyPair(
        bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    )
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert alice.agree(bob.public) == bob.agree(alice.public) == bytes.fromhex(shared)


def test_check08_every_key_is_hkdf_salted_with_the_session() -> None:
    """Every key is HKDF of the secret, with the session as salt."""
    shared, two = os.urandom(32), os.urandom(64)
    ids = struct.pack("<QQ", 3, 9)
    a, b = b"A" * 32, b"B" * 32
    x, y = b"A" * 64, b"B" * 64  # a sealing and a masking key each
    both = hkdf(two, SESSION, b"secagg/3 seal" + ids + x + y, 64)
    assert seal_keys_of(two, SESSION, (3, x), (9, y)) == (both[:32], both[32:])
    assert seal_keys_of(two, SESSION, (9, y), (3, x)) == (both[32:], both[:32])
    expected = hkdf(shared, SESSION, b"secagg/2 pairwise mask" + ids + a + b, 16)
    assert mask_key_of(shared, SESSION, (3, a), (9, b)) == expected
    assert mask_key_of(shared, SESSION, (9, b), (3, a)) == expected
    expected = hkdf(shared, SESSION, b"secagg/2 self mask" + struct.pack("<Q", 3), 16)
    assert keys.self_mask_key(shared, SESSION, 3) == expected


def test_check08_labels_ids_keys_and_session_each_change_the_key() -> None:
    shared, a, b = os.urandom(32), b"A" * 32, b"B" * 32
    derived = [
        *(key[:16] for key in seal_keys_of(shared, SESSION, (3, a), (9, b))),
        *(key[:16] for key in seal_keys_of(shared, SESSION, (3, b), (9, a))),
        *(key[:16] for key in seal_keys_of(shared, SESSION, (3, a), (8, b))),
        *(key[:16] for key in seal_keys_of(shared, bytes(32), (3, a), (9, b))),
        mask_key_of(shared, SESSION, (3, a), (9, b)),
        mask_key_of(shared, SESSION, (3, b), (9, a)),
        mask_key_of(shared, SESSION, (3, a), (8, b)),
        mask_key_of(shared, bytes(32), (3, a), (9, b)),
        keys.self_mask_key(shared, SESSION, 3),
        keys.self_mask_key(shared, SESSION, 9),
        keys.self_mask_key(shared, bytes(32), 3),
    ]
    assert len(set(derived)) == len(derived)
    assert shared[:16] not in derived


@pytest.mark.parametrize(
    ("session", "sender", "receiver"), [(bytes(32), 3, 9), (SESSION, 4, 9), (SESSION, 3, 8)]
)
def test_check09_sealed_share_opens_only_for_its_receiver(
    session: bytes, sender: int, receiver: int
) -> None:
    """Session, sender and receiver are in the associated data, not only in the key."""
    key = os.urandom(32)
    sealed = seal_of(key, SESSION, 3, 9, b"shares")
    assert opening_of(key, SESSION, 3, 9, sealed) == b"shares"
    assert opening_of(key, session, sender, receiver, sealed) is None
    altered = sealed[:-1] + bytes([sealed[-1] ^ 1])
    assert opening_of(key, SESSION, 3, 9, altered) is None


def test_check11_commitment_binds_seed_session_and_owner() -> None:
    seed = os.urandom(32)
    label = b"secagg/2 self mask commitment"
    expected = hashlib.sha256(label + SESSION + struct.pack("<Q", 5) + seed).digest()
    assert keys.commitment(seed, SESSION, 5) == expected
    others = {
        keys.commitment(os.urandom(32), SESSION, 5),
        keys.commitment(seed, bytes(32), 5),
        keys.commitment(seed, SESSION, 6),
    }
    assert len(others | {expected}) == 4


def test_check29_key_pair_prints_its_public_half_only() -> None:
    seed = os.urandom(32)
    pair = keys.KeyPair(seed)
    assert pair.public.hex() in repr(pair)
    assert seed.hex() not in repr(pair)
    assert repr(seed) not in repr(pair)


def test_session_is_named_after_parameters_and_every_key() -> None:
    entries = [(1, b"c" * 32, b"s" * 32), (2, b"d" * 32, b"t" * 32)]
    base = keys.session_id(bytes(32), keys.roster_digest(entries))
    assert base != keys.session_id(b"x" * 32, keys.roster_digest(entries))
    for changed in (
        (3, b"d" * 32, b"t" * 32),
        (2, b"e" * 32, b"t" * 32),
        (2, b"d" * 32, b"u" * 32),
    ):
        assert base != keys.session_id(bytes(32), keys.roster_digest([entries[0], changed]))


def test_check09_associated_data_names_session_ids_and_round() -> None:
    """The associated data is version, session, ids and round."""
    key = os.urandom(32)
    data = b"secagg/2 shares" + SESSION + struct.pack("<QQB", 3, 9, 1)
    expected = AESGCM(key).encrypt(bytes(12), b"x" * 80, data)
    assert seal_of(key, SESSION, 3, 9, b"x" * 80) == expected
