"""Rosters that a lying server alters."""

from __future__ import annotations

from collections.abc import Iterable

from harness import altered, pieces, read
from secagg.protocol.keys import roster_digest
from secagg.protocol.messages import Roster, pack_ids, unpack_ids

FIELDS = {"seal_keys": 32, "mask_keys": 32, "signatures": 64}


def entries_of(data: bytes) -> dict[int, list[bytes]]:
    """Sealing key, masking key and signature, empty if there is none, by id."""
    roster = read(data, Roster)
    columns = [pieces(getattr(roster, name), size) for name, size in FIELDS.items()]
    rows = enumerate(unpack_ids(roster.ids))
    return {u: [column[i] if column else b"" for column in columns] for i, u in rows}


def roster_of(
    data: bytes, entries: dict[int, list[bytes]], order: Iterable[int] | None = None
) -> bytes:
    """A roster of other entries, consistent in itself."""
    users = list(entries if order is None else order)
    columns = [b"".join(entries[u][i] for u in users) for i in range(3)]
    return altered(
        data,
        Roster,
        size=len(users),
        digest=roster_digest([(u, *entries[u][:2]) for u in users]),
        ids=pack_ids(users),
        **dict(zip(FIELDS, columns, strict=True)),
    )
