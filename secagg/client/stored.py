"""Bytes of a suspended client, as docs/protocol.md §13 specifies them.

The head names the round and the client in clear. The secrets of the state follow, encrypted by
AES-256-GCM under a key that a `KeySlot` keeps elsewhere. So neither place alone has a secret.
Neither place has the vector, the weight or the identity.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from secagg.client.states import (
    Advertised,
    ClientState,
    Entrusted,
    Peers,
    SealingKey,
    Shared,
)
from secagg.errors import VaultError
from secagg.protocol import NEXT, Phase, RoundParams, kem, keys
from secagg.protocol.kem import KemPair
from secagg.protocol.messages import SHARE_BYTES, pack_ids, unpack_ids
from secagg.protocol.params_bytes import compare
from secagg.protocol.suites import SuiteName

VERSION = 3
_LABEL = b"secagg/4 state"
_NONCE = bytes(12)  # each key encrypts one state
_HEAD = struct.Struct("<BQH")
_COUNT = struct.Struct("<I")
_ENTRUSTED = struct.Struct("<QII")
_COLUMNS: Mapping[SuiteName, tuple[str, ...]] = {
    "hybrid": ("mask_publics", "opening", "masking", "own_p", "own_q"),
    "x25519": ("mask_publics", "masking", "opening", "own_p", "own_q"),
}
"""Columns of `Peers`, in the order of a state's bytes."""
_DUE = (Phase.SHARE_KEYS, Phase.MASKED_INPUT, Phase.CONSISTENCY_CHECK, Phase.UNMASKING)
"""Phases of a suspended client; the first byte of a state is the index of its phase."""


@runtime_checkable
class KeySlot(Protocol):
    """Place of the key of the latest suspended state; `secagg.Vault` keeps the key in a file.

    All methods raise VaultError if the place cannot be read or written.
    """

    def renew(self) -> bytes:
        """Draw a key of 32 bytes, store it in place of any other key and return it.

        The key must be durable when the call returns.
        """
        ...

    def read(self) -> bytes:
        """Return the stored key; raise VaultError ("used") if there is none."""
        ...

    def take(self, key: bytes) -> None:
        """Remove `key` for good; raise VaultError unless this call has removed the key.

        Of several calls, in any processes, at most one may succeed, and only if no power cut
        can bring the key back.
        """
        ...


def seal(key: bytes, me: int, params: RoundParams, content: bytes) -> bytes:
    """Return the bytes of a state of client `me` with this content."""
    packed = params.to_bytes()
    head = _HEAD.pack(VERSION, me, len(packed)) + packed
    return head + AESGCM(key).encrypt(_NONCE, content, _LABEL + head)


def split(data: bytes, me: int, params: RoundParams) -> tuple[bytes, bytes]:
    """Return the head of a state of client `me`, which has these `params`, and the rest.

    The checks of VaultError are "version", "length", "session", "parameters" and "client".
    """
    # before the length: another version may have a head of another length
    if data and data[0] != VERSION:
        why = f"it is of version {data[0]}, and this release reads version {VERSION} only"
        raise lost("version", f"{why}; restore it by the release that suspended it")
    if len(data) < _HEAD.size:
        raise lost("length", f"{len(data)} bytes end in its head; store all bytes")
    _, client, size = _HEAD.unpack_from(data)
    end = _HEAD.size + size
    if len(data) < end + keys.TAG_BYTES:
        raise lost("length", f"{len(data)} bytes end before its content; store all bytes")
    elsewhere, why = compare(params.to_bytes(), data[_HEAD.size : end], "in the state")
    if elsewhere:
        raise lost("session", f"{why}; a state is for its own session only")
    if why:
        raise lost("parameters", f"{why}; restore it with its own parameters")
    if client != me:
        raise lost("client", f"it is of client {client}, and this is client {me}")
    return data[:end], data[end:]


def unseal(key: bytes, head: bytes, sealed: bytes) -> bytes:
    """Return the content that `seal` encrypted; raise VaultError ("latest") for another key."""
    try:
        return AESGCM(key).decrypt(_NONCE, sealed, _LABEL + head)
    except InvalidTag:
        raise lost(
            "latest",
            "it was altered, or another state was suspended later with the same vault; use "
            "the latest state, and one vault for each client and session",
        ) from None


