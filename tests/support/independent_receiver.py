"""Round 2 of a client: docs/protocol.md §8.3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import independent_dealing as dealing
import independent_keys as keys
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_dealing import FORGOTTEN, Opening
from independent_keys import SHAMIR_PRIME
from independent_machine import Machine
from independent_messages import ascending, encode
from independent_noise import shares
from independent_primitives import (
    cut,
    hedging_secret,
    integers,
    number,
    require,
    sha256,
    sign,
    split,
    u8,
    u64le,
)
from independent_sums import Bounded


@dataclass
class Came:
    """Columns of Shares for one sender; those of the other variant are empty."""

    sealed: bytes
    check: bytes
    commitment: bytes
    dealt: bytes
    x: int
    hashes: bytes
    path: bytes

    def opening(self) -> Opening:
        return Opening(self.x, self.hashes, self.check or bytes(32), sha256(self.sealed))


class Receiver(Machine):
    """A client that is sent its shares."""

    def masked_input(self, data: bytes, vector: Iterable, weight: int | None = None) -> bytes:
        """Round 2 (§8.3): from Shares; MaskedInput, once."""
        with self._step("masked_input", "consistency_check" if self.p.active else "unmasking"):
            x = self.p.elements(vector, weight, self._rounding_key())
            came = self._read_shares(data)
            if self.p.active:
                for v, of in came.items():
                    self._require_dealt(v, of)
            opened = {v: self._open(v, of.sealed) for v, of in came.items()}
            complaints = {v: self._complaint(v, came[v], opened[v]) for v in came}
            few = len([*filter(None, complaints.values())]) <= self.p.most_liars
            require(few or not self.p.active, "dealer")
            deposits, disclosed = b"", b""
            added, less = [x, self._noise()], []
            own_mask = keys.self_mask_key(self.session, self.id, self._b)
            added.append(self.p.mask(own_mask))
            for v, complaint in complaints.items():
                share, p, q = opened[v]
                self._shares[v] = [FORGOTTEN] * 2 if complaint else split(share, 40)
                mine = self._given[v]
                if complaint == 2:
                    deposits += bytes(32)
                    disclosed += self._agreed[v] + b"".join(mine)
                    continue
                of = {self.id: mine[0], v: p}
                mask = self.p.mask(pairs.mask_key(self.session, self._agreed[v], of))
                (added if v > self.id else less).append(mask)  # §5.8
                if self.p.hybrid:
                    deposits += pairs.deposit(self.session, self.id, v, mine[0], q)
            y = self.p.add(*added, minus=less)
            told = b"".join(u64le(v) + u8(c) for v, c in complaints.items() if c)
            signature = self._accept(came, complaints) if self.p.active else b""
            self.u2 = {self.id, *came}
            self._forget("_kem", "_b", "_bases", "_agreed", "_given")  # §7.3
            fields = deposits, told, disclosed, signature, self.p.pack(y)
            return encode(5, self.id, self.session, *fields)

    def _read_shares(self, data: bytes) -> dict[int, Came]:
        """The checks of §8.3 of the list alone; what came, by its sender."""
        p = self.p
        session, raw, *columns = self._decode(data, 4)
        require(session == self.session, "session")
        senders = ascending(raw)
        require(self.id not in senders, "reflection")
        require(all(v in self.roster for v in senders), "unknown id")
        require(len(senders) + 1 >= self.enough, "size")
        signed = 32, 64, 4, 64, 32 * dealing.depth(len(self.roster))
        sizes = p.box, 32 * p.hybrid, *(size * p.active for size in signed)
        for column, size in zip(columns, sizes, strict=True):
            require(len(column) == size * len(senders), "length")
        cells = [
            cut(column, size) if size else [b""] * len(senders)
            for column, size in zip(columns, sizes, strict=True)
        ]
        rows = zip(*cells[:4], map(number, cells[4]), *cells[5:], strict=True)
        return {v: Came(*row) for v, row in zip(senders, rows, strict=True)}

    def _require_dealt(self, v: int, of: Came) -> None:
        """§8.3: what came is what v signed for this client, in its place."""
        place = [*self.roster].index(self.id)
        require(of.x == place + 1, "dealt")
        leaf = of.opening().leaf(self.session, v, self.id)
        about = of.commitment, self.roster[v][1], dealing.climb(leaf, place, of.path)
        signed = dealing.dealt(self.session, v, *about)
        self._verify(v, of.dealt, signed, "dealt")

    def _open(self, v: int, box: bytes) -> tuple[bytes, bytes, bytes]:
        """The share of 80 bytes, p and q; nothing if the box does not open."""
        ct, sealed = split(box, 1088) if self.p.hybrid else (b"", box)
        secret = mlkem.decapsulate(self._kem, ct) if ct else b""
        key = pairs.box_key(self.session, self._bases[v], secret, v, self.id, ct)
        content = pairs.unseal(key, sealed, self.session, v, self.id) or b""
        require(content != b"" or self.p.active, "sealed share")
        share, p, q = split(content, 80, 32)
        return share, p, q

    def _complaint(self, v: int, of: Came, opened: tuple[bytes, bytes, bytes]) -> int:
        """§8.3: 0, or the complaint about v; a semi-honest client ends instead."""
        share, p, q = opened
        fits = share != b""
        if self.p.hybrid:
            fits = fits and of.check == pairs.check(self.session, v, self.id, p, q)
        require(fits or self.p.active, "sealed share")
        numbers = all(value < SHAMIR_PRIME for value in integers(share))
        require(numbers or self.p.active, "share")
        hashed = not self.p.active or (
            of.hashes == dealing.share_hashes(self.session, v, self.id, share)
        )
        if fits and numbers and hashed:
            return 0
        return 1 if fits or not self.p.hybrid else 2

    def _accept(self, came: dict[int, Came], complaints: dict[int, int]) -> bytes:
        """The signature over what came."""
        leaves = {v: of.opening().leaf(self.session, v, self.id) for v, of in came.items()}
        listed = dealing.leaves_list((v, leaf, complaints[v]) for v, leaf in leaves.items())
        return sign(self.identity, dealing.accepted(self.session, self.id, listed))

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
