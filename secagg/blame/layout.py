"""Bytes of verdicts (docs/protocol.md, §14): written, and read from anybody's bytes.

A reader copies no more than the bytes that are there, whatever lengths they announce.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg.errors import RemoteProtocolError, Verdict
from secagg.protocol import dealing
from secagg.protocol.dealing import HASH_BYTES
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.keys import U8, U64
from secagg.protocol.messages import SHARE_BYTES
from secagg.protocol.params_bytes import VERSION, other_version

SHARES, ANSWER, COMPLAINTS, CONTRIBUTION, COMPLAINER = KINDS = (
    "shares",
    "answer",
    "complaints",
    "contribution",
    "complainer",
)
"""Kinds of a verdict; the byte of a kind is the place in this tuple, from 1."""
ID_BYTES = 8
DEALT_BYTES = 3 * HASH_BYTES + SIGNATURE_BYTES
_OPENED = (ID_BYTES, 4, 2 * HASH_BYTES, HASH_BYTES, HASH_BYTES)
_SHARE = (ID_BYTES, 4, SHARE_BYTES, HASH_BYTES, HASH_BYTES, HASH_BYTES)
OPENED_BYTES, SHOWN_BYTES = sum(_OPENED), sum(_SHARE)
"""Bytes of an opened leaf, and of a share with the rest of the leaf, before the path."""
_HEAD = struct.Struct("<BBH")
_LENGTH = struct.Struct("<I")


class Claim(NamedTuple):
    """Verdict that nobody has judged yet.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    params, roster : bytes
        Bytes of the round's parameters, and digest of the roster.
    client : int
        Id of the accused client.
    parts : memoryview
        Bytes of all parts, for `Parts`.
    """

    kind: str
    params: bytes
    roster: bytes
    client: int
    parts: memoryview


class Dealt(NamedTuple):
    """Values that a dealer published and signed.

    Attributes
    ----------
    commitment, mask_key, root : bytes
        Commitment to b_v, masking key s_v and root of the leaves, 32 bytes each.
    signature : bytes
        The dealer's signature, 64 bytes.
    """

    commitment: bytes
    mask_key: bytes
    root: bytes
    signature: bytes

    @classmethod
    def of(cls, part: bytes) -> Dealt:
        """Return the fields of `DEALT_BYTES` bytes."""
        return cls(part[:32], part[32:64], part[64:96], part[96:])


class Openings(NamedTuple):
    """Opened leaves of a dealer, a row for each holder.

    Attributes
    ----------
    holders, points : uint64 arrays, shape (m,)
        Ids of the holders, and their points X.
    hashes : uint8 array, shape (m, 64)
        Hash of the share of b, then of s.
    checks, boxes : uint8 arrays, shape (m, 32)
        See `dealing.leaves`.
    paths : uint8 array, shape (m, L, 32)
    """

    holders: U64
    points: U64
    hashes: U8
    checks: U8
    boxes: U8
    paths: U8

    @classmethod
    def of(cls, *parts: bytes) -> Openings:
        """Return the leaves of parts with one length: `OPENED_BYTES`, and a path."""
        holders, points, hashes, checks, boxes, paths = _columns(parts, _OPENED)
        return cls(_numbers(holders), _numbers(points), hashes, checks, boxes, _nodes_of(paths))

    def at(self, rows: Sequence[int] | NDArray[np.intp]) -> Openings:
        """Return the leaves of some rows."""
        pairs = self.holders[rows], self.points[rows]
        columns = self.hashes[rows], self.checks[rows], self.boxes[rows], self.paths[rows]
        return Openings(*pairs, *columns)

    def parts(self) -> list[bytes]:
        """Return a part for each leaf."""
        holders, points = self.holders.astype("<u8"), self.points.astype("<u4")
        return _rows(holders, points, self.hashes, self.checks, self.boxes, self.paths)

    def leaves(self, session: bytes, dealer: int) -> U8:
        """Return the hashes of the leaves; uint8 array, shape (m, 32)."""
        holders, points, hashes, checks, boxes, _ = self
        return dealing.leaves(session, dealer, holders, points, hashes, checks, boxes)


class Shown(NamedTuple):
    """Shares of a dealer, a row for each holder, with the rest of their leaves.

    Attributes
    ----------
    shares : uint8 array, shape (m, 40)
    others : uint8 array, shape (m, 32)
        Hashes of the holders' shares of the other kind.
    holders, points, checks, boxes, paths : arrays
        See `Openings`.
    """

    holders: U64
    points: U64
    shares: U8
    others: U8
    checks: U8
    boxes: U8
    paths: U8

    @classmethod
    def of(cls, *parts: bytes) -> Shown:
        """Return the shares of parts with one length: `SHOWN_BYTES`, and a path."""
        holders, points, shares, others, checks, boxes, paths = _columns(parts, _SHARE)
        numbers = _numbers(holders), _numbers(points)
        return cls(*numbers, shares, others, checks, boxes, _nodes_of(paths))

    def parts(self) -> list[bytes]:
        """Return a part for each share."""
        holders, points = self.holders.astype("<u8"), self.points.astype("<u4")
        rest = self.shares, self.others, self.checks, self.boxes, self.paths
        return _rows(holders, points, *rest)

    def opened(self, kind: int, session: bytes, dealer: int) -> Openings:
        """Return the leaves that shares of a kind, and the hashes of the others, give."""
        own = dealing.share_hashes(kind, session, dealer, self.holders, self.shares)
        both = (own, self.others) if kind == dealing.B_SHARE else (self.others, own)
        hashes = np.concatenate(both, axis=1)
        return Openings(self.holders, self.points, hashes, self.checks, self.boxes, self.paths)


class Parts:
    """Parts of a verdict, read one by one.

    Parameters
    ----------
    data : memoryview
        Bytes of all parts.
    deepest : int
        Most nodes that a path can have.
    """

    def __init__(self, data: memoryview, deepest: int) -> None:
        self._data, self._longest = data, deepest * HASH_BYTES
        self._path: int | None = None  # bytes of all paths, as the first path has them

    def __bool__(self) -> bool:
        return bool(self._data)

    def take(self, size: int) -> bytes:
        """Return the next part, which has `size` bytes."""
        part = self._next()
        if len(part) != size:
            raise unproven("length", f"a part has {len(part)} bytes in place of {size}")
        return part

    def take_items(self, size: int) -> bytes:
        """Return the next part, a list with one or more items of `size` bytes."""
        part = self._next()
        if not part or len(part) % size:
            raise unproven("length", f"a list has {len(part)} bytes, not {size} for each item")
        return part

    def take_opened(self, size: int) -> bytes:
        """Return the next part, `size` bytes and a path; all paths have one length."""
        part = self._next()
        path = len(part) - size
        if self._path is None and path in range(0, self._longest + 1, HASH_BYTES):
            self._path = path
        if path != self._path:
            raise unproven("length", f"a leaf and its path have {len(part)} bytes")
        return part

    def end(self) -> None:
        """Raise unless all parts are taken."""
        if self._data:
            raise unproven("length", f"{len(self._data)} bytes follow the last part")

    def _next(self) -> bytes:
        if len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            rest = self._data[_LENGTH.size :]
            if length <= len(rest):
                self._data = rest[length:]
                return bytes(rest[:length])
        raise unproven("length", "the bytes end before the last part does")


def pack(
    kind: str, params: bytes, roster: bytes, client: int, parts: Sequence[bytes]
) -> Verdict:
    """Return a verdict; see `Claim` for the fields."""
    head = _HEAD.pack(VERSION, KINDS.index(kind) + 1, len(params)) + params + roster
    lengths = (_LENGTH.pack(len(part)) + part for part in parts)
    data = head + client.to_bytes(ID_BYTES, "little") + b"".join(lengths)
    return Verdict(client, kind, data)


def unpack(data: bytes) -> Claim:
    """Return the fields of a verdict, which may prove nothing.

    Raises
    ------
    RemoteProtocolError
        "version", "length" or "kind": these are not the bytes of a verdict.
    """
    if data and data[0] != VERSION:
        remedy = "; if these bytes are no verdict, pass those of a file verdict-*.bin"
        raise unproven("version", other_version(data[0]) + remedy)
    if len(data) < _HEAD.size:
        raise unproven("length", f"{len(data)} bytes are too few")
    _, kind, size = _HEAD.unpack_from(data)
    if not 1 <= kind <= len(KINDS):
        raise unproven("kind", f"the kind {kind} is unknown")
    view = memoryview(data)[_HEAD.size :]
    if len(view) < size + HASH_BYTES + ID_BYTES:
        raise unproven("length", "the bytes end before the first part")
    params, roster, client = view[:size], view[size : size + HASH_BYTES], size + HASH_BYTES
    return Claim(
        KINDS[kind - 1],
        bytes(params),
        bytes(roster),
        int.from_bytes(view[client : client + ID_BYTES], "little"),
        view[client + ID_BYTES :],
    )


def unproven(check: str, why: str) -> RemoteProtocolError:
    """Return the error for bytes that prove nothing against a client."""
    why = f"this verdict convicts nobody: {why}"
    return RemoteProtocolError(why, sender=None, phase="verdict", check=check)


def _columns(parts: Sequence[bytes], widths: Sequence[int]) -> list[U8]:
    """Return the columns of parts as arrays, and the rest of each part as last column."""
    rows = np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), -1)
    return np.split(rows, np.cumsum(widths), axis=1)


def _rows(*columns: U8 | U64) -> list[bytes]:
    """Return the bytes of each row of some columns."""
    count = len(columns[0])
    parts = [np.ascontiguousarray(one).reshape(count, -1).view(np.uint8) for one in columns]
    return [row.tobytes() for row in np.concatenate(parts, axis=1)]


def _numbers(column: U8) -> U64:
    """Return the little-endian integers of rows of four or eight bytes."""
    width = column.shape[1]
    numbers = np.ascontiguousarray(column).view(f"<u{width}").ravel()
    return numbers.astype(np.uint64)


def _nodes_of(paths: U8) -> U8:
    """Return paths with an axis for the nodes; shape (m, L, 32)."""
    count, size = paths.shape
    return paths.reshape(count, size // HASH_BYTES, HASH_BYTES)
