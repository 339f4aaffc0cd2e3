"""Session of a server: many rounds with the same members, over any transport.

Its transports carry the calls of known members. Nodes of Flower make none, and are known by
their first reply only: `secagg.flower.courier` carries the same attempts and batches to them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from typing import Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.graph import SEED_BYTES
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.oneshot.policy import listed
from secagg.protocol import ClientPolicy, CohortLedger, Registry, RoundParams
from secagg.protocol.client_ids import ClientKey, Names, identify
from secagg.protocol.identities import check_registry
from secagg.server import RoundResult
from secagg.session.batch import Batch
from secagg.session.deadlines import Clock, Deadlines
from secagg.session.desk import Desk
from secagg.session.events import Hook, Hooks, Place
from secagg.session.helpers import HelperLink, Helpers, by_number
from secagg.session.presence import pool_of
from secagg.session.rounds import Attempt, fresh_params
from secagg.session.series import Series
from secagg.session.store import Begun, Store
from secagg.session.thread import Thread, closed
from secagg.session.wire import FRAME, answer_limit, check_bound


class Session:
    """Session of a server. Its members call `next_task` and `accept`, over some transport.

    Use it as an asynchronous context manager, or `close` it. One round runs at a time.

    Parameters
    ----------
    members : collection of int or str
        Ids or names of the clients that may take part, such as a `Registry`.
    name : str
        Name of the session, in events and in the rounds' ``params.session``.
    folder : str or path, optional
        Folder that is made for this session. If the process is killed, run the same program
        again: `round` returns the results of finished rounds at once, and goes on with the
        round under way. A reader of the folder learns all sums. None: nothing is stored.
    deadlines : Deadlines or float
        Seconds that a phase may take; one number for all phases.
    attempts : int
        Largest number of attempts at a round, 1 to 1000. A next one leaves out the clients
        whose messages failed a check.
    registry : Registry, optional
        Public identity keys of the members, for rounds with ``security="active"``.
    ledger : CohortLedger, optional
        Cohorts of earlier sums; see `Server`.
    on_event : iterable of callables
        Functions that are called with every event; see `secagg.session.events`.
    clock : Clock, optional
        Clock of all deadlines; replace it only in a test.

    Raises
    ------
    ParameterError
        An argument is invalid, or the folder is of another session.
    JournalError
        The folder is open in another process, was altered, or cannot be written.
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
        if ledger is not None:
            check_kind("ledger", ledger, CohortLedger, "a secagg.CohortLedger")
        self._deadlines = Deadlines() if deadlines is None else Deadlines.of(deadlines)
        self._registry, self._ledger = registry, ledger
        self._hooks, self._clock = Hooks(on_event), clock or Clock()
        self._graph_seed = os.urandom(SEED_BYTES)
        self._thread = Thread()
        ids = Names().keys(members)
        self._desk = Desk(name, ids, self._thread, self._hooks, self._clock)
        self._store = None if folder is None else Store(folder, name)
        if self._store is not None:
            self._desk.answers.read(self._store.answers)
            if self._store.under_way:
                self._desk.hold()
            if ledger is not None:
                self._store.load_ledger(ledger)
        self._series = Series(
            name, int(attempts), self._desk, self._hooks, self._clock, self._store
        )

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
    ) -> RoundResult:
        """Run a round with a cohort of the members, and return the sum of their vectors.

        Parameters
        ----------
        params : RoundParams
            Parameters, of which each attempt gets a ``session`` of its own. It begins with the
            given one, or with the session's name.
        message : bytes
            Message to the members of the cohort, such as a model. `take_part` passes it to
            `train`. It is not secret.
        cohort : int or collection of clients, optional
            Number of members to choose at random from those present, or the members to wait
            for. None: all that are present, at most ``params.n_clients``.

        Raises
        ------
        ParameterError
            An argument is invalid. Or the folder has this round with other parameters or
            another message.
        TooFewSurvivors, RemoteProtocolError
            All attempts have failed; the error of the last attempt.
        JournalError
            The folder failed.
        LocalProtocolError
            Another round is under way, or the session is closed.
        """
        if self.closed:
            raise closed()
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        message = as_bytes(message)
        registry = self._registry if params.active else None
        check_registry(params, registry)
        members, least = self._desk.members, params.min_survivors
        pool, size = pool_of(cohort, members, least, params.n_clients)
        if cohort is None:  # members with the default policy reject smaller cohorts
            least = ClientPolicy().smallest_cohort(params)
        left_out: set[int] = set()
        series = self._series

        async def run(place: Place, begun: Begun | None) -> RoundResult:
            if begun is None:
                ids = await self._choose(place, pool - left_out, size, least)
                fresh = fresh_params(params, self.name, series.id, place, message)
                await series.keep_attempt(place, fresh, ids, answer_limit(fresh))
            else:
                fresh = RoundParams.from_bytes(begun.params, params.encoding)
                ids = begun.cohort
            series.announce(place, params, len(ids), least, resumed=begun is not None)
            attempt = Attempt(
                place=place,
                params=fresh,
                message=message,
                cohort=ids,
                registry=registry,
                ledger=self._ledger,
                store=self._store,
                graph_seed=self._graph_seed,
            )
            try:
                return await attempt.run(self._desk, self._deadlines)
            except (TooFewSurvivors, RemoteProtocolError):
                self._graph_seed = os.urandom(SEED_BYTES)  # or it could fail in the same way
                raise
            finally:
                left_out.update(attempt.left_out)

        return await series.next(params, message, left_out, run)

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

        A member may leave after its report. If security is "semi-honest", any ℓ − t helpers may
        be missing or fail, and if it is "active", any ℓ − q, one of which may lie.

        Parameters
        ----------
        params : OneShotParams
            Parameters of a session of the helpers. A member reports once under them, so take
            new ones for each sum.
        helpers : iterable of HelperLink
            The helpers that can be reached.
        message : bytes
            Message to the members of the cohort, which `take_part` passes to `train`.
            ``params.session`` must name it; see `bind`.
        endorsements : iterable of bytes
            ``Helper.endorse()`` of all ℓ helpers, in order. Members ask for them.
        cohort : int or collection of clients, optional
            As in `round`.

        Raises
        ------
        ParameterError
            An argument is invalid, or the parameters do not name the message. Or the folder
            has this round with other parameters or another message.
        TooFewSurvivors
            Fewer reports than ``params.min_clients`` came in all attempts. Or the ledger has a
            cohort too close to that of the sum.
        RemoteProtocolError
            "helpers": too few helpers are left. Or as `Accumulator.result`.
        JournalError, LocalProtocolError
            As in `round`.
        """
        if self.closed:
            raise closed()
        check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
        message, links = as_bytes(message), by_number(helpers)
        registry = self._registry if params.active else None
        check_registry(params, registry)
        check_bound(params, message)
        members, least = self._desk.members, params.min_clients
        pool, size = pool_of(cohort, members, least, params.n_clients)
        series = self._series
        batch = Batch(
            number=series.rounds,
            params=params,
            message=message,
            endorsements=listed(endorsements),
            registry=registry,
            ledger=self._ledger,
            store=self._store,
            thread=self._thread,
        )

        async def run(place: Place, begun: Begun | None) -> OneShotResult:
            if not batch.opened:
                await self._thread.run(batch.open)
            ids = () if begun is None else begun.cohort
            if batch.needed and begun is None:
                absent = (pool - batch.left_out).difference(batch.accumulator.ids)
                ids = await self._choose(place, absent, size, batch.needed)
                await series.keep_attempt(place, params, ids, FRAME + params.layout.report)
            series.announce(place, params, len(ids), least, resumed=begun is not None)
            if ids and not batch.fixed:
                await batch.collect(place, ids, self._desk, self._deadlines.reports)
            reached = Helpers(links, len(params.helpers), place, self._hooks, self._clock)
            return await batch.finish(reached, self._deadlines.unmask)

        try:
            result = await series.next(params, message, batch.left_out, run)
        finally:
            batch.close()
        assert isinstance(result, OneShotResult), "as its parameters are"  # noqa: S101
        return result

    async def _choose(
        self, place: Place, pool: frozenset[int], size: int, least: int
    ) -> tuple[int, ...]:
        """Return a cohort of present members; see `Presence.choose`."""
        self._desk.release()
        seconds = self._deadlines.gather
        return await self._desk.presence.choose(place, pool, size, least, seconds)

    async def next_task(
        self, client: ClientKey, after: bytes = b"", wait: float = math.inf
    ) -> bytes | None:
        """Return the task of a member, or None after `wait` seconds or if the session ended.

        A transport calls it for a member that it has authenticated. If it returns None, the
        session has ended, or is not `closed` and the call should be repeated.

        Parameters
        ----------
        client : int or str
        after : bytes
            Id of the last task that the member has, or no bytes. That task is not returned.
        wait : float
            Largest number of seconds to wait for a task, ≥ 0.

        Raises
        ------
        RemoteProtocolError
            "unknown client": it is no member of the session.
        """
        return await self._desk.next_task(identify(client)[0], after, wait)

    async def accept(self, client: ClientKey, answer: bytes) -> None:
        """Validate and accept a member's answer to a task; the same bytes again are ignored.

        Acknowledge it when this call returns. It is then stored, if the session has a folder.

        Raises
        ------
        RemoteProtocolError
            "late": its task is closed, or was never given. "unknown client": it is no member of
            the session or the cohort. "size", "version" or "encoding": it is malformed. Or a
            check of `Server.receive`. The answer was not taken. Unless the check is "late" or
            "size", the client is left out of the attempt.
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

    def watch(self, hook: Hook) -> None:
        """Call `hook` with every event from now on, like the functions of `on_event`."""
        self._hooks.add(hook)

    async def close(self) -> None:
        """End the session: `take_part` of all members returns."""
        self._desk.close()
        self._thread.close()
        if self._store is not None:
            self._store.close()
