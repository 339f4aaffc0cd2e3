"""Mask keys of a client whose seed is revealed: in bulk as for each pair."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg
from effort import examples
from harness import _P, LOW_ORDER, mask_key_of
from secagg.protocol import keys

SESSION = bytes(range(32))


def clients(seed: int, count: int) -> list[tuple[int, keys.KeyPair]]:
    """Clients with distinct ids of up to 64 bits, in no order."""
    draw = random.Random(seed)
    ids = draw.sample([*range(40), *(2**64 - i for i in range(1, 40)), *range(250, 260)], count)
    return [(u, keys.KeyPair(draw.randbytes(32))) for u in ids]


def columns(peers: list[tuple[int, bytes]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v for v, _ in peers], np.uint64), keys.rows_of(key for _, key in peers)


@examples(20)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 20))
def test_keys_in_bulk_are_those_of_each_pair(seed: int, count: int) -> None:
    (u, pair), *others = clients(seed, count + 1)
    mine, peers = (u, pair.public), [(v, other.public) for v, other in others]
    found = keys.revealed_mask_keys(pair.seed, SESSION, mine, *columns(peers))
    assert found.shape == (count, 16)
    for key, (v, other) in zip(found, others, strict=True):
        shared = other.agree(pair.public)
        assert shared is not None
        assert key.tobytes() == mask_key_of(shared, SESSION, (v, other.public), mine)


def test_keys_in_bulk_are_the_same_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    (u, pair), *others = clients(3, 60)
    peers = columns([(v, other.public) for v, other in others])
    expected = keys.revealed_mask_keys(pair.seed, SESSION, (u, pair.public), *peers)
    monkeypatch.setattr(keys, "_POINTS_ALONE", 0)
    monkeypatch.setattr(keys, "_DERIVED_ALONE", 0)
    secagg.set_threads(3)
    try:
        found = keys.revealed_mask_keys(pair.seed, SESSION, (u, pair.public), *peers)
    finally:
        secagg.set_threads(None)
    np.testing.assert_array_equal(found, expected)


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
        keys.revealed_mask_keys(pair.seed, SESSION, (u, pair.public), *columns(peers))


def test_unusable_key_gives_no_mask_keys_without_assertions() -> None:
    """`python -O` drops the assert statements; the secret would be zero, which anyone knows."""
    code = (
        "from secagg.protocol import keys\n"
        "import numpy as np\n"
        "pair, zero = keys.KeyPair(bytes(range(32))), bytes(32)\n"
        "peers = np.array([2], np.uint64), keys.rows_of([zero])\n"
        "try: keys.revealed_mask_keys(pair.seed, zero, (1, pair.public), *peers)\n"
        "except AssertionError: print('refused')\n"
    )
    command = [sys.executable, "-O", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "refused\n"


def test_largest_usable_numbers_are_canonical() -> None:
    """Every number below 2^255 − 20, which is of low order, by one lesser byte is canonical."""
    below = [_P - 1 - (1 << 8 * i) for i in range(32)]
    usable = [keys.is_usable(n.to_bytes(32, "little")) for n in [*below, _P]]
    assert usable == [True] * len(below) + [False]
