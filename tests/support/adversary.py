"""Server that lies to honest clients, and its conclusions from their answers.

The attacks are in test_adversary.py. Every client's answer is kept; at the end
``learned`` says whose inputs' sum follows from all that was emitted and from what colluding
clients hold. It goes by counting: with t shares a secret is known, and an input follows once
every mask on it is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from harness import Cohort, make_params, pieces, read
from secagg import LocalProtocolError, RemoteProtocolError, TooFewSurvivors
from secagg.client.states import Entrusted
from secagg.protocol.messages import (
    SHARE_BYTES,
    Shares,
    UnmaskRequest,
    UnmaskShares,
    unpack_ids,
)

Lie = Callable[[int, bytes], bytes]


def truth(_: int, data: bytes) -> bytes:
    """Messages of an honest server."""
    return data


class LyingServer:
    """It runs an honest server beside itself, and alters what each client is sent.

    Parameters
    ----------
    security : "semi-honest" or "active"
    colluders : ids
        Clients that follow the protocol and share all their secrets with it.
    changes
        Changes to the parameters of seven clients with the least threshold.

    Attributes
    ----------
    rejections : dict of id to error
        The error of each client that rejected a message.
    """

    def __init__(
        self, security: str, colluders: Iterable[int] = (), seed: object = 0, **changes: object
    ) -> None:
        params = make_params(**({"n": 7} | changes), security=security)
        self.cohort = Cohort(params, seed=seed)
        self.colluders = set(colluders)
        self.rejections: dict[int, RemoteProtocolError | LocalProtocolError] = {}
        self._shares: dict[tuple[str, int], set[int]] = defaultdict(set)
        self._masks: dict[int, set[tuple[bytes, int]]] = {}

    def play(self, until: str, lies: Mapping[str, Lie] | None = None) -> dict[int, bytes]:
        """Run the phases before `until`, with the lies; return the next messages.

        A client that rejects a message takes no further part.
        """
        phases = self.cohort.phases()
        while phases[len(self.cohort.sent)] != until:
            phase = phases[len(self.cohort.sent)]
            sent = self.send(phase, (lies or {}).get(phase, truth))
            self.cohort.sent.append(sent)
            for u, data in sent.items():
                try:
                    self.cohort.server.receive(u, data)
                except RemoteProtocolError:
                    continue
            try:
                self.cohort.inbox = self.cohort.server.close_round()
            except TooFewSurvivors:
                return {}
        return self.cohort.inbox

    def send(
        self, phase: str, lie: Lie = truth, whom: Iterable[int] | None = None
    ) -> dict[int, bytes]:
        """Give clients what is in their inbox, altered; return what they answer."""
        answers = {}
        for u in sorted(self.cohort.inbox if whom is None else whom):
            answer = self.ask(u, phase, lie(u, self.cohort.inbox[u]))
            if answer is not None:
                answers[u] = answer
        return answers

    def ask(self, u: int, phase: str, data: bytes) -> bytes | None:
        """Send one client a message; record its answer's consequences or its error."""
        try:
            answer = self.cohort.answer(u, data)
        except (RemoteProtocolError, LocalProtocolError) as error:
            self.rejections.setdefault(u, error)
            return None
        self._study(u, phase, data, answer)
        return answer

    def checks(self) -> dict[int, str]:
        """Return the failed check of each client."""
        return {u: getattr(error, "check", "local") for u, error in self.rejections.items()}

    def known(self) -> set[tuple[str, int]]:
        """Return the secrets, b or s of a client, of which the server has t shares."""
        t = self.cohort.params.threshold
        return {secret for secret, holders in self._shares.items() if len(holders) >= t}

    def learned(self) -> list[set[int]]:
        """Return the sets of honest clients whose inputs' sum is known.

        Honest clients are joined by every mask that the server does not know. A group's sum
        follows exactly if each one's own mask is known and each unknown mask is in it twice,
        with either sign.
        """
        known = self.known()
        unknown = {
            u: {
                (session, v)
                for session, v in made
                if v not in self.colluders and known.isdisjoint({("s", u), ("s", v)})
            }
            for u, made in self._masks.items()
            if u not in self.colluders
        }
        groups: list[set[int]] = []
        for u, masks in unknown.items():
            group = {u} | {v for _, v in masks}
            apart = [other for other in groups if group.isdisjoint(other)]
            groups = [*apart, group.union(*(g for g in groups if g not in apart))]
        return sorted(
            (
                group
                for group in groups
                if all(("b", u) in known for u in group)
                and all(
                    (session, u) in unknown.get(v, ())
                    for u in group
                    for session, v in unknown.get(u, ())
                )
                and group <= unknown.keys()
            ),
            key=min,
        )

    def _study(self, u: int, phase: str, asked: bytes, answer: bytes) -> None:
        if phase == "masked_input":
            shares = read(asked, Shares)
            self._masks[u] = {(shares.session, v) for v in unpack_ids(shares.senders)}
            state = self.cohort.clients[u]._state
            assert isinstance(state, Entrusted)
            if u in self.colluders:
                self._keep(u, state.self_shares, state.mask_shares)
        elif phase == "unmasking":
            request = read(asked, UnmaskRequest)
            survivors, dropped = unpack_ids(request.survivors), unpack_ids(request.dropped)
            shares = pieces(read(answer, UnmaskShares).shares, SHARE_BYTES)
            assert len(shares) == len(survivors) + len(dropped)
            self._keep(u, survivors, dropped)

    def _keep(self, holder: int, of_b: Iterable[int], of_s: Iterable[int]) -> None:
        for v in of_b:
            self._shares["b", v].add(holder)
        for v in of_s:
            self._shares["s", v].add(holder)
