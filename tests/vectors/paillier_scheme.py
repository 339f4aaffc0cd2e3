"""Second implementation of Paillier, its keys and packing, from docs/paillier.md §2-§4 alone.

Plain Python integers, with nothing of the package. The keys are small, so that the vectors are,
too. They protect nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from math import gcd, isqrt, prod
from typing import NamedTuple

from draws import draw
from params import described_encoding

from independent_primitives import sha256, u8, u16le, u64le
from independent_sums import Encoding, Integers

SMALL = [x for x in range(2, 2000) if all(x % y for y in range(2, isqrt(x) + 1))]
PRODUCT = prod(SMALL)


class Rejected(Exception):
    """Rejection by the document, with the name of its check."""


def number(label: str, bits: int) -> int:
    return int.from_bytes(draw(label, bits // 8), "little")


def is_prime(n: int) -> bool:
    """Miller and Rabin to twenty bases: enough for random candidates."""
    if n < 2000:
        return n in SMALL
    if gcd(n, PRODUCT) > 1:
        return False
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    for base in SMALL[:20]:
        power = pow(base, (n - 1) >> twos, n)
        if power in (1, n - 1):
            continue
        if all((power := power * power % n) != n - 1 for _ in range(twos - 1)):
            return False
    return True


def structured_prime(label: str, bits: int) -> int:
    """A prime 2 r p' + 1 of §2, its two highest bits set."""
    for i in range(100_000):
        r = number(f"{label} r {i}", 16) | 1
        rest = (number(f"{label} {i}", bits) | 3 << (bits - 2)) // (2 * r) | 1
        p = 2 * r * rest + 1
        # powers take most of the time: none for a pair of which either has a small factor
        small = gcd(p * rest, PRODUCT) > 1
        if p >> (bits - 2) == 3 and not small and is_prime(p) and is_prime(rest):
            return p
    raise AssertionError("no prime found")


def plain_prime(label: str, bits: int, residue: int) -> int:
    """Any prime that is `residue` modulo 4, as another library's key may have."""
    for i in range(100_000):
        p = ((number(f"{label} {i}", bits) | 3 << (bits - 2)) & ~3) | residue
        if is_prime(p):
            return p
    raise AssertionError("no prime found")


def start(magic: bytes, bits: int, exponent_bits: int) -> bytes:
    """The beginning of a key's bytes."""
    return magic + u8(1) + u16le(bits) + u16le(exponent_bits)


class Noise(NamedTuple):
    """Parts of a ρ of §3: e and b if the key has an h, else r and nothing."""

    number: int
    b: int = 0


