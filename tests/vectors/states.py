"""states.json: states of suspended clients, docs/protocol.md §13, and states to reject."""

from collections.abc import Iterator

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from draws import draw
from faults import flip
from whole_round import Round

import independent_pairs as pairs
from independent_params import Parameters
from independent_primitives import ids, integers, number, u8, u16le, u32le, u64le

ROUNDS = [
    "complete", "complete-counted", "two-clients", "graph", "graph-few-came", "active",
    "active-prime", "active-counted-weighted",
    "session-later", "bounded", "noise-bounded-active", "blame-noise", "blame-hybrid",
    "hybrid-nobody-drops", "hybrid-late", "hybrid-two-clients", "hybrid-graph",
    "hybrid-session-later", "hybrid-noise-bounded", "hybrid-drawn",
    "hybrid-active-masked-input", "hybrid-active-three",
]  # fmt: skip
# the smallest, so that the file stays small
FAULTY = ["two-clients", "active-prime", "hybrid-two-clients", "hybrid-active-three"]
DUE = ["share_keys", "masked_input", "consistency_check", "unmasking"]


def head(params: Parameters, u: int, version: int = 3) -> bytes:
    own = params.encode()
    return u8(version) + u64le(u) + u16le(len(own)) + own


def state(
    params: Parameters, u: int, key: bytes, content: bytes, nonce: int = 0, version: int = 3,
    label: bytes = b"secagg/4 state",
) -> bytes:  # fmt: skip
    """§13.1; the head is that of version 3, whatever was authenticated."""
    about = label + head(params, u, version)
    sealed = AESGCM(key).encrypt(nonce.to_bytes(12, "little"), content, about)
    return head(params, u) + sealed


def content(r: Round, u: int, due: int) -> bytes:
    """The content of client u's state when this message is due."""
    me, own = r.clients[u], r.parties[u]
    if due == 0:
        return u8(0) + me._seal_seed + me._masking + me._kem
    if due == 1:
        about = r.session, me._b, me._shares[u][0], me._kem
        count = u32le(len(r.holders[u]))
        return b"".join([u8(1), *about, count, ids(r.holders[u]), *columns(r, u)])
    u2 = r.seen(u, r.u2)
    signed = r.u3 if due == 3 and r.params.active else []
    clipped = r.params.clipped(own.vector)
    return b"".join([
        u8(due), r.session, u64le(clipped), u32le(len(u2)), u32le(len(signed)), ids(u2),
        *(me._shares[v][0] for v in u2), *(me._shares[v][1] for v in u2 if v != u), ids(signed),
    ])  # fmt: skip


def columns(r: Round, u: int) -> list[bytes]:
    """Return the columns of a state: values of client u for each peer."""
    me, others = r.clients[u], [v for v in r.holders[u] if v != u]
    out = [me.roster[v][1] for v in others if r.params.active]
    if r.params.hybrid:
        out += [me._bases[v] for v in others] + [me._agreed[v] for v in others]
        return out + [me._given[v][i] for i in (0, 1) for v in others]
    for v in others:
        out.append(pairs.mask_key(r.session, me._agreed[v], {u: b"", v: b""}))
    return out + [pairs.box_key(r.session, me._bases[v], b"", v, u, b"") for v in others]


def staying(r: Round) -> list[int]:
    """The clients that send all their messages."""
    honest = (u for u, p in sorted(r.parties.items()) if p.lies_at is None)
    return [u for u in honest if all(u in r.sent[phase] for phase in r.phases())]


def phases(r: Round) -> list[int]:
    return [due for due, phase in enumerate(DUE) if phase in r.phases()]


def states(rounds: dict[str, Round]) -> dict[str, object]:
    good, bad = [], []
    for name in ROUNDS:
        r = rounds[name]
        for place, u in enumerate(staying(r)):
            # of suite hybrid all that masks need of others, which encapsulated at random
            due_of_u = phases(r) if place < 2 else [1] if r.params.hybrid else []
            for due in due_of_u:
                key, inside = draw(f"state {name} {u} {due}", 32), content(r, u, due)
                good.append({
                    "round": name, "client": u, "phase": DUE[due], "key": key,
                    "content": inside, "bytes": state(r.params, u, key, inside),
                })  # fmt: skip
    r = rounds["min-survivors"]
    u, key = staying(r)[0], draw("state of other parameters", 32)
    other = state(r.params.but(min_survivors=None), u, key, content(r, u, 1))
    bad.append({"round": r.name, "client": u, "phase": DUE[1], "key": key,
                "name": "of another min_survivors", "check": "parameters",
                "bytes": other})  # fmt: skip
    for name in FAULTY:
        r = rounds[name]
        u = staying(r)[1]
        for due in phases(r):
            key = draw(f"malformed state {name} {due}", 32)
            for what, check, data in faults(r, u, due, key):
                bad.append({
                    "round": name, "client": u, "phase": DUE[due], "key": key,
                    "name": f"{name}, {DUE[due]}: {what}", "check": check, "bytes": data,
                })  # fmt: skip
    return {"states": good, "refused": bad}


