"""Signed dealings that the server altered: the client ends, and blames no dealer for it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dealings import flipped
from harness import (
    Cohort,
    altered,
    finish,
    make_identity,
    make_params,
    pieces,
    read,
    rejects,
)
from secagg import Client
from secagg.client import opening
from secagg.protocol import dealing, keys
from secagg.protocol.messages import SEALED_BYTES, AdvertiseKeys, ShareKeys, Shares

ME = 2
COLUMNS = ("sealed", "commitments", "dealt", "points", "hashes", "paths")


def shares_for(suite: str, n: int = 5, **changes: object) -> tuple[Cohort, Client, bytes]:
    """A cohort after round 1, its client 2, and the shares that the server has for it."""
    cohort = Cohort(make_params(n, suite=suite, **{"security": "active"} | changes))
    return cohort, cohort.clients[ME], cohort.advance(2)[ME]


def columns_of(data: bytes, name: str) -> list[bytes]:
    """The items of a column, one for each of the four senders."""
    column = getattr(read(data, Shares), name)
    return pieces(column, len(column) // 4)


@pytest.mark.parametrize(
    ("name", "suite"), [*product(COLUMNS, ["x25519", "hybrid"]), ("checks", "hybrid")]
)
def test_check59_server_that_alters_any_column_is_at_fault(name: str, suite: str) -> None:
    """In any item, at its first and its last byte."""
    for sender in range(4):
        for at in (0, -1):
            _, client, data = shares_for(suite)
            items = columns_of(data, name)
            items[sender] = flipped(items[sender], at)
            rejects(client, altered(data, Shares, **{name: b"".join(items)}), "dealt")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "points"])
def test_check59_items_of_two_dealers_are_not_swapped(name: str, suite: str) -> None:
    _, client, data = shares_for(suite)
    first, second, *rest = columns_of(data, name)
    swapped = b"".join([second, first, *rest])
    rejects(client, altered(data, Shares, **{name: swapped}), "dealt")


@pytest.mark.parametrize("nodes", [2, 4])
def test_check59_path_has_the_depth_of_the_clients_own_roster(nodes: int) -> None:
    """Five holders have paths of three nodes, whatever all dealers signed."""
    _, client, data = shares_for("x25519")
    paths = b"".join(one.ljust(128, b"\0")[: 32 * nodes] for one in columns_of(data, "paths"))
    rejects(client, altered(data, Shares, paths=paths), "length")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check59_another_holders_leaf_is_rejected(suite: str) -> None:
    """All that the dealers signed for client 3, point and path included."""
    cohort, client, data = shares_for(suite)
    other = read(cohort.inbox[3], Shares)
    names = (*COLUMNS, "checks")
    # the senders of both are 0, 1 and 4, besides 3 here and 2 there
    columns = {}
    for name in names:
        own = columns_of(data, name) if getattr(other, name) else [b""] * 4
        theirs = columns_of(cohort.inbox[3], name) if getattr(other, name) else [b""] * 4
        columns[name] = b"".join([theirs[0], *own[1:]])
    rejects(client, altered(data, Shares, **columns), "dealt")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check59_point_is_the_place_in_the_clients_own_roster(suite: str) -> None:
    """A dealer that colludes signed this client's leaf for the point of client 3."""
    cohort, client, data = shares_for(suite)
    session, all_ids = read(data, Shares).session, np.arange(5, dtype=np.uint64)
    message = read(cohort.sent[1][0], ShareKeys)
    hashes, checks = keys.rows_of([message.hashes], 64), np.zeros((5, 32), np.uint8)
    sealed = keys.rows_of([message.sealed], SEALED_BYTES[suite])
    if suite == "hybrid":
        checks[1:] = keys.rows_of([message.checks])
    own_box = keys.digests(np.empty((1, 0), np.uint8))
    boxes = np.concatenate([own_box, keys.digests(sealed)])
    order = np.array([0, 1, 3, 2, 4])
    leaves = dealing.leaves(
        session, 0, all_ids[order], all_ids + 1, hashes[order], checks[order], boxes[order]
    )
    tree = dealing.tree(leaves)
    mask_key = read(cohort.sent[0][0], AdvertiseKeys).mask_key
    content = dealing.signed_dealt(session, 0, message.commitment, mask_key, bytes(tree[-1]))
    path = tree[dealing.siblings(5)[3]].tobytes()
    for point in (4, 3):
        first = {
            "dealt": make_identity(0).sign(content),
            "points": point.to_bytes(4, "little"),
            "paths": path,
        }
        columns = {
            name: b"".join([one, *columns_of(data, name)[1:]]) for name, one in first.items()
        }
        _, other, _ = shares_for(suite)
        rejects(other if point == 3 else client, altered(data, Shares, **columns), "dealt")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check59_nothing_is_opened_before_all_dealings_are_verified(suite, monkeypatch) -> None:
    """Else a client would tell a server that alters boxes which of them open."""
    _, client, data = shares_for(suite)
    items = columns_of(data, "dealt")
    items[-1] = flipped(items[-1], 0)
    opened: list[object] = []
    monkeypatch.setattr(opening, "open_boxes", lambda *arguments: opened.append(arguments))
    rejects(client, altered(data, Shares, dealt=b"".join(items)), "dealt")
    assert not opened


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_check20_columns_of_another_length_are_rejected(security: str, suite: str) -> None:
    """An item more, a byte more or less; and fields of another variant or suite."""
    sizes = {"sealed": 1248 if suite == "hybrid" else 96, "checks": 32 * (suite == "hybrid")}
    signed = {"commitments": 32, "dealt": 64, "points": 4, "hashes": 64, "paths": 96}
    sizes |= signed if security == "active" else dict.fromkeys(signed, 0)
    _, _, data = shares_for(suite, security=security)
    for name, size in sizes.items():
        column = getattr(read(data, Shares), name)
        assert len(column) == 4 * size
        for other in {column + bytes(size or 32), column + b"\0", column[:-1]} - {column}:
            _, client, _ = shares_for(suite, security=security)
            # a large item is above the bound of the whole message
            rejects(client, altered(data, Shares, **{name: other}), "length|size")


@pytest.mark.parametrize("n", [3, 4, 8, 9])
@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_dealings_of_any_number_of_holders_are_accepted(suite: str, n: int) -> None:
    finish(Cohort(make_params(n, suite=suite, security="active")))