@dataclass(frozen=True)
class Key:
    name: str
    bits: int
    exponent_bits: int
    p: int
    q: int
    h: int = 0

    @property
    def n(self) -> int:
        return self.p * self.q

    @property
    def n2(self) -> int:
        return self.n * self.n

    @property
    def width(self) -> int:
        """Bytes of a ciphertext."""
        return self.bits // 4

    def public(self) -> bytes:
        size = self.bits // 8
        numbers = (x.to_bytes(size, "little") for x in (self.n, self.h))
        return start(b"SAPK", self.bits, self.exponent_bits) + b"".join(numbers)

    def key_id(self) -> bytes:
        return sha256(self.public())

    def private(self) -> bytes:
        size = self.bits // 16
        primes = self.p.to_bytes(size, "little") + self.q.to_bytes(size, "little")
        content = start(b"SASK", self.bits, self.exponent_bits) + primes
        content += self.h.to_bytes(2 * size, "little")
        return content + sha256(content)

    def noise(self, label: str) -> Noise:
        if self.exponent_bits:
            b = number(f"{self.name} {label} b", 8) & 1
            return Noise(number(f"{self.name} {label}", self.exponent_bits), b)
        r = number(f"{self.name} {label}", self.bits) % self.n
        assert gcd(r, self.n) == 1
        return Noise(r)

    @cached_property
    def y(self) -> int:
        """The least integer from 2 on of Jacobi symbol -1: a square modulo one prime alone."""
        square = {1: True, self.p - 1: False, self.q - 1: False}
        return next(
            y
            for y in range(2, 1000)
            if square[pow(y, (self.p - 1) // 2, self.p)]
            != square[pow(y, (self.q - 1) // 2, self.q)]
        )

    @cached_property
    def base(self) -> int:
        return pow(self.h, self.n, self.n2)

    def rho(self, noise: Noise) -> int:
        if self.exponent_bits:
            of_y = pow(self.y, noise.b * self.n, self.n2)
            return pow(self.base, noise.number, self.n2) * of_y % self.n2
        return pow(noise.number, self.n, self.n2)

    def describe(self, noise: Noise) -> dict[str, object]:
        if self.exponent_bits:
            return {"e": str(noise.number), "b": noise.b}
        return {"r": str(noise.number)}

    def encrypt(self, m: int, noise: Noise) -> int:
        assert abs(m) <= (self.n - 1) // 2
        return (1 + m % self.n * self.n) * self.rho(noise) % self.n2

    def encrypt_all(self, plaintexts: list[int], label: str) -> tuple[list[Noise], list[int]]:
        """The noises, which follow from the label, and the ciphertexts."""
        noises = [self.noise(f"{label}{i}") for i in range(len(plaintexts))]
        return noises, [*map(self.encrypt, plaintexts, noises)]

    def decrypt(self, c: int) -> int:
        """Carmichael's function, no remainders apart: the schoolbook way."""
        lam = (self.p - 1) * (self.q - 1)
        m = (pow(c, lam, self.n2) - 1) // self.n * pow(lam, -1, self.n) % self.n
        return m if m <= (self.n - 1) // 2 else m - self.n

    def raw(self, ciphertexts: list[int]) -> bytes:
        return b"".join(c.to_bytes(self.width, "little") for c in ciphertexts)


def make_key(bits: int, exponent_bits: int, *, swap: bool = False) -> Key:
    name = f"{bits} bits, exponents of {exponent_bits}" + (", p above q" if swap else "")
    p = q = 1
    for attempt in range(100):
        labels = (f"{name} {x} {attempt}" for x in "pq")
        p, q = sorted((structured_prime(x, bits // 2) for x in labels), reverse=swap)
        if gcd(p - 1, q - 1) == 2:
            break
    assert gcd(p - 1, q - 1) == 2
    assert p % 4 == q % 4 == 3
    assert (p * q).bit_length() == bits
    h = -(number(f"{name} x", bits) ** 2) % (p * q) if exponent_bits else 0
    return Key(name, bits, exponent_bits, p, q, h)


def foreign_key(bits: int) -> Key:
    """A key that another library may have made: no structure, primes not 3 modulo 4."""
    p, q = (plain_prime(f"foreign {bits} {r}", bits // 2, r) for r in (1, 3))
    assert gcd(p * q, (p - 1) * (q - 1)) == 1
    return Key(f"{bits} bits, made elsewhere", bits, 0, p, q)


@dataclass(frozen=True)
class Packing:
    encoding: Encoding
    d: int
    summands: int
    max_weight: int | None = None
    session: bytes = b""

    @property
    def largest(self) -> int:
        """M of §4."""
        return (self.max_weight or 1) * self.encoding.bound

    @property
    def offset(self) -> int:
        """S of §4."""
        return self.summands * self.largest

    @property
    def slot_bits(self) -> int:
        return (2 * self.offset).bit_length()

    def digest(self) -> bytes:
        part = self.encoding.encode()
        numbers = len(part), self.d, self.summands, self.max_weight or 0, self.slot_bits
        return sha256(b"secagg packing v1", *map(u64le, numbers), part, self.session)

    def slots(self, bits: int) -> int:
        return (bits - 1) // self.slot_bits

    def cut(self, bits: int) -> list[int]:
        """Numbers of slots of the plaintexts."""
        slots, left, out = self.slots(bits), self.d + (1 if self.max_weight is None else 2), []
        while left:
            out.append(min(slots, left))
            left -= out[-1]
        return out

    def plaintexts(
        self, bits: int, elements: list[int], weight: int | None, count: int
    ) -> list[int]:
        assert (weight is None) == (self.max_weight is None)
        at, out, values = 0, [], [*elements, *([] if weight is None else [weight]), count]
        for slots in self.cut(bits):
            some = enumerate(values[at : at + slots])
            out.append(sum(v << (self.slot_bits * i) for i, v in some))
            at += slots
        return out

    def read(
        self, bits: int, plaintexts: list[int], added: int, subtracted: int
    ) -> tuple[list[int], int | None]:
        """The elements and the weight of a sum; raises Rejected."""
        values: list[int] = []
        for m, slots in zip(plaintexts, self.cut(bits), strict=True):
            shifted = m + sum(self.offset << (self.slot_bits * i) for i in range(slots))
            if not 0 <= shifted < 1 << (self.slot_bits * slots):
                raise Rejected("sum")
            mask = (1 << self.slot_bits) - 1
            values += [
                (shifted >> (self.slot_bits * i) & mask) - self.offset for i in range(slots)
            ]
        if any(abs(v) > (added + subtracted) * self.largest for v in values):
            raise Rejected("sum")
        elements, (*weights, count) = values[: self.d], values[self.d :]
        if isinstance(self.encoding, Integers) and any(
            not -subtracted * self.largest <= v <= added * self.largest for v in elements
        ):
            raise Rejected("sum")
        if count != added - subtracted:
            raise Rejected("summands")
        if self.max_weight is None:
            return elements, None
        (weight,) = weights
        if not -subtracted * self.max_weight <= weight <= added * self.max_weight:
            raise Rejected("weight")
        return elements, weight

    def describe(self) -> dict[str, object]:
        return {
            "encoding": described_encoding(self.encoding), "length": self.d,
            "summands": self.summands, "max_weight": self.max_weight, "session": self.session,
        }  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """An encrypted vector: its header's counts and its ciphertexts."""

    key: Key
    packing: Packing
    added: int
    subtracted: int
    ciphertexts: list[int]

    def parts(self) -> "Parts":
        counts = u64le(self.added), u64le(self.subtracted)
        about = self.key.key_id(), self.packing.digest()
        return Parts(b"SAEV", u8(1), *about, *counts, self.key.raw(self.ciphertexts))

    def encoded(self) -> bytes:
        return b"".join(self.parts())

    def __add__(self, other: "Sent") -> "Sent":
        ciphertexts = [
            a * b % self.key.n2
            for a, b in zip(self.ciphertexts, other.ciphertexts, strict=True)
        ]
        added, subtracted = self.added + other.added, self.subtracted + other.subtracted
        return Sent(self.key, self.packing, added, subtracted, ciphertexts)

    def __mul__(self, k: int) -> "Sent":
        """The vector times k; below 0, what was added counts as subtracted."""
        counts = (self.added, self.subtracted) if k > 0 else (self.subtracted, self.added)
        ciphertexts = [pow(c, k, self.key.n2) for c in self.ciphertexts]
        return Sent(self.key, self.packing, abs(k) * counts[0], abs(k) * counts[1], ciphertexts)


class Parts(NamedTuple):
    """The parts of an encrypted vector's bytes."""

    magic: bytes
    version: bytes
    key_id: bytes
    digest: bytes
    added: bytes
    subtracted: bytes
    ciphertexts: bytes
