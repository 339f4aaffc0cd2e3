from __future__ import annotations

import os

import pytest

from harness import _P, LOW_ORDER, mask_key_of, opening_of, seal_keys_of, seal_of
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


def test_check07_canonical_keys_of_32_bytes_are_usable() -> None:
    drawn = [keys.KeyPair(os.urandom(32)).public for _ in range(200)]
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
def test_check09_sealed_share_opens_only_for_its_receiver(session, sender, receiver):
    """Session, sender and receiver are in the associated data, not only in the key."""
    key = os.urandom(32)
    sealed = seal_of(key, SESSION, 3, 9, b"shares")
    assert opening_of(key, SESSION, 3, 9, sealed) == b"shares"
    assert opening_of(key, session, sender, receiver, sealed) is None
    altered = sealed[:-1] + bytes([sealed[-1] ^ 1])
    assert opening_of(key, SESSION, 3, 9, altered) is None


def test_check29_key_pair_prints_its_public_half_only() -> None:
    seed = os.urandom(32)
    pair = keys.KeyPair(seed)
    assert pair.public.hex() in repr(pair)
    assert seed.hex() not in repr(pair)
    assert repr(seed) not in repr(pair)
