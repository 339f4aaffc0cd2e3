"""Parameters of a one-shot sum, and what follows from them: docs/oneshot.md §3 to §5."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from independent_noise import bound, noise_key, noises
from independent_primitives import (
    ParameterError,
    ProtocolError,
    agreement,
    cut,
    hkdf,
    ids,
    integer,
    integers,
    is_weak,
    number,
    require,
    sha256,
    split,
    u8,
    u16le,
    u32le,
    u64le,
    valid,
    verifies,
)
from independent_sums import Bounded, Encoding, Sums, read_encoding

REPORT, BOXES, REQUEST, RESERVATION, ANSWER, ACCUMULATOR = range(1, 7)  # §5.1
SECURITY = ("semi-honest", "active")
KEYS = {"hybrid": 1216, "x25519": 32}  # §3.2, by their codes
OVERHEAD = {"hybrid": 1136, "x25519": 48}


@dataclass
class Parameters(Sums):
    """§3.1, with the names of §3.2; `noise` is p. `helpers` are pairs of public keys."""

    n_clients: int
    length: int
    encoding: Encoding
    threshold: int
    helpers: Sequence[tuple[bytes, bytes]]
    modulus: int = 2**32
    min_clients: int = 3
    max_weight: int | None = None
    security: str = "active"
    suite: str = "x25519"
    session: bytes = b"session"
    noise: int | None = None

    def __post_init__(self) -> None:
        """Every field in its range (§3.1)."""
        self.t, self.ell, n = self.threshold, len(self.helpers), self.n_clients
        valid(self.security in SECURITY and self.suite in KEYS, "security or suite")
        self.active = self.security == "active"
        valid(1 <= self.t <= self.ell <= 16, "threshold or helpers")
        self.count = math.comb(self.ell, self.t - 1)
        valid(self.count <= 256, "too many seeds")
        self.least = integer(self.min_clients, "min_clients", 2, integer(n, "n", 2, 2**20))
        valid(self.active <= len(self.session) <= 64, "session: its length")
        nu = 0
        if self.noise is not None:
            nu = bound(integer(self.noise, "noise", 1, 2**48), self.count)
        valid(not isinstance(self.encoding, Bounded), "encoding")
        sums = self.length, self.encoding, self.modulus, self.max_weight
        super().__init__(n, *sums, nu=nu)
        for pair in self.helpers:
            self._validate(*pair)
        halves = zip(*((key[:-32], key[-32:], own) for key, own in self.helpers), strict=True)
        repeated = [len(set(keys)) < self.ell for keys in halves if any(keys)]
        valid(not any(repeated), "a key twice")
        self.digest = sha256(b"secagg/1 one-shot parameters", self.encode())
        subsets = list(combinations(range(1, self.ell + 1), self.t - 1))
        self.places = range(1, self.count + 1)  # of the seeds
        self.held = {
            j: [i for i, S in enumerate(subsets, 1) if j not in S]
            for j in range(1, self.ell + 1)
        }
        signers = (self.ell + self.t - 1) // 2 + 1
        self.q = signers if self.active and self.t < self.ell else 0
        self.sigma = 64 if self.active else 0
        self.box = {j: OVERHEAD[self.suite] + 16 * len(held) for j, held in self.held.items()}
        self.content = 8 + 32 * self.count

    def _validate(self, key: bytes, identity: bytes) -> None:
        """§3.4, of one helper."""
        valid(len(key) == KEYS[self.suite] and len(identity) == 32, "helpers: a key's length")
        valid(agreement(bytes(32), key[-32:]) is not None, "X25519 key")
        pairs = integers(key[:-32][:1152], 3)
        valid(all(x & 0xFFF < 3329 and x >> 12 < 3329 for x in pairs), "ML-KEM key")
        valid(not is_weak(identity), "Ed25519 key")

    def layout(self) -> dict[str, bytes]:
        """§3.3: the fields in their order."""
        encoding = self.encoding.encode()
        return {
            "version": u8(1),
            "security": u8(SECURITY.index(self.security)),
            "suite": u8([*KEYS].index(self.suite)),
            "threshold": u8(self.threshold),
            "number of helpers": u8(len(self.helpers)),
            "n_clients": u32le(self.n_clients),
            "min_clients": u32le(self.min_clients),
            "length": u64le(self.length),
            "max_weight": u64le(self.max_weight or 0),
            "modulus": u64le(self.modulus - 1),
            "encoding": u8(len(encoding)) + encoding,
            "session": u8(len(self.session)) + self.session,
            "helpers": b"".join(key + identity for key, identity in self.helpers),
            "noise": b"" if self.noise is None else u64le(self.noise),
        }

    def encode(self) -> bytes:
        """§3.3: P."""
        return b"".join(self.layout().values())

    @classmethod
    def decode(cls, data: bytes) -> Parameters:
        phase = "parameters"
        require(data[:1] in (b"", b"\1"), "version", phase)
        require(len(data) > 37, "length", phase)
        head, rest = split(data, 37)
        _, active, suite, t, ell, n, least, d, W, top = struct.unpack("<BBBBBIIQQQ", head)
        require(active < 2 and suite < 2, "parameters", phase)
        prefixed = []
        for _ in range(2):
            require(len(rest) > 0 and len(rest) > rest[0], "length", phase)
            value, rest = split(rest[1:], rest[0])
            prefixed.append(value)
        encoding, session = prefixed
        key = list(KEYS.values())[suite]
        keys, noise = split(rest, ell * (key + 32))
        require(len(keys) == ell * (key + 32) and len(noise) in (0, 8), "length", phase)
        try:
            return cls(
                n,
                d,
                read_encoding(encoding),
                t,
                [(pair[:key], pair[key:]) for pair in cut(keys, key + 32)],
                top + 1,
                least,
                W or None,
                SECURITY[active],
                [*KEYS][suite],
                session,
                number(noise) if noise else None,
            )
        except ParameterError:
            raise ProtocolError("parameters", phase) from None

    def but(self, **changes: object) -> Parameters:
        return replace(self, **changes)

    def mask_key(self, u: int, i: int, seed: bytes) -> bytes:
        """§4.2: k_i."""
        return hkdf(seed, self.digest, b"secagg/1 one-shot mask" + u64le(u) + u16le(i), 16)

    def commitment(self, u: int, i: int, seed: bytes) -> bytes:
        return sha256(b"secagg/1 one-shot seed", self.digest, u64le(u), u16le(i), seed)

    def head(self, content: bytes) -> bytes:
        return b"secagg/1 one-shot report" + self.digest + content

    def info(self, content: bytes, j: int) -> bytes:
        return b"secagg/1 one-shot box" + sha256(self.head(content), u16le(j))

    def endorsement(self) -> bytes:
        """§3.5: what a helper signs."""
        return b"secagg/1 one-shot endorsed" + self.digest

    def endorsed(self, signatures: Sequence[bytes], accepted: set[bytes]) -> bool:
        """§3.6, the rule `helpers`."""
        return len(signatures) == self.ell and all(
            identity in accepted and verifies(identity, self.endorsement(), signature)
            for (_, identity), signature in zip(self.helpers, signatures, strict=True)
        )

    def list_digest(self, batch: int, heads: Mapping[int, bytes]) -> bytes:
        """§4.5: D, from SHA-256(head) of each client."""
        rows = (u64le(u) + heads[u] for u in sorted(heads))
        label = b"secagg/1 one-shot batch"
        return sha256(label, self.digest, u64le(batch), u64le(len(heads)), *rows)

    def list_mask(self, i: int, seeds: Mapping[int, bytes], D: bytes) -> list[int]:
        """§4.6: M_i, from the seeds by ascending ids."""
        parts = [self.mask(self.mask_key(u, i, seed)) for u, seed in seeds.items()]
        if self.noise is not None:
            parts.append(self.noises(i, [*seeds.values()], D))
        return self.add(*parts)

    def noises(self, i: int, seeds: Sequence[bytes], D: bytes) -> list[int]:
        """§8: N(key_i)."""
        return noises(noise_key(i, seeds, D), self.noise, self.e)

    def message(self, kind: int, *body: bytes) -> bytes:
        """§5.1."""
        return bytes([1, kind]) + self.digest + b"".join(body)

    def request(
        self, batch: int, users: Sequence[int], signed: Iterable[tuple[int, bytes]] = ()
    ) -> bytes:
        rows = (u16le(j) + signature for j, signature in signed)
        counts = u64le(batch) + u64le(len(users))
        return self.message(REQUEST, counts, ids(users), *rows)

    def answer(self, j: int, D: bytes, masks: Iterable[Sequence[int]]) -> bytes:
        return self.message(ANSWER, u16le(j), D, *map(self.pack, masks))

    def body(self, data: bytes, kind: int, phase: str) -> bytes:
        """§5.2."""
        require(len(data) >= 34, "length", phase)
        require(data[0] == 1, "version", phase)
        require(data[1] == kind, "encoding", phase)
        require(data[2:34] == self.digest, "parameters", phase)
        return data[34:]
