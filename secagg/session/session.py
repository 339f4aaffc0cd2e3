"""Session of a server: many rounds with the same members, over any transport.

Nodes of Flower call nobody: `secagg.flower.courier` carries the same attempts to nodes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg.errors import ParameterError
from secagg.journal.lock import errors_of
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.privacy import Budget, Loss
from secagg.protocol import ClientPolicy, CohortLedger, Registry, RoundParams
from secagg.protocol.client_ids import ClientKey, Names, called, identify
from secagg.server import RoundResult
from secagg.session.clock import Clock
from secagg.session.desk import Desk
from secagg.session.events import Hook, Hooks
from secagg.session.exchange import Thread, closed
from secagg.session.expenses import Expenses
from secagg.session.helpers import HelperLink
from secagg.session.presence import Attendance
from secagg.session.rounds import Deadlines
from secagg.session.runs import Runs
from secagg.session.series import Series
from secagg.session.store import Store


class Session:
    """Session of a server. The members call `next_task` and `accept`, over some transport.

    A session is an asynchronous context manager; else call `close` at the end. One round runs
    at a time.

    Parameters
    ----------
    members : collection of int or str
        Ids or names of the clients that may take part, such as a `Registry`.
    name : str
        Name of the session, in events and in the rounds' ``params.session``.
    folder : str or path, optional
        Folder of this session. After a kill, run the same program again: `round` returns the
        results of finished rounds, and goes on with the round under way. A reader of the folder
        learns all sums. None: nothing is stored.
    deadlines : Deadlines or float
        Seconds that each phase may take; a number is for every phase.
    attempts : int
        Most attempts at a round, 1 to 1000. Clients with a wrong message are left out.
    registry, ledger : optional
        See `Server`; the registry has the members, for rounds with ``security="active"``.
    policy : ClientPolicy, optional
        Policy of the members, for verdicts; see `Server`.
    budget : Budget, optional
        Privacy that all attempts at all rounds may spend; a round that would spend more raises
        `BudgetSpent`. The members do not rely on it, since the server keeps it: each has a
        ledger, see `take_part`.
    on_event : iterable of callables
        Functions of an event, called with every event.
    clock : Clock, optional
        Clock of all deadlines, for tests.

    Attributes
    ----------
    names : mapping of int to str
        Names of members by id: members that were given by name, and `Registry.names`.

    Raises
    ------
    ParameterError, JournalError
        An argument is invalid. Or the folder is of another session, is open in another process,
        was altered, or cannot be written.
    """

    def __init__(
        self,
        members: Collection[ClientKey],
        *,
        name: str = "session",
        folder: str | os.PathLike[str] | None = None,
        deadlines: Deadlines | float | None = None,
        attempts: int = 3,
        registry: Registry | None = None,
        ledger: CohortLedger | None = None,
        policy: ClientPolicy | None = None,
        budget: Budget | None = None,
        on_event: Iterable[Hook] = (),
        clock: Clock | None = None,
    ) -> None:
        check_kind("name", name, str, "a str")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ParameterError(f"name {name!r} is no valid text; take another name") from None
        check_integer("attempts", attempts, 1, 1000)
        self.name = name
        check_kind("ledger", ledger, (CohortLedger, type(None)), "a secagg.CohortLedger")
        check_kind("policy", policy, (ClientPolicy, type(None)), "a secagg.ClientPolicy")
        check_kind("budget", budget, (Budget, type(None)), "a secagg.privacy.Budget")
        waits = Deadlines() if deadlines is None else Deadlines.of(deadlines)
        given = Names()
        ids = given.keys(members)
        self.names: Mapping[int, str] = given.shown
        for one in (members, registry):
            if isinstance(one, Registry):  # which has ids as keys
                self.names |= one.names
        self._hooks, self._clock = Hooks(on_event, self.names), clock or Clock()
        self._thread = Thread()
        self._desk = Desk(name, ids, self._thread, self._hooks, self._clock)
        self._store = None if folder is None else Store(folder, name)
        self._expenses = Expenses(budget)
        convicted = set[int]()
        if self._store is not None:
            try:
                with errors_of(self._store.path):
                    self._desk.answers.read(self._store.answers)
                if self._store.under_way:
                    self._desk.hold()
                if ledger is not None:
                    self._store.load_ledger(ledger)
                self._expenses.keep_in(self._store)
                convicted |= self._store.convicted()
            except BaseException:
                self._store.close()  # or nothing can open the folder to mend it
                raise
        self._series = Series(
            name,
            int(attempts),
            self._desk,
            self._hooks,
            self._clock,
            self._store,
            self._expenses,
        )
        self._runs = Runs(
            series=self._series,
            deadlines=waits,
            registry=registry,
            ledger=ledger,
            policy=policy,
            convicted=convicted,
        )

    def called(self, client: int) -> str:
        """Return the name of a client, with control characters escaped, or the id."""
        return called(client, self.names)

    @property
    def members(self) -> frozenset[int]:
        """Ids of the clients that may take part."""
        return self._desk.members

    @property
    def budget(self) -> Budget | None:
        """Budget of all rounds together, or None."""
        return self._expenses.budget

    @property
    def spent(self) -> Loss:
        """Privacy that the attempts have spent: sums, and failed attempts of known survivors.

        A meter, for noise fixed in advance; see `RoundFinished.epsilon`.
        Without a budget, attempts without noise do not count.
        """
        return self._expenses.loss

    @property
    def convicted(self) -> frozenset[int]:
        """Ids of the clients that verdicts of this session name; later sums leave them out."""
        return frozenset(self._runs.convicted)

    def attendance(self) -> dict[int, Attendance]:
        """Return which members are present and since when, by ascending ids."""
        return {u: self._desk.presence.attendance(u) for u in sorted(self._desk.members)}

    def __repr__(self) -> str:
        members = f"{len(self._desk.members):,} members"
        return f"<Session {self.name!r}: {members}, {self._series.rounds:,} rounds>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def round(
        self,
        params: RoundParams,
        message: bytes = b"",
        *,
        cohort: int | Collection[ClientKey] | None = None,
        min_clients: int | None = None,
    ) -> RoundResult:
        """Run a round with a cohort of the members, and return the sum of their vectors.

        Parameters
        ----------
        params : RoundParams
            Parameters. The ``session`` of an attempt begins with the given ``session``, or with
            the session's name.
        message : bytes
            Message for `train` of the members, such as a model, not secret.
        cohort : int or collection of clients, optional
            Number of members to wait for, which are chosen at random from the present members,
            or the members to wait for. None: all members, at most ``params.n_clients``. At the
            deadline a round begins with the present members.
        min_clients : int, optional
            Smallest number of vectors in the sum, 2 to ``params.n_clients``. An attempt with
            fewer masked inputs fails before anything is unmasked. Such an attempt waits for so
            many members. None: ``params.min_survivors``.

        Raises
        ------
        ParameterError
            An argument is invalid, or the folder has another program for this round.
        BudgetSpent
            The session's budget has no room for an attempt. End the session.
        TooFewSurvivors, RemoteProtocolError
            All attempts have failed; the error of the last attempt.
        JournalError, LocalProtocolError
            The folder failed. Or another round is under way, or the session is closed.
        """
        if self.closed:
            raise closed()
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        return await self._runs.round(params, as_bytes(message), cohort, min_clients)

    async def one_shot(
        self,
        params: OneShotParams,
        helpers: Iterable[HelperLink],
        message: bytes = b"",
        *,
        endorsements: Iterable[bytes] = (),
        cohort: int | Collection[ClientKey] | None = None,
    ) -> OneShotResult:
        """Collect one report of each client of a cohort, and return the sum that helpers open.

        A member may leave after the report. If security is "semi-honest", any ℓ − t helpers may
        be missing or fail. If security is "active", any ℓ − q helpers may, and one may lie.

        Parameters
        ----------
        params : OneShotParams
            Parameters, new for each sum: a member reports once under the same parameters.
        helpers : iterable of HelperLink
            The helpers that can be reached.
        endorsements : iterable of bytes
            ``Helper.endorse()`` of all ℓ helpers, in order. Members ask for them.
        message, cohort
            As in `round`; ``params.session`` must name the message, see `bind`.

        Raises
        ------
        ParameterError, JournalError, LocalProtocolError
            As in `round`. Or the parameters do not name the message.
        BudgetSpent
            The session's budget has no room for the sum. End the session.
        TooFewSurvivors
            Fewer than ``params.min_clients`` reports came, or the ledger has a close cohort.
        RemoteProtocolError
            "helpers": too few helpers are left. "refused": too many refuse the list for good.
            Or as `Accumulator.result`.
        """
        if self.closed:
            raise closed()
        check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
        return await self._runs.one_shot(
            params, as_bytes(message), helpers, endorsements, cohort
        )

    async def next_task(
        self, client: ClientKey, after: bytes = b"", wait: float = math.inf
    ) -> bytes | None:
        """Return the task of a member, or None after `wait` seconds or if the session ended.

        A transport authenticates members, and calls again after None unless `closed`.

        Parameters
        ----------
        client : int or str
        after : bytes
            Id of the member's last task, which is not returned, or no bytes.
        wait : float
            Largest number of seconds to wait for a task, ≥ 0.

        Raises
        ------
        RemoteProtocolError
            "unknown client": the client is no member of the session.
        """
        return await self._desk.next_task(identify(client)[0], after, wait)

    async def accept(self, client: ClientKey, answer: bytes) -> None:
        """Validate and accept a member's answer to a task; the same bytes again are ignored.

        Acknowledge the answer when this call returns. The answer is then in the folder, if any.

        Raises
        ------
        RemoteProtocolError
            "late": the task is closed, or was never given. "unknown client": no member of the
            session or the cohort. "size", "version", "encoding": malformed. Or a check of
            `Server.receive`. But for "late" and "size", the client is left out of the attempt.
        JournalError, LocalProtocolError
            The server has ended.
        """
        await self._desk.accept(identify(client)[0], as_bytes(answer, "an answer"))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._desk.closed

    @property
    def answer_limit(self) -> int:
        """Largest answer that a member can give, in bytes; a transport reads no more."""
        return self._desk.answers.limit

    def skip_to(self, number: int) -> None:
        """Give the next round a number; rounds before it are not run, nor read from the folder.

        A server that runs for years, and has the results itself, goes on after the last result.

        Raises
        ------
        ParameterError
            The number is not an int, or is below the number of the next round.
        """
        check_integer("number", number, self._series.rounds, (1 << 32) - 1)
        self._series.rounds = int(number)

    def expect_all(self) -> None:
        """Let the next round wait for all members, also for members that the last sum lacks.

        A sum that begins long after the last sum expects all members again. In a training, each
        round would wait until the deadline for a member that has died.
        """
        self._desk.presence.expect_all()

    def watch(self, hook: Hook) -> None:
        """Call `hook` with every event from now on, like the functions of `on_event`."""
        self._hooks.add(hook)

    async def close(self) -> None:
        """End the session: `take_part` of all members returns."""
        self._desk.close()
        self._thread.close()
        if self._store is not None:
            self._store.close()
