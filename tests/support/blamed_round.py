"""Signed hashes of the shares of an active round, as a server has them; and clients that lie.

All clients of a new `SignedRound` are honest. Its methods make dealers and holders lie.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from harness import make_identity, make_params
from raised import rejects
from secagg import ClientPolicy, Identity, Registry, Verdict, blame, shamir
from secagg.blame import Accuser, Dealing, Signed
from secagg.protocol import dealing, keys, pair_masks
from secagg.protocol.keys import U8, U64
from secagg.shamir.field import M61

IDS = 3, 8, 2**32 + 1, 2**40, 2**63 - 1, 2**63, 2**64 - 2
STRANGERS = 77, 2**64 - 1
"""Clients of the registry that are not in the round."""
POLICY = ClientPolicy(colluders=1)
"""Two complaints convict; in seven clients with t = 5 three complaints of a holder do, too."""
HONEST, LIAR = IDS[3], IDS[1]
Spoil = Callable[[U64], None]


class SignedRound:
    """Clients of an active round, with their shares and signatures.

    Attributes
    ----------
    shares : dict of id to uint64 array, shape (2, h, 5)
        Shares by dealer, kind and place of the holder.
    dealt : dict of id to Dealing
    """

    def __init__(
        self,
        suite: str = "hybrid",
        ids: Iterable[int] = IDS,
        threshold: int | None = None,
        name: bytes = b"blamed",
        seed: int = 0,
        **changes: object,
    ) -> None:
        self.ids = [*ids]
        n = len(self.ids)
        self.params = make_params(
            n, threshold, security="active", suite=suite, session=name, **changes
        )
        self.rng = np.random.default_rng([seed, n, self.params.threshold])
        self.registry = Registry({u: make_identity(u).public for u in (*self.ids, *STRANGERS)})
        self.roster = self.rng.bytes(32)
        self.session = keys.session_id(self.params.digest, self.roster)
        self.holders = np.array(self.ids, np.uint64)
        self.accuser = Accuser(self.params, self.roster, self.holders)
        self.shares: dict[int, U64] = {}
        self.dealt: dict[int, Dealing] = {}
        self.seeds = {u: (self.rng.bytes(32), self.rng.bytes(32)) for u in self.ids}
        for u in self.ids:
            self.deal(u)

    def identity(self, u: int) -> Identity:
        return make_identity(u)

    def place(self, u: int) -> int:
        return self.ids.index(u)

    def deal(
        self,
        v: int,
        spoil: Spoil | None = None,
        checks: Mapping[int, bytes] | None = None,
        signer: int | None = None,
    ) -> None:
        """Deal shares of v; `spoil` changes them, `checks` are false ones by holder."""
        b, seed = self.seeds[v]
        t, h = self.params.threshold, len(self.ids)
        limbs = np.concatenate([shamir.to_limbs(b), shamir.to_limbs(seed)])
        points = np.arange(1, h + 1, dtype=np.uint64)
        values = shamir.split_limbs(limbs, t, points, self.rng.bytes)
        shares = np.stack([values[:, :5], values[:, 5:]])
        if spoil is not None:
            spoil(shares)
        both = [
            dealing.share_hashes(kind, self.session, v, self.holders, as_bytes(shares[kind]))
            for kind in (0, 1)
        ]
        hybrid = self.params.suite == "hybrid"
        others = self.holders[self.holders != v]
        found = None
        if hybrid:
            given = pair_masks.contributions(seed, self.session, v, others)
            found = pair_masks.checks(self.session, v, others, given).copy()
            for w, check in (checks or {}).items():
                found[others == w] = np.frombuffer(check, np.uint8)
        sealed = self.rng.integers(0, 256, (h - 1, 1248 if hybrid else 96), np.uint8)
        columns = dealing.with_own(v, self.holders, found, sealed)
        self.shares[v] = shares
        commitment = keys.commitment(b, self.session, v)
        mask_key = keys.KeyPair.masking(seed).public
        hashes = np.concatenate(both, axis=1)
        self.sign(Dealing(v, commitment, mask_key, b"", hashes, *columns), signer)

    def sign(self, dealt: Dealing, signer: int | None = None) -> None:
        """Sign a dealer's values, whatever they are."""
        v = dealt.dealer
        root = dealing.tree(self.leaves_of(dealt))[-1].tobytes()
        values = dealt.commitment, dealt.mask_key, root
        signature = self.identity(v if signer is None else signer).sign(
            dealing.signed_dealt(self.session, v, *values)
        )
        self.dealt[v] = dealt._replace(dealt=signature)

    def leaves_of(self, dealt: Dealing) -> U8:
        points = np.arange(1, len(self.ids) + 1, dtype=np.uint64)
        rest = dealt.hashes, dealt.checks, dealt.boxes
        return dealing.leaves(self.session, dealt.dealer, self.holders, points, *rest)

    def items(self, w: int, complaints: Mapping[int, int] | None = None) -> np.ndarray:
        """The entries that w lists, with complaints by dealer."""
        senders = [v for v in self.ids if v != w]
        leaves = np.array([self.leaves_of(self.dealt[v])[self.place(w)] for v in senders])
        said = np.array([(complaints or {}).get(v, 0) for v in senders], np.uint8)
        listed = dealing.accepted_list(np.array(senders, np.uint64), leaves, said)
        return np.frombuffer(listed, dealing.LIST_ITEM).copy()

    def accept(
        self,
        w: int,
        complaints: Mapping[int, int] | None = None,
        items: np.ndarray | None = None,
        signer: int | None = None,
    ) -> Signed:
        """Sign the list of w, or other entries."""
        listed = (self.items(w, complaints) if items is None else items).tobytes()
        identity = self.identity(w if signer is None else signer)
        return Signed(listed, identity.sign(dealing.signed_accepted(self.session, w, listed)))

    def answer(
        self,
        w: int,
        dropped: Iterable[int] = (),
        wrong: Iterable[int] = (),
        withheld: Iterable[int] = (),
    ) -> Signed:
        """Sign answers of w, some of them wrong: shares of s of dropped dealers, else of b."""
        gone = {*dropped}
        order = [v for v in self.ids if v not in gone] + [v for v in self.ids if v in gone]
        kinds = np.array([v in gone for v in order], np.uint8)
        shares = np.array([self.shares[v][int(v in gone), self.place(w)] for v in order])
        for v in wrong:
            shares[order.index(v), 0] ^= np.uint64(1)
        rows = as_bytes(shares)
        for v in withheld:
            rows[order.index(v)] = 255
        dealers = np.array(order, np.uint64)
        hashes = dealing.share_hashes(kinds, self.session, dealers, w, rows)
        answers = dealing.answer_list(dealers, kinds, hashes)
        signature = self.identity(w).sign(dealing.signed_answer(self.session, w, answers))
        return Signed(answers, signature)

    def verdict_of_shares(self, v: int, kind: int, holders: Iterable[int]) -> Verdict | None:
        at = np.array([self.place(w) for w in holders])
        return self.accuser.shares(self.dealt[v], kind, at, self.shares[v][kind, at])


