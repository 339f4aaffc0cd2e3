"""Mask keys of a client whose seed is revealed: in bulk as for each pair."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import _P, LOW_ORDER, mask_key_of, secret_of
from secagg.encoding import Ring
from secagg.protocol import keys, pair_masks
from secagg.protocol.masks import MaskSum

SESSION = bytes(range(32))


def clients(seed: int, count: int) -> list[tuple[int, keys.KeyPair]]:
    """Clients with distinct ids of up to 64 bits, in no order."""
    draw = random.Random(seed)
    ids = draw.sample([*range(40), *(2**64 - i for i in range(1, 40)), *range(250, 260)], count)
    return [(u, keys.KeyPair.masking(draw.randbytes(32))) for u in ids]


def columns(peers: list[tuple[int, bytes]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v for v, _ in peers], np.uint64), keys.rows_of(key for _, key in peers)


@examples(20)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 20))
def test_keys_in_bulk_are_those_of_each_pair(seed: int, count: int) -> None:
    (u, pair), *others = clients(seed, count + 1)
    mine, peers = (u, pair.public), [(v, other.public) for v, other in others]
    ids, publics = columns(peers)
    secrets = pair_masks.revealed_agreements(pair, SESSION, u, ids, publics)
    found = pair_masks.mask_keys(secrets, SESSION, u, ids)
    assert found.shape == (count, 16)
    for key, (v, other) in zip(found, others, strict=True):
        shared = secret_of(other, pair.public)
        assert shared is not None
        assert key.tobytes() == mask_key_of(shared, SESSION, (v, other.public), mine)


@pytest.mark.parametrize(
    "public",
    [*LOW_ORDER, *(n.to_bytes(32, "little") for n in (_P, _P + 9, _P + 18, 9 | 1 << 255))],
)
@pytest.mark.parametrize("place", [0, 4])
def test_unusable_key_gives_no_mask_keys(public: bytes, place: int) -> None:
    """The server has rejected such keys before; they do not lead to masks of known secrets."""
    (u, pair), *others = clients(7, 6)
    peers = [(v, other.public) for v, other in others]
    peers[place] = peers[place][0], public
    with pytest.raises(AssertionError):
        pair_masks.revealed_agreements(pair, SESSION, u, *columns(peers))


def test_unusable_key_gives_no_mask_keys_without_assertions() -> None:
    """`python -O` drops the assert statements; the secret would be zero, which anyone knows."""
    source = Path(pair_masks.__file__).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "optimised"}
    exec(compile(source, pair_masks.__file__, "exec", optimize=1), names)  # noqa: S102
    (u, pair), _ = clients(7, 2)
    with pytest.raises(AssertionError):
        names["revealed_agreements"](pair, SESSION, u, *columns([(2, bytes(32))]))


def test_largest_usable_numbers_are_canonical() -> None:
    """Every number below 2^255 − 20, which is of low order, by one lesser byte is canonical."""
    below = [_P - 1 - (1 << 8 * i) for i in range(32)]
    usable = [keys.is_usable(n.to_bytes(32, "little")) for n in [*below, _P]]
    assert usable == [True] * len(below) + [False]


def test_lower_id_adds_and_the_higher_subtracts() -> None:
    """Bonawitz 2017, §4; the other way round would also cancel but not be the protocol."""
    assert pair_masks.subtracts(4, np.array([3, 5], np.uint64)).tolist() == [True, False]


@pytest.mark.parametrize("modulus", [1 << 8, 1 << 32, 1 << 40, 1 << 64, 257, (1 << 61) - 1])
def test_masks_of_either_sign_cancel(modulus: int) -> None:
    ring = Ring(modulus)
    values = ring.zeros(100)
    values[:] = np.arange(100)
    there, back = MaskSum(), MaskSum()
    for i in range(5):
        there.add(bytes([i]) * 16, negate=i % 2 == 0)
        back.add(bytes([i]) * 16, negate=i % 2 == 1)
    there.apply(values, ring)
    ring.reduce(values)
    assert values.max() < modulus
    assert np.count_nonzero(values == np.arange(100)) < 10
    back.apply(values, ring)
    ring.reduce(values)
    assert values.tolist() == list(range(100))


def test_check29_mask_keys_are_not_printed() -> None:
    total = MaskSum()
    total.add(b"sixteen byte key")
    assert "sixteen" not in repr(total)
