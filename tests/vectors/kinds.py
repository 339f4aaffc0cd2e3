"""The nine messages of docs/protocol.md §6: examples, limits, odd spellings, broken ones."""

import struct
from collections.abc import Iterator

import primitives as pr
from params import FixedPoint, Integers, Params
from parties import Round
from primitives import Message, draw, encode

KINDS: dict[int, tuple[str, str, list[tuple[str, str]]]] = {
    1: ("AdvertiseKeys", "advertise_keys",
        [("sender", "int"), ("parameters", "b360"), ("seal_key", "b32"), ("mask_key", "b32"),
         ("signature", "sig")]),
    2: ("Roster", "share_keys",
        [("parameters", "b360"), ("size", "int"), ("digest", "b32"), ("ids", "bin"),
         ("seal_keys", "bin"), ("mask_keys", "bin"), ("signatures", "bin")]),
    3: ("ShareKeys", "share_keys",
        [("sender", "int"), ("session", "b32"), ("commitment", "b32"), ("sealed", "bin")]),
    4: ("Shares", "masked_input", [("session", "b32"), ("senders", "bin"), ("sealed", "bin")]),
    5: ("MaskedInput", "masked_input",
        [("sender", "int"), ("session", "b32"), ("values", "bin")]),
    6: ("UnmaskRequest", "unmasking",
        [("session", "b32"), ("survivors", "bin"), ("dropped", "bin"), ("signers", "bin"),
         ("signatures", "bin")]),
    7: ("UnmaskShares", "unmasking",
        [("sender", "int"), ("session", "b32"), ("shares", "bin")]),
    8: ("ConsistencyRequest", "consistency_check", [("session", "b32"), ("survivors", "bin")]),
    9: ("ConsistencySignature", "consistency_check",
        [("sender", "int"), ("session", "b32"), ("signature", "sig")]),
}  # fmt: skip
FROM_CLIENTS = (1, 3, 5, 7, 9)


