from __future__ import annotations

import os

from harness import _P, mask_key_of, seal_keys_of
from secagg.protocol import keys

SESSION = bytes(range(32))

# the points of order 1, 2, 4 and 8 on Curve25519 and its twist, canonical and not
# (Bernstein, "Curve25519: new Diffie-Hellman speed records", §3; cr.yp.to/ecdh.html#validate)


def test_check07_canonical_keys_of_32_bytes_are_usable() -> None:
    drawn = [keys.KeyPair(os.urandom(32)).public for _ in range(200)]
    assert all(map(keys.is_usable, [*drawn, (_P - 2).to_bytes(32, "little")]))
    for public in (b"", b"9" * 31, drawn[0] + bytes(1), (_P + 9).to_bytes(32, "little")):
        assert not keys.is_usable(public)


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


def test_check29_key_pair_prints_its_public_half_only() -> None:
    seed = os.urandom(32)
    pair = keys.KeyPair(seed)
    assert pair.public.hex() in repr(pair)
    assert seed.hex() not in repr(pair)
    assert repr(seed) not in repr(pair)
