"""Attempt at a round: one exchange for each phase of a `Server`, with a deadline for each.

`Exchanges` of a transport carry the tasks and the answers. With a folder, the server's log and
the ledger are on the disk before any answer goes out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from functools import partial

from secagg._check import check_seconds
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.protocol import NEXT, ClientPolicy, CohortLedger, Phase, Registry, RoundParams
from secagg.server import RoundResult, Server
from secagg.session.events import Place
from secagg.session.exchange import Exchange, Exchanges, fingerprint
from secagg.session.exclusion import at_fault, in_doubt
from secagg.session.grouped import GroupedJournal
from secagg.session.store import Store
from secagg.session.wire import AttemptName, Task, message_digest, task_id, write_name

_UP_TO_INPUTS = (Phase.ADVERTISE_KEYS, Phase.SHARE_KEYS, Phase.MASKED_INPUT)
"""Phases before the list of clients in the sum is fixed; fewer clients answer each of them."""


def fresh_params(
    params: RoundParams, name: str, run: bytes, place: Place, message: bytes
) -> RoundParams:
    """Return the parameters of a new attempt, with a new ``session``."""
    digest = message_digest(message)
    attempt = AttemptName(run, place.number, place.attempt, os.urandom(8), digest)
    return replace(params, session=write_name(params.session or name.encode(), attempt))


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Seconds after which a phase closes without the missing answers, each > 0.

    A phase closes earlier once all awaited clients have answered.

    Parameters
    ----------
    gather : float
        For the members to come, at every attempt. At the deadline a round begins with the
        present members, if they are enough. A round with a number as `cohort` begins as soon
        as so many members are present.
    keys, shares : float
        For fresh keys, and for the shares sealed under them.
    input : float
        For the vectors, training included.
    unmask : float
        For the signatures of an active round, for the shares that open the sum, and for each
        step of the helpers of a one-shot sum.
    reports : float
        For the reports of a one-shot sum, training included.

    Raises
    ------
    ParameterError
        A number is not positive.
    """

    gather: float = 60.0
    keys: float = 60.0
    shares: float = 60.0
    input: float = 600.0
    unmask: float = 60.0
    reports: float = 600.0

    def __post_init__(self) -> None:
        check_seconds(**{f"deadline {name}": value for name, value in vars(self).items()})

    @classmethod
    def of(cls, seconds: Deadlines | float) -> Deadlines:
        """Return deadlines; a number is the deadline of every phase."""
        if isinstance(seconds, Deadlines):
            return seconds
        return cls(**dict.fromkeys((one.name for one in fields(cls)), seconds))

    def in_phase(self, phase: Phase) -> float:
        """Return the deadline of a phase of a round."""
        return {
            Phase.ADVERTISE_KEYS: self.keys,
            Phase.SHARE_KEYS: self.shares,
            Phase.MASKED_INPUT: self.input,
        }.get(phase, self.unmask)


