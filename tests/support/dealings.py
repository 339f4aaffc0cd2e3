"""Dealers that deal wrong shares and sign for them, and servers that alter what they signed."""

from __future__ import annotations

import numpy as np

from harness import Cohort, altered, pieces, read
from secagg import RoundParams
from secagg.protocol import dealing
from secagg.protocol.keys import rows_of
from secagg.protocol.messages import (
    SEALED_BYTES,
    AdvertiseKeys,
    ShareKeys,
    Shares,
    encode,
    pack_ids,
)
from secagg.testing import make_identity


def flipped(data: bytes, at: int) -> bytes:
    """The bytes with one bit changed."""
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def with_item(column: bytes, size: int, index: int, at: int = 0) -> bytes:
    """A column of items with a bit of one item changed."""
    items = pieces(column, size)
    items[index] = flipped(items[index], at)
    return b"".join(items)


def place_of(cohort: Cohort, v: int, w: int) -> int:
    """The place of w among the receivers of v on the complete graph."""
    return sorted(u for u in cohort.ids if u != v).index(w)


def redealt(cohort: Cohort, v: int, data: bytes, **changes: bytes) -> bytes:
    """Dealer v's ShareKeys with other fields, signed by v again."""
    message = read(altered(data, ShareKeys, **changes), ShareKeys)
    params, ids = cohort.params, np.array(sorted(cohort.ids), np.uint64)
    checks = rows_of([message.checks]) if params.suite == "hybrid" else None
    sealed = rows_of([message.sealed], SEALED_BYTES[params.suite])
    leaves = dealing.dealt_leaves(
        message.session, v, ids, rows_of([message.hashes], 64), checks, sealed
    )
    mask_key = read(cohort.sent[0][v], AdvertiseKeys).mask_key
    root = dealing.tree(leaves)[-1].tobytes()
    signed = dealing.signed_dealt(message.session, v, message.commitment, mask_key, root)
    return altered(data, ShareKeys, **changes, dealt=make_identity(v).sign(signed))


def with_noise(cohort: Cohort, v: int, w: int, data: bytes) -> bytes:
    """Dealer v seals a box for w that does not open."""
    size, sealed = SEALED_BYTES[cohort.params.suite], read(data, ShareKeys).sealed
    other = with_item(sealed, size, place_of(cohort, v, w), -1)
    return redealt(cohort, v, data, sealed=other)


def with_noise_for_zeros(cohort: Cohort, v: int, w: int, data: bytes) -> bytes:
    """Dealer v seals a box that does not open, and hashes zeros: what a reader might find."""
    message = read(with_noise(cohort, v, w, data), ShareKeys)
    hashes, zeros = pieces(message.hashes, 64), np.zeros((1, 40), np.uint8)
    hashes[sorted(cohort.ids).index(w)] = b"".join(
        dealing.share_hashes(kind, message.session, v, w, zeros).tobytes() for kind in (0, 1)
    )
    return redealt(cohort, v, data, sealed=message.sealed, hashes=b"".join(hashes))


def with_wrong_hash(cohort: Cohort, v: int, w: int, data: bytes) -> bytes:
    """Dealer v signs another hash of w's share of s than that of the share in the box."""
    hashes = read(data, ShareKeys).hashes
    return redealt(
        cohort, v, data, hashes=with_item(hashes, 64, sorted(cohort.ids).index(w), 40)
    )


def with_wrong_check(cohort: Cohort, v: int, w: int, data: bytes) -> bytes:
    """Dealer v signs another check than that of the contributions in the box (hybrid)."""
    checks = read(data, ShareKeys).checks
    return redealt(cohort, v, data, checks=with_item(checks, 32, place_of(cohort, v, w)))


def shares_for(
    params: RoundParams, w: int, roster: list[int], dealt: dict[int, tuple[bytes, list[int]]]
) -> bytes:
    """The Shares for w, who sees `roster`, from each sender's ShareKeys and its own roster.

    A sender that has no share for w gives that for its first holder.
    """
    columns: dict[str, list[bytes]] = {field: [] for field in Shares.__struct_fields__[2:]}
    senders = [v for v in roster if v != w]
    box, hybrid = SEALED_BYTES[params.suite], params.suite == "hybrid"
    for v in senders:
        data, holders = dealt[v]
        message = read(data, ShareKeys)
        others = [u for u in holders if u != v]
        at = others.index(w) if w in others else 0
        columns["sealed"].append(pieces(message.sealed, box)[at])
        if hybrid:
            columns["checks"].append(pieces(message.checks, 32)[at])
        if params.active:
            place = holders.index(others[at])
            checks = rows_of([message.checks]) if hybrid else None
            ids, hashes = np.array(holders, np.uint64), rows_of([message.hashes], 64)
            leaves = dealing.dealt_leaves(
                message.session, v, ids, hashes, checks, rows_of([message.sealed], box)
            )
            path = dealing.tree(leaves)[dealing.siblings(len(holders))[place]]
            columns["commitments"].append(message.commitment)
            columns["dealt"].append(message.dealt)
            columns["points"].append((roster.index(w) + 1).to_bytes(4, "little"))
            columns["hashes"].append(pieces(message.hashes, 64)[place])
            columns["paths"].append(path.tobytes())
    session = read(dealt[w][0], ShareKeys).session
    joined = {name: b"".join(items) for name, items in columns.items()}
    return encode(Shares(session, pack_ids(senders), **joined))
