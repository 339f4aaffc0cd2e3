"""dealing.json: docs/protocol.md §5.10 and §5.15, of made-up shares and boxes."""

from draws import draw

import independent_dealing as dealing
from independent_dealing import Opening
from independent_primitives import identity_key, ids, integers, sha256, sign

SESSION = draw("dealing session", 32)
HOLDERS = [
    ([7], 0), ([0, 2**64 - 1], 1), ([1, 2, 3], 1), ([5, 6, 7, 8], 0),
    ([1, 2, 3, 300, 65536], 4), ([*range(10, 17)], 6), ([*range(2**32, 2**32 + 9)], 3),
    ([*range(20, 41)], 20),
]  # fmt: skip
"""Holders, and the place of the dealer."""


def dealt() -> dict[str, object]:
    trees = [
        tree(holders, holders[place], suite)
        for suite in ("x25519", "hybrid")
        for holders, place in HOLDERS
    ]
    return {"session": SESSION, "trees": trees,
            "accepted": [*map(accepted, (1, 2, 21))],
            "answers": [*map(answered, (1, 2, 21))]}  # fmt: skip


def shares(label: str) -> bytes:
    words = integers(draw(label, 80), 7)[:10]
    return ids(words)


def tree(holders: list[int], v: int, suite: str) -> dict[str, object]:
    label, hybrid = f"dealing {len(holders)} {v}", suite == "hybrid"
    openings, leaves = {}, []
    for x, w in enumerate(holders, 1):
        share = shares(f"{label} {w}")
        box = b"" if w == v else draw(f"{label} box {w}", 1248 if hybrid else 96)
        check = draw(f"{label} check {w}", 32) if hybrid and w != v else bytes(32)
        hashes = dealing.share_hashes(SESSION, v, w, share)
        openings[w] = Opening(x, hashes, check, sha256(box))
        leaves.append({
            "holder": w, "x": x, "share": share, "hashes": hashes, "check": check,
            "box_digest": sha256(box), "leaf": openings[w].leaf(SESSION, v, w),
        })  # fmt: skip
    nodes = [of.leaf(SESSION, v, w) for w, of in openings.items()]
    for place, leaf in enumerate(leaves):
        leaf["path"] = dealing.path(nodes, place)
        assert dealing.climb(nodes[place], place, leaf["path"]) == dealing.root(nodes)
        assert len(leaf["path"]) == 32 * dealing.depth(len(holders))
    commitment, s, seed = (draw(f"{label} {what}", 32) for what in ("com", "s", "identity"))
    signed = dealing.dealt(SESSION, v, commitment, s, dealing.root(nodes))
    return {
        "suite": suite, "dealer": v, "leaves": leaves, "root": dealing.root(nodes),
        "commitment": commitment, "mask_key": s,
        "identity_seed": seed, "identity_key": identity_key(seed),
        "signed": signed, "signature": sign(seed, signed),
    }  # fmt: skip


def accepted(count: int) -> dict[str, object]:
    """LIST of so many senders."""
    w, seed = 2**32 + 1, draw(f"accepted {count}", 32)
    rows = [(3 * v, draw(f"accepted {count} {v}", 32), v % 3) for v in range(count)]
    listed = dealing.leaves_list(rows)
    signed = dealing.accepted(SESSION, w, listed)
    return {
        "holder": w, "leaves": [{"dealer": v, "leaf": leaf, "complaint": kind}
                                for v, leaf, kind in rows],
        "list": listed, "identity_seed": seed, "identity_key": identity_key(seed),
        "signed": signed, "signature": sign(seed, signed),
    }  # fmt: skip


def answered(count: int) -> dict[str, object]:
    """ANSWERS of so many shares, of which the last is of a dealer complained of."""
    w, seed = 2**32 + 1, draw(f"answers {count}", 32)
    rows = [(3 * v, v % 2, shares(f"answers {count} {v}")[:40]) for v in range(count - 1)]
    rows.append((3 * count, 1, dealing.FORGOTTEN))
    answers = dealing.answers_list(SESSION, w, rows)
    signed = dealing.answer(SESSION, w, answers)
    return {
        "holder": w, "shares": [{"dealer": v, "kind": kind, "share": share}
                                for v, kind, share in rows],
        "answers": answers, "identity_seed": seed, "identity_key": identity_key(seed),
        "signed": signed, "signature": sign(seed, signed),
    }  # fmt: skip
