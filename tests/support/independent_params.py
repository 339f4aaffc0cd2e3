"""The parameters of docs/protocol.md §3.1 to §3.3, written from it alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from independent_noise import Noise, bound, read_noise
from independent_primitives import (
    integer,
    integers,
    require,
    sha256,
    split,
    u8,
    u32le,
    u64le,
    valid,
)
from independent_sums import Encoding, Sums, read_encoding

SUITES = ["hybrid", "x25519"]
"""§3.3: in the order of their bytes."""


@dataclass
class Parameters(Sums):
    """§3.1, with the names of §3.2."""

    n_clients: int
    threshold: int
    length: int
    encoding: Encoding
    modulus: int = 2**32
    neighbours: int | None = None
    max_weight: int | None = None
    session: bytes = b""
    allow_two_clients: bool = False
    count_clipped: bool = False
    security: str = "semi-honest"
    noise: Noise | None = None
    min_survivors: int | None = None
    suite: str = "x25519"

    def __post_init__(self) -> None:
        """Every field in its range (§3.1)."""
        self.active, two, k = self.security == "active", self.allow_two_clients, self.neighbours
        valid(self.security in ("semi-honest", "active") and type(two) is bool, "security")
        valid(type(self.count_clipped) is bool, "count_clipped")
        valid(self.suite in SUITES, "suite")
        self.hybrid = self.suite == "hybrid"
        n = integer(self.n_clients, "n_clients", 2 if two else 3, 2**20)
        if k is not None:
            even = integer(k, "neighbours", 2, n - 1) % 2 == 0
            valid(even and not self.active, "neighbours: odd, or in an active round")
        self.k, self.h = k, n if k is None else k + 1
        least, most = (n // 2 + 1, n) if k is None else (2, k)
        self.t = integer(self.threshold, "threshold", least, most)
        valid(not self.active or 3 * self.t > 2 * n, "threshold: active needs 3t > 2n")
        valid(self.active <= len(self.session) <= 64, "session: its length")
        self.least = max(self.t, 2 if two else 3)
        self.m = max(self.least, integer(self.min_survivors or 0, "min_survivors", 0, n))
        self.share = self.noise.share(self.m) if self.noise else 0
        sums = self.length, self.encoding, self.modulus, self.max_weight, self.count_clipped
        nu = bound(self.share, n) if self.share else 0
        super().__init__(n, *sums, nu, self.share, self.session)
        self.most_liars = 2 * self.t - n - 1  # as many dealers a client may complain of (§8.3)
        self.sigma = 64 if self.active else 0  # the bytes of a signature (§6.2)
        self.box = 1248 if self.hybrid else 96  # of a sealed share (§5.5)

    def layout(self) -> dict[str, bytes]:
        """§3.3: the fields in their order."""
        encoding, noise = self.encoding.encode(), self.noise.encode() if self.noise else b""
        return {
            "version": u8(4),
            "security": u8(self.active),
            "flags": u8(self.allow_two_clients + 2 * self.counted),
            "suite": u8(SUITES.index(self.suite)),
            "n_clients": u32le(self.n),
            "threshold": u32le(self.t),
            "min_survivors": u32le(0 if self.m == self.least else self.m),
            "neighbours": u32le(self.k or 0),
            "length": u64le(self.d),
            "max_weight": u64le(self.W or 0),
            "modulus": u64le(self.R - 1),
            "encoding": u8(len(encoding)) + encoding,
            "noise": u8(len(noise)) + noise,
            "session": u8(len(self.session)) + self.session,
        }

    def encode(self) -> bytes:
        """§3.3: P."""
        return b"".join(self.layout().values())

    @classmethod
    def read(cls, data: bytes) -> Parameters:
        """§3.3: the parameters that have these bytes."""
        valid(len(data) >= 47 and data[0] == 4, "bytes")
        head, data = data[:44], data[44:]
        active, flags, suite = head[1:4]
        n, t, m, k, *wide = integers(head[4:20], 4) + integers(head[20:])
        pieces = []
        for _ in range(3):  # encoding, noise, session
            valid(len(data) > data[0] if data else False, "bytes")
            pieces.append(data[1 : 1 + data[0]])
            data = data[1 + data[0] :]
        encoding, noise, session = pieces
        valid(active < 2 and flags < 4 and suite < 2 and data == b"", "bytes")
        made = cls(
            n, t, wide[0], read_encoding(encoding), wide[2] + 1, k or None, wide[1] or None,
            session, flags % 2 == 1, flags >= 2, ("semi-honest", "active")[active],
            read_noise(noise) if noise else None, m or None, SUITES[suite],
        )  # fmt: skip
        valid(made.encode() == b"".join((head, *(u8(len(x)) + x for x in pieces))), "bytes")
        return made

    def digest(self) -> bytes:
        return sha256(b"secagg/4 parameters", self.encode())

    def but(self, **changes: object) -> Parameters:
        return replace(self, **changes)

    def require_same(self, theirs: bytes) -> None:
        """§8.2: the checks `session` and `parameters`."""
        own = self.encode()
        head, rest = split(theirs, len(own) - 1 - len(self.session))
        another = own.startswith(head) and rest != b"" and rest[0] == len(rest) - 1 <= 64
        require(theirs == own or not another, "session")
        require(theirs == own, "parameters")

    def suggested(self) -> str:
        """§3.1: the suite of parameters that do not say which."""
        few = self.n <= 300 and 1184 + 1216 * (self.h - 1) < self.packed
        return "hybrid" if few else "x25519"
