"""Parameters of docs/oneshot.md §3, from the document alone."""

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import hpke
import oneshot_noise
import primitives as pr
from params import FixedPoint, Integers, Params
from primitives import draw, sha256, u8, u32le, u64le

BOX = {"hybrid": 1136, "x25519": 48}
KEY = {"hybrid": 1216, "x25519": 32}
SECRET = {"hybrid": 96, "x25519": 32}


def u16le(x: int) -> bytes:
    return x.to_bytes(2, "little")


@dataclass(frozen=True)
class OneShot:
    """Parameters of §3.1; `secrets` are the helpers' private HPKE keys and identity seeds."""

    n: int
    d: int
    encoding: FixedPoint | Integers
    t: int
    secrets: tuple[tuple[bytes, bytes], ...]
    modulus: int = 2**32
    least: int = 3
    max_weight: int | None = None
    security: str = "active"
    suite: str = "x25519"
    session: bytes = b"session"
    noise: int | None = None

    def __post_init__(self) -> None:
        weight = self.max_weight or 1
        largest = self.n * max(self.encoding.bound() * weight, weight)
        signed = isinstance(self.encoding, FixedPoint)
        assert self.modulus > (2 if signed else 1) * largest + 2 * self.nu, "no headroom"

    @property
    def nu(self) -> int:
        """§8.1: the bound on noise, 0 without."""
        return 0 if self.noise is None else oneshot_noise.bound(self.noise, self.count)

    @property
    def active(self) -> bool:
        return self.security == "active"

    @property
    def ell(self) -> int:
        return len(self.secrets)

    @property
    def subsets(self) -> list[tuple[int, ...]]:
        return list(combinations(range(1, self.ell + 1), self.t - 1))

    @property
    def count(self) -> int:
        return comb(self.ell, self.t - 1)

    def held(self, j: int) -> list[int]:
        return [i for i, subset in enumerate(self.subsets, 1) if j not in subset]

    @property
    def quorum(self) -> int:
        return (self.ell + self.t - 1) // 2 + 1 if self.active and self.t < self.ell else 0

    @property
    def sums(self) -> Params:
        return Params(
            self.n,
            self.n,
            self.d,
            self.encoding,
            self.modulus,
            max_weight=self.max_weight,
            two=True,
        )

    @property
    def packed(self) -> int:
        return -(-self.sums.elements * self.sums.bits // 8)

    def box(self, j: int) -> int:
        return BOX[self.suite] + 16 * len(self.held(j))

    @property
    def helpers(self) -> list[tuple[bytes, bytes]]:
        return [
            (hpke.public_key(self.suite, box), pr.ed25519_public(identity))
            for box, identity in self.secrets
        ]

    def layout(self) -> list[tuple[str, bytes]]:
        """§3.3: the fields in their order."""
        encoding = self.encoding.part()
        return [
            ("version", u8(1)),
            ("security", u8(self.active)),
            ("suite", u8(["hybrid", "x25519"].index(self.suite))),
            ("threshold", u8(self.t)),
            ("number of helpers", u8(self.ell)),
            ("n_clients", u32le(self.n)),
            ("min_clients", u32le(self.least)),
            ("length", u64le(self.d)),
            ("max_weight", u64le(self.max_weight or 0)),
            ("modulus", u64le(self.modulus - 1)),
            ("encoding", u8(len(encoding)) + encoding),
            ("session", u8(len(self.session)) + self.session),
            ("helpers", b"".join(box + identity for box, identity in self.helpers)),
            ("noise", b"" if self.noise is None else u64le(self.noise)),
        ]

    def to_bytes(self) -> bytes:
        return b"".join(value for _, value in self.layout())

    def with_field(self, name: str, value: bytes) -> bytes:
        return b"".join(value if field == name else own for field, own in self.layout())

    def digest(self) -> bytes:
        return sha256(b"secagg/1 one-shot parameters", self.to_bytes())

    def but(self, **changes: object) -> "OneShot":
        return replace(self, **changes)  # type: ignore[arg-type]

    def describe(self) -> dict[str, object]:
        return {
            "n_clients": self.n,
            "length": self.d,
            "encoding": self.encoding.describe(),
            "modulus": self.modulus,
            "helpers": [list(pair) for pair in self.helpers],
            "threshold": self.t,
            "min_clients": self.least,
            "max_weight": self.max_weight,
            "security": self.security,
            "suite": self.suite,
            "session": self.session,
            "noise": self.noise,
        }


def secrets(label: str, ell: int, suite: str = "x25519") -> tuple[tuple[bytes, bytes], ...]:
    return tuple(
        (draw(f"{label} box {j}", SECRET[suite]), draw(f"{label} identity {j}", 32))
        for j in range(1, ell + 1)
    )
