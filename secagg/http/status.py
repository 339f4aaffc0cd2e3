"""State of a session for the operator, from the session's events, for the status page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from msgspec import Struct, to_builtins

from secagg._printable import printable
from secagg.session import events

_KEPT = 50
"""Attempts that the page lists."""
_NAMED = 20
"""Dropped-out clients that an attempt lists by their ids."""


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


class Attempt(Struct):
    """Attempt at a round. `outcome` is "running", "finished" or the class of the error."""

    number: int
    attempt: int
    kind: str
    cohort: int
    needed: int
    outcome: str = "running"
    survivors: int | None = None
    seconds: float | None = None
    dropped: int = 0
    dropped_ids: list[str] = []
    declined: int = 0
    helpers_failed: list[int] = []
    phases: list[Phase] = []


class Status:
    """Cohort, phase, drop-outs, bytes and seconds of the last attempts of a session.

    Parameters
    ----------
    session : str
        Name of the session.
    clock : callable
        Seconds of a monotonic clock.
    """

    def __init__(self, session: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
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
            },
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
            self._attempts.append(Attempt(number, at, event.kind, event.cohort, event.needed))
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
            case events.MessageRejected() if phase:
                phase.rejected += 1
            case events.MemberDeclined():
                running.declined += 1
            case events.HelperFailed():
                running.helpers_failed.append(event.helper)
            case events.PhaseClosed() if phase:
                phase.seconds, phase.answered = event.seconds, event.answered
                phase.bytes_down, phase.bytes_up = event.bytes_down, event.bytes_up
                if event.phase not in ("check", "reserve", "open"):  # of helpers, not clients
                    running.dropped += len(event.missing)
                    # as text: numbers of JavaScript are not exact above 2^53
                    running.dropped_ids += map(str, event.missing)
                    del running.dropped_ids[_NAMED:]
            case events.RoundFinished():
                running.outcome, running.seconds = "finished", event.seconds
                running.survivors = event.survivors
                self._finished += 1
            case events.RoundFailed():
                running.outcome = event.error
                self._failed += 1

    def _open(self) -> Phase | None:
        phases = self._attempts[-1].phases if self._attempts else []
        running = self._attempts and self._attempts[-1].outcome == "running"
        return phases[-1] if running and phases and phases[-1].seconds is None else None