def limit(params: Params, tag: int) -> int:
    """The most bytes a message may have."""
    sigma = 64 if params.active else 0
    more = {
        1: 360,
        2: 360 + params.h * (72 + sigma),
        3: 96 * params.h,
        4: 104 * params.h,
        5: -(-params.elements * params.bits // 8),
        6: params.h * (80 if params.active else 8),
        7: 40 * params.h,
        8: 8 * params.h,
    }
    return 256 + more.get(tag, 0)


def but(message: Message, **changes: int | bytes) -> Message:
    """The message with some fields changed."""
    tag = message[0]
    assert isinstance(tag, int)
    names = [name for name, _ in KINDS[tag][2]]
    out = list(message)
    for name, value in changes.items():
        out[1 + names.index(name)] = value
    return out


def get(message: Message, name: str) -> bytes:
    tag = message[0]
    assert isinstance(tag, int)
    value = message[1 + [field for field, _ in KINDS[tag][2]].index(name)]
    assert isinstance(value, bytes)
    return value


def fields(message: Message) -> dict[str, object]:
    tag = message[0]
    assert isinstance(tag, int)
    return dict(zip([name for name, _ in KINDS[tag][2]], message[1:], strict=True))


def messages(rounds: dict[str, Round]) -> dict[str, object]:
    """Every kind with made-up fields; every id size, bins of every header, both variants."""
    params = Params(5, 4, 8, Integers(100), 2**16, session=b"messages", security="active")
    big = params.but(d=40000)
    out = []
    for tag, (_, _, layout) in KINDS.items():
        for number, u in enumerate((0, 23, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32,
                                    2**64 - 1)):  # fmt: skip
            if number and not any(name in ("sender", "size") for name, _ in layout):
                continue
            message: Message = [tag]
            for name, what in layout:
                sizes = {
                    "b32": 32,
                    "sig": 0 if number % 2 else 64,
                    "b360": (0, 90, 360)[number % 3],
                    "bin": (0, 24, 128)[number % 3],
                }
                message.append(
                    u if what == "int" else draw(f"message {tag} {name} {u}", sizes[what])
                )
            out.append(_example(params, message))
    out += [_filled(big, size) for size in (255, 256, 65535, 65536)]
    wide = Params(1000, 60, 100_000, FixedPoint(8.0, 16), 2**61 - 1, k=100, max_weight=9)
    all_params = [r.params for r in rounds.values()]
    all_params += [wide, wide.but(k=None, t=700, session=b"x", security="active")]
    limits = [
        {
            "parameters": p.describe(),
            "limits": {kind: limit(p, tag) for tag, (kind, _, _) in KINDS.items()},
        }
        for p in all_params
    ]
    return {"messages": out, "limits": limits}


def _example(params: Params, message: Message) -> dict[str, object]:
    tag = message[0]
    assert isinstance(tag, int)
    return {"kind": KINDS[tag][0], "parameters": params.describe(), "fields": fields(message),
            "bytes": encode(message)}  # fmt: skip


def _filled(params: Params, size: int) -> dict[str, object]:
    """A MaskedInput whose `values` are one byte repeated, so that the file stays small."""
    message: Message = [5, 1, draw("message filled", 32), b"\x5a" * size]
    data = encode(message)
    return {"kind": "MaskedInput", "parameters": params.describe(),
            "fields": fields(message) | {"values": {"repeat": b"\x5a", "times": size}},
            "bytes_head": data[:-size], "bytes_sha256": pr.sha256(data)}  # fmt: skip


def odd_spellings(message: Message) -> Iterator[tuple[str, bytes]]:
    """§6.1: the same message in formats that a decoder MUST accept."""
    body = [pr.mp(field) for field in message]
    one = b"\x03"
    count = len(message)
    yield "array 16", one + b"\xdc" + count.to_bytes(2, "big") + b"".join(body)
    yield "array 32", one + b"\xdd" + count.to_bytes(4, "big") + b"".join(body)
    head = one + bytes([0x90 | count])

    def replaced(i: int, by: bytes) -> bytes:
        return head + b"".join([*body[:i], by, *body[i + 1 :]])

    for i, field in enumerate(message):
        if isinstance(field, bytes):
            for first, size in ((0xC5, 2), (0xC6, 4)):
                length = len(field).to_bytes(size, "big")
                yield f"field {i}, bin {8 * size}", replaced(i, bytes([first]) + length + field)
        else:
            for first, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8), (0xD0, 1),
                                (0xD1, 2), (0xD2, 4), (0xD3, 8)):  # fmt: skip
                name = f"field {i}, format {first:02x}"
                if field < 128 or size > 2:
                    yield name, replaced(i, bytes([first]) + field.to_bytes(size, "big"))


