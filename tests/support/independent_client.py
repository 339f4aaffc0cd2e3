"""A client of the secagg protocol, version 3, written from its specification alone (`§`).

A `Client` lives for one session (§7.3); its methods, called in the order of §7.1 or §7.2, turn
the server's answer into its next message. It rounds to nearest (§4.1). `independent_policy` has
its policy (§3.4, §3.5). It draws entropy as in Annex B. Written to be read: not fast.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from numbers import Integral, Real

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from independent_policy import Policy

SHAMIR_PRIME = 2**61 - 1  # §5.4
LOW_ORDER = {  # §3.4: y coordinates of the points whose order divides 8
    int.from_bytes(bytes.fromhex(y), "little")
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
    )
}
INTEGERS = {0xCC + i: 2 ** (i % 4) for i in range(8)}  # §6.1: uint 8 ... 64, int 8 ... 64
BINS = {0xC4: 1, 0xC5: 2, 0xC6: 4}  # §6.1: bin 8 ... 32, the bytes of the length


class ParameterError(ValueError):
    """§9: parameters, policy, identity, registry, vector or weight; nothing has changed."""


class LocalProtocolError(RuntimeError):
    """§9: a call out of order, or on a client that has ended; nothing has changed."""


class ProtocolError(Exception):
    """§9, RemoteProtocolError: the server's message breaks the protocol, the client is over."""

    def __init__(self, check: str, phase: str = "") -> None:
        super().__init__(check, phase)
        self.check, self.phase = check, phase


def require(condition: bool, check: str) -> None:
    """One row of a table of §8: `check` names what is wrong if `condition` does not hold."""
    if not condition:
        raise ProtocolError(check)


def valid(condition: bool, what: str) -> None:
    if not condition:
        raise ParameterError(what)


