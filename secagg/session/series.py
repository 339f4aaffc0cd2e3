"""Series of numbered rounds: the attempts at a round, and the outcomes in the session's folder.

With a folder, the same program run again gets the outcomes of finished rounds at once, and the
round under way goes on from the files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from secagg.errors import (
    BudgetSpent,
    LocalProtocolError,
    RemoteProtocolError,
    TooFewSurvivors,
    Verdict,
)
from secagg.journal.lock import errors_of
from secagg.oneshot import OneShotParams
from secagg.protocol import Phase
from secagg.server import RoundResult
from secagg.session import outcomes
from secagg.session.clock import Clock
from secagg.session.desk import Desk
from secagg.session.events import (
    ClientConvicted,
    Hooks,
    Place,
    RoundBegun,
    RoundFailed,
    RoundFinished,
)
from secagg.session.expenses import Expenses
from secagg.session.outcomes import Params
from secagg.session.store import Begun, Store

Run = Callable[[Place, Begun | None], Awaitable[RoundResult]]
"""Function that runs an attempt, or goes on with an attempt that an earlier process began."""


@dataclass(eq=False)
class Series:
    """Rounds of a session.

    Attributes
    ----------
    name : str
    attempts : int
        Largest number of attempts at a round in one run of the program.
    store : Store or None
        The session's folder.
    expenses : Expenses
        Privacy that the attempts have spent, for the events.
    rounds : int
        Number of rounds so far.
    proofs : tuple of Verdict
        Verdicts of the attempts at this round so far, those of an earlier process included.
    """

    name: str
    attempts: int
    desk: Desk
    hooks: Hooks
    clock: Clock
    store: Store | None
    expenses: Expenses
    rounds: int = 0
    proofs: tuple[Verdict, ...] = ()
    id: bytes = field(init=False)
    _busy: bool = False

    def __post_init__(self) -> None:
        self.id = os.urandom(8) if self.store is None else self.store.run

    async def next(
        self, params: Params, wanted: bytes, left_out: Set[int], run: Run
    ) -> RoundResult:
        """Run the next round, in as many attempts as needed, and return the result.

        Parameters
        ----------
        params : RoundParams or OneShotParams
            Parameters as the application gave them.
        wanted : bytes
            `program` of the round.
        left_out : set of int
            Clients that `run` leaves out, for the events.
        run : callable

        Raises
        ------
        TooFewSurvivors, RemoteProtocolError
            The last attempt failed, now or in an earlier process.
        ParameterError, JournalError
            The folder has another round of this number, or the folder failed.
        LocalProtocolError
            Another round is under way.
        """
        if self._busy:
            raise LocalProtocolError("another round is under way; await the rounds one by one")
        self._busy, number, self.proofs = True, self.rounds, ()
        try:
            begun = None
            if self.store is not None:
                found, begun = await self._begin(self.store, number, wanted, params)
                if found is not None:
                    return found
            return await self._attempt(number, params, left_out, run, begun)
        finally:
            # also after an error: the next call is another round of the program
            self.rounds += 1
            self._busy = False

    async def keep_attempt(
        self, place: Place, params: Params, cohort: tuple[int, ...], largest: int
    ) -> None:
        """Store an attempt in the folder, if there is a folder, before any task goes out.

        The answers of the attempt have at most `largest` bytes.
        """
        store, answers = self.store, self.desk.answers
        answers.limit = max(answers.limit, largest)  # the last round's may come again
        if store is not None:
            begun = Begun(place.attempt, params.to_bytes(), cohort)
            known = answers.to_bytes()
            await self.desk.thread.run(lambda: store.keep_attempt(place.number, begun, known))

    def announce(
        self,
        place: Place,
        params: Params,
        cohort: tuple[int, ...],
        needed: int,
        *,
        resumed: bool,
    ) -> None:
        """Tell the hooks that an attempt begins with some clients."""
        self.hooks(
            RoundBegun(
                place=place,
                kind="one-shot" if isinstance(params, OneShotParams) else "round",
                cohort=len(cohort),
                needed=needed,
                length=params.length,
                resumed=resumed,
                clients=cohort,
                suite=params.suite,
            )
        )

    async def _begin(
        self, store: Store, number: int, wanted: bytes, params: Params
    ) -> tuple[RoundResult | None, Begun | None]:
        """Return the stored result of a round, and the attempt that was under way."""
        run = self.desk.thread.run
        data, begun = await run(lambda: store.begin(number, wanted))
        if begun is not None:
            # an attempt under way ends again, with its verdicts
            ended = begun.ended
            self.proofs = await run(lambda: store.verdicts(number, 0, ended))
        if data is None:
            return None, begun
        with errors_of(store.path):
            outcome = outcomes.read(data, params)
        last = await run(lambda: store.is_last(number))
        if isinstance(outcome, RoundResult):
            if self.proofs:
                outcome = replace(outcome, verdicts=self.proofs)
            # the process may have been killed between the outcome and this
            if last:
                await run(store.delete_files)
            place = Place(self.name, number, begun.attempt if begun else 0)
            self._finished(place, outcome, 0.0, stored=True)
            self._convict(place, outcome.verdicts)
            return outcome, begun
        # the program went on after this error, so the program must meet the error again
        outcome.verdicts = self.proofs
        if _opened(outcome) or not last:
            raise outcome
        return None, begun

    async def _attempt(
        self, number: int, params: Params, left_out: Set[int], run: Run, begun: Begun | None
    ) -> RoundResult:
        # a member takes part in an attempt once, so a failed attempt keeps its number
        first = 0 if begun is None else begun.ended
        attempt = first
        self.desk.declined.clear()
        while True:
            place, began = Place(self.name, number, attempt), self.clock.now()
            resumed = begun if begun is not None and begun.attempt == attempt else None
            attempt += 1
            try:
                result = await run(place, resumed)
            except BudgetSpent as spent:
                spent.verdicts = self.proofs
                raise
            except (TooFewSurvivors, RemoteProtocolError) as failure:
                # a member that was late for an attempt may come to the next attempt
                self.desk.presence.expect_all()
                error = _explained(failure, self.desk.declined)
                found = await self._prove(place, error.verdicts)
                final = attempt == first + self.attempts or _opened(error)
                self.hooks(
                    RoundFailed(
                        place=place,
                        error=type(error).__name__,
                        phase=error.phase,
                        check=getattr(error, "check", ""),
                        left_out=tuple(sorted(left_out)),
                        declined=len(self.desk.declined),
                        final=final,
                        survivors=getattr(error, "survivors", 0),
                        needed=getattr(error, "needed", 0),
                        epsilon=self.expenses.epsilon,
                        convicted=_named(found),
                    )
                )
                self._convict(place, found)
                error.verdicts = self.proofs
                if not final:
                    continue
                await self._keep(number, outcomes.write_error(error))
                raise error from failure.__cause__
            found = await self._prove(place, result.verdicts)
            if self.proofs:
                result = replace(result, verdicts=self.proofs)
            await self._keep(number, outcomes.write_result(result, params))
            if self.store is not None:
                await self.desk.thread.run(self.store.delete_files)
            self._finished(place, result, self.clock.now() - began)
            self._convict(place, found)
            return result

    async def _prove(self, place: Place, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Keep the verdicts of an attempt that has ended, and return all of the attempt."""
        store = self.store
        if store is not None:
            verdicts = await self.desk.thread.run(
                lambda: store.keep_verdicts(place.number, place.attempt, verdicts)
            )
        self.proofs += verdicts
        return verdicts

    async def _keep(self, number: int, outcome: bytes) -> None:
        store, known = self.store, self.desk.answers.to_bytes()
        if store is not None:
            await self.desk.thread.run(lambda: store.keep_outcome(number, outcome, known))

    def _finished(
        self, place: Place, result: RoundResult, seconds: float, *, stored: bool = False
    ) -> None:
        self.hooks(
            RoundFinished(
                place=place,
                seconds=seconds,
                survivors=len(result.survivors),
                disputes=len(result.disputes),
                stored=stored,
                clients=result.survivors,
                epsilon=self.expenses.epsilon,
                convicted=_named(result.verdicts),
            )
        )

    def _convict(self, place: Place, verdicts: Iterable[Verdict]) -> None:
        """Tell the hooks of an attempt's verdicts."""
        for one in verdicts:
            self.hooks(ClientConvicted(place=place, client=one.client, kind=one.kind))


