"""Opening of a sum: helpers check the boxes of reports, reserve the list and open the masks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from operator import index

from secagg.errors import ParameterError, RemoteProtocolError
from secagg.oneshot import Accumulator, OneShotResult
from secagg.oneshot.layout import START_BYTES
from secagg.session.exchange import Calls
from secagg.session.helpers import HelperLink, Helpers


@dataclass(eq=False)
class Opening:
    """Calls of helpers, from the reports of an accumulator to the sum.

    Attributes
    ----------
    accumulator : Accumulator
    boxes : callable
        Function of a helper's number that returns chunks with the boxes of all reports.
    thread : Calls
        Thread of the accumulator and of `boxes`.
    """

    accumulator: Accumulator
    boxes: Callable[[int], Iterator[bytes]]
    thread: Calls = field(default_factory=Calls)

    async def check(self, helpers: Helpers, seconds: float) -> dict[int, set[int]]:
        """Send all boxes to every helper; return the ids that each helper rejects."""
        return await helpers.ask("check", seconds, lambda link: self._check(link, helpers))

    async def reserve(self, helpers: Helpers, seconds: float) -> tuple[bytes, ...]:
        """Return the reservations of the fixed list by a quorum of helpers or more.

        Raises
        ------
        RemoteProtocolError
            "helpers": too few helpers are left. "refused": too many refuse the list for good.
        """
        run, wrong = self.thread.run, dict[int, str]()
        request = await run(self.accumulator.request)
        reserved = await helpers.ask(
            "reserve", seconds, lambda link: self._call(link.reserve, request, link, helpers)
        )
        valid = await run(lambda: _valid(reserved, self.accumulator.request, wrong))
        helpers.fail_all(wrong, "reserve")
        helpers.require(self.accumulator.params.quorum, "reserve")
        return tuple(valid.values())

    async def open(
        self, reservations: Iterable[bytes], helpers: Helpers, seconds: float
    ) -> OneShotResult:
        """Return the sum of the fixed list.

        Parameters
        ----------
        reservations : iterable of bytes
            Return of `reserve`; none if the parameters have no quorum.
        helpers : Helpers
        seconds : float
            Deadline of the helpers' answers.

        Raises
        ------
        RemoteProtocolError
            "helpers" or "refused", as in `reserve`. Or see `Accumulator.result`.
        """
        run, wrong = self.thread.run, dict[int, str]()
        request = await run(lambda: self.accumulator.request(reservations))
        answers = await helpers.ask(
            "open", seconds, lambda link: self._call(link.open, request, link, helpers)
        )
        try:
            result = await run(lambda: self._result(answers, wrong, helpers))
        finally:
            helpers.fail_all(wrong, "open")
        # the sum is right all the same: the events name the liars
        helpers.fail_all(dict.fromkeys(result.outvoted, "outvoted"), "open")
        return result

    async def _check(self, link: HelperLink, helpers: Helpers) -> set[int]:
        """Send all boxes to a helper; return the ids that the helper rejects."""
        chunks = self.boxes(link.number)
        rejected: set[int] = set()
        while (chunk := await self.thread.run(lambda: next(chunks, None))) is not None:
            helpers.bytes_down += len(chunk)
            rejected.update(map(index, await link.check(chunk)))
        return rejected

    async def _call(
        self,
        call: Callable[[bytes], Awaitable[bytes]],
        request: bytes,
        link: HelperLink,
        helpers: Helpers,
    ) -> bytes:
        """Return a helper's answer; a restarted helper gets all boxes again first."""
        helpers.bytes_down += len(request)
        try:
            answer = await call(request)
        except RemoteProtocolError as error:
            if error.check != "unchecked":
                raise
            # a restarted helper has its journal, but not the boxes that it checked
            await self._check(link, helpers)
            answer = await call(request)
        helpers.bytes_up += len(answer)
        return answer

    def _result(
        self, answers: Mapping[int, bytes], wrong: dict[int, str], helpers: Helpers
    ) -> OneShotResult:
        """Return the sum from the valid answers."""
        accumulator, params = self.accumulator, self.accumulator.params
        valid = _valid(answers, accumulator.result, wrong)
        # among q answers a liar is never the only holder of a mask; see docs/sessions.md, 4
        needed = params.quorum or params.threshold
        while len(valid) >= needed:
            try:
                return accumulator.result(valid.values())
            except RemoteProtocolError as error:
                # where holders contradict each other, nobody knows the liar
                if error.check == "holders" or not error.helpers:
                    raise
                for j in error.helpers:
                    wrong[j] = error.check
                    valid.pop(j, None)
        raise helpers.too_few(len(valid), needed, "open", wrong)


def believed(rejected: Mapping[int, set[int]], most: int) -> tuple[set[int], set[int]]:
    """Return the clients to drop, at most `most`, and the helpers whose rejections count.

    A helper whose rejections would leave too few clients is left out.
    """
    dropped, kept = set[int](), set[int]()
    # fewest rejections first: the many rejections of a liar leave out the liar, not others
    for j in sorted(rejected, key=lambda j: (len(rejected[j]), j)):
        together = dropped | rejected[j]
        if len(together) <= most:
            dropped = together
            kept.add(j)
    return dropped, kept


def _valid(
    replies: Mapping[int, object],  # an application's link may return any type
    judge: Callable[[list[bytes]], object],
    wrong: dict[int, str],
) -> dict[int, bytes]:
    """Return the valid replies; add the failed check of each other reply to `wrong`.

    `judge` raises RemoteProtocolError for an invalid reply, and ParameterError for too few
    replies. A single valid reply is mostly too few.
    """
    valid: dict[int, bytes] = {}
    for j, reply in replies.items():
        if not isinstance(reply, bytes):
            wrong[j] = "encoding"
        # else a liar could answer in the name of another helper, who would be blamed
        elif reply[START_BYTES : START_BYTES + 2] != j.to_bytes(2, "little"):
            wrong[j] = "helper"
        else:
            try:
                with suppress(ParameterError):
                    judge([reply])
                valid[j] = reply
            except RemoteProtocolError as error:
                wrong[j] = error.check
    return valid
