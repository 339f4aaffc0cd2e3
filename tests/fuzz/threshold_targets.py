"""Fuzz targets of threshold decryption: the public key, shares, and partial decryptions.

The first byte selects the decoder, the rest is its input. A partial decryption that is accepted
is combined with an honest one: the messages are right, or it is rejected.
"""

from __future__ import annotations

import hashlib
from functools import cache

from fuzz.paillier_targets import check_rejection, taken
from paillier_keys import Stream
from secagg import RemoteProtocolError, threshold

MESSAGES = [5, -(1 << 100)]
ENTROPY = Stream("threshold")
KEY, SHARES = threshold.deal_insecure(trustees=3, threshold=2, bits=512, entropy=ENTROPY)
SENT = KEY.public_key.encrypt(MESSAGES, ENTROPY)
PARTS = [share.decrypt_partially(SENT, ENTROPY) for share in SHARES]

ARRIVING = {"length", "version", "key", "trustee", "values"}
COMBINED = {"duplicate", "ciphertexts", "proof"}


def _key(data: bytes) -> None:
    read = threshold.ThresholdKey.from_bytes
    taken(read, data, "threshold_key", "public_key", allow_insecure=True)


def _sealed(data: bytes) -> None:
    """Call `_key` with a correct id, so that later checks are reached."""
    _key(data + hashlib.sha256(data).digest())


def _share(data: bytes) -> None:
    taken(threshold.KeyShare.from_bytes, data, key=KEY)


def _partial(data: bytes) -> None:
    part = taken(KEY.load_partial, data, *ARRIVING)
    if part is None:
        return
    try:
        messages = KEY.combine(SENT, [PARTS[0], part])
    except RemoteProtocolError as error:
        check_rejection(error, *COMBINED)
        assert error.sender == part.index
    else:
        assert messages == MESSAGES


DECODERS = (_key, _sealed, _share, _partial)


def threshold_parts(data: bytes) -> None:
    """The first byte says which decoder; the rest is what it reads."""
    if data:
        DECODERS[data[0] % len(DECODERS)](data[1:])


@cache
def threshold_seeds() -> list[bytes]:
    """The key, the shares, and each trustee's partial decryption."""
    key = KEY.to_bytes()
    return [
        b"\0" + key,
        b"\1" + key[:-32],
        *(b"\2" + share.to_bytes() for share in SHARES),
        *(b"\3" + part.to_bytes() for part in PARTS),
    ]
