"""Parameters and encodings: docs/protocol.md §3 and §4, from the document alone."""

import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from primitives import ids, prg, sha256, u8, u64le


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
    security: str = "semi-honest"

    def __post_init__(self) -> None:
        w = self.max_weight or 1
        largest = self.n * max(self.encoding.bound() * w, w)
        signed = isinstance(self.encoding, FixedPoint)
        assert self.modulus > (2 * largest if signed else largest), "no headroom"
        assert largest < 2**63
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
        return self.d if self.max_weight is None else self.d + 1

    @property
    def least(self) -> int:
        return max(self.t, 2 if self.two else 3)

    @property
    def active(self) -> bool:
        return self.security == "active"

    def parts(self) -> list[bytes]:
        numbers = (self.n, self.t, self.d, self.k or 0, self.max_weight or 0)
        return [
            b"secagg/1 parameters",
            ids(list(numbers)) + u8(1 if self.two else 0),
            self.modulus.to_bytes(9, "little"),
            self.encoding.part(),
            self.security.encode(),
            self.session,
        ]

    def digest(self) -> bytes:
        return sha256(*(u64le(len(x)) + x for x in self.parts()))

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
    if params.max_weight is None:
        return [x % params.modulus for x in q]
    assert weight is not None
    return [weight * x % params.modulus for x in q] + [weight]


def decode_sum(params: Params, total: list[int]) -> list[int]:
    """§4.4: the signed integers, without the weight's element; FixedPoint before 2^-f."""
    signed = isinstance(params.encoding, FixedPoint)
    half = (params.modulus - 1) // 2
    return [v - params.modulus if signed and v > half else v for v in total[: params.d]]
