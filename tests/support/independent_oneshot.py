"""A client, an aggregator and a helper of docs/oneshot.md (`§`) and docs/protocol.md (`P §`).

It follows the two documents alone: nothing of the package is imported, and HPKE is its own. It
rounds to nearest. Its journal is a file of lines, each on the disk before an answer. Written to
be read: not fast.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import math
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, mlkem, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

REPORT, BOXES, REQUEST, RESERVATION, ANSWER, ACCUMULATOR = range(1, 7)  # §5.1
PRIME = 2**255 - 19
WEAK_Y = {  # P §3.4
    int.from_bytes(bytes.fromhex(y), "little")
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
    )
}


class ParameterError(ValueError):
    """§9."""


class TooFew(Exception):
    """§9, TooFewSurvivors."""


class ProtocolError(Exception):
    """§9, RemoteProtocolError: the message breaks the protocol."""

    def __init__(self, check: str, phase: str) -> None:
        super().__init__(check, phase)
        self.check, self.phase = check, phase


def require(condition: bool, check: str, phase: str) -> None:
    if not condition:
        raise ProtocolError(check, phase)


def valid(condition: bool, what: str) -> None:
    if not condition:
        raise ParameterError(what)


def u16le(x: int) -> bytes:
    return x.to_bytes(2, "little")


def u64le(x: int) -> bytes:
    return x.to_bytes(8, "little")


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def split(data: bytes, *sizes: int) -> list[bytes]:
    """The first parts of these sizes, then the rest."""
    ends = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    return [data[a:b] for a, b in pairwise(ends)] + [data[ends[-1] :]]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def extract(salt: bytes, ikm: bytes) -> bytes:
    """RFC 5869."""
    return hmac.digest(salt or bytes(32), ikm, "sha256")


def expand(prk: bytes, info: bytes, size: int) -> bytes:
    out = block = b""
    for i in range(1, -(-size // 32) + 1):
        block = hmac.digest(prk, block + info + bytes([i]), "sha256")
        out += block
    return out[:size]


def verifies(key: bytes | None, message: bytes, signature: bytes) -> bool:
    """P §5.10."""
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key or b"").verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def sign(seed: bytes, message: bytes) -> bytes:
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed).sign(message)


# §4.4: HPKE, base mode, single shot, empty aad


def curve_public(secret: bytes) -> bytes:
    return x25519.X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def curve(secret: bytes, public: bytes) -> bytes:
    key = x25519.X25519PublicKey.from_public_bytes(public)
    return x25519.X25519PrivateKey.from_private_bytes(secret).exchange(key)


def hpke_public(secret: bytes) -> bytes:
    if len(secret) == 32:
        return curve_public(secret)
    lattice = mlkem.MLKEM768PrivateKey.from_seed_bytes(secret[:64]).public_key()
    return lattice.public_bytes_raw() + curve_public(secret[64:])


def shared_secret(dh: bytes, enc: bytes, public: bytes, lattice: bytes | None) -> bytes:
    """RFC 9180 §4.1, or the hybrid's combination."""
    if lattice is not None:
        joint = lattice + dh + enc[-32:] + public[-32:] + bytes.fromhex("5c2e2f2f5e5c")
        return hashlib.sha3_256(joint).digest()
    suite = b"HPKE-v1KEM" + bytes.fromhex("0020")
    prk = extract(b"", suite + b"eae_prk" + dh)
    info = u16le(32)[::-1] + suite + b"shared_secret" + enc + public
    return expand(prk, info, 32)


def schedule(shared: bytes, info: bytes, hybrid: bool) -> tuple[AESGCM, bytes]:
    """RFC 9180 §5.1: the key and the nonce of the first message."""
    suite = b"HPKE-v1HPKE" + bytes.fromhex("647a" if hybrid else "0020") + b"\0\1\0\1"
    context = b"\0" + extract(b"", suite + b"psk_id_hash")
    context += extract(b"", suite + b"info_hash" + info)
    secret = extract(shared, suite + b"secret")
    key, nonce = (
        expand(secret, u16le(size)[::-1] + suite + label + context, size)
        for label, size in ((b"key", 16), (b"base_nonce", 12))
    )
    return AESGCM(key), nonce