def _named(verdicts: Iterable[Verdict]) -> tuple[int, ...]:
    """Return the clients that verdicts name, ascending."""
    return tuple(sorted({verdict.client for verdict in verdicts}))


def _explained(
    error: TooFewSurvivors | RemoteProtocolError, declined: Mapping[int, str]
) -> TooFewSurvivors | RemoteProtocolError:
    """Return the error of an attempt, with the number of members that declined the round."""
    if not declined or not isinstance(error, TooFewSurvivors):
        return error
    phases = ", ".join(f"{n:,} in {phase}" for phase, n in Counter(declined.values()).items())
    return TooFewSurvivors(
        f"members declined ({phases}, for reasons in their own logs), and "
        f"{outcomes.reason(error)}",
        phase=error.phase,
        survivors=error.survivors,
        needed=error.needed,
        verdicts=error.verdicts,
        disputes=error.disputes,
    )


def _opened(error: TooFewSurvivors | RemoteProtocolError) -> bool:
    """Return whether the server knows the sum of a failed attempt, or could.

    The next attempt has the same vectors. Over other survivors, the difference of the two sums
    could be a single vector.
    """
    checks = ("sum", "weight", "clipped", "resume")
    wrong = isinstance(error, RemoteProtocolError) and error.check in checks
    return wrong and error.phase == Phase.UNMASKING