def broken(message: Message, most: int) -> Iterator[tuple[str, str, bytes]]:
    """§6.1: (what is wrong, the check that it fails, bytes) for any message."""
    good = encode(message)
    body = [pr.mp(field) for field in message]
    count = len(message)
    tag = message[0]
    assert isinstance(tag, int)
    layout = KINDS[tag][2]

    def with_body(parts: list[bytes]) -> bytes:
        return bytes([0x03, 0x90 | len(parts)]) + b"".join(parts)

    def replaced(i: int, by: bytes) -> bytes:
        return with_body([*body[:i], by, *body[i + 1 :]])

    yield "empty", "encoding", b""
    yield "version 0", "version", b"\0" + good[1:]
    yield "version 1", "version", b"\x01" + good[1:]
    yield "version 2", "version", b"\x02" + good[1:]
    yield "version 4", "version", b"\x04" + good[1:]
    yield "no version byte", "version", good[1:]
    yield "another version, too long", "version", b"\x02" + good[1:].ljust(most, b"\0")
    yield "one byte too long", "size", good.ljust(most + 1, b"\0")
    yield "as long as allowed, but padded", "encoding", good.ljust(most, b"\0")
    yield "a byte after it", "encoding", good + b"\0"
    yield "the version alone", "encoding", good[:1]
    yield "the header alone", "encoding", good[:2]
    yield "the last byte missing", "encoding", good[:-1]
    yield "the last field missing", "encoding", with_body(body[:-1])
    yield "a field more: nil", "encoding", with_body([*body, b"\xc0"])
    yield "a field more: bin", "encoding", with_body([*body, b"\xc4\x00"])
    yield "the header one too high", "encoding", bytes([3, 0x90 | count + 1]) + b"".join(body)
    yield "the header one too low", "encoding", bytes([3, 0x90 | count - 1]) + b"".join(body)
    yield "array 32 of 2^32 - 1", "encoding", b"\x03\xdd\xff\xff\xff\xff" + b"".join(body)
    pairs = b"".join(bytes([i]) + part for i, part in enumerate(body))
    yield "a map", "encoding", bytes([3, 0x80 | count]) + pairs
    yield "no array: the tag", "encoding", b"\x03" + body[0]
    yield "no array: nil", "encoding", b"\x03\xc0"
    yield "an array in an array", "encoding", b"\x03\x91" + good[1:]
    yield "the byte c1", "encoding", replaced(1, b"\xc1")
    for other in (0, 10, tag % 9 + 1):
        yield f"tag {other}", "encoding", replaced(0, pr.mp_int(other))
    yield "tag -1", "encoding", replaced(0, b"\xff")
    yield "tag a float", "encoding", replaced(0, b"\xcb" + float_bytes(tag))
    yield "tag true", "encoding", replaced(0, b"\xc3")
    yield "tag as str", "encoding", replaced(0, b"\xa1" + str(tag).encode())
    yield "no tag", "encoding", with_body(body[1:])
    seen = set()
    for i, (name, what) in enumerate(layout, 1):
        if what in seen:
            continue
        seen.add(what)
        yield f"{name} nil", "encoding", replaced(i, b"\xc0")
        if what == "int":
            yield f"{name} an integral float", "encoding", replaced(i, b"\xcb" + float_bytes(1))
            yield f"{name} true", "encoding", replaced(i, b"\xc3")
            yield f"{name} as bin", "encoding", replaced(i, b"\xc4\x01\x01")
            yield f"{name} an ext", "encoding", replaced(i, b"\xd4\x01\x01")
            continue
        value = message[i]
        assert isinstance(value, bytes)
        size = len(value)
        text = b"\xd9" + bytes([32]) + b"a" * 32 if what == "b32" else b"\xa1a"
        yield f"{name} as str", "encoding", replaced(i, text)
        yield f"{name} as ext", "encoding", replaced(i, b"\xc7\x01\x05a")
        yield f"{name} as an array", "encoding", replaced(i, b"\x92\x01\x02")
        yield (
            f"{name} 2^32 - 1 bytes by its header",
            "encoding",
            replaced(i, b"\xc6\xff\xff\xff\xff" + value[:8]),
        )
        if what == "b32":
            yield f"{name} of 31 bytes", "encoding", replaced(i, pr.mp(value[:31]))
            yield f"{name} of 33 bytes", "encoding", replaced(i, pr.mp(value + b"\0"))
            yield f"{name} empty", "encoding", replaced(i, pr.mp(b""))
        if what == "b360":
            yield (
                f"{name} of 361 bytes",
                "encoding",
                replaced(i, pr.mp(value.ljust(361, b"\0"))),
            )
        if what == "sig":
            yield f"{name} of 65 bytes", "encoding", replaced(i, pr.mp(value.ljust(65, b"\0")))
        if what == "bin" and size < 256:
            yield f"{name} one byte short", "encoding", replaced(i, pr.mp(value + b"\0")[:-1])


def float_bytes(x: int) -> bytes:
    return struct.pack(">d", x)
