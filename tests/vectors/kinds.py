"""The nine messages of docs/protocol.md §6: examples, limits, odd spellings, broken ones."""

import struct
from collections.abc import Iterator

from draws import draw
from params import described

from independent_messages import KINDS, Field, decode, encode, encode_field, limit
from independent_params import SUITES, Parameters
from independent_primitives import sha256
from independent_sums import FixedPoint, Integers

FROM_CLIENTS = (1, 3, 5, 7, 9)


def tag_of(data: bytes) -> int:
    return data[2]


def fields(data: bytes) -> dict[str, Field]:
    tag = tag_of(data)
    return dict(zip(KINDS[tag][2], decode(data, tag, len(data)), strict=True))


def get(data: bytes, name: str) -> bytes:
    value = fields(data)[name]
    assert isinstance(value, bytes)
    return value


def but(data: bytes, **changes: Field) -> bytes:
    """The message with some fields changed."""
    return encode(tag_of(data), *(fields(data) | changes).values())


def messages(of_rounds: list[Parameters]) -> dict[str, object]:
    """Every kind with made-up fields; every id size, bins of every header, both variants."""
    params = Parameters(5, 4, 8, Integers(100), 2**16, session=b"messages", security="active",
                        suite="hybrid")  # fmt: skip
    big = params.but(length=40000)
    out = []
    for tag, (_, _, layout) in KINDS.items():
        for number, u in enumerate((0, 23, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32,
                                    2**64 - 1)):  # fmt: skip
            if number and not {"sender", "size"} & layout.keys():
                continue
            sizes = {
                "b32": 32,
                "sig": 0 if number % 2 else 64,
                "par": (0, 90, 379)[number % 3],
                "kem": (0, 1184)[number % 2],
                "bin": (0, 24, 128)[number % 3],
            }
            values = [
                u if what == "int" else draw(f"message {tag} {name} {u}", sizes[what])
                for name, what in layout.items()
            ]
            data = encode(tag, *values)
            out.append({"kind": KINDS[tag][0], "parameters": described(params),
                        "fields": fields(data), "bytes": data})  # fmt: skip
    out += [_filled(big, size) for size in (255, 256, 65535, 65536)]
    wide = Parameters(
        1000, 60, 100_000, FixedPoint(8.0, 16), 2**61 - 1, neighbours=100, max_weight=9
    )
    active = wide.but(neighbours=None, threshold=700, session=b"x", security="active")
    limits = []
    both = [p.but(suite=suite) for p in (wide, active) for suite in SUITES]
    for p in (*of_rounds, *both):
        most = {kind: limit(p, tag) for tag, (kind, _, _) in KINDS.items()}
        limits.append({"parameters": described(p), "limits": most})
    return {"messages": out, "limits": limits}


def _filled(params: Parameters, size: int) -> dict[str, object]:
    """A MaskedInput whose `values` are one byte repeated, so that the file stays small."""
    data = encode(5, 1, draw("message filled", 32), b"", b"", b"", b"", b"\x5a" * size)
    return {"kind": "MaskedInput", "parameters": described(params),
            "fields": fields(data) | {"values": {"repeat": b"\x5a", "times": size}},
            "bytes_head": data[:-size], "bytes_sha256": sha256(data)}  # fmt: skip


def odd_spellings(good: bytes) -> Iterator[tuple[str, bytes]]:
    """§6.1: the same message in formats that a decoder MUST accept."""
    message = [tag_of(good), *fields(good).values()]
    body = [encode_field(field) for field in message]
    one = b"\x04"
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


def broken(good: bytes, most: int) -> Iterator[tuple[str, str, bytes]]:
    """§6.1: (what is wrong, the check that it fails, bytes) for any message."""
    tag = tag_of(good)
    message = [tag, *fields(good).values()]
    body = [encode_field(field) for field in message]
    count, layout = len(message), KINDS[tag][2]

    def with_body(parts: list[bytes]) -> bytes:
        return bytes([0x04, 0x90 | len(parts)]) + b"".join(parts)

    def replaced(i: int, by: bytes) -> bytes:
        return with_body([*body[:i], by, *body[i + 1 :]])

    yield "empty", "encoding", b""
    for version in (0, 1, 2, 3, 5):
        yield f"version {version}", "version", bytes([version]) + good[1:]
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
    for how, wrong_count in (("high", count + 1), ("low", count - 1)):
        head = bytes([4, 0x90 | wrong_count])
        yield f"the header one too {how}", "encoding", head + b"".join(body)
    yield "array 32 of 2^32 - 1", "encoding", b"\x04\xdd\xff\xff\xff\xff" + b"".join(body)
    pairs = b"".join(bytes([i]) + part for i, part in enumerate(body))
    yield "a map", "encoding", bytes([4, 0x80 | count]) + pairs
    yield "no array: the tag", "encoding", b"\x04" + body[0]
    yield "no array: nil", "encoding", b"\x04\xc0"
    yield "an array in an array", "encoding", b"\x04\x91" + good[1:]
    yield "the byte c1", "encoding", replaced(1, b"\xc1")
    for other in (0, 10, tag % 9 + 1):
        yield f"tag {other}", "encoding", replaced(0, encode_field(other))
    yield "tag -1", "encoding", replaced(0, b"\xff")
    yield "tag a float", "encoding", replaced(0, b"\xcb" + float_bytes(tag))
    yield "tag true", "encoding", replaced(0, b"\xc3")
    yield "tag as str", "encoding", replaced(0, b"\xa1" + str(tag).encode())
    yield "no tag", "encoding", with_body(body[1:])
    seen = set()
    for i, (name, what) in enumerate(layout.items(), 1):
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
        endless = b"\xc6\xff\xff\xff\xff" + value[:8]
        yield f"{name} 2^32 - 1 bytes by its header", "encoding", replaced(i, endless)
        wrong = {
            "b32": {"of 31 bytes": value[:31], "of 33 bytes": value + b"\0", "empty": b""},
            "par": {"of 380 bytes": value.ljust(380, b"\0")},
            "sig": {"of 65 bytes": value.ljust(65, b"\0")},
        }
        for fault, other in wrong.get(what, {}).items():
            yield f"{name} {fault}", "encoding", replaced(i, encode_field(other))
        if what == "bin" and size < 256:
            short = encode_field(value + b"\0")[:-1]
            yield f"{name} one byte short", "encoding", replaced(i, short)


def float_bytes(x: int) -> bytes:
    return struct.pack(">d", x)
