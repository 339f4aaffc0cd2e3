"""Keys, shares and partial decryptions as bytes: decoded right, or rejected."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import ParameterError, RemoteProtocolError, SecAggError
from secagg.threshold import KeyShare, ThresholdKey
from threshold_keys import SAFE, dealing, values_of

KEY, SHARES = dealing(4, 2)
PUBLIC = KEY.public_key
N2 = int(PUBLIC.n) ** 2
WIDTH = PUBLIC.modulus.width
SENT = PUBLIC.encrypt([1, 2, 3])
PARTIAL = SHARES[1].decrypt_partially(SENT)
PARTIAL_BYTES = PARTIAL.to_bytes()
KEY_BYTES = KEY.to_bytes()
SHARE_BYTES = SHARES[1].to_bytes()
VALUES_AT = len(PARTIAL_BYTES) - 3 * WIDTH
IMAGE_AT = len(KEY_BYTES) - 32 - WIDTH
PUBLIC_AT = 9  # where a threshold key has its public key


def load_key(data: bytes) -> ThresholdKey:
    return ThresholdKey.from_bytes(data, allow_insecure=True)


def test_written_values_are_read_back() -> None:
    key = load_key(KEY_BYTES)
    assert key.to_bytes() == KEY_BYTES
    assert key.key_id == KEY.key_id == KEY_BYTES[-32:]
    assert key.public_key.key_id == PUBLIC.key_id
    assert (key.threshold, key.base, key.images) == (KEY.threshold, KEY.base, KEY.images)
    shares = [KeyShare.from_bytes(share.to_bytes(), key) for share in SHARES]
    assert [share.to_bytes() for share in shares] == [share.to_bytes() for share in SHARES]
    sent = key.public_key.load(SENT.to_bytes(), 3)
    partials = [key.load_partial(s.decrypt_partially(sent).to_bytes()) for s in shares[2:]]
    assert key.combine(sent, partials) == [1, 2, 3]
    again = KEY.load_partial(PARTIAL_BYTES)
    assert again.to_bytes() == PARTIAL_BYTES
    assert (again.index, again.digest, again.proof) == (2, PARTIAL.digest, PARTIAL.proof)
    assert values_of(again) == values_of(PARTIAL)


def test_sizes_are_independent_of_content() -> None:
    assert {len(share.to_bytes()) for share in SHARES} == {len(SHARE_BYTES)}
    partials = [s.decrypt_partially(PUBLIC.encrypt([0, 0, 0])) for s in SHARES]
    assert {len(partial.to_bytes()) for partial in partials} == {len(PARTIAL_BYTES)}


def put(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def value(number: int) -> bytes:
    return number.to_bytes(WIDTH, "little")


BAD_PARTIALS = {
    "nothing": (b"", "length", None),
    "half": (PARTIAL_BYTES[: VALUES_AT // 2], "length", None),
    "no whole proof": (PARTIAL_BYTES[: VALUES_AT - 1], "length", None),
    "one byte more": (PARTIAL_BYTES + b"\x00", "length", 2),
    "one byte less": (PARTIAL_BYTES[:-1], "length", 2),
    "magic": (put(PARTIAL_BYTES, 0, b"SAPE"), "version", None),
    "version": (put(PARTIAL_BYTES, 4, b"\x02"), "version", None),
    "key": (put(PARTIAL_BYTES, 5, bytes(32)), "key", None),
    "trustee 0": (put(PARTIAL_BYTES, 37, b"\x00"), "trustee", None),
    "trustee 5": (put(PARTIAL_BYTES, 37, b"\x05"), "trustee", None),
    "value 0": (put(PARTIAL_BYTES, VALUES_AT, value(0)), "values", 2),
    "value n²": (put(PARTIAL_BYTES, VALUES_AT + WIDTH, value(N2)), "values", 2),
    "value 2^b − 1": (put(PARTIAL_BYTES, VALUES_AT, b"\xff" * WIDTH), "values", 2),
    "a multiple of p": (put(PARTIAL_BYTES, VALUES_AT, value(6 * SAFE[0])), "values", 2),
    "a multiple of n": (put(PARTIAL_BYTES, VALUES_AT, value(2 * int(PUBLIC.n))), "values", 2),
}


@pytest.mark.parametrize("name", BAD_PARTIALS)
def test_check26_bad_partial_fails_its_own_check(name: str) -> None:
    """A bad partial decryption fails its own check."""
    data, check, sender = BAD_PARTIALS[name]
    with pytest.raises(RemoteProtocolError) as caught:
        KEY.load_partial(data)
    assert (caught.value.check, caught.value.sender) == (check, sender)
    assert caught.value.phase == "threshold_decryption"


def resealed(data: bytes) -> bytes:
    """Return a key's bytes with a matching id, as a liar would."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def without_images(count: int) -> bytes:
    return resealed(KEY_BYTES[: -32 - count * WIDTH] + bytes(32))


