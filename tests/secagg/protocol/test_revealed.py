"""Mask keys of a client whose seed is revealed: in bulk as for each pair."""

from __future__ import annotations

import hmac
import json
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples, pure_repeats
from harness import _P, LOW_ORDER
from secagg.protocol import keys
from vectors_reader import FOLDER, b

SESSION = bytes(range(32))


def clients(seed: int, count: int) -> list[tuple[int, keys.KeyPair]]:
    """Clients with distinct ids of up to 64 bits, in no order."""
    draw = random.Random(seed)
    ids = draw.sample([*range(40), *(2**64 - i for i in range(1, 40)), *range(250, 260)], count)
    return [(u, keys.KeyPair(draw.randbytes(32))) for u in ids]


@examples(20)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 20))
def test_keys_in_bulk_are_those_of_each_pair(seed: int, count: int) -> None:
    (u, pair), *others = clients(seed, count + 1)
    mine, peers = (u, pair.public), [(v, other.public) for v, other in others]
    found = keys.revealed_mask_keys(pair.seed, SESSION, mine, peers)
    assert len(found) == count
    for key, (v, other) in zip(found, others, strict=True):
        shared = other.agree(pair.public)
        assert shared is not None
        assert key == keys.pairwise_mask_key(shared, SESSION, (v, other.public), mine)


@pytest.mark.parametrize(
    "public", [*LOW_ORDER, (_P + 9).to_bytes(32, "little"), bytes([9, *bytes(30), 0x80])]
)
@pytest.mark.parametrize("place", [0, 4])
def test_unusable_key_gives_no_mask_keys(public: bytes, place: int) -> None:
    """The server has rejected such keys before; they do not lead to masks of known secrets."""
    (u, pair), *others = clients(7, 6)
    peers = [(v, other.public) for v, other in others]
    peers[place] = peers[place][0], public
    with pytest.raises(AssertionError):
        keys.revealed_mask_keys(pair.seed, SESSION, (u, pair.public), peers)


def test_unusable_key_gives_no_mask_keys_without_assertions() -> None:
    """`python -O` drops the assert statements; the secret would be zero, which anyone knows."""
    code = (
        "from secagg.protocol import keys\n"
        "pair, zero = keys.KeyPair(bytes(range(32))), bytes(32)\n"
        "try: keys.revealed_mask_keys(pair.seed, zero, (1, pair.public), [(2, zero)])\n"
        "except AssertionError: print('refused')\n"
    )
    command = [sys.executable, "-O", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "refused\n"


@pure_repeats
@examples(40)
@given(
    key=st.binary(min_size=1, max_size=64),
    messages=st.lists(st.binary(max_size=200), max_size=5),
)
def test_hmac_in_bulk_is_that_of_the_library(key: bytes, messages: list[bytes]) -> None:
    expected = [hmac.digest(key, message, "sha256") for message in messages]
    one = np.frombuffer(key, np.uint8).reshape(1, -1)
    assert keys._hmac(one, messages) == expected
    if len(messages) > 1:
        assert keys._hmac(np.repeat(one, len(messages), axis=0), messages) == expected


@pytest.mark.parametrize("length", [16, 32])
def test_hkdf_in_bulk_is_that_of_the_library(length: int) -> None:
    draw = random.Random(length)
    secrets, infos = ([draw.randbytes(32) for _ in range(9)] for _ in range(2))
    rows = np.frombuffer(b"".join(secrets), np.uint8).reshape(-1, 32)
    expected = [
        keys._derive(secret, SESSION, info, length)
        for secret, info in zip(secrets, infos, strict=True)
    ]
    assert keys._derive_each(rows, SESSION, infos, length) == expected


def test_hkdf_in_bulk_derives_29_wycheproof_cases() -> None:
    """These are the cases whose salt and output have at most one block."""
    text = (FOLDER / "wycheproof" / "hkdf_sha256_test.json").read_text(encoding="ascii")
    derived = 0
    for case in (case for group in json.loads(text)["testGroups"] for case in group["tests"]):
        salt, info, size = b(case["salt"]), b(case["info"]), case["size"]
        if case["result"] == "valid" and len(salt) <= 64 and size <= 32:
            secret = np.frombuffer(b(case["ikm"]), np.uint8).reshape(1, -1)
            assert keys._derive_each(secret, salt, [info], size) == [b(case["okm"])]
            derived += 1
    assert derived == 29
