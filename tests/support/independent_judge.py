"""A judge of verdicts, from docs/protocol.md §14 alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import independent_dealing as dealing
import independent_keys as keys
import independent_pairs as pairs
from independent_dealing import Opening
from independent_keys import SHAMIR_PRIME
from independent_params import Parameters
from independent_policy import Policy
from independent_primitives import (
    ParameterError,
    cut,
    integers,
    number,
    require,
    split,
    u8,
    u16le,
    u32le,
    u64le,
    valid,
    verifies,
)

KINDS = ["", "shares", "answer", "complaints", "contribution", "complainer"]
"""By their bytes."""


def encode(
    kind: str, params: bytes, roster: bytes, client: int, parts: Sequence[bytes]
) -> bytes:
    """§14.1."""
    head = u8(4) + u8(KINDS.index(kind)) + u16le(len(params)) + params + roster + u64le(client)
    return head + b"".join(u32le(len(part)) + part for part in parts)


def share_part(w: int, x: int, share: bytes, other: bytes, rest: bytes) -> bytes:
    """SHARE; `rest` is check, SHA-256 of the box and path."""
    return u64le(w) + u32le(x) + share + other + rest


def judge(
    data: bytes, registry: Mapping[int, bytes], policy: Policy = Policy()  # noqa: B008
) -> tuple[int, str]:  # fmt: skip
    """The client that the verdict names, and its kind; ProtocolError if it names nobody."""
    case = Case(data, registry, policy)
    judges: dict[str, Callable[[], None]] = {
        "shares": case.shares,
        "answer": case.answer,
        "complaints": case.complaints,
        "contribution": case.contribution,
        "complainer": case.complainer,
    }
    judges[case.kind]()
    return case.client, case.kind


class Reader:
    """Bytes from their beginning; all have to be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        require(size <= len(self.data), "length")
        taken, self.data = self.data[:size], self.data[size:]
        return taken


