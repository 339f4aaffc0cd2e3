"""Helpers for one-shot sums, called by a session, also while some helpers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from secagg._check import check_integer
from secagg._printable import printable
from secagg.errors import LinkError, ParameterError, RemoteProtocolError
from secagg.oneshot import Helper
from secagg.session.clock import Clock
from secagg.session.events import (
    HelperAnswered,
    HelperFailed,
    Hooks,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    Place,
)
from secagg.session.exchange import in_thread

T = TypeVar("T")
_FINAL = frozenset({"batch", "spent"})
"""Checks by which a helper refuses a list for good: the journal has another list."""
_QUOTED = 500
"""Most characters of a helper's error that the error of a batch repeats."""


class HelperLink(Protocol):
    """Connection to a helper; a transport implements the connection.

    The helper answers a call when the work is done. Any error counts as the helper's error: the
    batch goes on without the helper, if the other helpers can open.
    """

    @property
    def number(self) -> int:
        """Number of the helper, from 1 on, in the order of `OneShotParams.helpers`."""
        ...

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        """Return the rejected clients of a chunk; see `secagg.oneshot.Helper.check`."""
        ...

    async def reserve(self, request: bytes) -> bytes:
        """Return a reservation; see `secagg.oneshot.Helper.reserve`."""
        ...

    async def open(self, request: bytes) -> bytes:
        """Return an answer; see `secagg.oneshot.Helper.open`."""
        ...


class LocalHelper:
    """Helper in the process of the session, for tests and simulations."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    @property
    def number(self) -> int:
        """Number of the helper, from 1 on."""
        return self._helper.number

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        """Return the rejected clients of a chunk; see `HelperLink.check`."""
        return await in_thread(lambda: self._helper.check(boxes))

    async def reserve(self, request: bytes) -> bytes:
        """Return a reservation; see `HelperLink.reserve`."""
        return await in_thread(lambda: self._helper.reserve(request))

    async def open(self, request: bytes) -> bytes:
        """Return an answer; see `HelperLink.open`."""
        return await in_thread(lambda: self._helper.open(request))


class Helpers:
    """Helpers of a batch. A helper that failed is not asked again in this attempt.

    Parameters
    ----------
    links : iterable of HelperLink
        The helpers that can be reached, each once.
    count : int
        Number of helpers in the parameters.
    """

    def __init__(
        self, links: Iterable[HelperLink], count: int, place: Place, hooks: Hooks, clock: Clock
    ) -> None:
        self.links = {link.number: link for link in links}
        self.failed: set[int] = set()
        self._count = count
        self._reasons: dict[int, str] = {}
        self._refusing = set[int]()
        self.bytes_down = self.bytes_up = 0  # of the present phase
        self._place, self._hooks, self._clock = place, hooks, clock
        for number in self.links:
            check_integer("the number of a helper", number, 1, count)

    async def ask(
        self, phase: str, seconds: float, call: Callable[[HelperLink], Awaitable[T]]
    ) -> dict[int, T]:
        """Make a call of every helper at the same time; return the answers by number."""
        began = self._clock.now()
        self.bytes_down = self.bytes_up = 0
        self._hooks(PhaseOpened(self._place, phase, len(self.links), deadline=seconds))

        async def timed(link: HelperLink) -> T:
            answer = await call(link)
            taken = self._clock.now() - began
            self._hooks(HelperAnswered(self._place, link.number, phase, seconds=taken))
            return answer

        asked = {j: asyncio.ensure_future(timed(link)) for j, link in self.links.items()}
        done = asyncio.Event()
        try:
            async with self._clock.deadline(seconds) as deadline:
                everyone = asyncio.gather(*asked.values(), return_exceptions=True)
                everyone.add_done_callback(lambda _: done.set())
                await deadline.before(done)
        finally:
            for one in asked.values():
                one.cancel()
        found: dict[int, T] = {}
        for j, one in asked.items():
            if not one.done() or one.cancelled():
                self.fail(j, phase, "deadline")
            elif error := one.exception():
                self._reasons[j] = printable(str(error))[:_QUOTED]
                if isinstance(error, RemoteProtocolError) and error.check in _FINAL:
                    self._refusing.add(j)
                self.fail(j, phase, _name(error))
            else:
                found[j] = one.result()
        self._hooks(
            PhaseClosed(
                self._place,
                phase,
                seconds=self._clock.now() - began,
                answered=len(found),
                missing=tuple(sorted(asked.keys() - found.keys())),
                bytes_down=self.bytes_down,
                bytes_up=self.bytes_up,
            )
        )
        return found

    def fail(self, number: int, phase: str, check: str) -> None:
        """Leave a helper out from now on."""
        self.links.pop(number, None)
        self.failed.add(number)
        self._hooks(HelperFailed(self._place, number, phase, check))

    def reject(self, clients: Iterable[int], size: int) -> None:
        """Note clients with a box that helpers rejected, in reports of `size` bytes."""
        for u in sorted(clients):
            self._hooks(MessageRejected(self._place, "check", u, size, "helpers"))

    def fail_all(self, checks: Mapping[int, str], phase: str) -> None:
        """Leave helpers out, for the failed check of each."""
        for j in sorted(checks.keys() & self.links.keys()):
            self.fail(j, phase, checks[j])

    def require(self, needed: int, phase: str) -> None:
        """Raise the error of `too_few` unless so many helpers are left."""
        if len(self.links) < needed:
            raise self.too_few(len(self.links), needed, phase, self.failed)

    def too_few(
        self, left: int, needed: int, phase: str, failed: Collection[int]
    ) -> RemoteProtocolError:
        """Return the error of a step that too few helpers did, with the text of each error.

        The check is "refused" if so many helpers refuse the list for good that no next try can
        succeed, or else "helpers".
        """
        refused = self._count - len(self._refusing) < needed
        remedy = "give the list up" if refused else "bring the others back and try again"
        why = "".join(f"; helper {j}: {text}" for j, text in sorted(self._reasons.items()))
        return RemoteProtocolError(
            f"{left} helpers are left, and this step takes {needed}; {remedy}{why}",
            sender=None,
            phase=phase,
            check="refused" if refused else "helpers",
            helpers=tuple(sorted(failed)),
        )


def by_number(links: Iterable[HelperLink]) -> list[HelperLink]:
    """Return the links; raise `ParameterError` if two links have the same number."""
    found = list(links)
    numbers = [link.number for link in found]
    if len(set(numbers)) != len(numbers):
        raise ParameterError(
            f"helpers {sorted(numbers)} are not each there once; pass each once"
        )
    return found


def _name(error: BaseException) -> str:
    if isinstance(error, RemoteProtocolError | LinkError):
        return error.check
    return type(error).__name__
