"""A whole round of docs/protocol.md §8: every byte that every party sends.

All parties are computed side by side from their entropy. There are no checks, since no party
lies. The server's results are computed twice: from the messages, and from the inputs.
"""

from dataclasses import dataclass, field

import primitives as pr
from params import Params, decode_sum, elements_of
from primitives import Message, P

PHASES = ["advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking"]


@dataclass
class Party:
    """A client, the values that it draws in this order (Annex B), and its dropout.

    With `entropy`, the first four values are hedged (§5.13), and the round sets them. With
    `kept`, the sealing seed is that of an earlier round of the session and is not drawn (§5.1).
    """

    u: int
    vector: list[float] | list[int]
    draws: list[bytes]
    weight: int | None = None
    identity: bytes | None = None
    drop: str | None = None
    rounding: str = "nearest"
    wrong_share: bool = False
    entropy: list[bytes] | None = None
    kept: bytes | None = None

    def hedge_seeds(self, params: Params) -> None:
        if self.entropy is not None:
            secret, about = pr.hedging_secret(self.identity), params.digest() + pr.u64le(self.u)
            fresh = [self.entropy[0]] if self.kept else self.entropy[:2]
            for purpose, entropy in zip(self.purposes(), fresh, strict=True):
                label = b"secagg/2 hedged " + purpose
                self.draws += pr.hedged(secret, entropy, [32], label, about)
            if self.kept:
                self.draws.insert(0, self.kept)

    def purposes(self) -> list[bytes]:
        """The values that are drawn in round 0, in their order."""
        return [b"masking seed"] if self.kept else [b"sealing seed", b"masking seed"]

    def hedge_shares(self, params: Params, session: bytes, holders: list[int]) -> None:
        if self.entropy is not None:
            about = session + pr.u64le(self.u)
            fresh = self.entropy[len(self.purposes()) :]
            self.draws += pr.hedged(self.seal_seed, fresh[0], [32], b"secagg/2 hedged b", about)
            about += pr.u64le(params.t) + pr.ids(holders)
            secret, size = self.b + self.mask_seed, 80 * (params.t - 1)
            label = b"secagg/2 hedged shares"
            self.draws += pr.hedged(secret, fresh[1], [size], label, about) + fresh[2:]

    @property
    def seal_seed(self) -> bytes:
        return self.draws[0]

    @property
    def mask_seed(self) -> bytes:
        return self.draws[1]

    @property
    def b(self) -> bytes:
        return self.draws[2]

    @property
    def seal_key(self) -> bytes:
        return pr.x25519_public(self.seal_seed)

    @property
    def mask_key(self) -> bytes:
        return pr.x25519_public(self.mask_seed)

    @property
    def keys(self) -> tuple[bytes, bytes]:
        return self.seal_key, self.mask_key

    @property
    def registered(self) -> bytes:
        assert self.identity is not None
        return pr.ed25519_public(self.identity)

    def constants(self) -> list[int]:
        return pr.limbs(self.b) + pr.limbs(self.mask_seed)

    def coefficients(self) -> list[list[int]]:
        draws = self.draws[3:-1] if self.rounding == "stochastic" else self.draws[3:]
        return coefficients(draws)


def coefficients(draws: list[bytes]) -> list[list[int]]:
    """Annex B: the low 61 bits of each u64le; all ones are drawn again, all together."""
    words = [
        int.from_bytes(draws[0][i : i + 8], "little") & P for i in range(0, len(draws[0]), 8)
    ]
    for again in draws[1:]:
        at = [i for i, word in enumerate(words) if word == P]
        assert at
        assert len(again) == 8 * len(at)
        for row, i in enumerate(at):
            words[i] = int.from_bytes(again[8 * row : 8 * row + 8], "little") & P
    assert P not in words
    return [words[i : i + 10] for i in range(0, len(words), 10)]


