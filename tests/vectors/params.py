"""Parameters and encodings: docs/protocol.md §3 and §4, from the document alone."""

import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from primitives import prg, sha256, u8, u32le, u64le


@dataclass(frozen=True)
class FixedPoint:
    clip: float
    f: int

    def bound(self) -> int:
        return ceil(self.clip * 2.0**self.f)

    def part(self) -> bytes:
        return b"fixed point" + struct.pack("<d", self.clip) + u64le(self.f)

    def describe(self) -> dict[str, object]:
        return {"kind": "fixed point", "clip": self.clip, "fractional_bits": self.f}


@dataclass(frozen=True)
class Integers:
    max: int

    def bound(self) -> int:
        return self.max

    def part(self) -> bytes:
        return b"integers" + u64le(self.max)

    def describe(self) -> dict[str, object]:
        return {"kind": "integers", "max": self.max}


@dataclass(frozen=True)
class Params:
    n: int
    t: int
    d: int
    encoding: FixedPoint | Integers
    modulus: int = 2**32
    k: int | None = None
    max_weight: int | None = None
    session: bytes = b""
    two: bool = False
    count: bool = False
    security: str = "semi-honest"

    def __post_init__(self) -> None:
        w = self.max_weight or 1
        largest = self.n * max(self.encoding.bound() * w, w)
        signed = isinstance(self.encoding, FixedPoint)
        assert self.modulus > (2 * largest if signed else largest), "no headroom"
        assert largest < 2**63
        assert not self.count or self.modulus > self.n * self.d
        assert self.h // 2 < self.t <= self.h
        assert not self.active or (3 * self.t > 2 * self.n and self.k is None)

    @property
    def h(self) -> int:
        return self.n if self.k is None else self.k + 1

    @property
    def bits(self) -> int:
        return (self.modulus - 1).bit_length()

    @property
    def elements(self) -> int:
        return self.d + (self.max_weight is not None) + self.count

    @property
    def least(self) -> int:
        return max(self.t, 2 if self.two else 3)

    @property
    def active(self) -> bool:
        return self.security == "active"

    def layout(self) -> list[tuple[str, bytes]]:
        """§3.3: the fields in their order."""
        encoding = self.encoding.part()
        return [
            ("version", u8(3)),
            ("security", u8(1 if self.active else 0)),
            ("flags", u8((1 if self.two else 0) + (2 if self.count else 0))),
            ("n_clients", u32le(self.n)),
            ("threshold", u32le(self.t)),
            ("neighbours", u32le(self.k or 0)),
            ("length", u64le(self.d)),
            ("max_weight", u64le(self.max_weight or 0)),
            ("modulus", u64le(self.modulus - 1)),
            ("encoding", u8(len(encoding)) + encoding),
            ("session", u8(len(self.session)) + self.session),
        ]

    def to_bytes(self) -> bytes:
        return b"".join(value for _, value in self.layout())

    def with_field(self, name: str, value: bytes) -> bytes:
        """The bytes with one field replaced by any other."""
        return b"".join(value if field == name else own for field, own in self.layout())

    def digest(self) -> bytes:
        return sha256(b"secagg/2 parameters", self.to_bytes())

    def but(self, **changes: object) -> "Params":
        return replace(self, **changes)  # type: ignore[arg-type]

    def describe(self) -> dict[str, object]:
        return {
            "n_clients": self.n,
            "threshold": self.t,
            "length": self.d,
            "encoding": self.encoding.describe(),
            "modulus": self.modulus,
            "neighbours": self.k,
            "max_weight": self.max_weight,
            "session": self.session,
            "allow_two_clients": self.two,
            "count_clipped": self.count,
            "security": self.security,
        }


def quantise(x: float, encoding: FixedPoint, random_bits: int | None = None) -> int:
    """§4.1, to the nearest or, given 53 random bits, stochastically as Annex B has it."""
    y = min(max(x, -encoding.clip), encoding.clip) * 2.0**encoding.f
    if random_bits is None:
        return round(y)
    return floor(y) + (random_bits < (Fraction(y) - floor(y)) * 2**53)


def elements_of(
    params: Params, vector: list[float] | list[int], weight: int | None, key: bytes | None
) -> list[int]:
    """§4.3: the elements that are masked; `key` is the one of stochastic rounding."""
    encoding = params.encoding
    if isinstance(encoding, Integers):
        q = [int(x) for x in vector]
    else:
        words = prg(key, len(vector), 2**64) if key else []
        random = [word >> 11 for word in words] if key else [None] * len(vector)
        q = [quantise(x, encoding, r) for x, r in zip(vector, random, strict=True)]
    more = []
    if params.max_weight is not None:
        assert weight is not None
        q = [weight * x for x in q]
        more.append(weight)
    if params.count:
        clip = encoding.clip if isinstance(encoding, FixedPoint) else encoding.max
        more.append(sum(abs(x) > clip for x in vector))
    return [x % params.modulus for x in q] + more


def decode_sum(params: Params, total: list[int]) -> list[int]:
    """§4.4: the signed integers, without weight and count; FixedPoint before 2^-f."""
    signed = isinstance(params.encoding, FixedPoint)
    half = (params.modulus - 1) // 2
    return [v - params.modulus if signed and v > half else v for v in total[: params.d]]