class Case:
    """A verdict that has been read."""

    def __init__(self, data: bytes, registry: Mapping[int, bytes], policy: Policy) -> None:
        read = Reader(data)
        require(read.take(1) == u8(4), "version")
        kind = number(read.take(1))
        require(1 <= kind <= 5, "kind")
        self.kind, self.registry = KINDS[kind], registry
        own = read.take(number(read.take(2)))
        roster, self.client = read.take(32), number(read.take(8))
        self.parts = []
        while read.data:
            self.parts.append(read.take(number(read.take(4))))
        try:
            self.p = Parameters.read(own)
        except ParameterError:
            require(False, "parameters")
        require(self.p.active, "parameters")
        valid(policy.accepts(self.p, len(registry)), "policy: not these parameters")
        self.most_false = policy.lying(self.p, len(registry))
        self.session = keys.session_id(self.p.digest(), roster)
        self.depth: int | None = None  # L

    def _known(self, *clients: int) -> None:
        require(all(u in self.registry for u in clients), "unknown client")

    def _signed(self, u: int, message: bytes, signature: bytes) -> None:
        self._known(u)
        require(verifies(self.registry[u], message, signature), "signature")

    def _count(self, least: int, step: int = 1) -> None:
        """So many parts, or a multiple of `step` more."""
        require(len(self.parts) >= least, "length")
        require((len(self.parts) - least) % step == 0, "length")

    def _dealt(self, v: int, part: bytes) -> list[bytes]:
        """Commitment, s and root of v, which signed them."""
        require(len(part) == 160, "length")
        commitment, s, root, signature = split(part, 32, 32, 32)
        self._signed(v, dealing.dealt(self.session, v, commitment, s, root), signature)
        return [commitment, s, root]

    def _under(self, root: bytes, leaf: bytes, x: int, path: bytes) -> None:
        """The leaf at the point x has this root."""
        depth, rest = divmod(len(path), 32)
        self.depth = depth if self.depth is None else self.depth
        most = dealing.depth(self.p.n)
        require(rest == 0 and depth == self.depth and depth <= most, "length")
        require(1 <= x <= 2**depth, "ids")
        require(dealing.climb(leaf, x - 1, path) == root, "root")

    def _opened(self, v: int, part: bytes, root: bytes | None) -> tuple[int, Opening, bytes]:
        """Holder, opening and leaf; without a root the part has no path."""
        require(len(part) >= 140 and (root is not None or len(part) == 140), "length")
        w, x, hashes, check, sealed, path = split(part, 8, 4, 64, 32, 32)
        opening = Opening(number(x), hashes, check, sealed)
        leaf = opening.leaf(self.session, v, number(w))
        if root is not None:
            self._under(root, leaf, opening.x, path)
        return number(w), opening, leaf

    def _shared(self, kind: int, parts: list[bytes], root: bytes) -> dict[int, bytes]:
        """The t shares by their points."""
        require(len(parts) == self.p.t, "length")
        found: dict[int, bytes] = {}
        before = -1
        for part in parts:
            require(len(part) >= 148, "length")
            w, x, share, other, check, sealed, path = split(part, 8, 4, 40, 32, 32, 32)
            w_, x_ = number(w), number(x)
            require(w_ > before, "ids")
            self._known(w_)
            require(all(value < SHAMIR_PRIME for value in integers(share)), "share")
            own = dealing.share_hash(self.session, kind, self.client, w_, share)
            opening = Opening(x_, own + other if kind == 0 else other + own, check, sealed)
            self._under(root, opening.leaf(self.session, self.client, w_), x_, path)
            require(x_ not in found, "ids")
            found[x_], before = share, w_
        return found

    def _list(self, w: int, listed: bytes, signature: bytes) -> dict[int, tuple[bytes, int]]:
        """Leaf and complaint by dealer, of a list that w signed."""
        require(len(listed) > 0, "length")
        rows = dealing.read_list(listed)
        dealers = [v for v, _, _ in rows]
        require(dealers == sorted(set(dealers)), "ids")
        self._signed(w, dealing.accepted(self.session, w, listed), signature)
        return {v: (leaf, complaint) for v, leaf, complaint in rows}

    def shares(self) -> None:
        self._count(2)
        commitment, s, root = self._dealt(self.client, self.parts[0])
        kind = number(self.parts[1])
        require(len(self.parts[1]) == 1, "length")
        require(kind <= 1, "kind")
        secret = keys.rebuilt(self._shared(kind, self.parts[2:], root))
        if secret is None:
            return
        if kind == 0:
            right = keys.commitment(self.session, self.client, secret) == commitment
        else:
            right = keys.masking_key(secret) == s
        require(not right, "innocent")

    def answer(self) -> None:
        require(len(self.parts) == 6, "length")
        dealer, listed, accepted, answers, signature, opened = self.parts
        require(len(dealer) == 8, "length")
        w, v = self.client, number(dealer)
        self._known(w, v)
        if v == w:
            require(accepted == b"", "length")
            holder, opening, _ = self._opened(v, opened, self._dealt(w, listed)[2])
        else:
            of = self._list(w, listed, accepted)
            holder, opening, leaf = self._opened(v, opened, None)
            require(of.get(v) == (leaf, 0), "leaf")
        require(holder == w, "ids")
        require(len(answers) > 0, "length")
        self._signed(w, dealing.answer(self.session, w, answers), signature)
        rows = dealing.read_answers(answers)
        given = [(kind, of) for u, kind, of in rows if u == v and kind in (0, 1)]
        wrong = [kind for kind, of in given if cut(opening.hashes, 32)[kind] != of]
        require(wrong != [], "innocent")

    def complaints(self) -> None:
        self._count(1, 3)
        root, before, count = self._dealt(self.client, self.parts[0])[2], -1, 0
        for at in range(1, len(self.parts), 3):
            listed, accepted, opened = self.parts[at : at + 3]
            w, _, leaf = self._opened(self.client, opened, root)
            require(w > before and w != self.client, "ids")
            of = self._list(w, listed, accepted)
            self._complained(of, self.client, leaf)
            before, count = w, count + 1
            require(count <= self.p.n, "length")
        require(count > self.most_false, "count")

    def _complained(self, of: Mapping[int, tuple[bytes, int]], v: int, leaf: bytes) -> None:
        listed, complaint = of.get(v, (b"", 0))
        kinds = (1, 2) if self.p.hybrid else (1,)
        require(listed == leaf and complaint in kinds, "leaf")

    def contribution(self) -> None:
        require(self.p.hybrid, "kind")
        self._count(2)
        _, s, root = self._dealt(self.client, self.parts[0])
        seed = keys.rebuilt(self._shared(1, self.parts[1:-1], root))
        require(seed is not None and keys.masking_key(seed) == s, "kind")
        w, opening, _ = self._opened(self.client, self.parts[-1], root)
        require(w != self.client, "ids")
        given = pairs.contribution(self.session, seed, self.client, w)
        check = pairs.check(self.session, self.client, w, *given)
        require(check != opening.check, "innocent")

    def complainer(self) -> None:
        self._count(2, 2)
        of = self._list(self.client, *self.parts[:2])
        told = [v for v, (_, complaint) in of.items() if complaint]
        require(self.client not in told, "ids")
        require(len(self.parts) == 2 + 2 * len(told), "length")
        for v, at in zip(told, range(2, len(self.parts), 2), strict=True):
            root = self._dealt(v, self.parts[at])[2]
            w, _, leaf = self._opened(v, self.parts[at + 1], root)
            require(w == self.client, "ids")
            self._complained(of, v, leaf)
        require(len(told) > self.p.most_liars, "count")
