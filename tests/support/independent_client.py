"""A client of the secagg protocol, version 4, written from its specification alone (`§`).

A `Client` lives for one session (§7.3); its methods, called in the order of §7.1 or §7.2, turn
the server's answer into its next message. It rounds to nearest (§4.1), unless it is told
otherwise or has vectors of Bounded (§4.5). `independent_policy` has its policy (§3.4, §3.5). It
draws entropy as in Annex B.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import independent_keys as keys
from independent_keys import SHAMIR_PRIME
from independent_messages import ascending, decode, encode, limit
from independent_noise import Noise, bound, shares
from independent_policy import Policy
from independent_primitives import (
    LocalProtocolError,
    ParameterError,
    ProtocolError,
    Source,
    agreement,
    curve_key,
    cut,
    hedged,
    hedging_secret,
    identity_key,
    ids,
    integer,
    integers,
    is_weak,
    require,
    sha256,
    sign,
    split,
    u8,
    u32le,
    u64le,
    valid,
    verifies,
)
from independent_sums import Bounded, Encoding, Sums


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

    def __post_init__(self) -> None:
        """Every field in its range (§3.1)."""
        self.active, two, k = self.security == "active", self.allow_two_clients, self.neighbours
        valid(self.security in ("semi-honest", "active") and type(two) is bool, "security")
        valid(type(self.count_clipped) is bool, "count_clipped")
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
        self.sigma = 64 if self.active else 0  # the bytes of a signature (§6.2)

    def layout(self) -> dict[str, bytes]:
        """§3.3: the fields in their order."""
        encoding, noise = self.encoding.encode(), self.noise.encode() if self.noise else b""
        return {
            "version": u8(4),
            "security": u8(self.active),
            "flags": u8(self.allow_two_clients + 2 * self.counted),
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

    def digest(self) -> bytes:
        return sha256(b"secagg/2 parameters", self.encode())

    def but(self, **changes: object) -> Parameters:
        return replace(self, **changes)

    def require_same(self, theirs: bytes) -> None:
        """§8.2: the checks `session` and `parameters`."""
        own = self.encode()
        head, rest = split(theirs, len(own) - 1 - len(self.session))
        another = own.startswith(head) and rest != b"" and rest[0] == len(rest) - 1 <= 64
        require(theirs == own or not another, "session")
        require(theirs == own, "parameters")


@dataclass
class Sealing:
    """§5.1: the sealing pair that a client keeps over a session, and what it agreed on."""

    seed: bytes = b""
    agreed: dict[tuple[int, bytes], bytes] = field(default_factory=dict)  # by id and key


class Client:
    """One client in one round. `phase` is the message it sends next (§7).

    `sealing` is kept by the application for the next rounds of the session.
    """

    def __init__(
        self,
        client_id: int,
        params: Parameters,
        *,
        identity_seed: bytes | None = None,
        registry: Mapping[int, bytes] | None = None,
        entropy: Source = os.urandom,
        sealing: Sealing | None = None,
        policy: Policy = Policy(),  # noqa: B008
        rounding: str = "nearest",
    ) -> None:
        """Parameters and policy come before anything secret is drawn (§3.1, §3.4)."""
        self.id, self.p = integer(client_id, "client_id", 0, 2**64 - 1), params  # §1
        self.policy, self.identity, self.registry = policy, identity_seed, registry or {}
        valid(policy.in_range(), "policy: a field is out of its range")
        valid(policy.accepts(self.p, len(self.registry)), "policy: not these parameters")
        self.signers = max(self.p.least, policy.min_clients)
        self.enough = max(self.p.m, policy.min_clients) if self.p.k is None else self.signers
        if self.p.active:
            known = list(self.registry.values())
            valid(all(isinstance(k, bytes) and len(k) == 32 for k in known), "registry: a key")
            valid(len(set(known)) == len(known), "registry: a key occurs twice")
            valid(not any(map(is_weak, known)), "registry: a weak key")
            valid(isinstance(identity_seed, bytes) and len(identity_seed) == 32, "identity")
            own = identity_key(identity_seed)
            valid(self.registry.get(self.id) == own, "registry: not this identity")
        else:
            valid(identity_seed is None and registry is None, "identity: semi-honest round")
        self.params, self.phase, self.rounding = self.p.digest(), "advertise_keys", rounding
        self._entropy, self._pid, self._lock = entropy, os.getpid(), threading.Lock()
        self._sealing, self._masking, self._b = sealing or Sealing(), b"", b""
        self._seal_seed = b""
        self._opening: dict[int, bytes] = {}  # by peer: the key of what it seals for us
        self._masks: dict[int, bytes] = {}  # by peer: the key of the mask with it
        self._shares: dict[int, list[bytes]] = {}  # by owner: b-share, s-share

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
                self._forget("_seal_seed", "_masking", "_b", "_opening", "_masks", "_shares")
            self._lock.release()

    def _forget(self, *names: str) -> None:
        for name in names:
            setattr(self, name, type(getattr(self, name))())

    def _hedged(self, purpose: bytes, secret: bytes, *about: bytes) -> Source:
        """§5.13, drawn as in Annex B."""
        return hedged(secret, self._entropy(32), b"secagg/2 hedged ", purpose, *about)

    def _coefficients(self, source: Source) -> list[list[int]]:
        """§5.4: t - 1 rows of ten, uniform below p; drawn as in Annex B."""
        drawn = [SHAMIR_PRIME] * (10 * (self.p.t - 1))
        while rejected := [i for i, a in enumerate(drawn) if a == SHAMIR_PRIME]:
            words = integers(source(8 * len(rejected)))
            for i, word in zip(rejected, words, strict=True):
                drawn[i] = word & SHAMIR_PRIME  # its low 61 bits
        return [drawn[at : at + 10] for at in range(0, len(drawn), 10)]

    def _agree(self, v: int) -> tuple[bytes, bytes]:
        """§5.1: the secrets shared with v, sealing and masking."""
        c, s = self.roster[v]
        if (v, c) not in self._sealing.agreed:
            self._sealing.agreed[v, c] = self._secret(self._seal_seed, c)
        return self._sealing.agreed[v, c], self._secret(self._masking, s)

    def _secret(self, seed: bytes, public: bytes) -> bytes:
        shared = agreement(seed, public)
        require(shared is not None, "public key")
        return shared

    def _decode(self, data: bytes, tag: int) -> list:
        return decode(data, tag, limit(self.p, tag))

    def _verify(self, u: int, signature: bytes, message: bytes) -> None:
        require(verifies(self.registry[u], message, signature), "signature")

    def answer(self, data: bytes, vector: Iterable, weight: int | None = None) -> bytes:
        """The message that is due; a client that has ended raises LocalProtocolError."""
        if self.phase == "advertise_keys":
            return self.advertise_keys()
        if self.phase == "masked_input":
            return self.masked_input(data, vector, weight)
        steps = {"share_keys": self.share_keys, "consistency_check": self.check_consistency}
        return steps.get(self.phase, self.unmask)(data)

    def advertise_keys(self) -> bytes:
        """Round 0 (§8.1): two key pairs (§5.1); AdvertiseKeys."""
        with self._step("advertise_keys", "share_keys"):
            about = hedging_secret(self.identity), self.params, u64le(self.id)
            self._sealing.seed = self._sealing.seed or self._hedged(b"sealing seed", *about)(32)
            self._seal_seed = self._sealing.seed
            self._masking = self._hedged(b"masking seed", *about)(32)
            self.own = curve_key(self._seal_seed), curve_key(self._masking)
            message = keys.signed_keys(self.params, self.id, *self.own)
            signature = sign(self.identity, message) if self.identity else b""
            return encode(1, self.id, self.p.encode(), *self.own, signature)

    def share_keys(self, data: bytes) -> bytes:
        """Round 1 (§8.2): from Roster; shares b_u and the masking seed; ShareKeys."""
        with self._step("share_keys", "masked_input"):
            p = self.p
            params, size, digest, raw, seal_keys, mask_keys, signatures = self._decode(data, 2)
            p.require_same(params)
            listed = ascending(raw)
            require(len(seal_keys) == len(mask_keys) == 32 * len(listed), "length")
            pairs = zip(cut(seal_keys, 32), cut(mask_keys, 32), strict=True)
            self.roster = dict(zip(listed, pairs, strict=True))  # (c, s) by id, ascending
            require(self.roster.get(self.id) == self.own, "own keys")
            distinct = {key for both in self.roster.values() for key in both}
            require(len(distinct) == 2 * len(listed), "duplicate key")
            require(len(listed) <= size <= p.n, "cohort")
            require(len(listed) == min(size, p.h), "neighbours")
            require(len(listed) >= self.enough, "size")
            require(self.policy.accepts_cohort(p, size, len(self.registry)), "size")
            if len(listed) == size:  # it sees all of U1
                require(digest == keys.roster_digest(self.roster), "digest")
            require(len(signatures) == p.sigma * len(listed), "length")
            if p.active:
                require(all(u in self.registry for u in listed), "unknown client")
                for u, signature in zip(listed, cut(signatures, 64), strict=True):
                    message = keys.signed_keys(self.params, u, *self.roster[u])
                    self._verify(u, signature, message)
            self.session = keys.session_id(self.params, digest)
            sealing: dict[int, bytes] = {}
            for v in (v for v in listed if v != self.id):
                pair, shared = {u: self.roster[u] for u in (self.id, v)}, self._agree(v)
                to_higher, to_lower = keys.sealing_keys(self.session, *shared, pair)
                up = self.id < v
                sealing[v] = to_higher if up else to_lower
                self._opening[v] = to_lower if up else to_higher
                self._masks[v] = keys.pairwise_key(self.session, shared[1], pair)
            about = self.session, u64le(self.id)
            self._b = self._hedged(b"b", self._seal_seed, *about)(32)
            about += u64le(p.t), ids(listed)
            source = self._hedged(b"shares", self._b + self._masking, *about)
            coefficients = self._coefficients(source)
            constants = keys.limbs(self._b) + keys.limbs(self._masking)
            sealed = b""
            for x, v in enumerate(listed, 1):  # §5.4: X is the position in the roster
                share = keys.share(constants, coefficients, x)
                if v == self.id:
                    self._shares[v] = [share[:40], b""]  # its own s-share is forgotten
                else:
                    sealed += keys.seal(sealing[v], share, self.session, self.id, v)
            commitment = keys.commitment(self.session, self.id, self._b)
            self._forget("_seal_seed", "_masking")  # §7.3
            return encode(3, self.id, self.session, commitment, sealed)

    def masked_input(self, data: bytes, vector: Iterable, weight: int | None = None) -> bytes:
        """Round 2 (§8.3): from Shares; MaskedInput, once."""
        with self._step("masked_input", "consistency_check" if self.p.active else "unmasking"):
            x = self.p.elements(vector, weight, self._rounding_key())
            session, raw, sealed = self._decode(data, 4)
            require(session == self.session, "session")
            senders = ascending(raw)
            require(self.id not in senders, "reflection")
            require(all(v in self.roster for v in senders), "unknown id")
            require(len(senders) + 1 >= self.enough, "size")
            require(len(sealed) == 96 * len(senders), "length")
            for v, box in zip(senders, cut(sealed, 96), strict=True):
                share = keys.unseal(self._opening[v], box, session, v, self.id)
                require(share is not None, "sealed share")
                self._shares[v] = split(share, 40)
            for v in senders:
                values = integers(b"".join(self._shares[v]))
                require(all(value < SHAMIR_PRIME for value in values), "share")
            added = [
                x,
                self._noise(),
                self.p.mask(keys.self_mask_key(session, self.id, self._b)),
            ]
            added += [self.p.mask(self._masks[v]) for v in senders if v > self.id]  # §5.8
            less = [self.p.mask(self._masks[v]) for v in senders if v < self.id]
            y = self.p.add(*added, minus=less)
            self.u2 = {self.id, *senders}
            self._forget("_b", "_opening", "_masks")  # §7.3
            return encode(5, self.id, self.session, self.p.pack(y))

    def _rounding_key(self) -> bytes | None:
        """Annex B."""
        random = self.rounding == "stochastic" or isinstance(self.p.encoding, Bounded)
        return self._entropy(16) if random else None

    def _noise(self) -> list[int]:
        """§5.14."""
        if not self.p.noise:
            return [0] * self.p.e
        about = hedging_secret(self.identity), self.session, u64le(self.id)
        return shares(self._hedged(b"noise", *about)(16), self.p.share, self.p.e)

    def check_consistency(self, data: bytes) -> bytes:
        """Round 3, active only (§8.4): from ConsistencyRequest; ConsistencySignature, once."""
        with self._step("consistency_check", "unmasking"):
            session, raw = self._decode(data, 8)
            require(session == self.session, "session")
            survivors = ascending(raw)
            require(self.u2.issuperset(survivors), "unknown id")
            require(self.id in survivors, "self")
            require(len(survivors) >= self.enough, "size")
            self.signed = raw
            signature = sign(self.identity, keys.signed_survivors(session, self.id, raw))
            return encode(9, self.id, self.session, signature)

    def unmask(self, data: bytes) -> bytes:
        """Round 4 (§8.5): from UnmaskRequest; UnmaskShares, and never again anything."""
        with self._step("unmasking", "finished"):
            session, raw, raw_dropped, raw_signers, signatures = self._decode(data, 6)
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
                require(len(signers) >= self.signers, "size")
                for u, signature in zip(signers, cut(signatures, 64), strict=True):
                    self._verify(u, signature, keys.signed_survivors(session, u, raw))
            else:
                require(not raw_signers + signatures, "length")
            shares = [self._shares[u][0] for u in survivors]  # the b-shares
            shares += [self._shares[u][1] for u in dropped]  # the s-shares
            return encode(7, self.id, self.session, b"".join(shares))
