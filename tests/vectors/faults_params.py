"""Bytes of parameters (docs/protocol.md §3.3) that differ from a peer's, or are none."""

import struct
from collections.abc import Iterator

from draws import draw
from params import with_field

from independent_bounded import Bounded
from independent_noise import Noise
from independent_params import Parameters
from independent_primitives import u8, u32le, u64le
from independent_sums import FixedPoint, Integers


def other_parameters(p: Parameters) -> Iterator[tuple[str, str, bytes]]:
    """Yield a name, the check at a peer that has p, and the bytes."""
    good = p.encode()
    flags = p.allow_two_clients + 2 * p.counted
    for name, value in (
        ("version", u8(3)),
        ("security", u8(0 if p.active else 1)),
        ("security", u8(2)),
        ("flags", u8(flags ^ 1)),
        ("flags", u8(flags ^ 2)),
        ("flags", u8(flags + 4)),
        ("suite", u8(p.hybrid)),
        ("suite", u8(2)),
        ("n_clients", u32le(p.n + 1)),
        ("threshold", u32le(p.t - 1)),
        ("min_survivors", u32le(0 if p.m > p.least else p.n)),
        ("neighbours", u32le(4 if p.neighbours is None else 0)),
        ("length", u64le(p.d + 1)),
        ("max_weight", u64le(7 if p.max_weight is None else 0)),
        ("modulus", u64le(p.R)),
        ("encoding", u8(16) + Integers(1).encode()),
        ("encoding", u8(27) + FixedPoint(4.0, 7).encode()),
        ("noise", u8(0) if p.noise else u8(13) + Noise(2**14, 0).encode()),
    ):
        yield f"another {name}", "parameters", with_field(p, name, value)
    for name, session in (("longer", p.session + b"."), ("empty", b""), ("of 64", bytes(64))):
        yield f"session {name}", "session", p.but(session=session).encode()
    both = p.but(session=b"another", max_weight=None if p.max_weight else 2)
    yield "another session and max_weight", "parameters", both.encode()
    yield "a session of 65 bytes", "parameters", with_field(p, "session", u8(65) + bytes(65))
    longer = with_field(p, "session", u8(len(p.session) + 1) + p.session)
    yield "a session that ends early", "parameters", longer
    yield "a byte after the session", "parameters", good + b"\0"
    yield "the last byte missing", "parameters", good[:-1]
    yield "nothing", "parameters", b""
    yield "a digest, as in version 1", "parameters", draw("a digest", 32)


