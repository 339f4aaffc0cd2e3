"""Bytes that are no parameters (docs/oneshot.md §3), and records that are rejected (§6.3)."""

from collections.abc import Iterator

from derivations import LOW_ORDER, NOT_CANONICAL
from draws import draw
from faults import flip
from oneshot import Batch, Client, helpers, secrets
from params import with_field, with_fields

from independent_oneshot_params import BOXES, Parameters
from independent_primitives import sha256, u8, u16le, u32le, u64le
from independent_sums import Bounded, FixedPoint, Integers

WEAK_CURVE = *LOW_ORDER[:3], NOT_CANONICAL[0], NOT_CANONICAL[-1]  # P §5.1
WEAK_IDENTITY = (  # P §3.4
    "00" * 32,
    "01" + "00" * 31,
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ec" + "ff" * 30 + "ff",
    "ed" + "ff" * 30 + "7f",
)


def not_parameters(p: Parameters) -> Iterator[tuple[str, str, bytes]]:
    """Yield a name, the check of the decoder, and the bytes."""
    good = p.encode()
    for version in (0, 2, 255):
        yield f"version {version}", "version", u8(version) + good[1:]
    for size in (0, 1, 37, 38, 53, 54, 59, 60, len(good) - 1):
        yield f"the first {size} bytes", "length", good[:size]
    yield "a byte more", "length", good + b"\0"
    yield "a helper more", "length", good + good[-64:]
    yield "an encoding beyond the end", "length", with_field(p, "encoding", u8(255))
    yield "a session beyond the end", "length", with_field(p, "session", u8(255))
    yield "no helpers by the number", "length", with_field(p, "number of helpers", u8(0))
    hybrid = with_field(p, "suite", u8(0))
    yield "keys of the other suite", "length", hybrid

    def with_(name: str, what: object, value: bytes) -> tuple[str, str, bytes]:
        return f"{name} {what}", "parameters", with_field(p, name, value)

    for code in (2, 255):
        yield with_("security", code, u8(code))
        yield with_("suite", code, u8(code))
    for t in (0, 3, 255):
        yield with_("threshold", t, u8(t))
    for n in (0, 1, 2, 2**20 + 1, 2**32 - 1):  # 2 is below min_clients
        yield with_("n_clients", n, u32le(n))
    for least in (0, 1, 4, 2**32 - 1):
        yield with_("min_clients", least, u32le(least))
    for d in (0, 2**31 + 1, 2**64 - 1):
        yield with_("length", d, u64le(d))
    yield with_("max_weight", "2^53 + 1", u64le(2**53 + 1))
    for top in (0, 26, 2**62, 2**64 - 2):  # 26: R = 27, one too small
        yield with_("modulus", f"- 1 = {top}", u64le(top))
    for noise in (0, 2**48 + 1, 2**48):  # the last leaves no headroom
        yield with_("noise", noise, u64le(noise))
    for size in (7, 9):
        yield f"noise of {size} bytes", "length", good + bytes(size)
    for name, part in (
        ("unknown", b"halves"),
        ("empty", b""),
        ("of max 0", Integers(0).encode()),
        ("a byte long", Integers(9).encode() + b"\0"),
        ("of clip -1", FixedPoint(-1.0, 4).encode()),
        ("bounded", Bounded(1.0, 4).encode()),
    ):
        yield with_("encoding", name, u8(len(part)) + part)
    yield with_("session", "of 65 bytes", u8(65) + bytes(65))
    yield with_("session", "empty, active", u8(0))
    (box, identity), second = p.helpers
    (spare,) = helpers(secrets("another", 1))
    for key in WEAK_CURVE:
        pairs = key + identity + b"".join(second)
        yield with_("helpers", f"HPKE key {key.hex()[:6]}", pairs)
    for key in WEAK_IDENTITY:
        pairs = box + bytes.fromhex(key) + b"".join(second)
        yield with_("helpers", f"identity {key[:6]}", pairs)
    yield with_("helpers", "one HPKE key twice", box + identity + box + spare[1])
    yield with_("helpers", "one identity twice", box + identity + spare[0] + identity)
    one = p.but(threshold=1)
    many = with_field(one, "number of helpers", u8(0))[: -2 * 64]
    yield "no helpers", "parameters", many
    for name, t, label, ell in (("330 seeds", 8, "eleven", 11), ("17 helpers", 1, "17", 17)):
        listed = b"".join(key + own for key, own in helpers(secrets(label, ell)))
        changes = {"threshold": u8(t), "number of helpers": u8(ell), "helpers": listed}
        yield name, "parameters", with_fields(p, changes)
    both = p.but(suite="hybrid", helpers=helpers(secrets("hybrid", 2, "hybrid")))
    first, last = both.helpers
    for name, pairs in (
        ("one hybrid key twice", [first, (first[0], last[1])]),
        ("one lattice half twice", [first, (first[0][:1184] + last[0][1184:], last[1])]),
        ("one curve half twice", [first, (last[0][:1184] + first[0][1184:], last[1])]),
        ("a coefficient of 4095", [first, (b"\xff\xff" + last[0][2:], last[1])]),
        ("a hybrid key with a weak half", [first, (last[0][:1184] + bytes(32), last[1])]),
    ):
        joined = b"".join(key + identity for key, identity in pairs)
        yield name, "parameters", with_field(both, "helpers", joined)


