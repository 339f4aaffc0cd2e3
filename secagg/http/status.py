"""State of a session for the operator, from the session's events, for the status page."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct, to_builtins

from secagg._printable import printable
from secagg.protocol.client_ids import called
from secagg.session import Attendance, events

_KEPT = 50
"""Attempts that the page lists."""
_NAMED = 20
"""Most missing clients, and clients that dropped out of an attempt, that the page names."""
LISTED = 1000
"""Most members of a session whose members the page lists."""


class Phase(Struct):
    """Phase of an attempt. `seconds` is None while the phase is open."""

    name: str
    awaited: int
    deadline: float
    answered: int = 0
    rejected: int = 0
    seconds: float | None = None
    bytes_down: int = 0
    bytes_up: int = 0


class Convicted(Struct):
    """Client that a verdict names. The id is text, as in `Member`."""

    id: str
    name: str
    kind: str


class Attempt(Struct):
    """Attempt at a round. `outcome` is "running", "finished" or the class of the error.

    `epsilon` is what all attempts until then have spent, None without a budget.
    """

    number: int
    attempt: int
    kind: str
    cohort: int
    needed: int
    suite: str = ""
    outcome: str = "running"
    survivors: int | None = None
    seconds: float | None = None
    epsilon: float | None = None
    dropped: int = 0
    dropped_ids: list[str] = []
    dropped_names: list[str] = []
    declined: int = 0
    helpers_failed: list[int] = []
    verdicts: list[Convicted] = []
    phases: list[Phase] = []


class Member(Struct):
    """Member of the session.

    Attributes
    ----------
    id : str
        Id, as text: numbers of JavaScript are not exact above 2^53.
    name : str
        Name, or the id.
    present : bool
    since : str or None
        Time in UTC at which the member came, or of the last call of an absent member.
    missed : int
        Number of phases that the member took part in, and did not answer.
    last : str
        What the member did in the last round: "in the sum", for example.
    """

    id: str
    name: str
    present: bool
    since: str | None
    missed: int
    last: str


class Status:
    """Cohort, phase, drop-outs, bytes and seconds of the last attempts of a session.

    Parameters
    ----------
    session : str
        Name of the session.
    clock : callable
        Seconds of a monotonic clock.
    names : mapping of int to str
        Names of members, by id.
    attendance : callable, optional
        Function that returns the `Attendance` of each member. None: the page lists no members.
    time_of_day : callable
        Seconds since 1970.
    """

    def __init__(
        self,
        session: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        names: Mapping[int, str] | None = None,
        attendance: Callable[[], Mapping[int, Attendance]] | None = None,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        self._session, self._clock = session, clock
        self._names, self._attendance = names or {}, attendance
        self._time_of_day = time_of_day
        self._missed: Counter[int] = Counter()
        self._last: dict[int, str] = {}
        self._number = -1
        self._opened = 0.0
        self._gathering: events.Gathering | None = None
        self._until = 0.0
        self._finished = self._failed = 0
        self._attempts: deque[Attempt] = deque(maxlen=_KEPT)

    def document(self) -> dict[str, object]:
        """Return the state as an object for JSON, the last attempt first."""
        running, gathering = self._open(), self._gathering
        return {
            "session": printable(self._session),
            "finished": self._finished,
            "failed": self._failed,
            "phase": running.name if running else None,
            "phase_seconds": round(self._clock() - self._opened, 3) if running else None,
            "gathering": gathering
            and {
                "present": gathering.present,
                "wanted": gathering.wanted,
                "needed": gathering.needed,
                "seconds_left": round(max(0.0, self._until - self._clock()), 3),
                "missing": len(gathering.missing),
                "missing_ids": [str(u) for u in gathering.missing[:_NAMED]],
                "missing_names": self._named(gathering.missing),
            },
            "members": to_builtins(self._members()),
            "attempts": to_builtins([*reversed(self._attempts)]),
        }

    def __call__(self, event: events.Event) -> None:
        """Take note of an event."""
        if isinstance(event, events.Gathering):
            self._gathering, self._until = event, self._clock() + event.deadline
        elif isinstance(event, events.RoundBegun | events.RoundFailed | events.RoundFinished):
            self._gathering = None
        if isinstance(event, events.RoundBegun):
            at, number = event.place.attempt, event.place.number
            size = event.kind, event.cohort, event.needed
            self._attempts.append(Attempt(number, at, *size, event.suite))
            if number != self._number:
                self._number, self._last = number, {}
            self._mark(event.clients, "takes part")
        elif self._attempts:
            self._note(self._attempts[-1], event)

    def _note(self, running: Attempt, event: events.Event) -> None:
        phase = self._open()
        match event:
            case events.PhaseOpened():
                running.phases.append(Phase(event.phase, event.awaited, event.deadline))
                self._opened = self._clock()
            case events.TaskTaken() if phase:
                phase.bytes_down += event.size
            case events.MessageAccepted() if phase:
                phase.answered += 1
                phase.bytes_up += event.size
            case events.MessageRejected():
                if phase:
                    phase.rejected += 1
                if event.check not in events.EXCUSED:
                    self._mark((event.client,), f"rejected: {event.check}")
            case events.MemberDeclined():
                running.declined += 1
                self._mark((event.client,), f"declined: {event.phase}")
            case events.HelperFailed():
                running.helpers_failed.append(event.helper)
            case events.PhaseClosed() if phase:
                phase.seconds, phase.answered = event.seconds, event.answered
                phase.bytes_down, phase.bytes_up = event.bytes_down, event.bytes_up
                if event.phase not in events.HELPER_PHASES:
                    self._drop(running, event)
            case events.RoundFinished():
                self._mark(event.clients, "in the sum")
                running.outcome, running.seconds = "finished", event.seconds
                running.survivors, running.epsilon = event.survivors, event.epsilon
                self._finished += 1
            case events.RoundFailed():
                running.outcome, running.epsilon = event.error, event.epsilon
                self._failed += 1
            case events.ClientConvicted(client=client, kind=kind):
                name = called(client, self._names)
                running.verdicts.append(Convicted(str(client), name, kind))
                self._mark((client,), f"convicted: {kind}")

    def _drop(self, running: Attempt, closed: events.PhaseClosed) -> None:
        """Note the clients that did not answer in a phase."""
        running.dropped += len(closed.missing)
        running.dropped_ids += map(str, closed.missing)
        running.dropped_names += self._named(closed.missing)
        for listed in (running.dropped_ids, running.dropped_names):
            del listed[_NAMED:]
        if self._attendance is not None:
            self._missed.update(closed.missing)
        silent = (u for u in closed.missing if self._last.get(u) == "takes part")
        self._mark(silent, f"dropped out: {closed.phase}")

    def _mark(self, clients: Iterable[int], what: str) -> None:
        """Note what members did last, if the page lists members."""
        if self._attendance is not None:
            self._last |= dict.fromkeys(clients, what)

    def _members(self) -> list[Member] | None:
        """Return the members, the absent members first; None if the page does not list them."""
        if self._attendance is None:
            return None
        found, now = self._attendance(), self._time_of_day()
        members = [
            Member(
                str(u),
                called(u, self._names),
                one.present,
                None if one.seconds is None else _in_utc(now - one.seconds),
                self._missed[u],
                self._last.get(u, ""),
            )
            for u, one in found.items()
        ]
        return sorted(members, key=lambda one: (one.present, one.name))

    def _named(self, clients: tuple[int, ...]) -> list[str]:
        """Return the first names of clients, or the ids of clients without names."""
        return sorted(called(u, self._names) for u in clients[:LISTED])[:_NAMED]

    def _open(self) -> Phase | None:
        phases = self._attempts[-1].phases if self._attempts else []
        running = self._attempts and self._attempts[-1].outcome == "running"
        return phases[-1] if running and phases and phases[-1].seconds is None else None


def _in_utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as text, to the second."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
