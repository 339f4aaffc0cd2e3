"""Batch: reports at the desk, whose single sum the helpers check, reserve and open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.oneshot import Accumulator, OneShotParams, OneShotResult, messages
from secagg.protocol import CohortLedger, Registry
from secagg.protocol.messages import pack_ids
from secagg.session.events import Place
from secagg.session.exchange import Calls, Exchange, Exchanges, fingerprint
from secagg.session.helpers import Helpers
from secagg.session.opening import Opening, believed
from secagg.session.reports import Reports
from secagg.session.store import Store
from secagg.session.wire import REPORT, Task, task_id


@dataclass(eq=False, kw_only=True)
class Batch:
    """Batch of reports to a single sum; attempts add reports until its list is fixed.

    Attributes
    ----------
    number : int
        Number of the round, and of the batch in the helpers' session.
    params : OneShotParams
    message : bytes
        Message of the application to the members.
    endorsements : sequence of bytes
        Signatures of all helpers over `params`, 64 bytes each.
    registry : Registry or None
    ledger : CohortLedger or None
        Cohorts of earlier sums.
    store : Store or None
        Folder for the reports.
    thread : Calls
        Thread of the accumulator.
    spend : callable
        Function that counts the privacy of the sum, once the list of clients is fixed.
    left_out : set of int
        Clients with a report that failed a check.
    fixed : bool
        True once the list of clients is fixed.
    opened : bool
        True after `open`.
    accumulator : Accumulator
        Accumulator of the reports, after `open`.
    """

    number: int
    params: OneShotParams
    message: bytes
    endorsements: Sequence[bytes]
    registry: Registry | None
    ledger: CohortLedger | None = None
    store: Store | None = None
    thread: Calls = field(default_factory=Calls)
    spend: Callable[[], object] = lambda: None
    left_out: set[int] = field(default_factory=set)
    fixed: bool = False
    opened: bool = False
    accumulator: Accumulator = field(init=False, repr=False)
    _reports: Reports | None = None
    _unstored: list[bytes] = field(default_factory=list)

    def open(self) -> None:
        """Read the reports of an earlier process; called once, in the session's thread."""
        added = Accumulator(self.params, registry=self.registry, batch=self.number)
        if self.store is not None:
            self._reports = self.store.reports(self.number)
            for report in self._reports.stored():
                added.add(report)
            listed = self._reports.fixed
            if listed is not None:
                # reports that a helper rejected before the list was fixed are in the file, too
                added.drop(set(added.ids) - set(listed))
                self.fixed = True
        self.accumulator, self.opened = added, True

    def close(self) -> None:
        """Release the file of the reports."""
        if self._reports is not None:
            self._reports.close()

    @property
    def needed(self) -> int:
        """Number of reports that a sum still lacks; 0 if the list is fixed."""
        if self.fixed:
            return 0
        return max(0, self.params.min_clients - len(self.accumulator))

    async def collect(
        self, place: Place, cohort: Collection[int], desk: Exchanges, seconds: float
    ) -> None:
        """Collect the reports of a cohort."""
        name = task_id(self.params.digest, place.number, place.attempt, REPORT)
        data, params = b"".join(self.endorsements), self.params.to_bytes()
        task = Task(name, place.number, place.attempt, REPORT, params, self.message, data)
        exchange = Exchange(
            place=place,
            phase=REPORT,
            id=name,
            clients=frozenset(cohort),
            task=lambda _: task,
            receive=self.receive,
            store=self._store,
            answered=set(self.accumulator.ids) & set(cohort),
        )
        # a client without an acknowledgement repeats the report, also after a restart
        stored = () if self._reports is None else self._reports.stored()
        known = await desk.thread.run(
            lambda: {messages.reporter(r): fingerprint(name, r) for r in stored}
        )
        desk.answers.update(known)
        try:
            await desk.run(exchange, seconds, lambda: None)
        finally:
            self.left_out |= exchange.rejected

    async def finish(self, helpers: Helpers, seconds: float) -> OneShotResult:
        """Let the helpers check the boxes and open the sum.

        Parameters
        ----------
        helpers : Helpers
        seconds : float
            Deadline of each step of the helpers.

        Raises
        ------
        TooFewSurvivors
            Too few reports came, or passed the helpers' checks. Or an earlier cohort in the
            ledger is too close.
        RemoteProtocolError
            "helpers": too few helpers are left. "refused": too many refuse the list for good.
            Or see `Accumulator.result`.
        """
        params, run = self.params, self.thread.run
        if self.needed:  # before the helpers work for nothing
            raise self._too_few(f"{len(self.accumulator)} clients reported")
        opening = Opening(self.accumulator, self.accumulator.boxes, self.thread)
        rejected = await opening.check(helpers, seconds)
        # a fixed list stays: helpers that reserved the list would reject another list
        if not self.fixed:
            dropped = self._dropped(helpers, rejected)
            await run(lambda: self.accumulator.drop(dropped))
            helpers.reject(dropped, params.layout.report)
        helpers.require(params.quorum or params.threshold, "check")
        await run(self._fix)
        reservations = await opening.reserve(helpers, seconds) if params.quorum else ()
        return await opening.open(reservations, helpers, seconds)

    def receive(self, client: int, report: bytes) -> None:
        """Add the report of a client, or raise RemoteProtocolError."""
        head = messages.read_report(report, self.params)
        if head.client_id != client:  # in a semi-honest sum nobody signs
            why = f"the report is of client {head.client_id}"
            raise RemoteProtocolError(why, sender=client, phase=REPORT, check="sender")
        if self.accumulator.add(report) and self._reports is not None:
            self._unstored.append(report)

    def _store(self) -> None:
        """Store the reports that were accepted since the last call."""
        if self._reports is not None and self._unstored:
            self._reports.extend(self._unstored)
            self._unstored.clear()

    def _dropped(self, helpers: Helpers, rejected: Mapping[int, set[int]]) -> set[int]:
        """Return the clients to drop; leave out helpers that would leave too few clients."""
        ids = set(self.accumulator.ids)
        known = {j: rejects & ids for j, rejects in rejected.items()}
        dropped, kept = believed(known, len(ids) - self.params.min_clients)
        if rejected and not kept:
            least = min(map(len, rejected.values()))
            raise self._too_few(f"every helper rejects {least} of {len(ids)} reports or more")
        helpers.fail_all(dict.fromkeys(rejected.keys() - kept, "rejects"), "check")
        return dropped

    def _fix(self) -> None:
        """Fix the list, and store list and ledger.

        TooFewSurvivors is raised if an earlier cohort of the ledger is too close to the list.
        """
        self.accumulator.request()
        clients = self.accumulator.ids
        if not self.fixed:
            self.spend()
        # on the disk first: after a crash the helpers must get the same list again
        if not self.fixed and self._reports is not None:
            self._reports.fix(clients)
        self.fixed = True
        if self.ledger is not None:
            self.ledger.page("").require(pack_ids(clients), REPORT)
            if self.store is not None:
                self.store.keep_ledger(self.ledger)

    def _too_few(self, what: str) -> TooFewSurvivors:
        least = self.params.min_clients
        return TooFewSurvivors(
            f"{what}, and a sum needs {least} of them; wait longer with "
            "Deadlines(reports=…), ask more clients, or take a smaller min_clients, which the "
            "helpers' policies accept",
            phase=REPORT,
            survivors=len(self.accumulator),
            needed=least,
        )
