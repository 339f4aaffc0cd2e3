"""Messages of the protocol: one frozen type each, with `encode` and a strict `decode`.

On the wire a message is the byte 4 (the version) and a MessagePack array: an integer tag, then
the fields. Lists of ids, keys and shares are byte strings of fixed-width little-endian items.
So a decoder allocates no more memory than the bytes of the message. The length of a message
never depends on an input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from secagg.errors import RemoteProtocolError
from secagg.protocol.dealing import COMPLAINT_ITEM, HASH_BYTES, depth
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.kem import CIPHERTEXT_BYTES
from secagg.protocol.kem import KEY_BYTES as KEM_KEY_BYTES
from secagg.protocol.keys import TAG_BYTES
from secagg.protocol.pair_masks import CONTRIBUTION_BYTES
from secagg.protocol.params import RoundParams
from secagg.protocol.params_bytes import MAX_PARAMS_BYTES, VERSION, other_version
from secagg.protocol.suites import SuiteName

SHARE_LIMBS = 5
"""⌈32 / 7⌉ limbs of a 32-byte secret."""
SHARE_BYTES = 8 * SHARE_LIMBS
SEALED_BYTES: Mapping[SuiteName, int] = {
    "hybrid": CIPHERTEXT_BYTES + 2 * SHARE_BYTES + CONTRIBUTION_BYTES + TAG_BYTES,
    "x25519": 2 * SHARE_BYTES + TAG_BYTES,
}
"""A box: a share of b_u, a share of s_u, and the tag of AES-GCM; in suite hybrid also the
ciphertext of ML-KEM and the contributions p and q."""
CHECK_BYTES = 32
POINT_BYTES = 4
DISCLOSED_BYTES = 96

Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(max_length=SIGNATURE_BYTES)]
KemKey = Annotated[bytes, Meta(max_length=KEM_KEY_BYTES)]
Parameters = Annotated[bytes, Meta(max_length=MAX_PARAMS_BYTES)]
"""Bytes of ``RoundParams.to_bytes`` for the peer's parameters, of any content."""


