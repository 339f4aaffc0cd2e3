"""A recorder: who has all messages of a round, and every X25519 private key (P §2.6).

It imports nothing of the package, and makes all that docs/protocol.md lets it make. Besides, it
tries every value at hand in the place of each secret that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import independent_keys as keys
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_messages import decode
from independent_params import Parameters
from independent_primitives import agreement, cut, integers, number, split, u8

Pair = tuple[int, int]
_MOST = 1 << 20
_NOTHING = {b"", bytes(32)}


@dataclass
class Recording:
    """Messages that a server sees.

    `sent` and `answered` have for each phase the messages of the clients, also those that came
    late, and the server's answers.
    """

    params: Parameters
    sent: list[dict[int, bytes]] = field(default_factory=list)
    answered: list[dict[int, bytes]] = field(default_factory=list)


class Recorder:
    """Opens what it can of a recording.

    Attributes
    ----------
    boxes : dict of (int, int) to bytes
        Contents of opened boxes, by sender and receiver.
    b, seeds, kem_seeds : dict of int to bytes
        Secrets that are rebuilt or guessed, by their owner.
    p, q : dict of (int, int) to bytes
        Contributions, by contributor and peer.
    guessed : dict of (int, int) to set of bytes
        What p may be for all that the recorder knows.
    mask_keys : dict of (int, int) to set of bytes
        Possible keys of the masks of pairs, the lower id first.
    """

    def __init__(
        self, recording: Recording, private: Mapping[int, tuple[bytes, bytes]]
    ) -> None:
        """`private` are the private keys of sealing and of masking of each client."""
        self.params, self._private = recording.params, private
        self.boxes: dict[Pair, bytes] = {}
        self.b: dict[int, bytes] = {}
        self.seeds: dict[int, bytes] = {}
        self.kem_seeds: dict[int, bytes] = {}
        self.p: dict[Pair, bytes] = {}
        self.q: dict[Pair, bytes] = {}
        self.guessed: dict[Pair, set[bytes]] = {}
        self.mask_keys: dict[Pair, set[bytes]] = {}
        self._disclosed: dict[Pair, list[bytes]] = {}
        self._deposits: dict[Pair, bytes] = {}
        self._tried: set[object] = set()
        self._shares: dict[tuple[int, int], dict[int, bytes]] = {}  # by kind and owner
        self._read(recording)
        self._agree()
        known = -1
        while known != (known := self._known()):
            self._deduce()
        for pair in self._agreed:
            self._find_mask(*pair)

    def _read(self, recording: Recording) -> None:
        """Read all messages."""
        sent, answered = recording.sent, recording.answered
        self._keys = {u: self._fields(1, d)[2:5] for u, d in sent[0].items()}
        self.holders = {u: integers(self._fields(2, d)[3]) for u, d in answered[0].items()}
        roster = self._fields(2, next(iter(answered[0].values())))
        self.session = keys.session_id(self.params.digest(), roster[2])
        self._sealed: dict[Pair, bytes] = {}
        self._checks: dict[Pair, bytes] = {}
        self._commitments: dict[int, bytes] = {}
        for u, data in sent[1].items():
            _, _, self._commitments[u], sealed, checks, _, _ = self._fields(3, data)
            peers = [v for v in self.holders[u] if v != u]
            for v, box in zip(peers, cut(sealed, self.params.box), strict=True):
                self._sealed[u, v] = box
            self._checks |= {(u, v): c for v, c in zip(peers, cut(checks, 32), strict=False)}
        inbox = {u: integers(self._fields(4, data)[1]) for u, data in answered[1].items()}
        self.values: dict[int, list[int]] = {}
        self.masked_with: dict[int, list[int]] = {}
        for w, data in sent[2].items():
            _, _, deposits, complaints, disclosed, _, values = self._fields(5, data)
            self.values[w] = self.params.unpack(values)
            self._deposits |= {
                (w, v): left for v, left in zip(inbox[w], cut(deposits, 32), strict=False)
            }
            out = [number(row[:8]) for row in cut(complaints, 9) if row[8] == 2]
            self._disclosed |= {
                (w, v): split(row, 32, 32)
                for v, row in zip(out, cut(disclosed, 96), strict=False)
            }
            self.masked_with[w] = [v for v in inbox[w] if v not in out]
        last = 4 if self.params.active else 3
        for w, data in (sent[last] if len(sent) > last else {}).items():
            survivors, dropped = map(integers, self._fields(6, answered[last - 1][w])[1:3])
            asked = [(0, v) for v in survivors] + [(1, v) for v in dropped]
            for which, share in zip(asked, cut(self._fields(7, data)[2], 40), strict=True):
                self._take_share(*which, w, share)

    def _fields(self, tag: int, data: bytes) -> list:
        return decode(data, tag, _MOST)

    def _take_share(self, kind: int, owner: int, holder: int, share: bytes) -> None:
        """A share of b, kind 0, or of the masking seed, kind 1."""
        place = self.holders[owner].index(holder) + 1
        if share != b"\xff" * 40:
            self._shares.setdefault((kind, owner), {})[place] = share

    def _agree(self) -> None:
        """Find the shared secrets, B and A of every pair by X25519."""
        self._shared: dict[Pair, tuple[bytes, bytes]] = {}
        self._bases: dict[Pair, bytes] = {}
        self._agreed: dict[Pair, bytes] = {}
        edges = [(u, v) for u, held in self.holders.items() for v in held if u != v]
        for u, v in edges:
            both = {w: tuple(self._keys[w]) for w in (u, v)}
            shared = [agreement(self._private[u][i], self._keys[v][i]) or b"" for i in range(2)]
            self._shared[u, v] = shared[0], shared[1]
            self._bases[u, v] = pairs.seal_base(self.session, *shared, both, u, v)
            self._agreed[min(u, v), max(u, v)] = pairs.agreement(self.session, shared[1], both)

    def _known(self) -> int:
        """A number that grows with what is known."""
        found = (
            self.boxes,
            self.b,
            self.seeds,
            self.kem_seeds,
            self.p,
            self.q,
            *self._shares.values(),
        )
        return sum(map(len, found))

    def _deduce(self) -> None:
        """One step: of all that is known, whatever follows."""
        for u in self._keys:
            self._guess_seed(u)
            self._guess_kem_seed(u)
        for pair, (_, p, q) in self._disclosed.items():
            self.p[pair], self.q[pair] = p, q
        for u, seed in self.seeds.items():
            for v in self.holders[u]:
                if v != u and self.params.hybrid:
                    of = pairs.contribution(self.session, seed, u, v)
                    self.p[u, v], self.q[u, v] = of
        for (u, v), left in self._deposits.items():
            if (v, u) in self.q and any(left):
                self.p[u, v] = pairs.deposit(self.session, u, v, left, self.q[v, u])
        for pair in self._sealed.keys() - self.boxes.keys():
            self._open(*pair)
        for (kind, owner), shares in self._shares.items():
            if len(shares) >= self.params.t:
                first = dict(sorted(shares.items())[: self.params.t])
                self._take_secret(kind, owner, keys.rebuilt(first) or b"")

    def _take_secret(self, kind: int, owner: int, secret: bytes) -> None:
        if kind and secret and keys.masking_key(secret) == self._keys[owner][1]:
            self.seeds[owner] = secret
        if (
            not kind
            and keys.commitment(self.session, owner, secret) == self._commitments[owner]
        ):
            self.b[owner] = secret

    def _guess_seed(self, u: int) -> None:
        """The masking seed could be a private key, up to the bits that X25519 ignores."""
        checks = [(v, check) for (w, v), check in self._checks.items() if w == u][:1]
        if u in self.seeds or not checks:
            return
        for guess in (*self._private[u], *_unclamped(self._private[u][1])):
            ((v, check),) = checks
            of = pairs.contribution(self.session, guess, u, v)
            if pairs.check(self.session, u, v, *of) == check:
                self.seeds[u] = guess

    def _at_hand(self, u: int, v: int) -> set[bytes]:
        """Values of 32 bytes that could be a secret of the pair."""
        pair, found = (min(u, v), max(u, v)), set(_NOTHING)
        found |= {*self._private[u], *self._private[v], *self._shared[u, v]}
        found |= {self._agreed[pair], self._bases[u, v], self._bases[v, u], self.session}
        for known in (self._checks, self._deposits, self.p, self.q):
            found |= {known[one] for one in ((u, v), (v, u)) if one in known}
        for of_one in (self.seeds, self.b, self._commitments):
            found |= {of_one[w] for w in (u, v) if w in of_one}
        return found

    def _guess_kem_seed(self, v: int) -> None:
        """The KEM seed could be made of the other secrets of v."""
        own = {*self._private[v], bytes(32)} | ({self.seeds[v]} if v in self.seeds else set())
        wide = {a + b for a, b in product(own, repeat=2)} - self._tried
        self._tried |= wide
        for seed in wide if self._keys[v][2] else ():
            if mlkem.public_key(seed) == self._keys[v][2]:
                self.kem_seeds[v] = seed

    def _open(self, u: int, v: int) -> None:
        """Try every value at hand as the secret of the KEM, and as the key itself."""
        ct, sealed = split(self._sealed[u, v], 1088 if self.params.hybrid else 0)
        at_hand = self._at_hand(u, v)
        if v in self.kem_seeds:
            at_hand.add(mlkem.decapsulate(self.kem_seeds[v], ct))
        new = {x for x in at_hand if (u, v, x) not in self._tried}
        self._tried |= {(u, v, x) for x in new}
        made = {
            pairs.box_key(self.session, self._bases[u, v], secret, u, v, of)
            for secret in new
            for of in {ct, b""}
        }
        for key in made | new - {b""}:
            content = pairs.unseal(key, sealed, self.session, u, v)
            if content is None:
                continue
            self.boxes[u, v] = content
            share, p, q = split(content, 80, 32)
            self._take_share(0, u, v, share[:40])
            self._take_share(1, u, v, share[40:])
            if p:
                self.p[u, v], self.q[u, v] = p, q
            return

    def _find_mask(self, u: int, v: int) -> None:
        """Try what is known of both p, and the deposits in all ways."""
        for one, other in ((u, v), (v, u)):
            found = {self.p[one, other]} if (one, other) in self.p else set(_NOTHING)
            if (one, other) in self._deposits and (one, other) not in self.p:
                left, at_hand = self._deposits[one, other], self._at_hand(u, v) - {b""}
                pads = {pairs.deposit(self.session, one, other, left, x) for x in at_hand}
                found |= pads | {_xor(left, x) for x in at_hand}
            self.guessed[one, other] = found
        agreed = self._agreed[u, v]
        self.mask_keys[u, v] = {agreed[:16]} | {
            pairs.mask_key(self.session, agreed, {u: p, v: other})
            for p, other in product(self.guessed[u, v], self.guessed[v, u])
        }

    def masked(self, w: int, found: Mapping[Pair, bytes]) -> list[int] | None:
        """Elements of an input of w, if b and all keys of its masks are known; else None.

        `found` has the right ones of `mask_keys`.
        """
        pairs_of_w = {v: (min(v, w), max(v, w)) for v in self.masked_with[w]}
        if w not in self.b or not {*pairs_of_w.values()} <= found.keys():
            return None
        added = [self.params.mask(keys.self_mask_key(self.session, w, self.b[w]))]
        added += [self.params.mask(found[p]) for v, p in pairs_of_w.items() if v > w]
        less = [self.params.mask(found[p]) for v, p in pairs_of_w.items() if v < w]
        return self.params.add(self.values[w], *less, minus=added)


def _unclamped(private: bytes) -> Iterator[bytes]:
    """All 32 strings that are this private key to X25519."""
    first, middle, last = private[0] & 0xF8, private[1:-1], private[-1] & 0x3F
    for low, high in product(range(8), range(4)):
        yield u8(first | low) + middle + u8(last | high << 6)


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