def pack(state: Advertised | Shared | Entrusted, me: int, clipped: int) -> bytes:
    """Return the secrets of a state, not encrypted; `clipped` is known from round 2 on."""
    due = bytes([_DUE.index(state.phase)])
    match state:
        case Advertised():
            return due + state.sealing.pair.seed + state.mask_pair.seed + _kem_seed(state)
        case Shared():
            secrets = state.session + state.seed + state.own_share + _kem_seed(state)
            others, suite = state.peers.ids.tolist(), _suite_of(state)
            held = _COUNT.pack(len(others) + 1) + pack_ids(sorted([me, *others]))
            packed = (getattr(state.peers, name).tobytes() for name in _COLUMNS[suite])
            return due + secrets + held + b"".join(packed)
        case Entrusted():
            signed = state.signed or b""
            counts = _ENTRUSTED.pack(clipped, len(state.self_shares), len(signed) // 8)
            owners = sorted(state.self_shares)
            columns = [state.self_shares[v] for v in owners]
            columns += [state.mask_shares[v] for v in owners if v in state.mask_shares]
            return due + state.session + counts + pack_ids(owners) + b"".join(columns) + signed


def unpack(data: bytes, me: int, params: RoundParams) -> tuple[ClientState, int]:
    """Return the state of client `me` that `pack` packed, and the number of clipped elements.

    Raise VaultError ("content") for any other bytes.
    """
    due = _DUE[data[0]] if data and data[0] < len(_DUE) else None
    if due is None or due not in NEXT[params.security]:
        raise spoilt()
    content = BytesIO(data[1:])

    def read(size: int) -> bytes:
        part = content.read(size)
        if len(part) < size:
            raise spoilt()
        return part

    state: Advertised | Shared | Entrusted
    clipped = 0
    if due is Phase.SHARE_KEYS:
        seal_seed, mask_seed = read(keys.SEED_BYTES), read(keys.SEED_BYTES)
        sealing = SealingKey(me)
        sealing.draw(lambda: seal_seed)
        mask_pair = keys.KeyPair.masking(mask_seed)
        state = Advertised(due, sealing, mask_pair, _kem_pair(read, params))
    elif due is Phase.MASKED_INPUT:
        session, seed, own_share = read(32), read(keys.SEED_BYTES), read(SHARE_BYTES)
        kem_pair = _kem_pair(read, params)
        (count,) = _COUNT.unpack(read(_COUNT.size))
        others = [v for v in _ids(read, count, params.holders) if v != me]
        if len(others) + 1 != count:
            raise spoilt()
        peer_ids = np.array(others, np.uint64)
        by_peer = {
            name: np.frombuffer(read(width * len(others)), np.uint8).reshape(len(others), width)
            for name, width in _widths(params).items()
        }
        state = Shared(due, session, seed, own_share, kem_pair, Peers(peer_ids, **by_peer))
    else:
        session = read(32)
        clipped, holders, signers = _ENTRUSTED.unpack(read(_ENTRUSTED.size))
        holding = _ids(read, holders, params.holders)
        self_shares = {v: read(SHARE_BYTES) for v in holding}
        mask_shares = {v: read(SHARE_BYTES) for v in holding if v != me}
        signed = read(8 * signers)
        ids = unpack_ids(signed)
        if ids is None or not set(ids) <= set(holding):
            raise spoilt()
        # only the active variant signs U3, in round 3
        if bool(ids) != (params.active and due is Phase.UNMASKING):
            raise spoilt()
        state = Entrusted(due, session, self_shares, mask_shares, signed or None)
    if content.read():
        raise spoilt()
    return state, clipped


def _suite_of(state: Shared) -> SuiteName:
    return "x25519" if state.kem_pair is None else "hybrid"


def _kem_seed(state: Advertised | Shared) -> bytes:
    """Return the seed of e_u; no bytes in suite x25519."""
    return b"" if state.kem_pair is None else state.kem_pair.seed


def _kem_pair(read: Callable[[int], bytes], params: RoundParams) -> KemPair | None:
    """Read the seed of e_u and return the pair; None in suite x25519."""
    return KemPair(read(kem.SEED_BYTES)) if params.suite == "hybrid" else None


def _widths(params: RoundParams) -> dict[str, int]:
    """Return the columns of `Peers` with their widths, in the order of the bytes."""
    hybrid, order = params.suite == "hybrid", _COLUMNS[params.suite]
    widths = {
        "mask_publics": keys.KEY_BYTES if params.active else 0,
        "masking": keys.KEY_BYTES if hybrid else keys.MASK_KEY_BYTES,
        "opening": keys.KEY_BYTES,
        "own_p": keys.KEY_BYTES if hybrid else 0,
        "own_q": keys.KEY_BYTES if hybrid else 0,
    }
    return {name: widths[name] for name in order}


def _ids(read: Callable[[int], bytes], count: int, most: int) -> tuple[int, ...]:
    """Read `count` ascending ids, at most `most`."""
    ids = unpack_ids(read(8 * count)) if count <= most else None
    if ids is None:
        raise spoilt()
    return ids


def lost(check: str, why: str) -> VaultError:
    """Return the error for a state that cannot be restored."""
    return VaultError(f"this state cannot be restored: {why}", check=check)


def spoilt() -> VaultError:
    """Return the error for content that no client of this round suspended."""
    return lost("content", "its content is not that of a client of this round; make a new one")