@dataclass
class Round:
    """All that was sent: `sent[phase]` by clients, `answers[phase]` at the phase's closing."""

    name: str
    params: Params
    parties: dict[int, Party]
    server_draws: list[bytes] = field(default_factory=list)
    sent: dict[str, dict[int, Message]] = field(default_factory=dict)
    answers: dict[str, dict[int, Message]] = field(default_factory=dict)
    u1: list[int] = field(default_factory=list)
    u2: list[int] = field(default_factory=list)
    u3: list[int] = field(default_factory=list)
    u4: list[int] = field(default_factory=list)
    holders: dict[int, list[int]] = field(default_factory=dict)
    session: bytes = b""
    total: list[int] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)
    weight: int | None = None
    clipped: int | None = None
    disputes: list[tuple[int, int]] = field(default_factory=list)

    def phases(self) -> list[str]:
        return [p for p in PHASES if self.params.active or p != "consistency_check"]

    def staying(self, among: list[int], phase: str) -> list[int]:
        return [u for u in among if self.parties[u].drop != phase]

    def seen(self, u: int, among: list[int]) -> list[int]:
        return [v for v in self.holders[u] if v in among]

    def seal_key(self, sender: int, receiver: int) -> bytes:
        a, b = self.parties[sender], self.parties[receiver]
        shared = pr.x25519(a.seal_seed, b.seal_key) + pr.x25519(a.mask_seed, b.mask_key)
        pairs = (a.u, b"".join(a.keys)), (b.u, b"".join(b.keys))
        both = pr.seal_keys(self.session, shared, *pairs)
        return both[0] if sender < receiver else both[1]

    def pairwise_key(self, u: int, v: int) -> bytes:
        a, b = self.parties[u], self.parties[v]
        shared = pr.x25519(a.mask_seed, b.mask_key)
        return pr.pairwise_key(self.session, shared, (a.u, a.mask_key), (b.u, b.mask_key))

    def share(self, owner: int, holder: int) -> bytes:
        party = self.parties[owner]
        x = self.holders[owner].index(holder) + 1
        return pr.ids(pr.evaluate(party.constants(), party.coefficients(), x))

    def sealed(self, sender: int, receiver: int) -> bytes:
        key = self.seal_key(sender, receiver)
        return pr.seal(key, self.session, sender, receiver, self.share(sender, receiver))

    def signature(self, u: int, message: bytes) -> bytes:
        identity = self.parties[u].identity
        return pr.ed25519_sign(identity, message) if identity else b""

    def signed_keys(self, u: int) -> bytes:
        return self.signature(u, pr.signed_keys(self.params.digest(), u, *self.parties[u].keys))

    def masked(self, u: int) -> list[int]:
        party, params = self.parties[u], self.params
        key = party.draws[-1] if party.rounding == "stochastic" else None
        y = elements_of(params, party.vector, party.weight, key)
        masks = [(1, pr.self_mask_key(self.session, u, party.b))]
        others = [v for v in self.seen(u, self.u2) if v != u]
        masks += [(1 if v > u else -1, self.pairwise_key(u, v)) for v in others]
        for sign, mask_key in masks:
            stream = pr.prg(mask_key, params.elements, params.modulus)
            y = [(a + sign * m) % params.modulus for a, m in zip(y, stream, strict=True)]
        return y


def run(
    name: str, params: Params, parties: list[Party], graph_seed: bytes | None = None
) -> Round:
    """Everything up to the sum; asserts that the sum of the messages is that of the inputs."""
    r = Round(name, params, {party.u: party for party in parties})
    if graph_seed is not None:
        r.server_draws = [graph_seed]
    _advertise(r)
    _share(r)
    _mask(r)
    if params.active:
        _sign(r)
    _unmask(r)
    _sum(r)
    return r


def graph_order(seed: bytes, among: list[int]) -> list[int]:
    return sorted(among, key=lambda u: pr.sha256(b"secagg/2 graph", seed, pr.u64le(u)))


def neighbourhoods(params: Params, u1: list[int], seed: bytes | None) -> dict[int, list[int]]:
    """§5.11: the holders of each client, itself included, ascending."""
    if params.k is None or params.k >= len(u1) - 1:
        return {u: sorted(u1) for u in u1}
    assert seed is not None
    ring, half = graph_order(seed, u1), params.k // 2
    return {
        u: sorted(ring[(i + step) % len(ring)] for step in range(-half, half + 1))
        for i, u in enumerate(ring)
    }


def _advertise(r: Round) -> None:
    own, digest = r.params.to_bytes(), r.params.digest()
    r.u1 = r.staying(sorted(r.parties), "advertise_keys")
    for party in r.parties.values():
        party.hedge_seeds(r.params)
    r.sent["advertise_keys"] = {
        u: [1, u, own, *r.parties[u].keys, r.signed_keys(u)] for u in r.u1
    }
    r.holders = neighbourhoods(r.params, r.u1, r.server_draws[0] if r.server_draws else None)
    roster = pr.roster_digest({u: r.parties[u].keys for u in r.u1})
    r.session = pr.session_id(digest, roster)
    r.answers["advertise_keys"] = {}
    for u in r.u1:
        listed = [r.parties[v] for v in r.holders[u]]
        r.answers["advertise_keys"][u] = [
            2, own, len(r.u1), roster, pr.ids(r.holders[u]),
            b"".join(p.seal_key for p in listed), b"".join(p.mask_key for p in listed),
            b"".join(r.signed_keys(p.u) for p in listed),
        ]  # fmt: skip


