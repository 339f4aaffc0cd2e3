"""Rosters that a lying server alters."""

from __future__ import annotations

from collections.abc import Iterable

from harness import altered, pieces, read
from secagg.protocol.keys import PublicKeys, roster_digest
from secagg.protocol.messages import Roster, pack_ids, unpack_ids

FIELDS = ("seal_keys", "mask_keys", "kem_keys", "signatures")


def entries_of(data: bytes) -> dict[int, list[bytes]]:
    """Sealing, masking and encapsulation key, and signature, empty if there is none, by id."""
    roster = read(data, Roster)
    ids = unpack_ids(roster.ids)
    columns = []
    for name in FIELDS:
        column = getattr(roster, name)
        size = len(column) // len(ids)
        columns.append(pieces(column, size) if size else [b""] * len(ids))
    return dict(zip(ids, map(list, zip(*columns, strict=True)), strict=True))


def roster_of(
    data: bytes, entries: dict[int, list[bytes]], order: Iterable[int] | None = None
) -> bytes:
    """A roster of other entries, consistent in itself."""
    users = list(entries if order is None else order)
    columns = [b"".join(column) for column in zip(*(entries[u] for u in users), strict=True)]
    return altered(
        data,
        Roster,
        size=len(users),
        digest=roster_digest({u: PublicKeys(*entries[u][:3]) for u in users}),
        ids=pack_ids(users),
        **dict(zip(FIELDS, columns, strict=True)),
    )


def with_coefficient(kem_key: bytes, at: int, value: int) -> bytes:
    """An encapsulation key with another coefficient: 3 × 256 of 12 bits each, then 32 bytes."""
    number = int.from_bytes(kem_key, "little")
    number += value - (number >> 12 * at & 0xFFF) << 12 * at
    return number.to_bytes(len(kem_key), "little")