def seal(
    public: bytes, info: bytes, content: bytes, ephemeral: bytes, aad: bytes = b""
) -> bytes:
    lattice, enc = None, b""
    if len(public) > 32:
        key = mlkem.MLKEM768PublicKey.from_public_bytes(public[:-32])
        lattice, enc = key.encapsulate()
    enc += curve_public(ephemeral)
    dh = curve(ephemeral, public[-32:])
    aead, nonce = schedule(shared_secret(dh, enc, public, lattice), info, len(public) > 32)
    return enc + aead.encrypt(nonce, content, aad)


def unseal(secret: bytes, info: bytes, box: bytes, aad: bytes = b"") -> bytes | None:
    hybrid = len(secret) > 32
    enc, sealed = split(box, 1120 if hybrid else 32)
    try:
        lattice = None
        if hybrid:
            key = mlkem.MLKEM768PrivateKey.from_seed_bytes(secret[:64])
            lattice = key.decapsulate(enc[:-32])
        dh = curve(secret[-32:], enc[-32:])
        shared = shared_secret(dh, enc, hpke_public(secret), lattice)
        aead, nonce = schedule(shared, info, hybrid)
        return aead.decrypt(nonce, sealed, aad)
    except (InvalidTag, ValueError):
        return None


class Parameters:
    """§3, read from P. `clip` is None for Integers; `bound` is the largest |q|."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        require(data[:1] in (b"", b"\1"), "version", "parameters")
        require(len(data) > 37, "length", "parameters")
        head, rest = split(data, 37)
        _, self.active, suite, self.t, self.ell, *numbers = struct.unpack("<BBBBBIIQQQ", head)
        require(self.active < 2 and suite < 2, "parameters", "parameters")
        self.n, self.least, self.d, self.W, top = numbers
        self.R, self.hybrid = top + 1, suite == 0
        encoding, rest = self._prefixed(rest)
        self.session, rest = self._prefixed(rest)
        kappa = 1216 if self.hybrid else 32
        keys, noise = rest[: self.ell * (kappa + 32)], rest[self.ell * (kappa + 32) :]
        require(len(keys) == self.ell * (kappa + 32), "length", "parameters")
        require(len(noise) in (0, 8), "length", "parameters")
        self.p = number(noise) if noise else None
        self.helpers = [(pair[:kappa], pair[kappa:]) for pair in cut(keys, kappa + 32)]
        try:
            self._validate(encoding)
        except ParameterError:
            raise ProtocolError("parameters", "parameters") from None
        self.digest = sha256(b"secagg/1 one-shot parameters", data)
        self.count = math.comb(self.ell, self.t - 1)
        subsets = list(combinations(range(1, self.ell + 1), self.t - 1))
        self.held = {
            j: [i for i, S in enumerate(subsets, 1) if j not in S]
            for j in range(1, self.ell + 1)
        }
        signers = (self.ell + self.t - 1) // 2 + 1
        self.q = signers if self.active and self.t < self.ell else 0
        self.sigma = 64 if self.active else 0
        overhead = 1136 if self.hybrid else 48
        self.box = {j: overhead + 16 * len(held) for j, held in self.held.items()}
        self.content = 8 + 32 * self.count

    @staticmethod
    def _prefixed(data: bytes) -> tuple[bytes, bytes]:
        require(len(data) > 0 and len(data) > data[0], "length", "parameters")
        return data[1 : 1 + data[0]], data[1 + data[0] :]

    def _validate(self, encoding: bytes) -> None:
        """§3.1 and §3.4, and P §3.1 for the encoding and the headroom."""
        valid(1 <= self.t <= self.ell <= 16, "threshold or helpers")
        valid(math.comb(self.ell, self.t - 1) <= 256, "too many seeds")
        valid(2 <= self.least <= self.n <= 2**20 and 1 <= self.d <= 2**31, "n, min or d")
        valid(self.W <= 2**53 and self.active <= len(self.session) <= 64, "W or session")
        power = self.R & (self.R - 1) == 0
        valid(self.R >= 2 and (power or self.R <= 2**62), "modulus")
        self.encoding, self.clip, self.f = encoding, None, 0
        if encoding.startswith(b"fixed point") and len(encoding) == 27:
            self.clip, self.f = struct.unpack("<dQ", encoding[11:])
            valid(2**-1022 <= self.clip <= 2**61 and self.f <= 52, "clip or f")
            valid(self.clip * 2**self.f <= 2**61, "clip")
            self.bound = math.ceil(self.clip * 2**self.f)
        else:
            valid(encoding.startswith(b"integers") and len(encoding) == 16, "encoding")
            self.bound = number(encoding[8:])
            valid(1 <= self.bound <= 2**62, "max")
        S = self.n * self.bound * (self.W or 1)
        valid(self.p is None or 1 <= self.p <= 2**48, "noise")
        self.nu = 0  # §8.1
        if self.p is not None:
            square = 100 * math.comb(self.ell, self.t - 1) * self.p**2
            self.nu = -(-(math.isqrt(square - 1) + 1) // 256)
        valid(S + self.nu < 2**63, "headroom")
        valid(S * (1 if self.clip is None else 2) + 2 * self.nu < self.R, "headroom")
        self.b, self.e = (self.R - 1).bit_length(), self.d + (self.W > 0)
        self.packed = (self.e * self.b + 7) // 8
        valid(self.packed < 2**32, "length")
        for key, identity in self.helpers:
            point = number(key[-32:])
            valid(point < PRIME, "X25519 key")
            try:  # of low order: the result is all zero, which `cryptography` rejects
                curve(bytes(32), key[-32:])
            except ValueError:
                raise ParameterError("X25519 key") from None
            coefficients = (number(part) for part in cut(key[:-32][:1152], 3))
            low = all(x & 0xFFF < 3329 and x >> 12 < 3329 for x in coefficients)
            valid(low, "ML-KEM key")
            y = number(identity) & (2**255 - 1)
            valid(y < PRIME and y not in WEAK_Y, "Ed25519 key")
        parts = [[identity for _, identity in self.helpers]]
        parts += [[key[-32:] for key, _ in self.helpers]]
        parts += [[key[:-32] for key, _ in self.helpers]] if self.hybrid else []
        valid(all(len(set(keys)) == self.ell for keys in parts), "a key twice")

    def elements(self, vector: Iterable, weight: int | None) -> list[int]:
        """P §4."""
        q = []
        for x in vector:
            if self.clip is None:
                valid(0 <= x <= self.bound, "vector")
                q.append(int(x))
            else:
                valid(math.isfinite(x), "vector")
                q.append(round(min(max(float(x), -self.clip), self.clip) * 2**self.f))
        valid(len(q) == self.d, "vector")
        if not self.W:
            valid(weight is None, "weight")
            return [x % self.R for x in q]
        valid(weight is not None and 0 <= weight <= self.W, "weight")
        return [weight * x % self.R for x in q] + [weight]

    def prg(self, key: bytes) -> list[int]:
        """P §5.7."""

        def words(D: int, size: int, width: int) -> list[int]:
            counter = modes.CTR(D.to_bytes(8, "big") + bytes(8))
            stream = Cipher(algorithms.AES128(key), counter).encryptor().update(bytes(size))
            return [number(word) for word in cut(stream, width)]

        if self.R & (self.R - 1) == 0:
            width = 4 if self.b <= 32 else 8
            return [word % self.R for word in words(0, width * self.e, width)]
        out: list[int | None] = [None] * self.e
        D = 0
        while None in out:  # each element takes the first D that is not rejected
            for i, word in enumerate(words(D, 8 * self.e, 8)):
                M = word * self.R
                if out[i] is None and M % 2**64 >= 2**64 % self.R:
                    out[i] = M >> 64
            D += 1
        return out

    def pack(self, elements: Sequence[int]) -> bytes:
        """P §5.9."""
        bits = sum(x << (self.b * i) for i, x in enumerate(elements))
        return bits.to_bytes(self.packed, "little")

    def unpack(self, data: bytes, phase: str) -> list[int]:
        bits = number(data)
        out = [bits >> (self.b * i) & (2**self.b - 1) for i in range(self.e)]
        require(bits < 2 ** (self.b * self.e), "range", phase)
        require(all(x < self.R for x in out), "range", phase)
        return out

    def add(self, vectors: Iterable[Sequence[int]]) -> list[int]:
        return [sum(column) % self.R for column in zip([0] * self.e, *vectors, strict=True)]

    def mask(self, u: int, i: int, seed: bytes) -> list[int]:
        """§4.2: PRG(k_i)."""
        info = b"secagg/1 one-shot mask" + u64le(u) + u16le(i)
        return self.prg(expand(extract(self.digest, seed), info, 16))

    def noise(self, i: int, seeds: Sequence[bytes], D: bytes) -> list[int]:
        """§8: N(key_i), from the seeds by ascending ids."""
        key = sha256(b"secagg/1 one-shot noise", u16le(i), *seeds, D)[:16]
        stream = Cipher(algorithms.AES128(key), modes.CTR(bytes(16))).encryptor()
        return [sample(self.p, lambda: number(stream.update(bytes(8)))) for _ in range(self.e)]

    def commitment(self, u: int, i: int, seed: bytes) -> bytes:
        return sha256(b"secagg/1 one-shot seed", self.digest, u64le(u), u16le(i), seed)

    def head(self, content: bytes) -> bytes:
        return b"secagg/1 one-shot report" + self.digest + content

    def info(self, content: bytes, j: int) -> bytes:
        return b"secagg/1 one-shot box" + sha256(self.head(content), u16le(j))

    def message(self, kind: int, *body: bytes) -> bytes:
        return bytes([1, kind]) + self.digest + b"".join(body)

    def body(self, data: bytes, kind: int, phase: str) -> bytes:
        """§5.2."""
        require(len(data) >= 34, "length", phase)
        require(data[0] == 1, "version", phase)
        require(data[1] == kind, "encoding", phase)
        require(data[2:34] == self.digest, "parameters", phase)
        return data[34:]

    def list_digest(self, batch: int, heads: Mapping[int, bytes]) -> bytes:
        """§4.5: D, from SHA-256(head) of each client."""
        rows = (u64le(u) + heads[u] for u in sorted(heads))
        label = b"secagg/1 one-shot batch"
        return sha256(label, self.digest, u64le(batch), u64le(len(heads)), *rows)

    def endorsed(self, signatures: Sequence[bytes], accepted: set[bytes]) -> bool:
        """§3.6, the rule `helpers`."""
        message = b"secagg/1 one-shot endorsed" + self.digest
        return len(signatures) == self.ell and all(
            identity in accepted and verifies(identity, message, signature)
            for (_, identity), signature in zip(self.helpers, signatures, strict=True)
        )


def sample(p: int, word: Callable[[], int]) -> int:
    """§8.2."""

    def bernoulli(n: int, d: int) -> bool:
        while 0 < n < d:
            n = n * 2**64 - word() * d
        return n > 0

    def exponential(n: int, d: int) -> bool:
        k = 1
        while bernoulli(n, d * k):
            k += 1
        return k % 2 == 1

    def uniform() -> int:
        while (m := word() * p) % 2**64 < 2**64 % p:
            pass
        return m // 2**64

    def proposal() -> int | None:
        u, v = uniform(), 0
        if not exponential(u, p):
            return None
        while exponential(1, 1):
            v += 1
        y = (u + p * v) // 256
        negative = bernoulli(1, 2)
        if negative and y == 0:
            return None
        n, d = (256 * y - p) ** 2, 2 * p**2
        while n >= d:
            if not exponential(1, 1):
                return None
            n -= d
        return (-y if negative else y) if exponential(n, d) else None

    while (y := proposal()) is None:
        pass
    return y


def report(
    vector: Iterable,
    p: Parameters,
    u: int,
    weight: int | None = None,
    identity_seed: bytes | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
) -> bytes:
    """§6.1, without a policy."""
    valid((identity_seed is not None) == bool(p.active), "identity")
    x = p.elements(vector, weight)
    secret = b""
    if identity_seed:  # §4.1, P §5.13
        secret = sha256(sign(identity_seed, b"secagg/2 hedged identity"))
    prk = extract(secret, entropy(32))
    statement = sha256(b"secagg/1 one-shot seeds", p.digest, u64le(u))
    drawn = expand(prk, statement + u64le(0), 16 * p.count)
    seeds = dict(enumerate(cut(drawn, 16), 1))
    y = p.add([x, *(p.mask(u, i, seed) for i, seed in seeds.items())])
    content = u64le(u) + b"".join(p.commitment(u, i, seed) for i, seed in seeds.items())
    boxes = [
        seal(key, p.info(content, j), b"".join(seeds[i] for i in p.held[j]), os.urandom(32))
        for j, (key, _) in enumerate(p.helpers, 1)
    ]
    signature = sign(identity_seed, p.head(content)) if identity_seed else b""
    return p.message(REPORT, content, *boxes, signature, p.pack(y))


class Aggregator:
    """§6.2: the reports of one batch."""

    def __init__(
        self, p: Parameters, registry: Mapping[int, bytes] | None = None, batch: int = 0
    ) -> None:
        self.p, self.registry, self.batch = p, registry, batch
        self.total = [0] * p.e
        self.heads: dict[int, bytes] = {}
        self.kept: dict[int, bytes] = {}
        self.fixed = False

    def _read(self, data: bytes) -> tuple[bytes, list[bytes], bytes, bytes]:
        """Content of the head, boxes, signature, y packed."""
        p = self.p
        body = p.body(data, REPORT, "report")
        content, *boxes, signature, y = split(body, p.content, *p.box.values(), p.sigma)
        require(len(y) == p.packed, "length", "report")
        return content, boxes, signature, y

    def add(self, data: bytes) -> bool:
        p = self.p
        content, _, signature, y = self._read(data)
        u, head = number(content[:8]), sha256(p.head(content))
        if self.heads.get(u) == head:
            return False
        require(u not in self.heads, "id", "report")
        require(len(self.heads) < p.n, "count", "report")
        if self.registry is not None:
            known = verifies(self.registry.get(u), p.head(content), signature)
            require(known, "signature", "report")
        self.total = p.add([self.total, p.unpack(y, "report")])
        self.heads[u], self.kept[u] = head, data
        return True

    def boxes(self, j: int) -> bytes:
        records = []
        for data in self.kept.values():
            content, boxes, signature, _ = self._read(data)
            records.append(content + boxes[j - 1] + signature)
        return self.p.message(BOXES, u16le(j), *records)

    def drop(self, u: int) -> None:
        y = self.p.unpack(self._read(self.kept.pop(u))[3], "report")
        del self.heads[u]
        self.total = self.p.add([self.total, [-v for v in y]])

    def merge(self, other: Aggregator) -> None:
        valid(self.p.digest == other.p.digest and self.batch == other.batch, "other session")
        valid(not self.heads.keys() & other.heads.keys(), "a client in both")
        valid(len(self.heads) + len(other.heads) <= self.p.n, "more than n")
        self.total = self.p.add([self.total, other.total])
        self.heads |= other.heads
        self.kept |= other.kept

    def encode(self) -> bytes:
        """§5.3."""
        counts = u64le(self.batch) + bytes([self.fixed])
        counts += u64le(len(self.heads)) + u64le(len(self.kept))
        rows = [u64le(u) + self.heads[u] for u in sorted(self.heads)]
        rows += [self.kept[u] for u in sorted(self.kept)]
        return self.p.message(ACCUMULATOR, counts, self.p.pack(self.total), *rows)

    @classmethod
    def decode(
        cls, data: bytes, p: Parameters, registry: Mapping[int, bytes] | None
    ) -> Aggregator:
        phase = "accumulator"
        body = p.body(data, ACCUMULATOR, phase)
        require(len(body) >= 25, "length", phase)
        fields = split(body, 8, 1, 8, 8)
        batch, fixed, count, unsettled = map(number, fields[:4])
        require(fixed < 2 and unsettled <= count <= p.n, "count", phase)
        require(not fixed or count >= p.least, "count", phase)
        each = 34 + p.content + sum(p.box.values()) + p.sigma + p.packed
        size = p.packed + 40 * count + each * unsettled
        require(len(fields[4]) == size, "length", phase)
        packed, rows, reports = split(fields[4], p.packed, 40 * count)
        new = cls(p, registry, batch)
        new.total = p.unpack(packed, phase)
        ids = [number(row[:8]) for row in cut(rows, 40)]
        waiting = [number(data[34:42]) for data in cut(reports, each)]
        ascend = all(a < b for some in (ids, waiting) for a, b in pairwise(some))
        require(ascend, "ids", phase)
        new.heads = {u: row[8:] for u, row in zip(ids, cut(rows, 40), strict=True)}
        for u, data in zip(waiting, cut(reports, each), strict=True):
            content, _, _, y = new._read(data)
            require(new.heads.get(u) == sha256(p.head(content)), "ids", phase)
            p.unpack(y, "report")
            new.kept[u] = data
        new.fixed = bool(fixed)
        return new

    def request(self, reservations: Iterable[bytes] = ()) -> bytes:
        p = self.p
        if len(self.heads) < p.least:
            raise TooFew(len(self.heads))
        self.fixed = True
        signed: dict[int, bytes] = {}
        for data in reservations:
            j, signature = self._reply(data, RESERVATION, "reserve")
            message = b"secagg/1 one-shot reserved" + self._D()
            good = not p.active or verifies(p.helpers[j - 1][1], message, signature)
            require(good, "signature", "reserve")
            signed[j] = signature
        valid(not signed or len(signed) >= p.q, "too few helpers")
        ids = b"".join(map(u64le, sorted(self.heads)))
        rows = [u16le(j) + signed[j] for j in sorted(signed)] if p.q else []
        counts = u64le(self.batch) + u64le(len(self.heads))
        return p.message(REQUEST, counts, ids, *rows)

    def _D(self) -> bytes:
        return self.p.list_digest(self.batch, self.heads)

    def _reply(self, data: bytes, kind: int, phase: str) -> tuple[int, bytes]:
        p = self.p
        body = p.body(data, kind, phase)
        require(len(body) >= 34, "length", phase)
        j = number(body[:2])
        require(1 <= j <= p.ell, "helper", phase)
        require(body[2:34] == self._D(), "list", phase)
        size = p.sigma if kind == RESERVATION else p.packed * len(p.held[j])
        require(len(body) == 34 + size, "length", phase)
        return j, body[34:]

    def result(self, answers: Iterable[bytes]) -> tuple[list[int], int | None, list[int]]:
        """The integers, the weight, and the outvoted helpers."""
        p = self.p
        given: dict[int, bytes] = {}
        for data in answers:
            j, masks = self._reply(data, ANSWER, "open")
            require(given.setdefault(j, masks) == masks, "holders", "open")
        valid(len(given) >= p.t, "too few helpers")
        chosen, outvoted = [], set()
        for i in range(1, p.count + 1):
            votes = {
                j: cut(masks, p.packed)[p.held[j].index(i)]
                for j, masks in given.items()
                if i in p.held[j]
            }
            tally = Counter(votes.values())
            if len(tally) > 1:
                most = [mask for mask, count in tally.items() if count >= p.t]
                require(len(most) == 1, "holders", "open")
            else:
                most = list(tally)
            outvoted |= {j for j, mask in votes.items() if mask != most[0]}
            chosen.append(p.unpack(most[0], "open"))
        opened = p.add([self.total, *([-v for v in mask] for mask in chosen)])
        half = (p.R - 1) // 2
        signed = p.clip is not None
        heaviest = len(self.heads) * (p.W or 1)  # P §8.5, §8.1
        most_ = heaviest * p.bound + p.nu
        least = -most_ if signed else -p.nu
        half = half if signed else most_ if p.nu else p.R
        integers = [v - p.R if v > half else v for v in opened[: p.d]]
        weight = opened[p.d] if p.W else None
        if weight is not None and p.nu and weight > heaviest + p.nu:
            weight -= p.R
        inside = weight is None or -p.nu <= weight <= heaviest + p.nu
        require(inside, "weight", "unmasking")
        require(all(least <= v <= most_ for v in integers), "sum", "unmasking")
        return integers, weight, sorted(outvoted)


class Journal:
    """§7: keys and lists in one file. A line is params, batch, D and ids, in hexadecimal."""

    def __init__(self, path: Path, secrets: tuple[bytes, bytes] | None = None) -> None:
        if secrets:  # created together with the keys, never over another file
            keys = " ".join(part.hex() for part in secrets)
            self._append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), keys)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        first, *lists = path.read_text().splitlines()
        self.box_secret, self.seed = map(bytes.fromhex, first.split())
        rows = [[bytes.fromhex(part) for part in line.split()] for line in lists]
        self.lists = [(*row[:3], set(cut(row[3], 8))) for row in rows]

    @staticmethod
    def _append(file: int, line: str) -> None:
        os.write(file, line.encode() + b"\n")
        os.fsync(file)

    def reserve(self, params: bytes, batch: int, D: bytes, ids: Sequence[bytes]) -> None:
        for known, taken, digest, spent in self.lists:
            if known == params and taken == u64le(batch):
                require(digest == D, "batch", "reserve")
                return
            require(known != params or not spent & set(ids), "spent", "reserve")
        row = (params, u64le(batch), D, b"".join(ids))
        self._append(self._file, " ".join(part.hex() for part in row))
        self.lists.append((*row[:3], set(ids)))

    def close(self) -> None:
        os.close(self._file)


class Helper:
    """§6.3 to §6.5."""

    def __init__(
        self,
        p: Parameters,
        journal: Journal,
        registry: Mapping[int, bytes] | None = None,
        min_clients: int = 3,
    ) -> None:
        own = ed25519.Ed25519PrivateKey.from_private_bytes(journal.seed).public_key()
        keys = hpke_public(journal.box_secret), own.public_bytes_raw()
        valid(keys in p.helpers, "not a helper of these parameters")
        self.p, self.journal, self.registry = p, journal, registry
        self.j, self.least = p.helpers.index(keys) + 1, max(min_clients, p.least)
        self.checked: dict[int, tuple[bytes, list[bytes]]] = {}

    def endorse(self) -> bytes:
        return sign(self.journal.seed, b"secagg/1 one-shot endorsed" + self.p.digest)

    def check(self, data: bytes) -> list[int]:
        """The ids that are rejected."""
        p, j = self.p, self.j
        body = p.body(data, BOXES, "check")
        size = p.content + p.box[j] + p.sigma
        require(len(body) >= 2 and (len(body) - 2) % size == 0, "length", "check")
        require(number(body[:2]) == j, "helper", "check")
        rejected = []
        for record in cut(body[2:], size):
            content, box, signature = split(record, p.content, p.box[j])
            u, head = number(content[:8]), p.head(content)
            stated = cut(content[8:], 32)
            opened = unseal(self.journal.box_secret, p.info(content, j), box)
            seeds = dict(zip(p.held[j], cut(opened or b"", 16), strict=opened is not None))
            good = opened is not None and all(
                p.commitment(u, i, seed) == stated[i - 1] for i, seed in seeds.items()
            )
            if self.registry is not None:
                good = good and verifies(self.registry.get(u), head, signature)
            if good:
                self.checked[u] = sha256(head), list(seeds.values())
            else:
                rejected.append(u)
        return rejected

    def _read(self, data: bytes) -> tuple[int, list[bytes], bytes, dict[int, bytes]]:
        """Batch, ids, D and signatures: §6.4 up to `unchecked`."""
        p, phase = self.p, "reserve"
        body = p.body(data, REQUEST, phase)
        require(len(body) >= 16, "length", phase)
        batch, count = number(body[:8]), number(body[8:16])
        require(len(body) >= 16 + 8 * count, "length", phase)
        ids, rows = cut(body[16 : 16 + 8 * count], 8), body[16 + 8 * count :]
        require(len(rows) % 66 == 0, "length", phase)
        require(all(number(a) < number(b) for a, b in pairwise(ids)), "ids", phase)
        signed = [(number(row[:2]), row[2:]) for row in cut(rows, 66)]
        numbers = [0, *(j for j, _ in signed), p.ell + 1]
        require(all(a < b for a, b in pairwise(numbers)), "signatures", phase)
        require(self.least <= count <= p.n, "count", phase)
        users = [number(u) for u in ids]
        require(all(u in self.checked for u in users), "unchecked", phase)
        D = p.list_digest(batch, {u: self.checked[u][0] for u in users})
        return batch, ids, D, dict(signed)

    def reserve(self, data: bytes) -> bytes:
        p = self.p
        batch, ids, D, _ = self._read(data)
        self.journal.reserve(p.digest, batch, D, ids)
        signature = b""
        if p.active:
            signature = sign(self.journal.seed, b"secagg/1 one-shot reserved" + D)
        return p.message(RESERVATION, u16le(self.j), D, signature)

    def open(self, data: bytes) -> bytes:
        p = self.p
        batch, ids, D, signed = self._read(data)
        if p.q:
            message = b"secagg/1 one-shot reserved" + D
            good = (verifies(p.helpers[j - 1][1], message, s) for j, s in signed.items())
            require(all(good), "signature", "open")
            require(len(signed) >= p.q, "quorum", "open")
        self.journal.reserve(p.digest, batch, D, ids)
        users = [number(u) for u in ids]
        masks = []
        for place, i in enumerate(p.held[self.j]):
            seeds = {u: self.checked[u][1][place] for u in users}
            parts = [p.mask(u, i, seed) for u, seed in seeds.items()]
            if p.p is not None:
                parts.append(p.noise(i, [*seeds.values()], D))
            masks.append(p.add(parts))
        return p.message(ANSWER, u16le(self.j), D, *map(p.pack, masks))
