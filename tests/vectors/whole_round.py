"""A whole round of docs/protocol.md §8: independent clients, and a server that answers them.

The server rejects no message, since no client sends one to reject. `recovery` has its closings
of the last phases.
"""

from kinds import but, get
from parties import PHASES, Party
from recovery import Ended, Recovery

import independent_dealing as dealing
import independent_mlkem as mlkem
import independent_pairs as pairs
from independent_dealing import Opening
from independent_keys import roster_digest, session_id
from independent_messages import encode
from independent_params import Parameters
from independent_primitives import cut, identity_key, ids, sha256, sign, split, u32le, u64le

Entry = tuple[bytes, bytes, bytes, bytes]  # the keys of sealing, masking and KEM, signature


class Round:
    """All that was sent: `sent[phase]` by clients, `answers[phase]` at the phase's closing.

    `error` is how the round ended without a sum, else None.
    """

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
        self.registry: dict[int, bytes] | None = None
        if params.active:
            self.registry = {p.u: identity_key(p.identity or b"") for p in parties}
        self.clients = {u: p.client(params, self.registry) for u, p in self.parties.items()}
        self.sent: dict[str, dict[int, bytes]] = {}
        self.answers: dict[str, dict[int, bytes]] = {}
        self.u4: list[int] = []
        self.error: Ended | None = None
        self.recovery = Recovery(self)
        closings = self._roster, self._shares, self._survivors, self._signers, self._sum
        asked = dict.fromkeys(self.parties, b"")
        for phase in self.phases():
            replies = {u: self._reply(u, data) for u, data in asked.items()}
            self.sent[phase] = {
                u: data for u, data in replies.items() if self.parties[u].drop != phase
            }
            self.answers[phase] = {}
            try:
                asked = closings[PHASES.index(phase)]([*self.sent[phase]])
            except Ended as error:
                self.error = error
                return
            self.answers[phase] = asked

    def phases(self) -> list[str]:
        """The phases, of a round that ended early those that it came to."""
        all_ = [p for p in PHASES if self.params.active or p != "consistency_check"]
        return all_ if self.error is None else [p for p in all_ if p in self.sent]

    def _reply(self, u: int, data: bytes) -> bytes:
        party = self.parties[u]
        return self.clients[u].answer(data, party.vector, party.weight)

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

    def openings(self, v: int) -> dict[int, Opening]:
        """Return the openings of dealer v's leaves, by holder."""
        sent, others = self.sent["share_keys"][v], [w for w in self.holders[v] if w != v]
        boxes = dict(zip(others, cut(get(sent, "sealed"), self.params.box), strict=True))
        checks = dict(zip(others, cut(get(sent, "checks"), 32), strict=False))
        hashes = cut(get(sent, "hashes"), 64)
        return {
            w: Opening(x, of, checks.get(w, bytes(32)), sha256(boxes.get(w, b"")))
            for x, (w, of) in enumerate(zip(self.holders[v], hashes, strict=True), 1)
        }

    def leaves(self, v: int) -> list[bytes]:
        return [of.leaf(self.session, v, w) for w, of in self.openings(v).items()]

    def sealed(self, sender: int, receiver: int) -> bytes:
        others = [v for v in self.holders[sender] if v != sender]
        sealed = get(self.sent["share_keys"][sender], "sealed")
        return cut(sealed, self.params.box)[others.index(receiver)]

    def checked(self, sender: int, receiver: int) -> bytes:
        others = [v for v in self.holders[sender] if v != sender]
        checks = cut(get(self.sent["share_keys"][sender], "checks"), 32)
        return checks[others.index(receiver)] if checks else b""

    def box_key(self, u: int, v: int) -> bytes:
        """The key of the box from u to v."""
        me, secret = self.clients[v], b""
        ct, _ = split(self.sealed(u, v), self.params.box - 96 - 64 * self.params.hybrid)
        if ct:
            secret = mlkem.decapsulate(me._kem, ct)
        return pairs.box_key(self.session, me._bases[u], secret, u, v, ct)

    def content(self, u: int, v: int) -> bytes:
        """Return the content of the box from u to v."""
        sealed = self.sealed(u, v)[-96 - 64 * self.params.hybrid :]
        return pairs.unseal(self.box_key(u, v), sealed, self.session, u, v) or b""

    def signature(self, u: int, message: bytes) -> bytes:
        identity = self.parties[u].identity
        return sign(identity, message) if identity else b""

    def masked(self, u: int) -> list[int]:
        return self.params.unpack(get(self.sent["masked_input"][u], "values"))

    def _roster(self, u1: list[int]) -> dict[int, bytes]:
        self.u1, seed = u1, self.server_draws[0] if self.server_draws else None
        self.holders = neighbourhoods(self.params, u1, seed)
        entries = {u: self.entry(u) for u in u1}
        digest = roster_digest({u: entry[:3] for u, entry in entries.items()})
        self.roster_digest = digest
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
            u: encode(4, self.session, ids(of), *self._columns(u, of))
            for u, of in senders.items()
            if len(of) + 1 >= self.params.least
        }

    def _columns(self, u: int, of: list[int]) -> list[bytes]:
        """The fields of Shares to u after the senders."""
        columns = [b"".join(self.sealed(v, u) for v in of)]
        columns.append(b"".join(self.checked(v, u) for v in of))
        if not self.params.active:
            return columns + [b""] * 5
        sent = [self.sent["share_keys"][v] for v in of]
        openings = [self.openings(v)[u] for v in of]
        place = self.holders[u].index(u)
        return [
            *columns,
            b"".join(get(data, "commitment") for data in sent),
            b"".join(get(data, "dealt") for data in sent),
            b"".join(u32le(opening.x) for opening in openings),
            b"".join(opening.hashes for opening in openings),
            b"".join(dealing.path(self.leaves(v), place) for v in of),
        ]

    def _survivors(self, u3: list[int]) -> dict[int, bytes]:
        self.u3 = u3
        self.recovery.judge_complaints()
        asked = [u for u in u3 if len(self.seen(u, u3)) >= self.params.least]
        if self.params.active:
            return {u: encode(8, self.session, ids(u3)) for u in asked}
        return {u: self._unmask_request(u) for u in asked}

    def _signers(self, u4: list[int]) -> dict[int, bytes]:
        self.u4 = u4
        return {u: self._unmask_request(u) for u in u4}

    def named(self, u: int) -> tuple[list[int], list[int]]:
        """The survivors and the dropped clients that u is asked about."""
        dropped = [v for v in self.seen(u, self.u2) if v not in self.u3]
        return self.seen(u, self.u3), dropped

    def _unmask_request(self, u: int) -> bytes:
        signed = self.sent.get("consistency_check", {})
        signatures = b"".join(get(signed[v], "signature") for v in self.u4)
        return encode(6, self.session, *map(ids, self.named(u)), ids(self.u4), signatures)

    def _sum(self, answered: list[int]) -> dict[int, bytes]:
        """The sum from the messages, which is that of the inputs."""
        p, x = self.params, []
        for u in self.u3:
            own, me = self.parties[u], self.clients[u]
            x += [p.elements(own.vector, own.weight, me.rounding_key), me.noise]
        self.total = self.recovery.total(answered)
        assert self.total == p.add(*x), self.name
        self.integers = p.decode(self.total, len(self.u3))
        self.weight, self.clipped = p.counts(self.total, len(self.u3))
        self.values = self.clipped_vectors = None
        if p.rotation:
            self.values, self.clipped_vectors = p.rotation.decoded(self.integers)
        return {}


def roster(params: Parameters, entries: dict[int, Entry], **changes: int | bytes) -> bytes:
    """A Roster of these entries with their digest; `changes` are its only faults."""
    keys = {u: entry[:3] for u, entry in entries.items()}
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