@dataclass(eq=False, kw_only=True)
class Attempt:
    """Attempt at a round.

    Attributes
    ----------
    place : Place
    params : RoundParams
        Parameters with the session of this attempt.
    message : bytes
        Message of the application to the members.
    cohort : collection of int
        Clients that were chosen. A transport that learns the clients in the first exchange
        passes ids of its own.
    registry, ledger, policy
        See `Server`.
    store : Store or None
        Folder for the journal and the ledger.
    graph_seed : bytes, optional
        32 bytes, the same in all rounds until an attempt fails, so that members keep most
        neighbours. None: the neighbours are chosen at random.
    min_clients : int
        Smallest number of vectors in the sum; the attempt fails before fewer are unmasked.
    spend : callable
        Function that counts the attempt's privacy, once the survivors are fixed.
    left_out : set of int
        Clients to leave out of a next attempt. A message of the client failed a check, or the
        client is `at_fault`.
    in_doubt : set of int
        Clients to leave out of a next attempt that has enough clients without them.
    absent : int
        Number of other clients of the cohort without an accepted input.
    """

    place: Place
    params: RoundParams
    message: bytes
    cohort: Collection[int]
    registry: Registry | None
    ledger: CohortLedger | None = None
    policy: ClientPolicy | None = None
    store: Store | None = None
    graph_seed: bytes | None = field(default=None, repr=False)
    min_clients: int = 0
    spend: Callable[[], object] = lambda: None
    left_out: set[int] = field(default_factory=set)
    in_doubt: set[int] = field(default_factory=set)
    absent: int = 0
    _log: GroupedJournal | None = None
    _accepted: dict[int, bytes] = field(default_factory=dict)
    _answered: set[int] = field(default_factory=set)
    _closed: int = 0

    async def run(self, desk: Exchanges, deadlines: Deadlines) -> RoundResult:
        """Run the phases that are left and return the result.

        Raises
        ------
        TooFewSurvivors, RemoteProtocolError
            The attempt has failed; see `Server.close_round`.
        JournalError
            The folder failed.
        """
        phases, server = NEXT[self.params.security], None
        try:
            server = await desk.thread.run(self._open)
            # clients repeat an answer if the process died before its acknowledgement
            desk.answers.update(self._accepted)
            while server.phase in phases:
                exchange = self._exchange(server)
                deadline = deadlines.in_phase(server.phase)
                try:
                    await desk.run(exchange, deadline, partial(self._close, server, exchange))
                finally:
                    self.left_out |= exchange.rejected
                    if exchange.phase == Phase.MASKED_INPUT:
                        gone = self.left_out | exchange.answered
                        self.absent = len(set(self.cohort) - gone)
            self._check_end(server, len(phases))
            return server.result()
        except (TooFewSurvivors, RemoteProtocolError) as error:
            if server is not None:
                # of all errors, also of those that the server does not raise
                error.verdicts = server.verdicts
            self.left_out |= at_fault(error, self.params)
            self.in_doubt = in_doubt(error, self.left_out)
            raise
        finally:
            if self._log is not None:
                self._log.close()

    def _check_end(self, server: Server, phases: int) -> None:
        """Raise the error of a round that had failed when the process was killed."""
        # the journal does not tell whether the sum was opened before it failed
        if server.phase is Phase.FAILED and self._closed == phases:
            raise RemoteProtocolError(
                "the attempt failed at its end and its process was killed; its sum may be "
                "known, so go on with a new round",
                sender=None,
                phase=Phase.UNMASKING,
                check="resume",
            )
        if server.phase is Phase.FAILED:
            raise TooFewSurvivors(
                "the attempt had failed when its process was killed; begin another one",
                phase="resume",
                survivors=0,
                needed=self.params.min_survivors,
            )

    def _open(self) -> Server:
        """Return the server, new or resumed; nothing goes out before the server is stored."""
        if self.store is None:
            return Server(
                self.params,
                registry=self.registry,
                policy=self.policy,
                ledger=self.ledger,
                graph_seed=self.graph_seed,
            )
        number, attempt = self.place.number, self.place.attempt
        log = self._log = GroupedJournal(self.store.journal(number, attempt, self.params))
        server = Server.resume(
            log,
            registry=self.registry,
            policy=self.policy,
            ledger=self.ledger,
            graph_seed=self.graph_seed,
        )
        self._store()
        # the last answer of each client, and who answered last
        phases = list(NEXT[self.params.security])
        for place, (client, data) in enumerate(log.entries()):
            if client is not None:
                self._accepted[client] = fingerprint(
                    task_id(self.params.digest, number, attempt, phases[self._closed]), data
                )
                self._answered.add(client)
            elif place:
                self._closed += 1
                self._answered.clear()
        return server

    def _close(self, server: Server, exchange: Exchange) -> None:
        # before the server closes the phase: a resumed attempt still waits for the others
        came, least, phase = len(exchange.answered), self.min_clients, server.phase
        if came < least and phase in _UP_TO_INPUTS:
            raise TooFewSurvivors(
                f"{came} clients answered, and min_clients asks for {least} in the sum; "
                "nothing has been unmasked: start more clients, or take longer Deadlines",
                phase=phase,
                survivors=came,
                needed=least,
            )
        try:
            server.close_round()
        except BaseException:
            self._store()
            raise
        # in the folder before the close: a resumed attempt would open the sum without the loss
        if phase is Phase.MASKED_INPUT:
            self.spend()
        self._store()  # before the answers go out
        self._answered.clear()

    def _store(self) -> None:
        """Write the journal's entries, and the ledger."""
        self._flush()
        if self.store is not None and self.ledger is not None:
            self.store.keep_ledger(self.ledger)

    def _flush(self) -> None:
        if self._log is not None:
            self._log.flush()

    def _exchange(self, server: Server) -> Exchange:
        """Return the exchange of the phase that the server is in."""
        phase, number, attempt = server.phase, self.place.number, self.place.attempt
        name = task_id(self.params.digest, number, attempt, phase)
        first = phase is Phase.ADVERTISE_KEYS
        data = dict.fromkeys(self.cohort, b"") if first else server.outbox
        about = self.params.to_bytes() if first else b""
        message = self.message if phase is Phase.MASKED_INPUT else b""
        return Exchange(
            place=self.place,
            phase=phase.value,
            id=name,
            clients=frozenset(data),
            task=lambda u: Task(name, number, attempt, phase.value, about, message, data[u]),
            receive=server.receive,
            store=self._flush,
            answered=self._answered & data.keys(),
        )
