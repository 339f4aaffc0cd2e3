"""A whole round of docs/protocol.md §8: independent clients, and a server that answers them.

The server checks nothing, since no party lies. It computes the sum twice: from the messages,
and from the inputs.
"""

from dataclasses import dataclass
from itertools import chain

from draws import given
from kinds import but, get

from independent_client import Client, Parameters, Sealing
from independent_keys import pairwise_key, rebuilt, roster_digest, self_mask_key, session_id
from independent_messages import encode
from independent_policy import Policy
from independent_primitives import (
    Source,
    agreement,
    cut,
    identity_key,
    ids,
    sha256,
    sign,
    u64le,
)

PHASES = ["advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking"]
Entry = tuple[bytes, bytes, bytes]  # sealing key, masking key, signature


@dataclass
class Party:
    """A client's input, its entropy, draw by draw (Annex B), and its dropout.

    A party that is not `hedged` draws seeds and coefficients as they are. `sealing` is that of
    an earlier round of the session (§5.1).
    """

    u: int
    vector: list[float] | list[int]
    entropy: list[bytes]
    weight: int | None = None
    identity: bytes | None = None
    drop: str | None = None
    rounding: str = "nearest"
    wrong_share: bool = False
    hedged: bool = True
    sealing: Sealing | None = None

    @property
    def kept(self) -> bytes | None:
        return self.sealing and self.sealing.seed


class Remembering(Client):
    """The client of a party. It forgets nothing, and records the values that it draws."""

    def __init__(
        self, party: Party, params: Parameters, registry: dict[int, bytes] | None
    ) -> None:
        policy = Policy(corrupt=0.05, dropout=0.05)
        if params.allow_two_clients:
            policy = Policy(min_clients=2, allow_two_clients=True)
        super().__init__(
            party.u,
            params,
            identity_seed=party.identity,
            registry=registry,
            entropy=given(party.entropy),
            sealing=party.sealing,
            policy=policy,
            rounding=party.rounding,
        )
        self.hedged, self.values = party.hedged, [party.kept] if party.kept else []
        self.rounding_key: bytes | None = None
        self.noise: list[int] = []

    def _forget(self, *names: str) -> None:
        pass

    def _rounding_key(self) -> bytes | None:
        self.rounding_key = super()._rounding_key()
        self.values += [self.rounding_key] if self.rounding_key else []
        return self.rounding_key

    def _noise(self) -> list[int]:
        self.noise = super()._noise()
        return self.noise

    def _hedged(self, *about: bytes) -> Source:
        source = super()._hedged(*about) if self.hedged else self._entropy

        def recorded(size: int) -> bytes:
            self.values.append(source(size))
            return self.values[-1]

        return recorded


