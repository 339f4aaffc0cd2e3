"""Aggregator for one-shot sums, which adds unreadable reports and subtracts their masks.

Anybody may run several accumulators and merge them. Accumulators need no trust for privacy, and
full trust for the sum. Route reports by id: two accumulators that took the same id cannot be
merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg._records import Ids, Records
from secagg.encoding import Lanes
from secagg.errors import LocalProtocolError, ParameterError, TooFewSurvivors
from secagg.oneshot import messages, replies, stored
from secagg.oneshot.layout import DIGEST_BYTES
from secagg.oneshot.messages import Request, violation
from secagg.oneshot.params import OneShotParams
from secagg.oneshot.result import OneShotResult, add_answer, decode, unmask
from secagg.protocol import Registry
from secagg.protocol.identities import check_registry


class Accumulator:
    """Sum of the reports of a batch, under masks that the helpers know.

    `add` the reports and send the chunks of `boxes` to each helper. `drop` the ids that a
    helper rejects, `request` the opening and pass the helpers' answers to `result`.

    Store `to_bytes` after the first `request` and **before** sending the request. If security
    is "semi-honest", a retry with fewer clients would expose a single vector.

    Parameters
    ----------
    params : OneShotParams
    registry : Registry, optional
        Public keys of all clients; required if security is "active", else not allowed.
    batch : int
        Number of the batch in the session, 0 ≤ batch < 2^64. Batches have no clients in common.

    Raises
    ------
    ParameterError
        An argument is invalid.
    """

    def __init__(
        self, params: OneShotParams, *, registry: Registry | None = None, batch: int = 0
    ) -> None:
        check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
        check_registry(params, registry)
        check_integer("batch", batch, 0, (1 << 64) - 1)
        self.params = params
        self.batch = int(batch)
        self._registry = registry
        self._total: Lanes = params.ring.zeros(params.elements)
        self._digests = Records(DIGEST_BYTES)  # of the head of every report in the sum
        self._reports: dict[int, bytes] = {}  # reports that can still be dropped
        self._list: tuple[Ids, bytes] | None = None  # the fixed list, and the list's D

    def __len__(self) -> int:
        return len(self._digests)

    def __repr__(self) -> str:
        return f"<Accumulator: batch {self.batch}, {len(self):,} reports>"

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the reports in the sum, ascending."""
        return tuple(self._digests)

    def add(self, report: bytes) -> bool:
        """Add a client's report; return False, and change nothing, for a repeated report.

        Raises
        ------
        RemoteProtocolError
            "length", "version", "encoding", "parameters", "id", "signature", "range", "count":
            `report` is not a report under these parameters, another report of the client is in
            the sum, or the batch has n reports. Nothing was added.
        LocalProtocolError
            The list is fixed.
        """
        self._check_open()
        report = as_bytes(report, "a report")
        head = messages.read_report(report, self.params)
        # before the signature: a report that a client sends again costs no verification
        known = self._digests.get(head.client_id)
        if known is not None:
            if known == head.digest:
                return False
            why = "another report of this client is in the sum; drop that one first"
            raise violation("report", "id", why, sender=head.client_id)
        if len(self) >= self.params.n_clients:
            why = f"the batch has {len(self)} reports, n_clients; begin another batch"
            raise violation("report", "count", why, sender=head.client_id)
        messages.check_reporter(head, report, self.params, self._registry)
        values = messages.report_values(head.client_id, report, self.params)
        self.params.ring.add_into(self._total, values)
        self._digests[head.client_id] = head.digest
        self._reports[head.client_id] = report
        return True

    def boxes(self, helper: int) -> Iterator[bytes]:
        """Return the boxes of all unsettled reports, in chunks, for `Helper.check`.

        Parameters
        ----------
        helper : int
            Number of the helper, 1 to ℓ.

        Raises
        ------
        ParameterError
            There is no such helper.
        """
        check_integer("helper", helper, 1, len(self.params.helpers))
        return messages.boxes(list(self._reports.values()), int(helper), self.params)

    def drop(self, ids: Iterable[int]) -> None:
        """Take the reports of some clients out of the sum, such as clients a helper rejected.

        Raises
        ------
        ParameterError
            An id is no int, or the id's report is settled or not in the sum. Nothing was
            dropped.
        LocalProtocolError
            The list is fixed, and there is an id to drop.
        """
        dropped: set[int] = set()
        for u in ids:
            check_integer("a client's id", u, 0, (1 << 64) - 1)
            dropped.add(int(u))
        if not dropped:
            return  # the answer of a helper that rejects nobody
        self._check_open()
        # every id before the first change, so that an error leaves the sum as it was
        for u in dropped:
            if u not in self._reports:
                state = "settled" if u in self._digests else "not in the sum"
                raise ParameterError(f"the report of client {u} is {state}; drop others only")
        for u in dropped:
            values = messages.report_values(u, self._reports.pop(u), self.params)
            self.params.ring.subtract_from(self._total, values)
        self._digests.discard(dropped)

    def settle(self) -> None:
        """Forget vectors and boxes of the reports, which all helpers have checked.

        The reports stay in the sum and cannot be dropped any more. A helper that restarts needs
        the helper's chunks again, so store the chunks until the result is there.
        """
        self._check_open()
        self._reports.clear()

    def merge(self, other: Accumulator) -> None:
        """Add all reports of another accumulator of the same batch; `other` does not change.

        Raises
        ------
        ParameterError
            `other` has other parameters, another batch or a client in common, or the two have
            more than n reports. Nothing was added.
        LocalProtocolError
            The list of either accumulator is fixed.
        """
        check_kind("other", other, Accumulator, "an Accumulator")
        self._check_open()
        other._check_open()
        if other.params.digest != self.params.digest or other.batch != self.batch:
            raise ParameterError("the other accumulator has other parameters or another batch")
        # a report in both would be added twice, and the helpers' masks subtracted only once
        common = self._digests.common(other._digests)
        if common is not None:
            raise ParameterError(
                f"client {common} is in both accumulators, whose sums cannot be mended; "
                "route reports by id"
            )
        if len(self) + len(other) > self.params.n_clients:
            raise ParameterError(
                f"{len(self)} and {len(other)} reports are more than n_clients "
                f"{self.params.n_clients}; open two batches"
            )
        self.params.ring.add_into(self._total, other._total)
        self._digests.merge(other._digests)
        self._reports |= other._reports

    def request(self, reservations: Iterable[bytes] = ()) -> bytes:
        """Return the request for all helpers; the first returned request fixes the list.

        If ``params.quorum`` is 0, send the request to `Helper.open`. Otherwise send the request
        to `Helper.reserve`, and a request with the helpers' reservations to `Helper.open`.

        Parameters
        ----------
        reservations : iterable of bytes
            Answers of `Helper.reserve`, from ``params.quorum`` helpers at least.

        Raises
        ------
        TooFewSurvivors
            There are fewer reports than ``params.min_clients``. Add more.
        ParameterError
            The reservations are of fewer helpers.
        RemoteProtocolError
            A reservation is malformed, of another list ("list") or not signed by the helper
            ("signature"); `helpers` names the helper.
        """
        ids, digest = fixed = self._list or self._listed()
        given = list(reservations)
        signatures = replies.signatures(given, self.params, digest)
        if given and len(signatures) < self.params.quorum:
            raise ParameterError(
                f"{len(signatures)} helpers reserved the list, and opening it takes "
                f"{self.params.quorum}; wait for more reservations"
            )
        # without a quorum no helper reads signatures
        if not self.params.quorum:
            signatures.clear()
        # fixed only now: a call that raised an error must leave the list open
        self._list = fixed
        return messages.write_request(Request(self.batch, ids, signatures), self.params)

    def result(self, answers: Iterable[bytes]) -> OneShotResult:
        """Return the sum, from the answers of t helpers or more.

        A mask that t helpers agree on is right. Other masks are right if no helper lies.

        Parameters
        ----------
        answers : iterable of bytes
            Answers of `Helper.open`. Answers are not signed, so take each answer from the
            helper over an authenticated channel.

        Raises
        ------
        LocalProtocolError
            There was no request yet.
        ParameterError
            The answers are of fewer than t helpers.
        RemoteProtocolError
            An answer is malformed or of another list. "holders": helpers contradict each other.
            Both errors have the helpers' numbers in `helpers`. "sum", "weight": the vectors
            cannot add up to the total.
        """
        if self._list is None:
            raise LocalProtocolError("there was no request, so no answer can be to this list")
        ids, digest = self._list
        masks: dict[int, dict[int, bytes]] = {}
        for data in answers:
            add_answer(masks, as_bytes(data), self.params, digest)
        total, outvoted = unmask(self._total, masks, self.params)
        return decode(total, tuple(ids.tolist()), outvoted, self.params)

    def to_bytes(self) -> bytes:
        """Return the accumulator as bytes, equal for equal reports in any order."""
        # lanes can be above R after sums modulo a power of two, and the bytes have no room
        total = self._total.copy()
        self.params.ring.reduce(total)
        state = stored.State(
            self.batch, self._list is not None, total, self._digests, self._reports
        )
        return stored.pack(state, self.params)

    @classmethod
    def from_bytes(
        cls, data: bytes, params: OneShotParams, *, registry: Registry | None = None
    ) -> Self:
        """Return the accumulator that `to_bytes` encoded; the adder is trusted for the sum.

        Raises
        ------
        ParameterError
            An argument is invalid.
        RemoteProtocolError
            "length", "version", "encoding", "parameters", "ids", "count" or "range": these are
            not the bytes of an accumulator under `params`.
        """
        new = cls(params, registry=registry)
        state = stored.unpack(as_bytes(data, "an accumulator"), params)
        new.batch = state.batch
        new._total = state.total
        new._digests = state.digests
        for u, report in state.reports.items():
            head = messages.read_report(report, params)
            if head.client_id != u or head.digest != new._digests.get(u):
                raise violation("accumulator", "ids", f"it has another report of client {u}")
            # raises unless `drop` could subtract the vector
            messages.report_values(u, report, params)
            new._reports[u] = report
        if state.fixed:
            new._list = new._listed()
        return new

    def _check_open(self) -> None:
        if self._list is not None:
            raise LocalProtocolError(
                "the list of clients is fixed by the first request; begin another batch, and "
                "there let every helper check its boxes before request"
            )

    def _listed(self) -> tuple[Ids, bytes]:
        """Return the ids of all reports and D, the list to fix."""
        needed = self.params.min_clients
        if len(self) < needed:
            raise TooFewSurvivors(
                f"{len(self)} reports, and a batch needs {needed}; add more",
                phase="reserve",
                survivors=len(self),
                needed=needed,
            )
        ids, digests = self._digests.ids, self._digests.rows
        return ids, messages.list_digest(self.params, self.batch, ids, digests)
