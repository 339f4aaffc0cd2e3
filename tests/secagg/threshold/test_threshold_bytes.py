"""Keys, shares and partial decryptions as bytes: decoded right, or rejected."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from raised import rejects
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
    "a multiple of p": (put(PARTIAL_BYTES, VALUES_AT, value(6 * SAFE[0])), "values", 2),
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


SEALED = {
    "magic": put(KEY_BYTES, 0, b"SATL"),
    "version": put(KEY_BYTES, 4, b"\x02"),
    "threshold 0": put(KEY_BYTES, 5, b"\x00"),
    "threshold 5": put(KEY_BYTES, 5, b"\x05"),
    "trustees 5": put(KEY_BYTES, 6, b"\x05"),
    "trustees 101": put(KEY_BYTES[:-32] + value(4) * 97, 6, b"\x65") + bytes(32),
    "one image less": KEY_BYTES[: -32 - WIDTH] + bytes(32),
    "public key of no bytes": put(KEY_BYTES, 7, b"\x00\x00"),
    "public key of too many": put(KEY_BYTES, 7, b"\xff\xff"),
    "public key": put(KEY_BYTES, PUBLIC_AT, b"SASK"),
    "image 0": put(KEY_BYTES, IMAGE_AT, value(0)),
    "image n²": put(KEY_BYTES, IMAGE_AT, value(N2)),
    "image of p": put(KEY_BYTES, IMAGE_AT, value(2 * SAFE[0])),
}
BAD_KEYS = {name: resealed(data) for name, data in SEALED.items()} | {
    "nothing": b"",
    "damaged": put(KEY_BYTES, 300, b"damage"),
    "one byte more": KEY_BYTES + b"\x00",
}


@pytest.mark.parametrize("name", BAD_KEYS)
def test_check26_bad_key_is_rejected(name: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        load_key(BAD_KEYS[name])
    expected = "public_key" if name.startswith("public") else "threshold_key"
    assert caught.value.check == expected


def test_short_key_needs_allow_insecure() -> None:
    rejects("public_key", lambda: ThresholdKey.from_bytes(KEY_BYTES))


def test_damaged_share_raises_without_its_value() -> None:
    order = int(PUBLIC.n) * (SAFE[0] // 2) * (SAFE[1] // 2)
    secret = SHARES[1]._secret
    for data in (
        b"",
        SHARE_BYTES + b"\x00",
        SHARE_BYTES[:-1],
        put(SHARE_BYTES, 0, b"SAKT"),
        put(SHARE_BYTES, 4, b"\x02"),
        put(SHARE_BYTES, 5, b"another"),
        *(put(SHARE_BYTES, 37, trustee) for trustee in (b"\x00", b"\x03", b"\x05")),
        put(SHARE_BYTES, 38, bytes([SHARE_BYTES[38] ^ 1])),
        SHARE_BYTES[:38] + value(secret + order * (N2 // order)),
        dealing(4, 3)[1][1].to_bytes(),
    ):
        with pytest.raises(ParameterError) as caught:
            KeyShare.from_bytes(data, KEY)
        for shown in (str(secret), data[38:].hex(), str(int.from_bytes(data[38:], "little"))):
            assert len(shown) < 2 or shown not in str(caught.value)
    with pytest.raises(ParameterError):
        KeyShare.from_bytes(SHARE_BYTES, PUBLIC)  # type: ignore[arg-type]


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


@examples(40)
@given(st.integers(0, 8 * len(PARTIAL_BYTES) - 1))
def test_no_bit_of_a_partial_decryption_can_change(bit: int) -> None:
    """No bit of a partial decryption can be changed on the way."""
    data = bytearray(PARTIAL_BYTES)
    data[bit // 8] ^= 1 << bit % 8
    others = [SHARES[i].decrypt_partially(SENT) for i in (0, 3)]
    with pytest.raises(RemoteProtocolError):
        KEY.combine(SENT, [KEY.load_partial(bytes(data)), *others])