BAD_KEYS = {
    "nothing": (b"", "threshold_key"),
    "a header": (KEY_BYTES[:40], "threshold_key"),
    "damaged": (put(KEY_BYTES, 300, b"damage"), "threshold_key"),
    "one byte more": (KEY_BYTES + b"\x00", "threshold_key"),
    "one byte less": (KEY_BYTES[:-1], "threshold_key"),
    "magic": (resealed(put(KEY_BYTES, 0, b"SATL")), "threshold_key"),
    "version": (resealed(put(KEY_BYTES, 4, b"\x02")), "threshold_key"),
    "threshold 0": (resealed(put(KEY_BYTES, 5, b"\x00")), "threshold_key"),
    "threshold 5": (resealed(put(KEY_BYTES, 5, b"\x05")), "threshold_key"),
    "trustees 3": (resealed(put(KEY_BYTES, 6, b"\x03")), "threshold_key"),
    "trustees 5": (resealed(put(KEY_BYTES, 6, b"\x05")), "threshold_key"),
    "trustees 101": (
        resealed(put(KEY_BYTES[:-32] + value(4) * 97, 6, b"\x65") + bytes(32)),
        "threshold_key",
    ),
    "one image less": (without_images(1), "threshold_key"),
    "half an image": (resealed(KEY_BYTES[: -32 - WIDTH // 2] + bytes(32)), "threshold_key"),
    "public key of no bytes": (resealed(put(KEY_BYTES, 7, b"\x00\x00")), "public_key"),
    "public key of too many": (resealed(put(KEY_BYTES, 7, b"\xff\xff")), "public_key"),
    "public key": (resealed(put(KEY_BYTES, PUBLIC_AT, b"SASK")), "public_key"),
    "even n": (resealed(put(KEY_BYTES, PUBLIC_AT + 9, b"\x00")), "public_key"),
    "image 0": (
        resealed(put(KEY_BYTES, IMAGE_AT, value(0))),
        "threshold_key",
    ),
    "image n²": (
        resealed(put(KEY_BYTES, IMAGE_AT, value(N2))),
        "threshold_key",
    ),
    "image of p": (
        resealed(put(KEY_BYTES, IMAGE_AT, value(2 * SAFE[0]))),
        "threshold_key",
    ),
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_check26_bad_key_is_rejected(name: str) -> None:
    data, check = BAD_KEYS[name]
    with pytest.raises(RemoteProtocolError) as caught:
        load_key(data)
    assert caught.value.check == check


def test_short_key_needs_allow_insecure() -> None:
    with pytest.raises(RemoteProtocolError, match="allow_insecure") as caught:
        ThresholdKey.from_bytes(KEY_BYTES)
    assert caught.value.check == "public_key"


def test_damaged_share_raises_without_its_value() -> None:
    order = int(PUBLIC.n) * (SAFE[0] // 2) * (SAFE[1] // 2)
    secret = SHARES[1]._secret
    for name, data in {
        "nothing": b"",
        "one byte more": SHARE_BYTES + b"\x00",
        "one byte less": SHARE_BYTES[:-1],
        "magic": put(SHARE_BYTES, 0, b"SAKT"),
        "version": put(SHARE_BYTES, 4, b"\x02"),
        "key": put(SHARE_BYTES, 5, b"another"),
        "trustee 0": put(SHARE_BYTES, 37, b"\x00"),
        "another trustee": put(SHARE_BYTES, 37, b"\x03"),
        "trustee 5": put(SHARE_BYTES, 37, b"\x05"),
        "first byte": put(SHARE_BYTES, 38, bytes([SHARE_BYTES[38] ^ 1])),
        "last byte": put(SHARE_BYTES, len(SHARE_BYTES) - 1, b"\x01"),
        "out of range": SHARE_BYTES[:38] + value(secret + order * (N2 // order)),
    }.items():
        with pytest.raises(ParameterError) as caught:
            KeyShare.from_bytes(data, KEY)
        for shown in (str(secret), data[38:].hex(), str(int.from_bytes(data[38:], "little"))):
            assert len(shown) < 2 or shown not in str(caught.value), name
    with pytest.raises(ParameterError):
        KeyShare.from_bytes(dealing(4, 3)[1][1].to_bytes(), KEY)
    with pytest.raises(ParameterError, match="ThresholdKey"):
        KeyShare.from_bytes(SHARE_BYTES, PUBLIC)


CHANGES = st.lists(
    st.tuples(st.integers(0, 1 << 16), st.binary(min_size=1, max_size=9)), max_size=3
)


def changed(data: bytes, changes: list[tuple[int, bytes]], cut: int | None) -> bytes:
    for at, new in changes:
        data = put(data, at % len(data), new)
    return data if cut is None else data[:cut]


@examples(150)
@given(CHANGES, st.none() | st.integers(0, 700), st.binary(max_size=80))
def test_check26_any_bytes_give_a_value_or_a_protocol_error(
    changes: list[tuple[int, bytes]], cut: int | None, junk: bytes
) -> None:
    for original, load in (
        (PARTIAL_BYTES, KEY.load_partial),
        (KEY_BYTES, load_key),
        (SHARE_BYTES, lambda data: KeyShare.from_bytes(data, KEY)),
        (KEY_BYTES, lambda data: load_key(resealed(data))),
    ):
        for data in (changed(original, changes, cut), junk, original[: len(junk)] + junk):
            try:
                loaded = load(data)
            except SecAggError:
                continue
            assert loaded.to_bytes() in (data, resealed(data))


@examples(100)
@given(st.integers(0, 8 * len(PARTIAL_BYTES) - 1))
def test_no_bit_of_a_partial_decryption_can_change(bit: int) -> None:
    """No bit of a partial decryption can be changed on the way."""
    data = bytearray(PARTIAL_BYTES)
    data[bit // 8] ^= 1 << bit % 8
    others = [SHARES[i].decrypt_partially(SENT) for i in (0, 3)]
    with pytest.raises(RemoteProtocolError):
        KEY.combine(SENT, [KEY.load_partial(bytes(data)), *others])