def u64le(value: int) -> bytes:
    return value.to_bytes(8, "little")


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def split(data: bytes, size: int) -> list[bytes]:
    """The consecutive items of `size` bytes that `data` consists of."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def integers(data: bytes, size: int) -> list[int]:
    """The same, each read little-endian."""
    return [int.from_bytes(item, "little") for item in split(data, size)]


def ascending(data: bytes) -> list[int]:
    """§8, strictly ascending ids."""
    require(len(data) % 8 == 0, "ids")
    ids = integers(data, 8)
    require(all(a < b for a, b in pairwise(ids)), "ids")
    return ids


def integer(params: Mapping, name: str, low: int, high: int) -> int:
    value = params.get(name)
    valid(type(value) is int and low <= value <= high, f"{name}: not {low} ... {high}")
    return value


class Parameters:
    """§3.1 and §3.2, named as there; clip is None for Integers; `bound` is the largest |q|."""

    def __init__(self, params: Mapping) -> None:
        """Every field in its range (§3.1)."""
        self.security, two = params.get("security"), params.get("allow_two_clients", False)
        valid(self.security in ("semi-honest", "active") and type(two) is bool, "security")
        self.counted = params.get("count_clipped", False)
        valid(type(self.counted) is bool, "count_clipped")
        self.active, self.two = self.security == "active", two
        self.n = integer(params, "n_clients", 2 if two else 3, 2**20)
        self.k, self.W = params.get("neighbours"), params.get("max_weight")
        if self.k is not None:
            even = integer(params, "neighbours", 2, self.n - 1) % 2 == 0
            valid(even and not self.active, "neighbours: odd, or in an active round")
        if self.W is not None:
            integer(params, "max_weight", 1, 2**53)
        self.h = self.n if self.k is None else self.k + 1
        least, most = (self.n // 2 + 1, self.n) if self.k is None else (2, self.k)
        self.t = integer(params, "threshold", least, most)
        valid(not self.active or 3 * self.t > 2 * self.n, "threshold: active needs 3t > 2n")
        self.R = integer({"modulus": 2**32, **params}, "modulus", 2, 2**64)
        self.power_of_two = self.R & (self.R - 1) == 0
        valid(self.power_of_two or self.R <= 2**62, "modulus: above 2^62")
        try:
            self.session = bytes.fromhex(params.get("session", ""))
        except (TypeError, ValueError):
            raise ParameterError("session: not hexadecimal") from None
        valid(self.active <= len(self.session) <= 64, "session: its length")
        encoding, self.clip, self.f = params.get("encoding") or {}, None, 0
        if encoding.get("kind") == "FixedPoint":
            clip = encoding.get("clip")
            valid(type(clip) in (int, float) and 0 < clip <= 2**61, "clip")
            self.clip, self.f = float(clip), integer(encoding, "fractional_bits", 0, 52)
            self.bound = math.ceil(self.clip * 2**self.f)
            valid(self.clip * 2**self.f <= 2**61, "clip: times 2^f above 2^61")
        else:
            valid(encoding.get("kind") == "Integers", "encoding")
            self.bound = integer(encoding, "max", 1, 2**62)
        S = self.n * self.bound * (self.W or 1)  # headroom; bound >= 1, so this is the maximum
        valid(S < 2**63, "headroom: sums of 2^63 or more")
        valid((S if self.clip is None else 2 * S) < self.R, "headroom: modulus too small")
        self.d = integer(params, "length", 1, 2**31)
        valid(not self.counted or self.n * self.d < self.R, "headroom: too many to count")
        self.b = (self.R - 1).bit_length()
        self.e = self.d + (self.W is not None) + self.counted
        self.packed = (self.e * self.b + 7) // 8  # the bytes of a packed vector (§5.9)
        valid(self.packed < 2**32, "length: a masked vector is too large")  # §10
        self.least = max(self.t, 2 if two else 3)
        self.sigma = 64 if self.active else 0  # the bytes of a signature (§6.2)

    @property
    def encoding(self) -> bytes:
        """§3.3: the bytes of the encoding."""
        if self.clip is None:
            return b"integers" + u64le(self.bound)
        return b"fixed point" + struct.pack("<d", self.clip) + u64le(self.f)

    def head(self) -> bytes:
        """§3.3: all but the last field, the session."""
        encoding = self.encoding
        flags = self.two + 2 * self.counted
        numbers = (self.n, self.t, self.k or 0, self.d, self.W or 0, self.R - 1)
        head = struct.pack("<BBBIIIQQQ", 3, self.active, flags, *numbers)
        return head + bytes([len(encoding)]) + encoding

    def encode(self) -> bytes:
        """§3.3: P."""
        return self.head() + bytes([len(self.session)]) + self.session

    def digest(self) -> bytes:
        """§3.3."""
        return sha256(b"secagg/2 parameters", self.encode())

    def require_same(self, theirs: bytes) -> None:
        """§8.2: the checks `session` and `parameters`."""
        rest = theirs[len(self.head()) :]
        another = theirs.startswith(self.head()) and rest != b"" and rest[0] == len(rest) - 1
        another = another and rest[0] <= 64 and theirs != self.encode()
        require(not another, "session")
        require(theirs == self.encode(), "parameters")

    def elements(self, vector: Iterable, weight: int | None) -> list[int]:
        """§4: a vector and a weight as e elements; anything not allowed is a ParameterError."""
        q: list[int] = []
        clipped = 0
        try:
            for x in vector:
                if self.clip is None:  # §4.2
                    valid(isinstance(x, Integral) and 0 <= x <= self.bound, "vector: element")
                    q.append(int(x))
                else:  # §4.1; Python's round() is exact and takes ties to even
                    valid(isinstance(x, Real) and math.isfinite(x), "vector: element")
                    q.append(round(min(max(float(x), -self.clip), self.clip) * 2**self.f))
                    clipped += abs(float(x)) > self.clip
        except (TypeError, OverflowError):
            raise ParameterError("vector") from None
        valid(len(q) == self.d, "vector: its length")
        count = [clipped] if self.counted else []
        if self.W is None:  # §4.3
            valid(weight is None, "weight: the round is not weighted")
            return [a % self.R for a in q] + count
        valid(type(weight) is int and 0 <= weight <= self.W, "weight")
        return [weight * a % self.R for a in q] + [weight] + count

    def mask(self, key: bytes) -> list[int]:
        """§5.7: PRG(key)."""

        def words(D: int, block: int, size: int, width: int) -> list[int]:
            """`size` bytes of stream(D) from `block` on, as words."""
            counter = modes.CTR(D.to_bytes(8, "big") + block.to_bytes(8, "big"))
            aes = Cipher(algorithms.AES128(key), counter).encryptor()
            return integers(aes.update(bytes(size)), width)

        if self.power_of_two:
            width = 4 if self.b <= 32 else 8
            return [word % self.R for word in words(0, 0, width * self.e, width)]
        result = []
        for i, word in enumerate(words(0, 0, 8 * self.e, 8)):
            D, M = 0, word * self.R
            while M % 2**64 < 2**64 % self.R:  # rejected: the same position, the next D
                D += 1
                M = words(D, i // 2, 16, 8)[i % 2] * self.R
            result.append(M >> 64)
        return result

    def pack(self, elements: Sequence[int]) -> bytes:
        """§5.9: b bits each; eight elements are exactly b bytes."""
        groups = [elements[at : at + 8] for at in range(0, len(elements), 8)]
        bits = (sum(a << (self.b * i) for i, a in enumerate(group)) for group in groups)
        return b"".join(x.to_bytes(self.b, "little") for x in bits)[: self.packed]


def derive(session: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """§5.3: the salt is always the session."""
    return HKDF(SHA256(), length, salt=session, info=info).derive(secret)


def sealing_data(session: bytes, sender: int, receiver: int) -> bytes:
    """§5.5: the associated data."""
    return b"secagg/2 shares" + session + u64le(sender) + u64le(receiver) + b"\x01"


def signed(label: bytes, context: bytes, u: int, phase: int, what: bytes) -> bytes:
    """§5.10: what u signs in round `phase`; the context is params or the session."""
    return b"secagg/2 signed " + label + context + u64le(u) + bytes([phase]) + what


def encode_message(tag: int, *fields: int | bytes) -> bytes:
    """§6.1, in the shortest formats."""
    out = b"\x03" + bytes([0x91 + len(fields), tag])
    for field in fields:
        if isinstance(field, int) and field < 0x80:
            out += bytes([field])
            continue
        formats, number = (INTEGERS, field) if isinstance(field, int) else (BINS, len(field))
        head, size = next((h, w) for h, w in formats.items() if number < 256**w)
        out += bytes([head]) + number.to_bytes(size, "big")
        out += field if isinstance(field, bytes) else b""
    return out


def decode_message(data: bytes, tag: int, kinds: str, limit: int) -> list:
    """§6.1: the fields of the one message that is due, of the given kinds (§6.2)."""
    valid(isinstance(data, bytes | bytearray | memoryview), "data: not bytes")
    data, at = bytes(data), 2
    require(len(data) > 0, "encoding")
    require(data[0] == 3, "version")
    require(len(data) <= 256 + limit, "size")

    def take(size: int) -> bytes:
        nonlocal at
        require(size <= len(data) - at, "encoding")
        at += size
        return data[at - size : at]

    def item() -> int | bytes:
        head = take(1)[0]
        if head < 0x80 or head >= 0xE0:  # positive, negative fixint
            return head if head < 0x80 else head - 0x100
        if head in INTEGERS:
            return int.from_bytes(take(INTEGERS[head]), "big", signed=head >= 0xD0)
        require(head in BINS, "encoding")
        return take(int.from_bytes(take(BINS[head]), "big"))

    head = data[1] if len(data) > 1 else 0  # fixarray, array 16 or array 32
    require(0x90 <= head <= 0x9F or head in (0xDC, 0xDD), "encoding")
    count = head - 0x90 if head <= 0x9F else int.from_bytes(take(2 * (head - 0xDB)), "big")
    require(count == 1 + len(kinds.split()) and item() == tag, "encoding")
    fields = []
    for kind in kinds.split():
        fields.append(item())
        require(isinstance(fields[-1], int if kind == "int" else bytes), "encoding")
        require(kind != "b32" or len(fields[-1]) == 32, "encoding")
        require(kind != "par" or len(fields[-1]) <= 360, "encoding")
    require(at == len(data), "encoding")
    return fields


class Sealing:
    """§5.1: the sealing pair that a client keeps over a session, and what it agreed on."""

    def __init__(self) -> None:
        self.seed = b""
        self.agreed: dict[tuple[int, bytes], bytes] = {}  # by the peer's id and public key


class Client:
    """One client in one round. `phase` is the message it sends next (§7).

    `sealing` is kept by the application for the next rounds of the session.
    """

    def __init__(
        self,
        client_id: int,
        params: Mapping,
        *,
        identity_seed: bytes | None = None,
        registry: Mapping[int, bytes] | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
        sealing: Sealing | None = None,
        policy: Policy = Policy(),  # noqa: B008
    ) -> None:
        """Parameters and policy come before anything secret is drawn (§3.1, §3.4)."""
        valid(type(client_id) is int and 0 <= client_id < 2**64, "client_id")  # §1
        self.id, self.p = client_id, Parameters(params)
        self.policy, self.identity, self.registry = policy, None, dict(registry or {})
        valid(policy.in_range(), "policy: a field is out of its range")
        valid(policy.accepts(self.p, len(self.registry)), "policy: not these parameters")
        self.enough = max(self.p.least, policy.min_clients)
        if self.p.active:
            keys = list(self.registry.values())
            valid(all(isinstance(k, bytes) and len(k) == 32 for k in keys), "registry: a key")
            valid(len(set(keys)) == len(keys), "registry: a key occurs twice")
            ys = {int.from_bytes(k, "little") & (2**255 - 1) for k in keys}
            valid(max(ys) < 2**255 - 19 and not ys & LOW_ORDER, "registry: a weak key")
            valid(isinstance(identity_seed, bytes) and len(identity_seed) == 32, "identity")
            self.identity = ed25519.Ed25519PrivateKey.from_private_bytes(identity_seed)
            own = self.identity.public_key().public_bytes_raw()
            valid(self.registry.get(self.id) == own, "registry: not this identity")
        else:
            valid(identity_seed is None and registry is None, "identity: semi-honest round")
        self.params, self.phase = self.p.digest(), "advertise_keys"
        self._entropy, self._pid, self._lock = entropy, os.getpid(), threading.Lock()
        self._seeds: list[bytes] = []  # sealing, masking, b
        self._sealing = sealing or Sealing()
        self._opening: dict[int, bytes] = {}  # by peer: the key of what it seals for us
        self._masks: dict[int, bytes] = {}  # by peer: the key of the mask with it
        self._shares: dict[int, tuple[bytes, bytes]] = {}  # by owner: b-share, s-share

    def __reduce__(self) -> str:
        raise LocalProtocolError("a client must not be copied or stored")  # §7.3

    @contextmanager
    def _step(self, phase: str, following: str) -> Iterator[None]:
        """§7.3: once per phase; a check that fails ends the client, its own mistakes do not."""
        if os.getpid() != self._pid or not self._lock.acquire(blocking=False):
            raise LocalProtocolError("in a forked child, or from two threads")
        try:
            if self.phase != phase:
                raise LocalProtocolError(f"{phase} is not due: {self.phase}")
            yield
            self.phase = following
        except (LocalProtocolError, ParameterError):
            raise
        except BaseException as error:  # whatever it is, nothing is ever sent again
            self.phase = "failed"
            if isinstance(error, ProtocolError):
                error.phase = phase
            raise
        finally:
            if self.phase in ("failed", "finished"):
                for held in (self._seeds, self._opening, self._masks, self._shares):
                    held.clear()
            self._lock.release()

    def _hedged(self, purpose: bytes, secret: bytes, *about: bytes) -> Callable[[int], bytes]:
        """§5.13: a source of random bytes, drawn as in Annex B."""
        fresh, pieces = self._entropy(32), count()
        statement = sha256(b"secagg/2 hedged ", purpose, *about)

        def source(size: int) -> bytes:
            sizes = [min(8160, size - at) for at in range(0, size, 8160)]
            infos = (statement + u64le(next(pieces)) for _ in sizes)
            return b"".join(
                derive(secret or bytes(32), fresh, info, length)
                for length, info in zip(sizes, infos, strict=True)
            )

        return source

    def _coefficients(self, source: Callable[[int], bytes]) -> list[list[int]]:
        """§5.4: t - 1 rows of ten, uniform below p; drawn as in Annex B."""
        drawn = [SHAMIR_PRIME] * (10 * (self.p.t - 1))
        while rejected := [i for i, a in enumerate(drawn) if a == SHAMIR_PRIME]:
            words = integers(source(8 * len(rejected)), 8)
            for i, word in zip(rejected, words, strict=True):
                drawn[i] = word & SHAMIR_PRIME  # its low 61 bits
        return [drawn[at : at + 10] for at in range(0, len(drawn), 10)]

    def _agree(self, v: int, kind: int) -> bytes:
        """§5.1: the secret shared with v; kind 0 is sealing, 1 masking. Checks `public key`."""
        peer = self.roster[v][kind]
        require(int.from_bytes(peer, "little") < 2**255 - 19, "public key")  # §5.1: usable
        known = {} if kind else self._sealing.agreed
        if (v, peer) not in known:
            seed = x25519.X25519PrivateKey.from_private_bytes(self._seeds[kind])
            try:
                known[v, peer] = seed.exchange(x25519.X25519PublicKey.from_public_bytes(peer))
            except ValueError:  # so does `cryptography` reject an all-zero result
                raise ProtocolError("public key") from None
        return known[v, peer]

    def _pair(self, v: int) -> tuple[bytes, bytes]:
        """§5.3: the 64 bytes of the two sealing keys shared with v, and the mask's key."""
        secrets = [self._agree(v, kind) for kind in (0, 1)]
        (lo, keys_lo), (hi, keys_hi) = sorted((u, self.roster[u]) for u in (self.id, v))
        ids = u64le(lo) + u64le(hi)
        info = b"secagg/3 seal" + ids + b"".join(keys_lo + keys_hi)
        sealing = derive(self.session, b"".join(secrets), info, 64)
        info = b"secagg/2 pairwise mask" + ids + keys_lo[1] + keys_hi[1]
        return sealing, derive(self.session, secrets[1], info, 16)

    def _verify(self, u: int, signature: bytes, message: bytes) -> None:
        """§5.10, under the registry's key of u."""
        try:
            key = ed25519.Ed25519PublicKey.from_public_bytes(self.registry[u])
            key.verify(signature, message)
        except (InvalidSignature, ValueError):
            raise ProtocolError("signature") from None

    def advertise_keys(self) -> bytes:
        """Round 0 (§8.1): two key pairs (§5.1); AdvertiseKeys."""
        with self._step("advertise_keys", "share_keys"):
            secret, about = b"", (self.params, u64le(self.id))
            if self.identity:
                secret = sha256(self.identity.sign(b"secagg/2 hedged identity"))
            for purpose in (b"sealing seed", b"masking seed"):
                kept = not self._seeds and self._sealing.seed
                self._seeds.append(kept or self._hedged(purpose, secret, *about)(32))
            self._sealing.seed = self._seeds[0]
            pairs = map(x25519.X25519PrivateKey.from_private_bytes, self._seeds)
            self.own = c, s = tuple(pair.public_key().public_bytes_raw() for pair in pairs)
            message = signed(b"keys", self.params, self.id, 0, c + s)
            signature = self.identity.sign(message) if self.identity else b""
            return encode_message(1, self.id, self.p.encode(), c, s, signature)

    def share_keys(self, data: bytes) -> bytes:
        """Round 1 (§8.2): from Roster; shares b_u and the masking seed; ShareKeys."""
        with self._step("share_keys", "masked_input"):
            p, kinds = self.p, "par int b32 bin bin bin bin"
            fields = decode_message(data, 2, kinds, 360 + p.h * (72 + p.sigma))
            params, size, digest, raw, seal_keys, mask_keys, signatures = fields
            p.require_same(params)
            ids = ascending(raw)
            require(len(seal_keys) == len(mask_keys) == 32 * len(ids), "length")
            pairs = zip(split(seal_keys, 32), split(mask_keys, 32), strict=True)
            self.roster = dict(zip(ids, pairs, strict=True))  # (c, s) by id, ascending
            require(self.roster.get(self.id) == self.own, "own keys")
            distinct = {key for keys in self.roster.values() for key in keys}
            require(len(distinct) == 2 * len(ids), "duplicate key")
            require(len(ids) <= size <= p.n, "cohort")
            require(len(ids) == min(size, p.h), "neighbours")
            require(len(ids) >= self.enough, "size")
            require(self.policy.accepts_cohort(p, size, len(self.registry)), "size")
            if len(ids) == size:  # it sees all of U1: the roster digest of §5.2
                entries = (u64le(u) + c + s for u, (c, s) in self.roster.items())
                require(digest == sha256(b"secagg/2 roster", *entries), "digest")
            require(len(signatures) == p.sigma * len(ids), "length")
            if p.active:
                require(all(u in self.registry for u in ids), "unknown client")
                for u, signature in zip(ids, split(signatures, 64), strict=True):
                    message = signed(b"keys", self.params, u, 0, b"".join(self.roster[u]))
                    self._verify(u, signature, message)
            self.session = sha256(b"secagg/2 session", self.params, digest)  # §5.2
            sealing: dict[int, bytes] = {}
            for v in ids:
                if v != self.id:  # the last check, `public key`, is made in here
                    pair, self._masks[v] = self._pair(v)
                    keys = split(pair, 32)
                    sealing[v], self._opening[v] = keys if self.id < v else reversed(keys)
            about = self.session, u64le(self.id)
            self._seeds.append(b := self._hedged(b"b", self._seeds[0], *about)(32))
            about += (u64le(p.t), *map(u64le, ids))
            source = self._hedged(b"shares", b + self._seeds[1], *about)
            coefficients = self._coefficients(source)
            limbs = integers(b, 7) + integers(self._seeds[1], 7)  # §5.4: 7, 7, 7, 7, 4 bytes
            sealed = b""
            for x, v in enumerate(ids, 1):  # §5.4: X is the position in the roster
                values = [0] * 10
                for row in (*reversed(coefficients), limbs):  # Horner, a_{t-1} first
                    pairs = zip(values, row, strict=True)
                    values = [(value * x + a) % SHAMIR_PRIME for value, a in pairs]
                share = b"".join(map(u64le, values))
                if v == self.id:
                    self._shares[v] = share[:40], b""  # its own s-share is forgotten
                else:  # §5.5
                    ad = sealing_data(self.session, self.id, v)
                    sealed += AESGCM(sealing[v]).encrypt(bytes(12), share, ad)
            label = b"secagg/2 self mask commitment"
            commitment = sha256(label, self.session, u64le(self.id), b)  # §5.6
            self._seeds[:2] = b"", b""  # §7.3
            return encode_message(3, self.id, self.session, commitment, sealed)

    def masked_input(self, data: bytes, vector: Iterable, weight: int | None = None) -> bytes:
        """Round 2 (§8.3): from Shares; MaskedInput, once."""
        with self._step("masked_input", "consistency_check" if self.p.active else "unmasking"):
            y = self.p.elements(vector, weight)
            session, raw, sealed = decode_message(data, 4, "b32 bin bin", 104 * self.p.h)
            require(session == self.session, "session")
            senders = ascending(raw)
            require(self.id not in senders, "reflection")
            require(all(v in self.roster for v in senders), "unknown id")
            require(len(senders) + 1 >= self.enough, "size")
            require(len(sealed) == 96 * len(senders), "length")
            for v, box in zip(senders, split(sealed, 96), strict=True):
                ad = sealing_data(self.session, v, self.id)  # §5.5
                try:
                    share = AESGCM(self._opening[v]).decrypt(bytes(12), box, ad)
                except InvalidTag:
                    raise ProtocolError("sealed share") from None
                self._shares[v] = share[:40], share[40:]
            for v in senders:
                values = integers(b"".join(self._shares[v]), 8)
                require(all(value < SHAMIR_PRIME for value in values), "share")
            info = b"secagg/2 self mask" + u64le(self.id)
            masks = [(1, derive(self.session, self._seeds[2], info, 16))]
            masks += [(1 if self.id < v else -1, self._masks[v]) for v in senders]
            for sign, key in masks:  # §5.8: the lower id adds, the higher subtracts
                pairs = zip(y, self.p.mask(key), strict=True)
                y = [(a + sign * m) % self.p.R for a, m in pairs]
            self.u2 = {self.id, *senders}
            self._seeds.clear()  # §7.3
            self._opening.clear()
            self._masks.clear()
            return encode_message(5, self.id, self.session, self.p.pack(y))

    def check_consistency(self, data: bytes) -> bytes:
        """Round 3, active only (§8.4): from ConsistencyRequest; ConsistencySignature, once."""
        with self._step("consistency_check", "unmasking"):
            session, raw = decode_message(data, 8, "b32 bin", 8 * self.p.h)
            require(session == self.session, "session")
            survivors = ascending(raw)
            require(self.u2.issuperset(survivors), "unknown id")
            require(self.id in survivors, "self")
            require(len(survivors) >= self.enough, "size")
            self.signed = raw
            signature = self.identity.sign(signed(b"survivors", session, self.id, 3, raw))
            return encode_message(9, self.id, self.session, signature)

    def unmask(self, data: bytes) -> bytes:
        """Round 4 (§8.5): from UnmaskRequest; UnmaskShares, and never again anything."""
        with self._step("unmasking", "finished"):
            limit = self.p.h * (80 if self.p.active else 8)
            fields = decode_message(data, 6, "b32 bin bin bin bin", limit)
            session, raw, raw_dropped, raw_signers, signatures = fields
            require(session == self.session, "session")
            survivors, dropped = ascending(raw), ascending(raw_dropped)
            named = {*survivors, *dropped}
            require(len(named) == len(survivors) + len(dropped), "both shares")
            require(named <= self.u2, "unknown id")
            require(self.id in survivors, "self")
            require(named == self.u2, "missing id")
            require(len(survivors) >= self.enough, "size")
            if self.p.active:
                require(raw == self.signed, "consistency")
                signers = ascending(raw_signers)
                require(set(survivors).issuperset(signers), "unknown id")
                require(len(signatures) == 64 * len(signers), "length")
                require(len(signers) >= self.enough, "size")
                for u, signature in zip(signers, split(signatures, 64), strict=True):
                    self._verify(u, signature, signed(b"survivors", session, u, 3, raw))
            else:
                require(not raw_signers + signatures, "length")
            shares = [self._shares[u][0] for u in survivors]  # the b-shares
            shares += [self._shares[u][1] for u in dropped]  # the s-shares
            return encode_message(7, self.id, self.session, b"".join(shares))