class Message(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base of all messages."""


class AdvertiseKeys(Message, frozen=True, tag=1):
    """Round 0, client to server: public keys c_u (sealing) and s_u (masking, fresh).

    `parameters` are the client's. `kem_key` is e_u, and empty in suite x25519. The signature is
    64 bytes in the active variant, and empty in the semi-honest variant.
    """

    sender: int
    parameters: Parameters
    seal_key: Bytes32
    mask_key: Bytes32
    kem_key: KemKey
    signature: Signature


class Roster(Message, frozen=True, tag=2):
    """Round 1, server to client: ids and public keys of the receiver and its neighbours.

    Ids ascend. `size` is |U1|, and `digest` is `keys.roster_digest` of all clients of U1.
    """

    parameters: Parameters
    size: int
    digest: Bytes32
    ids: bytes
    seal_keys: bytes
    mask_keys: bytes
    kem_keys: bytes
    signatures: bytes


class ShareKeys(Message, frozen=True, tag=3):
    """Round 1, client to server: sealed shares for each neighbour, by ascending ids.

    `checks`, in suite hybrid, has the check of the contributions for each neighbour. In the
    active variant `hashes` has the two hashes of each holder's share, the sender included, and
    `dealt` signs the root of the tree over them (docs/protocol.md, §5.15).
    """

    sender: int
    session: Bytes32
    commitment: Bytes32
    sealed: bytes
    checks: bytes
    hashes: bytes
    dealt: Signature


class Shares(Message, frozen=True, tag=4):
    """Round 2, server to client: sealed shares from neighbours in U2, by ascending ids.

    `checks` are in suite hybrid. In the active variant each sender's share comes with what the
    sender signed: its commitment, `dealt`, the receiver's point and hashes, and the path from
    the receiver's leaf to the root.
    """

    session: Bytes32
    senders: bytes
    sealed: bytes
    checks: bytes
    commitments: bytes
    dealt: bytes
    points: bytes
    hashes: bytes
    paths: bytes


class MaskedInput(Message, frozen=True, tag=5):
    """Round 2, client to server: the masked input y_u, packed at ⌈log2 R⌉ bits an element.

    `deposits`, in suite hybrid, are for the senders of the shares, in order. In the active
    variant `complaints` names the senders of bad shares, and `accepted` signs all leaves.
    `disclosed` has the secrets of the pair for each complaint of kind 2. The values are last,
    because they are written in place.
    """

    sender: int
    session: Bytes32
    deposits: bytes
    complaints: bytes
    disclosed: bytes
    accepted: Signature
    values: bytes


class ConsistencyRequest(Message, frozen=True, tag=8):
    """Round 3, server to client, active variant: the packed ids of the survivors U3."""

    session: Bytes32
    survivors: bytes


class ConsistencySignature(Message, frozen=True, tag=9):
    """Round 3, client to server, active variant: the client's signature over U3."""

    sender: int
    session: Bytes32
    signature: Signature


class UnmaskRequest(Message, frozen=True, tag=6):
    """Round 4, server to client: the owners of the shares that the receiver should reveal.

    Both lists are of the receiver and its neighbours: `survivors` in U3, `dropped` in U2 but
    not U3. The active variant adds U4, the signers of U3, and their signatures.
    """

    session: Bytes32
    survivors: bytes
    dropped: bytes
    signers: bytes
    signatures: bytes


class UnmaskShares(Message, frozen=True, tag=7):
    """Round 4, client to server: shares of survivors' b, then of dropped-out clients' s."""

    sender: int
    session: Bytes32
    shares: bytes
    answer: Signature


M = TypeVar("M", bound=Message)

_ENCODER = msgspec.msgpack.Encoder()
_FRAME = 256
"""More than the tag, the fixed-width fields and the length prefixes of any message take."""


def encode(message: Message) -> bytes:
    """Return a message as bytes for the wire."""
    return bytes([VERSION]) + _ENCODER.encode(message)


def start(message: MaskedInput, size: int) -> bytes:
    """Return `encode` of a message up to its values, which will take `size` bytes.

    The values of `message` itself are empty.
    """
    # MessagePack's "bin 8", "bin 16" or "bin 32"
    width, code = (1, 0xC4) if size < 1 << 8 else (2, 0xC5) if size < 1 << 16 else (4, 0xC6)
    # an empty byte string, of two bytes, ends the message and gives way to the new header
    return encode(message)[:-2] + bytes([code]) + size.to_bytes(width, "big")


def decode(
    data: bytes, kind: type[M], params: RoundParams, *, sender: int | None, phase: str
) -> M:
    """Decode a message of the class `kind`, bounded in size by `params`.

    Raise RemoteProtocolError if `data`, of any content, are not exactly one such message. The
    error has the `sender`, a client id or None for the server, and the `phase`. The failed
    check is "version", "size" or "encoding".
    """

    def violation(check: str, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(why, sender=sender, phase=phase, check=check)

    if not isinstance(data, bytes) or not data:
        raise violation("encoding", "the message is empty or not bytes")
    if data[0] != VERSION:
        raise violation("version", other_version(data[0]))
    # before decoding, which takes memory in proportion to the message
    limit = max_bytes(kind, params)
    if len(data) > limit:
        raise violation("size", f"{len(data)} bytes; a {kind.__name__} has at most {limit}")
    # not chained: the decoder's error may quote the content
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.msgpack.decode(memoryview(data)[1:], type=kind)
    raise violation("encoding", f"these bytes are not a {kind.__name__}")


class _Most(NamedTuple):
    """Bytes of a message at most: alone, and for each holder.

    `hybrid` are more for each holder in suite hybrid, `active` in the active variant.
    """

    alone: int = 0
    each: int = 0
    hybrid: int = 0
    active: int = 0


_MORE_SEALED = SEALED_BYTES["hybrid"] - SEALED_BYTES["x25519"]
_SIZES: dict[type[Struct], _Most] = {
    AdvertiseKeys: _Most(MAX_PARAMS_BYTES),
    Roster: _Most(MAX_PARAMS_BYTES, 8 + 32 + 32, KEM_KEY_BYTES, SIGNATURE_BYTES),
    ShareKeys: _Most(0, SEALED_BYTES["x25519"], _MORE_SEALED + CHECK_BYTES, 2 * HASH_BYTES),
    Shares: _Most(
        0,
        8 + SEALED_BYTES["x25519"],
        _MORE_SEALED + CHECK_BYTES,
        32 + SIGNATURE_BYTES + POINT_BYTES + 2 * HASH_BYTES,
    ),
    MaskedInput: _Most(0, 0, 32, COMPLAINT_ITEM.itemsize),
    ConsistencyRequest: _Most(0, 8),
    UnmaskRequest: _Most(0, 8, 0, 8 + SIGNATURE_BYTES),
    UnmaskShares: _Most(0, SHARE_BYTES),
}


def max_bytes(kind: type[Struct], params: RoundParams) -> int:
    """Return an upper bound on the size of a message of this kind under these parameters."""
    most = _SIZES.get(kind, _Most())
    hybrid, holders = params.suite == "hybrid", params.holders
    each = most.each + (most.hybrid if hybrid else 0) + (most.active if params.active else 0)
    alone = _FRAME + most.alone
    if kind is AdvertiseKeys and hybrid:
        alone += KEM_KEY_BYTES
    if kind is Shares and params.active:
        each += HASH_BYTES * depth(holders)
    if kind is MaskedInput:
        alone += params.ring.packed_bytes(params.elements)
        each += DISCLOSED_BYTES if hybrid and params.active else 0
    return alone + holders * each


def pack_ids(ids: Sequence[int]) -> bytes:
    """Return ids as bytes, eight little-endian bytes for each."""
    return np.array(ids, dtype="<u8").tobytes()


def unpack_ids(data: bytes) -> tuple[int, ...] | None:
    """Return the ids that `pack_ids` packed, or None if they are not strictly ascending."""
    if len(data) % 8:
        return None
    ids = np.frombuffer(data, dtype="<u8")
    # strictly ascending, since a repeated id would count a client twice
    if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
        return None
    return tuple(ids.tolist())
