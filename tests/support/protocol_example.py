"""Annex A of docs/protocol.md: what its worked example shows, from the independent code.

The messages are those of tests/vectors/rounds.json, which the machines have to send.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import independent_dealing as dealing
import independent_keys as keys
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_messages import decode
from independent_params import Parameters
from independent_primitives import agreement, curve_key, cut, identity_key, sha256
from independent_streams import prg
from independent_sums import FixedPoint

IDS = (1, 2, 3, 300)
NAMES = {
    "advertise_keys": ("AdvertiseKeys", "Roster"),
    "share_keys": ("ShareKeys", "Shares"),
    "masked_input": ("MaskedInput", "UnmaskRequest"),
    "consistency_check": ("ConsistencySignature", "UnmaskRequest"),
    "unmasking": ("UnmaskShares", ""),
}
"""Messages of a client and of the server, by phase; ConsistencyRequest if active."""
WIDTH = 88


def seed(kind: int, u: int, size: int = 32) -> bytes:
    """Equal bytes; kinds: 0x10 sealing, 0x20 masking, 0x30 b, 0x40 identity, 0x50 KEM."""
    return bytes([kind + IDS.index(u) + 1]) * size


def parameters(security: str, suite: str = "x25519") -> Parameters:
    """The parameters of the example."""
    return Parameters(
        4, 3, 3, FixedPoint(1.0, 8), 2**15, None, 10, b"example", security=security, suite=suite
    )  # fmt: skip


def public_keys(u: int, suite: str = "x25519") -> keys.Keys:
    """c, s and e of a client; e is empty in suite x25519."""
    e = mlkem.public_key(seed(0x50, u, 64)) if suite == "hybrid" else b""
    return curve_key(seed(0x10, u)), keys.masking_key(seed(0x20, u)), e


def messages(security: str) -> dict[str, bytes]:
    """Messages from and to client 1, by name."""
    path = Path(__file__).parents[1] / "vectors" / "rounds.json"
    rounds = json.loads(path.read_text(encoding="ascii"))["rounds"]
    (found,) = (one for one in rounds if one["name"] == f"annex-a-{security}")
    out: dict[str, bytes] = {}
    for phase in found["phases"]:
        sent, answered = NAMES[phase["phase"]]
        if security == "active" and phase["phase"] == "masked_input":
            answered = "ConsistencyRequest"
        for name, of in ((f"{sent} from 1", "sent"), (f"{answered} to 1", "answers")):
            mine = [bytes.fromhex(one["bytes"]) for one in phase[of] if one["id"] == 1]
            out |= dict.fromkeys([name] if mine else [], *mine)
    return out


class Pair:
    """Clients 1 and 2 in a session: what each makes for the other."""

    def __init__(self, session: bytes, suite: str) -> None:
        self.session = session
        self.keys = {u: public_keys(u, suite) for u in (1, 2)}
        (c2, s2, _) = self.keys[2]
        masking = agreement(keys.masking_private(seed(0x20, 1)), s2) or b""
        self.shared = agreement(seed(0x10, 1), c2) or b"", masking
        self.agreed = pairs.agreement(session, masking, self.keys)

    def base(self, u: int, v: int) -> bytes:
        """B of u for v."""
        return pairs.seal_base(self.session, *self.shared, self.keys, u, v)

    def box_key(self, u: int, v: int, secret: bytes = b"", ct: bytes = b"") -> bytes:
        """The key of the box from u to v."""
        return pairs.box_key(self.session, self.base(u, v), secret, u, v, ct)


def semi_honest() -> dict[str, bytes]:
    """The values of the semi-honest example."""
    p, said = parameters("semi-honest"), messages("semi-honest")
    roster = keys.roster_digest({u: public_keys(u) for u in IDS})
    session = keys.session_id(p.digest(), roster)
    pair = Pair(session, "x25519")
    sealed = decode(said["ShareKeys from 1"], 3, 1 << 20)[3]
    share = pairs.unseal(pair.box_key(1, 2), sealed[:96], session, 1, 2)
    assert share is not None
    c, s, _ = public_keys(1)
    order = list(said)
    return {
        "parameters": p.encode(),
        "parameters digest": p.digest(),
        "seal_key of 1": c,
        "masking private key of 1": keys.masking_private(seed(0x20, 1)),
        "mask_key of 1": s,
        order[0]: said[order[0]],
        "roster digest": roster,
        "session": session,
        order[1]: said[order[1]],
        "share of 1 for 2": share,
        "sealing secret 1 to 2": pair.base(1, 2),
        "box key 1 to 2": pair.box_key(1, 2),
        "box key 2 to 1": pair.box_key(2, 1),
        "commitment of 1": keys.commitment(session, 1, seed(0x30, 1)),
        **{name: said[name] for name in order[2:4]},
        "self mask key of 1": keys.self_mask_key(session, 1, seed(0x30, 1)),
        "agreement of 1 and 2": pair.agreed,
        "pairwise mask key of 1 and 2": pairs.mask_key(session, pair.agreed, {1: b"", 2: b""}),
        **{name: said[name] for name in order[4:]},
    }


def active() -> dict[str, bytes]:
    """The values of the active example: parameters, signed hashes, and messages."""
    p, said = parameters("active"), messages("active")
    roster = keys.roster_digest({u: public_keys(u) for u in IDS})
    session = keys.session_id(p.digest(), roster)
    _, _, _, sealed, _, hashes, _ = decode(said["ShareKeys from 1"], 3, 1 << 20)
    # client 1 is the first holder, and makes no box for itself
    boxes = [b"", *cut(sealed, 96)]
    leaves = [
        dealing.Opening(x, two, bytes(32), sha256(box)).leaf(session, 1, w)
        for x, (w, two, box) in enumerate(zip(IDS, cut(hashes, 64), boxes, strict=True), 1)
    ]
    shown = {name: data for name, data in said.items() if not name.startswith("Roster")}
    first, *rest = shown
    return {
        "parameters": p.encode(),
        "parameters digest": p.digest(),
        "identity key of 1": identity_key(seed(0x40, 1)),
        "session": session,
        first: shown[first],
        "hash of the b-share of 1 for 2": hashes[64:96],
        "hash of the s-share of 1 for 2": hashes[96:128],
        "leaf of 1 for 2": leaves[1],
        "path of 2 in the tree of 1": dealing.path(leaves, 1),
        "root of 1": dealing.root(leaves),
        **{name: shown[name] for name in rest},
    }


def hybrid() -> dict[str, bytes]:
    """Values of a semi-honest hybrid round with the same seeds: what clients 1 and 2 derive."""
    p = parameters("semi-honest", "hybrid")
    all_keys = {u: public_keys(u, "hybrid") for u in IDS}
    roster = keys.roster_digest(all_keys)
    session = keys.session_id(p.digest(), roster)
    pair = Pair(session, "hybrid")
    secret, ct = mlkem.encapsulate(all_keys[2][2], bytes([0x61]) * 32)
    given = {
        (u, v): pairs.contribution(session, seed(0x20, u), u, v) for u, v in ((1, 2), (2, 1))
    }
    (p12, q12), (p21, q21) = given[1, 2], given[2, 1]
    return {
        "parameters": p.encode(),
        "SHA-256 of e of 1": sha256(all_keys[1][2]),
        "SHA-256 of e of 2": sha256(all_keys[2][2]),
        "roster digest": roster,
        "session": session,
        "K 1 to 2": secret,
        "SHA-256 of ct 1 to 2": sha256(ct),
        "sealing secret 1 to 2": pair.base(1, 2),
        "box key 1 to 2": pair.box_key(1, 2, secret, ct),
        "p of 1 for 2": p12,
        "q of 1 for 2": q12,
        "p of 2 for 1": p21,
        "q of 2 for 1": q21,
        "check of 1 for 2": pairs.check(session, 1, 2, p12, q12),
        "deposit of 1 for 2": pairs.deposit(session, 1, 2, p12, q21),
        "agreement of 1 and 2": pair.agreed,
        "pairwise mask key of 1 and 2": pairs.mask_key(session, pair.agreed, {1: p12, 2: p21}),
    }


LISTINGS = {
    "example semi-honest": semi_honest,
    "example active": active,
    "values hybrid": hybrid,
}


def listed(values: Mapping[str, bytes]) -> str:
    """Return names and values in hexadecimal, as the document has them."""
    lines = ["```text"]
    for name, value in values.items():
        digits = value.hex()
        lines.append(f"{name}:")
        lines += (f"    {digits[i : i + WIDTH]}" for i in range(0, len(digits), WIDTH))
    return "\n".join([*lines, "```"])


def vectors() -> str:
    """Return the table of client 1's self masks and masked vectors."""
    rows = ["| variant | self mask | y |", "|---|---|---|"]
    for security in ("semi-honest", "active"):
        said = messages(security)
        _, session, *_, packed = decode(said["MaskedInput from 1"], 5, 1 << 20)
        number = int.from_bytes(packed, "little")
        y = [number >> (15 * i) & 0x7FFF for i in range(4)]
        mask = prg(keys.self_mask_key(session, 1, seed(0x30, 1)), 4, 2**15)
        rows.append(f"| {security} | {', '.join(map(str, mask))} | {', '.join(map(str, y))} |")
    return "\n".join(rows)


def message() -> str:
    """Return the masked input of §6.3 byte by byte."""
    data = messages("semi-honest")["MaskedInput from 1"].hex()
    session, values = data[12:76], data[96:]
    rows = [
        ("04", "version"),
        ("98", "array of 8"),
        ("05", "tag: MaskedInput"),
        ("01", "sender 1"),
        (f"c4 20 {session}", "session"),
        ("c4 00 c4 00 c4 00 c4 00", "deposits, complaints, disclosed, accepted"),
        (f"c4 08 {values}", "60 bits and 4 of padding"),
    ]
    assert "".join(row for row, _ in rows).replace(" ", "") == data
    return "\n".join(["```text", *(f"{row:<74}{what}" for row, what in rows), "```"])
