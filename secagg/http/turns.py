"""Turns of bodies in a bounded part of memory, shared fairly among clients.

A body has a turn while the body is in memory, and the turn reserves all bytes of the body. So a
body that has begun can always end: bodies never wait for each other halfway. A body that does
not fit waits for a turn. The next turn goes to the client with the oldest last turn, so a
client that asks again and again stays behind all others.

A client that is slow, or sends nothing, could keep a turn from others. So a turn has to keep a
pace while others wait for the turn's end; see `Turn.due`.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from contextlib import suppress
from itertools import count

from secagg.http.problems import Problem

_PACE, _PAUSE = 1 / 5, 1 / 60
"""Parts of a body's longest time: for the whole body while others wait, and for a pause."""


def busy(why: str) -> Problem:
    """Return the problem of a server that is at a limit."""
    return Problem(503, "busy", f"{why}; try again in a second", retry_after=1)


class Turn:
    """Turn of a body.

    Parameters
    ----------
    client : int
    size : int
        Bytes that are reserved.

    Attributes
    ----------
    moved : int
        Bytes that have arrived or left.
    """

    def __init__(self, client: int, size: int) -> None:
        self.client, self.size, self.moved = client, size, 0
        self.timer: asyncio.Timeout | None = None
        """Deadline of the body, which ends early if the body is too slow."""
        self._began = self._last = math.inf
        self._dropped = False

    def begin(self) -> None:
        """Start the clock of the pace."""
        self._began = self._last = _now()

    def move(self, size: int) -> None:
        """Count bytes that have arrived or left."""
        self.moved += size
        self._last = _now()

    def due(self, seconds: float) -> float:
        """Return the time at which the body is too slow, if others wait.

        A pause lasts at most a 60th of `seconds`, the body's longest time. The bytes come at an
        even pace, so that all have come after a fifth of `seconds` and a pause.
        """
        if self._dropped or self.moved >= self.size:
            return math.inf
        pace = self._began + _PACE * seconds * self.moved / self.size
        return min(self._last, pace) + _PAUSE * seconds

    def drop(self) -> None:
        """End the body as the body's deadline would."""
        self._dropped = True
        if self.timer is not None:
            with suppress(RuntimeError):  # the time is up, or the block has ended
                self.timer.reschedule(_now())


class Lane:
    """Bounded part of memory for bodies, which reserve bytes in turn.

    Parameters
    ----------
    limit : int
        Bytes of all turns, ≥ 0. A single larger turn is possible while there is no other.
    each : int
        Turns of a client at the same time.
    seconds : float
        Longest time of a body.
    wait : float
        Longest time to wait for a turn.

    Attributes
    ----------
    held : int
        Bytes that are reserved, at most `limit`, or the bytes of a single turn.
    """

    def __init__(self, limit: int, each: int, seconds: float, wait: float) -> None:
        self._limit, self._each, self._seconds, self._wait = limit, each, seconds, wait
        self.held = 0
        self._turns: dict[Turn, None] = {}
        self._of_client: Counter[int] = Counter()
        self._waiting: dict[Turn, asyncio.Future[None]] = {}
        self._numbers = count(1)
        self._served: dict[int, int] = {}  # number of the last turn, by client
        self._watch: asyncio.TimerHandle | None = None

    async def enter(self, turn: Turn) -> None:
        """Wait for a turn; raise `Problem` 503 if none comes."""
        if not self._waiting and self._may(turn) and self._fits(turn):
            self._begin(turn)  # most turns: without a future and a timer
            return
        came = self._ask(turn)
        try:
            async with asyncio.timeout(self._wait):
                await came
        except BaseException as error:
            # cancelled after the turn began: nobody else would end the turn
            if turn in self._turns:
                self.leave(turn)
            if isinstance(error, TimeoutError):
                raise busy("too many bytes are in flight") from None
            raise
        finally:
            self._forget(turn)

    def enter_now(self, turn: Turn) -> bool:
        """Begin a turn, unless the turn would have to wait."""
        self._ask(turn)
        self._forget(turn)
        return turn in self._turns

    def leave(self, turn: Turn) -> None:
        """End a turn."""
        del self._turns[turn]
        self.held -= turn.size
        self._of_client[turn.client] -= 1
        self._admit()

    def _ask(self, turn: Turn) -> asyncio.Future[None]:
        came = self._waiting[turn] = asyncio.get_running_loop().create_future()
        self._admit()
        return came

    def _forget(self, turn: Turn) -> None:
        if self._waiting.pop(turn, None) is not None:
            self._admit()  # a smaller turn behind this one may fit

    def _admit(self) -> None:
        """Begin the turns that are next and fit."""
        while self._waiting:
            able = [turn for turn in self._waiting if self._may(turn)]
            turn = min(able, key=lambda turn: self._served.get(turn.client, 0), default=None)
            # smaller turns behind do not overtake, or a large body could wait for ever
            if turn is None or not self._fits(turn):
                break
            came = self._waiting.pop(turn)
            self._begin(turn)
            if not came.done():
                came.set_result(None)
        self._watch_pace()

    def _begin(self, turn: Turn) -> None:
        self._turns[turn] = None
        self.held += turn.size
        self._of_client[turn.client] += 1
        self._served[turn.client] = next(self._numbers)
        turn.begin()

    def _fits(self, turn: Turn) -> bool:
        return not self._turns or self.held + turn.size <= self._limit

    def _may(self, turn: Turn) -> bool:
        return self._of_client[turn.client] < self._each

    def _watch_pace(self) -> None:
        """Set the alarm for the first turn that will be too slow, if others wait."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if not self._waiting:
            return
        due = min((turn.due(self._seconds) for turn in self._pressed()), default=math.inf)
        if due < math.inf:
            self._watch = asyncio.get_running_loop().call_at(due, self._drop_slow)

    def _drop_slow(self) -> None:
        now = _now()
        for turn in self._pressed():
            if turn.due(self._seconds) <= now:
                turn.drop()
        self._watch_pace()

    def _pressed(self) -> list[Turn]:
        """Return the turns that others wait for: a client's own, or all for lack of room."""
        if any(self._may(turn) for turn in self._waiting):
            return list(self._turns)
        own = {turn.client for turn in self._waiting}
        return [turn for turn in self._turns if turn.client in own]


def _now() -> float:
    return asyncio.get_running_loop().time()