def records(batch: Batch, other: Batch) -> Iterator[dict[str, object]]:
    """Yield chunks for helper 2 and the ids that it returns."""
    p, (first, second, third) = batch.p, batch.clients
    held = p.held[2]
    foreign = Client(other.p, first.u, other.clients[0].vector)

    def chunk(name: str, rejected: list[int], *parts: bytes) -> dict[str, object]:
        return {"name": name, "bytes": p.message(BOXES, u16le(2), *parts),
                "rejected": rejected}  # fmt: skip

    def record(client: Client, box: bytes, signature: bytes | None = None) -> bytes:
        return client.content + box + (client.signature if signature is None else signature)

    def resealed(**changes: bytes) -> bytes:
        return record(first, first.box(2, **changes))

    good, box = first.record(2), first.boxes[1]
    yield chunk("nothing", [])
    yield chunk("all good", [], *(c.record(2) for c in batch.clients))
    yield chunk("the same twice", [], good, good)
    yield chunk("an altered box", [1], record(first, flip(box, -1)))
    yield chunk("an altered enc", [1], record(first, flip(box)))
    yield chunk("an enc of low order", [1], record(first, bytes(32) + box[32:]))
    yield chunk("the box of helper 1", [1], record(first, first.boxes[0]))
    yield chunk("the box of another client", [1], record(first, second.boxes[1]))
    copied = Client(p, third.u, third.vector, third.weight)
    copied.commit(first.commitments)
    yield chunk("a box copied to another id", [300], record(copied, box))
    yield chunk("its info recomputed", [300], record(copied, copied.box(2, first.opened(2))))
    place = b"secagg/1 one-shot box" + sha256(first.head, u16le(1))
    yield chunk("sealed for place 1", [1], resealed(info=place))
    yield chunk("sealed in another session", [1], resealed(info=foreign.info(2)))
    turned = b"".join(first.seeds[i] for i in reversed(held))
    yield chunk("seeds in another order", [1], resealed(content=turned))
    last = first.opened(2)[:-16] + draw("another seed", 16)
    yield chunk("a seed that is not committed", [1], resealed(content=last))
    for index in range(1, p.count + 1):
        altered = Client(p, first.u, first.vector, first.weight)
        coms = list(first.commitments)
        coms[index - 1] = draw("another commitment", 32)
        altered.commit(coms)  # signed and sealed anew: only its holders can tell
        named = [1] if index in held else []
        yield chunk(f"commitment {index} to nothing", named, altered.record(2))
        yield chunk(
            f"commitment {index}, not signed", [1], record(altered, box, first.signature)
        )
    yield chunk("the signature of another client", [1], record(first, box, second.signature))
    yield chunk("a signature of zeros", [1], record(first, box, bytes(64)))
    unknown = Client(p, 77, first.vector, first.weight)
    yield chunk("a client not in the registry", [77], unknown.record(2))
    bad = record(second, b"\0" * len(box))
    yield chunk("one of three", [second.u], good, bad, third.record(2))
