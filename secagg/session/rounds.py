"""Attempt at a round of the four-exchange protocol: a `Server` behind the desk."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from secagg.errors import RemoteProtocolError
from secagg.protocol import NEXT, Phase
from secagg.server import RoundResult, Server
from secagg.session.deadlines import Deadlines
from secagg.session.desk import Desk, Exchange
from secagg.session.events import Place
from secagg.session.wire import Task, answer_limit, task_id

__all__ = ["Attempt"]


@dataclass(eq=False, kw_only=True)
class Attempt:
    """Attempt at a round.

    Attributes
    ----------
    place : Place
    server : Server
        New server, or one that was resumed from its journal.
    message : bytes
        Message of the application to the members.
    cohort : collection of int
        Clients that were chosen.
    answered : set of int
        Clients whose answer of the present phase is known already, after a restart.
    stored : callable
        Function that is called after each close and before its answers go out.
    left_out : set of int
        Clients to leave out of a next attempt: a message of them failed a check, or shares
        that they dealt do not give their secret.
    """

    place: Place
    server: Server
    message: bytes
    cohort: Collection[int]
    answered: set[int] = field(default_factory=set)
    stored: Callable[[], None] = lambda: None
    left_out: set[int] = field(default_factory=set)

    async def run(self, desk: Desk, deadlines: Deadlines) -> RoundResult:
        """Run the phases that are left and return the result.

        Raises
        ------
        TooFewSurvivors, RemoteProtocolError
            The attempt has failed; see `Server.close_round`.
        JournalError
            The journal failed.
        """
        params = self.server.params
        phases = NEXT[params.security]
        desk.answer_limit = max(answer_limit(params, phase) for phase in phases)
        try:
            while self.server.phase in phases:
                exchange = self._exchange()
                try:
                    deadline = deadlines.in_phase(self.server.phase)
                    await desk.run(exchange, deadline, self._close)
                finally:
                    self.left_out |= exchange.rejected
                self.answered = set()
        except RemoteProtocolError as error:
            self.left_out |= {dispute.dealer for dispute in error.disputes}
            raise
        return self.server.result()

    def _close(self) -> None:
        self.server.close_round()
        self.stored()

    def _exchange(self) -> Exchange:
        """Return the exchange of the phase that the server is in."""
        server, params, phase = self.server, self.server.params, self.server.phase
        first = phase is Phase.ADVERTISE_KEYS
        data = dict.fromkeys(self.cohort, b"") if first else server.outbox
        number, attempt = self.place.number, self.place.attempt
        name = task_id(params.digest, number, attempt, phase)
        about = params.to_bytes() if first else b""
        message = self.message if phase is Phase.MASKED_INPUT else b""
        return Exchange(
            place=self.place,
            phase=phase.value,
            id=name,
            clients=frozenset(data),
            task=lambda u: Task(name, number, attempt, phase.value, about, message, data[u]),
            receive=server.receive,
            answered=self.answered & data.keys(),
        )