def faults(r: Round, u: int, due: int, key: bytes) -> Iterator[tuple[str, str, bytes]]:
    """§13.3: (what is wrong, the check that it fails, bytes)."""
    p, inside = r.params, content(r, u, due)
    good, start = state(p, u, key, inside), len(head(p, u))
    for version in (0, 1, 2, 4, 255):
        yield f"version {version}", "version", u8(version) + good[1:]
    yield "version 2 as version 3", "latest", state(p, u, key, inside, version=2)
    for size in (0, 1, 10, 11, start - 1, start, start + 15):
        yield f"the first {size} bytes", "length", good[:size]
    yield "the last byte missing", "latest", good[:-1]
    yield "a byte more", "latest", good + b"\0"
    for at in (start, len(good) - 1):
        yield f"byte {at} altered", "latest", flip(good, at)
    other, longer = p.but(session=b"another"), p.but(length=p.d + 1)
    both = longer.but(session=b"another")
    stranger, long = state(p, 1000, key, inside), state(longer, u, key, inside)
    yield "of client 1000", "client", stranger
    yield "of client 1000, the id put back", "latest", good[:start] + stranger[start:]
    yield "of another session", "session", state(other, u, key, inside)
    yield "of longer vectors", "parameters", long
    yield "of longer vectors, the length put back", "latest", good[:start] + long[start:]
    yield "of longer vectors in another session", "parameters", state(both, u, key, inside)
    yield "under another key", "latest", state(p, u, draw("another key", 32), inside)
    suite = p.but(suite="x25519" if p.hybrid else "hybrid")
    yield "of the other suite", "parameters", state(suite, u, key, inside)
    for name, label in (("no label", b""), ("the label of version 3", b"secagg/3 state")):
        yield f"under {name}", "latest", state(p, u, key, inside, label=label)
    yield "under another nonce", "latest", state(p, u, key, inside, nonce=1)
    for what, wrong in contents(r, u, due, inside):
        yield what, "content", state(p, u, key, wrong)


def contents(r: Round, u: int, due: int, good: bytes) -> Iterator[tuple[str, bytes]]:
    """Contents to reject, encrypted correctly."""
    yield "no content", b""
    yield "a content of one byte", good[:1]
    yield "a content cut short", good[:-1]
    yield "a content with a byte more", good + b"\0"
    for first in {*range(5), 255} - {due}:
        yield f"a content due at {first}", u8(first) + good[1:]
    if due == 0:
        return
    at = 109 + 64 * r.params.hybrid if due == 1 else 49  # of the first id
    count = len(r.holders[u] if due == 1 else r.seen(u, r.u2))
    counted = at - (4 if due == 1 else 8)
    for wrong in (0, count - 1, count + 1, 2**32 - 1):
        yield f"{wrong} holders", good[:counted] + u32le(wrong) + good[counted + 4 :]
    listed = integers(good[at : at + 8 * count])
    for what, wrong_ids in (
        ("ids descending", listed[::-1]),
        ("an id twice", [listed[0], listed[0], *listed[2:]]),
        ("another id than the client's", [v if v != u else v + 1 for v in listed]),
    ):
        yield what, good[:at] + ids(wrong_ids) + good[at + 8 * count :]
    if due == 3:
        signers = number(good[45:49])
        body = good[: len(good) - 8 * signers]
        other = u32le(0 if signers else 1), body[49:], b"" if signers else u64le(u)
        yield "signed by nobody, or in a semi-honest round", body[:45] + b"".join(other)
        if signers:
            yield "signed ids descending", body + ids(listed[::-1])
            yield "a stranger signed", body + ids([*listed[:-1], 1000])