def _share(r: Round) -> None:
    for u in r.u1:
        r.parties[u].hedge_shares(r.params, r.session, r.holders[u])
    r.u2 = r.staying(r.u1, "share_keys")
    r.sent["share_keys"] = {
        u: [
            3, u, r.session, pr.commitment(r.session, u, r.parties[u].b),
            b"".join(r.sealed(u, v) for v in r.holders[u] if v != u),
        ]
        for u in r.u2
    }  # fmt: skip
    r.answers["share_keys"] = {}
    for u in r.u2:
        senders = [v for v in r.seen(u, r.u2) if v != u]
        if len(senders) + 1 >= r.params.least:
            sealed = b"".join(r.sealed(v, u) for v in senders)
            r.answers["share_keys"][u] = [4, r.session, pr.ids(senders), sealed]


def _mask(r: Round) -> None:
    r.u3 = r.staying(list(r.answers["share_keys"]), "masked_input")
    r.sent["masked_input"] = {
        u: [5, u, r.session, pr.pack(r.masked(u), r.params.bits)] for u in r.u3
    }
    asked = [u for u in r.u3 if len(r.seen(u, r.u3)) >= r.params.least]
    if r.params.active:
        r.answers["masked_input"] = {u: [8, r.session, pr.ids(r.u3)] for u in asked}
    else:
        r.answers["masked_input"] = {u: unmask_request(r, u) for u in asked}


def unmask_request(r: Round, u: int) -> Message:
    survivors = r.seen(u, r.u3)
    dropped = [v for v in r.seen(u, r.u2) if v not in r.u3]
    signatures = b"".join(survivors_signature(r, v) for v in r.u4)
    return [6, r.session, pr.ids(survivors), pr.ids(dropped), pr.ids(r.u4), signatures]


def survivors_signature(r: Round, u: int) -> bytes:
    return r.signature(u, pr.signed_survivors(r.session, u, pr.ids(r.u3)))


def _sign(r: Round) -> None:
    r.u4 = r.staying(r.u3, "consistency_check")
    r.sent["consistency_check"] = {
        u: [9, u, r.session, survivors_signature(r, u)] for u in r.u4
    }
    r.answers["consistency_check"] = {u: unmask_request(r, u) for u in r.u4}


def _unmask(r: Round) -> None:
    r.sent["unmasking"] = {}
    asked = r.answers["consistency_check" if r.params.active else "masked_input"]
    for u in r.staying(list(asked), "unmasking"):
        shares = b"".join(r.share(v, u)[:40] for v in r.seen(u, r.u3))
        shares += b"".join(r.share(v, u)[40:] for v in r.seen(u, r.u2) if v not in r.u3)
        if r.parties[u].wrong_share:
            shares = bytes([shares[0] ^ 1]) + shares[1:]
            r.disputes.append((r.seen(u, r.u3)[0], u))
        r.sent["unmasking"][u] = [7, u, r.session, shares]


def _sum(r: Round) -> None:
    params = r.params
    inputs, unmasked = [0] * params.elements, [0] * params.elements

    def add(to: list[int], sign: int, what: list[int]) -> None:
        to[:] = [(a + sign * x) % params.modulus for a, x in zip(to, what, strict=True)]

    for u in r.u3:
        party = r.parties[u]
        key = party.draws[-1] if party.rounding == "stochastic" else None
        add(inputs, 1, elements_of(params, party.vector, party.weight, key))
        add(unmasked, 1, r.masked(u))
        b_key = pr.self_mask_key(r.session, u, _rebuild(r, u)[0])
        add(unmasked, -1, pr.prg(b_key, params.elements, params.modulus))
    for v in (v for v in r.u2 if any(v in r.holders[u] for u in r.u3) and v not in r.u3):
        assert _rebuild(r, v)[1] == r.parties[v].mask_seed
        for u in (u for u in r.u3 if u in r.holders[v]):
            stream = pr.prg(r.pairwise_key(u, v), params.elements, params.modulus)
            add(unmasked, -1 if v > u else 1, stream)
    assert inputs == unmasked
    r.total = inputs
    r.integers = decode_sum(params, inputs)
    r.weight = None if params.max_weight is None else inputs[params.d]
    r.clipped = inputs[-1] if params.count else None


def _rebuild(r: Round, v: int) -> tuple[bytes, bytes]:
    """b and the masking seed of v, from t of the clients that answered."""
    good = [u for u in r.sent["unmasking"] if u in r.holders[v] and (v, u) not in r.disputes]
    at = good[: r.params.t]
    assert len(at) == r.params.t, (r.name, v)
    values = [
        [int.from_bytes(r.share(v, u)[8 * c : 8 * c + 8], "little") for c in range(10)]
        for u in at
    ]
    rebuilt = pr.combine([r.holders[v].index(u) + 1 for u in at], values)
    return pr.from_limbs(rebuilt[:5]), pr.from_limbs(rebuilt[5:])