def as_bytes(shares: U64) -> U8:
    """Limbs of shares as rows of bytes."""
    return shares.astype("<u8").view(np.uint8).copy()


def add_one(kind: int, *places: int) -> Spoil:
    """A dealer that adds 1 to a limb of the shares at some places."""

    def spoil(shares: U64) -> None:
        for place in places:
            shares[kind, place, 2] = (int(shares[kind, place, 2]) + 1) % M61

    return spoil


def other_constant(kind: int, limb: int = 4, add: int = 1) -> Spoil:
    """A dealer that shares another secret, on a polynomial."""

    def spoil(shares: U64) -> None:
        shares[kind, :, limb] = [(int(one) + add) % M61 for one in shares[kind, :, limb]]

    return spoil


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """The head of a verdict and its parts, without a check."""
    size = struct.unpack_from("<H", data, 2)[0]
    at = 4 + size + 40
    head, parts = data[:at], []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        parts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return head, parts


def joined(head: bytes, parts: Iterable[bytes]) -> bytes:
    """A verdict of a head and parts."""
    return head + b"".join(struct.pack("<I", len(part)) + part for part in parts)


def guilty(round_: SignedRound, kind: str) -> Verdict:
    """A verdict of each kind on the third client, or on the second for the holder's kinds."""
    dealer, holder, last = round_.ids[2], round_.ids[1], round_.ids[-1]
    if kind == "shares":
        round_.deal(dealer, add_one(0, round_.place(last)))
        verdict = round_.verdict_of_shares(dealer, 0, round_.ids)
        assert verdict is not None
        return verdict
    if kind == "answer":
        answer = round_.answer(holder, wrong=[dealer])
        place = round_.place(holder)
        return round_.accuser.answer(round_.dealt[dealer], place, round_.accept(holder), answer)
    if kind == "own answer":
        answer = round_.answer(holder, wrong=[holder])
        return round_.accuser.answer(round_.dealt[holder], round_.place(holder), None, answer)
    if kind == "complaints":
        lists = {round_.place(w): round_.accept(w, {dealer: 1}) for w in (round_.ids[0], last)}
        return round_.accuser.complaints(round_.dealt[dealer], lists)
    if kind == "contribution":
        round_.deal(dealer, checks={last: bytes(32)})
        at = np.arange(round_.params.threshold + 1)
        shares, about = round_.shares[dealer][1, at], round_.place(last)
        return round_.accuser.contribution(round_.dealt[dealer], at, shares, about)
    accused = {v: 1 for v in round_.ids if v not in (holder, last)}
    accepted = round_.accept(holder, accused)
    return round_.accuser.complainer(round_.place(holder), accepted, round_.dealt.__getitem__)


HYBRID_KINDS = "shares", "answer", "own answer", "complaints", "contribution", "complainer"
X25519_KINDS = tuple(kind for kind in HYBRID_KINDS if kind != "contribution")
CASES = [("hybrid", kind) for kind in HYBRID_KINDS] + [
    ("x25519", kind) for kind in X25519_KINDS
]


def convicts_nobody(
    check: str, data: bytes, round_: SignedRound, policy: ClientPolicy = POLICY
) -> None:
    """Check that the judge rejects a verdict by this check."""
    error = rejects(check, lambda: blame.check(data, round_.registry, policy))
    assert (error.sender, error.phase, error.verdicts) == (None, "verdict", ())


def with_parts(data: bytes, change: Callable[[list[bytes]], object]) -> bytes:
    """A verdict with changed parts."""
    head, parts = cut(data)
    change(parts)
    return joined(head, parts)


def opened_part(round_: SignedRound, v: int, place: int) -> bytes:
    """OPENED of a leaf."""
    return round_.accuser._laid(round_.dealt[v]).opened(place)


def dealt_part(round_: SignedRound, v: int) -> bytes:
    """DEALT of a dealer."""
    return round_.accuser._laid(round_.dealt[v]).signed


def true_shares(
    round_: SignedRound, v: int = HONEST, kind: int = 0, holders: Sequence[int] = IDS[:5]
) -> bytes:
    """A claim about the shares of a dealer, which are right."""
    laid = round_.accuser._laid(round_.dealt[v])
    at = np.array([round_.place(w) for w in holders])
    shown = laid.shown(kind, at, round_.shares[v][kind, at])
    return round_.accuser._verdict("shares", v, laid.signed, bytes([kind]), *shown).data
