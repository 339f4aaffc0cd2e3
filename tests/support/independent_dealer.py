"""Rounds 0 and 1 of a client: docs/protocol.md §8.1 and §8.2."""

from __future__ import annotations

import os
from dataclasses import dataclass

import independent_dealing as dealing
import independent_keys as keys
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_dealing import Opening
from independent_keys import SHAMIR_PRIME
from independent_machine import Machine
from independent_messages import ascending, encode
from independent_primitives import (
    Source,
    curve_key,
    cut,
    hedging_secret,
    ids,
    integers,
    require,
    sha256,
    sign,
    u64le,
)


@dataclass
class Dealt:
    """A share as one holder gets it."""

    opening: Opening
    sealed: bytes


class Dealer(Machine):
    """A client until it has shared its secrets."""

    def advertise_keys(self) -> bytes:
        """Round 0 (§8.1): two key pairs (§5.1), in suite hybrid three; AdvertiseKeys."""
        with self._step("advertise_keys", "share_keys"):
            about = hedging_secret(self.identity), self.params, u64le(self.id)
            self._sealing.seed = self._sealing.seed or self._hedged(b"sealing seed", *about)(32)
            self._seal_seed = self._sealing.seed
            self._masking = self._hedged(b"masking seed", *about)(32)
            self._kem = self._hedged(b"kem seed", *about)(64) if self.p.hybrid else b""
            e = mlkem.public_key(self._kem) if self.p.hybrid else b""
            self.own = curve_key(self._seal_seed), keys.masking_key(self._masking), e
            message = keys.signed_keys(self.params, self.id, *self.own)
            signature = sign(self.identity, message) if self.identity else b""
            return encode(1, self.id, self.p.encode(), *self.own, signature)

    def share_keys(self, data: bytes) -> bytes:
        """Round 1 (§8.2): from Roster; shares b_u and the masking seed; ShareKeys."""
        with self._step("share_keys", "masked_input"):
            p = self.p
            listed = self._read_roster(data)
            for v in (v for v in listed if v != self.id):
                pair, shared = self._pair(v), self._agree(v)
                self._bases[v] = pairs.seal_base(self.session, *shared, pair, v, self.id)
                self._agreed[v] = pairs.agreement(self.session, shared[1], pair)
                self._given[v] = self._contribution(v)
            about = self.session, u64le(self.id)
            self._b = self._hedged(b"b", self._seal_seed, *about)(32)
            about += u64le(p.t), ids(listed)
            source = self._hedged(b"shares", self._b + self._masking, *about)
            coefficients = self._coefficients(source)
            constants = keys.limbs(self._b) + keys.limbs(self._masking)
            made: dict[int, Dealt] = {}
            for x, v in enumerate(listed, 1):  # §5.4: X is the position in the roster
                share = keys.share(constants, coefficients, x)
                made[v] = self._deal(v, x, share)
                if v == self.id:
                    self._shares[v] = [share[:40], b""]  # its own s-share is forgotten
            commitment = self._commitment()
            others = [of for v, of in made.items() if v != self.id]
            sealed = b"".join(of.sealed for of in others)
            checks = b"".join(of.opening.check for of in others) if p.hybrid else b""
            hashes = signature = b""
            if p.active:
                hashes = b"".join(of.opening.hashes for of in made.values())
                leaves = [of.opening.leaf(self.session, self.id, v) for v, of in made.items()]
                about = self.id, commitment, self.own[1], dealing.root(leaves)
                signature = sign(self.identity, dealing.dealt(self.session, *about))
            self._forget("_seal_seed", "_masking")  # §7.3
            return encode(
                3, self.id, self.session, commitment, sealed, checks, hashes, signature
            )

    def _read_roster(self, data: bytes) -> list[int]:
        """The checks of §8.2; the ids, and what follows from the list."""
        p = self.p
        params, size, digest, raw, *columns, signatures = self._decode(data, 2)
        p.require_same(params)
        listed = ascending(raw)
        sizes = 32, 32, 1184 * p.hybrid
        for column, width in zip(columns, sizes, strict=True):
            require(len(column) == width * len(listed), "length")
        cells = (
            cut(column, width) if width else [b""] * len(listed)
            for column, width in zip(columns, sizes, strict=True)
        )
        entries = zip(*cells, strict=True)
        self.roster = dict(zip(listed, entries, strict=True))  # (c, s, e) by id, ascending
        require(self.roster.get(self.id) == self.own, "own keys")
        distinct = {key for of in self.roster.values() for key in of if key}
        require(len(distinct) == (2 + p.hybrid) * len(listed), "duplicate key")
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
        usable = (
            mlkem.is_valid(e) for u, (_, _, e) in self.roster.items() if e and u != self.id
        )
        require(all(usable), "public key")
        self.session = keys.session_id(self.params, digest)
        return listed

    def _contribution(self, v: int) -> tuple[bytes, bytes]:
        """p and q for v."""
        if not self.p.hybrid:
            return b"", b""
        return pairs.contribution(self.session, self._masking, self.id, v)

    def _commitment(self) -> bytes:
        return keys.commitment(self.session, self.id, self._b)

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        """The share for v."""
        check, sealed = bytes(32), b""
        if v != self.id:
            p, q = self._given[v]
            sealed = self._seal(v, share + p + q)
            if self.p.hybrid:
                check = pairs.check(self.session, self.id, v, p, q)
        hashes = dealing.share_hashes(self.session, self.id, v, share)
        return Dealt(Opening(x, hashes, check, sha256(sealed)), sealed)

    def _seal(self, v: int, content: bytes) -> bytes:
        """§5.5: the box for v."""
        base = pairs.seal_base(self.session, *self._agree(v), self._pair(v), self.id, v)
        secret = ct = b""
        if self.p.hybrid:
            secret, ct = self._encapsulate(v)
        key = pairs.box_key(self.session, base, secret, self.id, v, ct)
        return ct + pairs.seal(key, content, self.session, self.id, v)

    def _encapsulate(self, v: int) -> tuple[bytes, bytes]:
        return mlkem.encapsulate(self.roster[v][2], self._coins(v))

    def _coins(self, v: int) -> bytes:
        """Return the random bytes of the encapsulation for v, which are not hedged."""
        return os.urandom(32)

    def _coefficients(self, source: Source) -> list[list[int]]:
        """§5.4: t - 1 rows of ten, uniform below p; drawn as in Annex B."""
        drawn = [SHAMIR_PRIME] * (10 * (self.p.t - 1))
        while rejected := [i for i, a in enumerate(drawn) if a == SHAMIR_PRIME]:
            words = integers(source(8 * len(rejected)))
            for i, word in zip(rejected, words, strict=True):
                drawn[i] = word & SHAMIR_PRIME  # its low 61 bits
        return [drawn[at : at + 10] for at in range(0, len(drawn), 10)]