class Round:
    """All that was sent: `sent[phase]` by clients, `answers[phase]` at the phase's closing."""

    def __init__(
        self,
        name: str,
        params: Parameters,
        parties: list[Party],
        graph_seed: bytes | None = None,
    ) -> None:
        self.name, self.params = name, params
        self.server_draws = [] if graph_seed is None else [graph_seed]
        self.parties = {party.u: party for party in sorted(parties, key=lambda p: p.u)}
        registry = None
        if params.active:
            registry = {p.u: identity_key(p.identity or b"") for p in parties}
        self.clients = {u: Remembering(p, params, registry) for u, p in self.parties.items()}
        self.sent: dict[str, dict[int, bytes]] = {}
        self.answers: dict[str, dict[int, bytes]] = {}
        self.u4: list[int] = []
        self.disputes: list[tuple[int, int]] = []
        closings = self._roster, self._shares, self._survivors, self._signers, self._sum
        asked = dict.fromkeys(self.parties, b"")
        for phase in self.phases():
            replies = {u: self._reply(u, phase, data) for u, data in asked.items()}
            self.sent[phase] = {
                u: data for u, data in replies.items() if self.parties[u].drop != phase
            }
            asked = closings[PHASES.index(phase)]([*self.sent[phase]])
            self.answers[phase] = asked

    def phases(self) -> list[str]:
        return [p for p in PHASES if self.params.active or p != "consistency_check"]

    def _reply(self, u: int, phase: str, data: bytes) -> bytes:
        party = self.parties[u]
        reply = self.clients[u].answer(data, party.vector, party.weight)
        if phase == "unmasking" and party.wrong_share:
            shares = get(reply, "shares")
            self.disputes.append((self.seen(u, self.u3)[0], u))
            return but(reply, shares=bytes([shares[0] ^ 1]) + shares[1:])
        return reply

    def message(self, side: str, phase: str, u: int) -> bytes:
        """The message of this phase that the server gets from u, or that u gets."""
        if side == "server":
            return self.sent[phase][u]
        return self.answers[self.phases()[self.phases().index(phase) - 1]][u]

    def seen(self, u: int, among: list[int]) -> list[int]:
        return [v for v in self.holders[u] if v in among]

    def entry(self, u: int) -> Entry:
        """The entry of u in a roster."""
        signature = get(self.sent["advertise_keys"][u], "signature")
        return *self.clients[u].own, signature

    def share(self, owner: int, holder: int) -> bytes:
        return b"".join(self.clients[holder]._shares[owner])

    def seal_key(self, sender: int, receiver: int) -> bytes:
        return self.clients[receiver]._opening[sender]

    def sealed(self, sender: int, receiver: int) -> bytes:
        others = [v for v in self.holders[sender] if v != sender]
        sealed = get(self.sent["share_keys"][sender], "sealed")
        return cut(sealed, 96)[others.index(receiver)]

    def signature(self, u: int, message: bytes) -> bytes:
        identity = self.parties[u].identity
        return sign(identity, message) if identity else b""

    def masked(self, u: int) -> list[int]:
        return self.params.unpack(get(self.sent["masked_input"][u], "values"))

    def _roster(self, u1: list[int]) -> dict[int, bytes]:
        self.u1, seed = u1, self.server_draws[0] if self.server_draws else None
        self.holders = neighbourhoods(self.params, u1, seed)
        entries = {u: self.entry(u) for u in u1}
        digest = roster_digest({u: (c, s) for u, (c, s, _) in entries.items()})
        self.session = session_id(self.params.digest(), digest)
        about = {"size": len(u1), "digest": digest}
        return {
            u: roster(self.params, {v: entries[v] for v in self.holders[u]}, **about)
            for u in u1
        }

    def _shares(self, u2: list[int]) -> dict[int, bytes]:
        self.u2 = u2
        senders = {u: [v for v in self.seen(u, u2) if v != u] for u in u2}
        return {
            u: encode(4, self.session, ids(of), b"".join(self.sealed(v, u) for v in of))
            for u, of in senders.items()
            if len(of) + 1 >= self.params.least
        }

    def _survivors(self, u3: list[int]) -> dict[int, bytes]:
        self.u3 = u3
        asked = [u for u in u3 if len(self.seen(u, u3)) >= self.params.least]
        if self.params.active:
            return {u: encode(8, self.session, ids(u3)) for u in asked}
        return {u: self._unmask_request(u) for u in asked}

    def _signers(self, u4: list[int]) -> dict[int, bytes]:
        self.u4 = u4
        return {u: self._unmask_request(u) for u in u4}

    def _named(self, u: int) -> tuple[list[int], list[int]]:
        """The survivors and the dropped clients that u is asked about."""
        dropped = [v for v in self.seen(u, self.u2) if v not in self.u3]
        return self.seen(u, self.u3), dropped

    def _unmask_request(self, u: int) -> bytes:
        signed = self.sent.get("consistency_check", {})
        signatures = b"".join(get(signed[v], "signature") for v in self.u4)
        return encode(6, self.session, *map(ids, self._named(u)), ids(self.u4), signatures)

    def _sum(self, answered: list[int]) -> dict[int, bytes]:
        p, shares = self.params, dict[int, dict[int, bytes]]()
        for u in answered:
            revealed = cut(get(self.sent["unmasking"][u], "shares"), 40)
            for v, share in zip(chain(*self._named(u)), revealed, strict=True):
                if (v, u) not in self.disputes:
                    shares.setdefault(v, {})[self.holders[v].index(u) + 1] = share
        added, less = [self.masked(u) for u in self.u3], []
        for v, of in shares.items():
            assert len(of) >= p.t, (self.name, v)
            if v in self.u3:
                less.append(p.mask(self_mask_key(self.session, v, rebuilt(of))))
                continue
            for u in self.seen(v, self.u3):
                pair = {w: self.clients[w].own for w in (u, v)}
                shared = agreement(rebuilt(of), pair[u][1]) or b""
                mask = p.mask(pairwise_key(self.session, shared, pair))
                (less if u < v else added).append(mask)
        x = []
        for u in self.u3:
            own, me = self.parties[u], self.clients[u]
            x += [p.elements(own.vector, own.weight, me.rounding_key), me.noise]
        self.total = p.add(*added, minus=less)
        assert self.total == p.add(*x), self.name
        self.integers = p.decode(self.total, len(self.u3))
        self.weight, self.clipped = p.counts(self.total, len(self.u3))
        self.values = self.clipped_vectors = None
        if p.rotation:
            self.values, self.clipped_vectors = p.rotation.decoded(self.integers)
        return {}


def roster(params: Parameters, entries: dict[int, Entry], **changes: int | bytes) -> bytes:
    """A Roster of these entries with their digest; `changes` are its only faults."""
    keys = {u: (c, s) for u, (c, s, _) in entries.items()}
    columns = [b"".join(column) for column in zip(*entries.values(), strict=True)]
    about = params.encode(), len(entries), roster_digest(keys), ids(entries)
    return but(encode(2, *about, *columns), **changes)


def graph_order(seed: bytes, among: list[int]) -> list[int]:
    return sorted(among, key=lambda u: sha256(b"secagg/2 graph", seed, u64le(u)))


def neighbourhoods(
    params: Parameters, u1: list[int], seed: bytes | None
) -> dict[int, list[int]]:
    """§5.11: the holders of each client, itself included, ascending."""
    if params.k is None or params.k >= len(u1) - 1:
        return {u: sorted(u1) for u in u1}
    assert seed is not None
    ring, half = graph_order(seed, u1), params.k // 2
    return {
        u: sorted(ring[(i + step) % len(ring)] for step in range(-half, half + 1))
        for i, u in enumerate(ring)
    }