def not_parameters() -> Iterator[tuple[str, str, bytes]]:
    """Yield a name, the check of the decoder of parameters, and the bytes."""
    p = Parameters(10, 7, 1000, FixedPoint(8.0, 16), session=b"round 7")
    good, counted = (
        p.encode(),
        p.but(modulus=101, length=10, encoding=Integers(9), count_clipped=True),
    )
    for version in (0, 1, 2, 3, 5, 255):
        yield f"version {version}", "version", u8(version) + good[1:]
    for size in (0, 1, 3, 4, 43, 44, 45, 71, 72, 73, len(good) - 1):
        yield f"the first {size} bytes", "length", good[:size]
    yield "a byte more", "length", good + b"\0"
    yield "380 bytes", "length", good.ljust(380, b"\0")
    yield "an encoding beyond the end", "length", with_field(p, "encoding", u8(255))
    yield "a noise beyond the end", "length", with_field(p, "noise", u8(64) + bytes(63))
    yield "a session beyond the end", "length", with_field(p, "session", u8(64) + bytes(63))

    def with_(name: str, what: str, value: bytes, of: Parameters = p) -> tuple[str, str, bytes]:
        return f"{name} {what}", "parameters", with_field(of, name, value)

    yield with_("security", "2", u8(2))
    for suite in (2, 3, 255):
        yield with_("suite", str(suite), u8(suite))
    for bit in range(2, 8):
        yield with_("flags", f"bit {bit}", u8(1 << bit))
    for n in (0, 1, 2, 2**20 + 1, 2**32 - 1):
        yield with_("n_clients", str(n), u32le(n))
    for t in (0, 5, 11, 2**32 - 1):
        yield with_("threshold", str(t), u32le(t))
    for m in (1, 7, 11, 2**32 - 1):  # 7 is the least, whose bytes are zeros
        yield with_("min_survivors", str(m), u32le(m))
    for k in (1, 3, 6, 10, 2**32 - 1):  # 6: the threshold 7 is above it
        yield with_("neighbours", str(k), u32le(k))
    for d in (0, 2**31 + 1, 2**64 - 1):
        yield with_("length", str(d), u64le(d))
    for w in (2**53 + 1, 2**64 - 1):
        yield with_("max_weight", str(w), u64le(w))
    for top in (0, 2**62, 2**63, 20 * 2**19 - 1):
        yield with_("modulus", f"- 1 = {top}", u64le(top))
    yield with_("modulus", "- 1 = 99, of 100 clipped elements", u64le(99), counted)
    for name, clip in (("NaN", "nan"), ("infinity", "inf"), ("-0", "-0.0"), ("-8", "-8.0"),
                       ("above 2^61", "4e18")):  # fmt: skip
        part = b"fixed point" + struct.pack("<d", float(clip)) + u64le(0)
        yield with_("encoding", f"of clip {name}", u8(27) + part)
    for name, part in (
        ("of 53 fractional bits", b"fixed point" + struct.pack("<d", 1.0) + u64le(53)),
        ("of max 0", b"integers" + u64le(0)),
        ("of max 2^62 + 1", b"integers" + u64le(2**62 + 1)),
        ("unknown", b"halves"),
        ("empty", b""),
        ("a byte short", p.encoding.encode()[:-1]),
        ("a byte long", p.encoding.encode() + b"\0"),
        ("in capitals", b"Integers" + u64le(9)),
    ):
        yield with_("encoding", name, u8(len(part)) + part)
    for name, part in (
        ("of norm 2^101", Bounded(2.0**101, 1).encode()),
        ("of norm -1", Bounded(-1.0, 1).encode()),
        ("of norm NaN", Bounded(float("nan"), 1).encode()),
        ("of no steps", Bounded(1.0, 0).encode()),
        ("of 2^30 + 1 steps", Bounded(1.0, 2**30 + 1).encode()),
    ):
        yield with_("encoding", name, u8(23) + part)
    bounded = p.but(encoding=Bounded(1.0, 100))
    yield with_("max_weight", "1, bounded", u64le(1), bounded)
    few = p.but(encoding=Bounded(1.0, 1), modulus=67)
    yield with_("modulus", "- 1 = 65, bounded", u64le(65), few)
    yield with_("encoding", "of too many steps", u8(23) + Bounded(1.0, 100).encode(), few)
    for name, part in (
        ("of an unknown kind", b"\x02" + Noise(2**14, 2).encode()[1:]),
        ("a byte short", Noise(2**14, 2).encode()[:-1]),
        ("a byte long", Noise(2**14, 2).encode() + b"\0"),
        ("of sigma 0", Noise(0, 2).encode()),
        ("of sigma above 2^40", Noise(2**48 + 1, 2).encode()),
        ("of shares below 4", Noise(2**10, 2).encode()),
        ("of shares above 2^28", Noise(2**38, 2).encode()),
        ("of 6 colluders among 7", Noise(2**14, 6).encode()),
        ("without room", Noise(2**36, 2).encode()),
    ):
        yield with_("noise", name, u8(len(part)) + part)
    yield with_("session", "of 65 bytes", u8(65) + bytes(65))
    active = p.but(security="active")
    yield with_("session", "empty, active", u8(0), active)
    yield with_("threshold", "6 of 10, active", u32le(6), active)
    yield with_("neighbours", "8, active", u32le(8), active)
