"""Events of a session, for hooks, metrics and the log. Events have sizes, never contents."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar

from secagg.protocol.client_ids import called

logger = logging.getLogger("secagg.session")


HELPER_PHASES = ("check", "reserve", "open")
"""Phases of helpers; the numbers in events of these phases are of helpers, not of clients."""
EXCUSED = ("late", "size")
"""Checks that are no offence: a slow client, and a long answer of an earlier round."""
_NAMED = 20
"""Most clients that a line of the log names."""
_CLIENTS = ("client", "missing", "left_out", "clients", "convicted")
"""Fields with ids of clients."""


@dataclass(frozen=True)
class Place:
    """Place of an event.

    Attributes
    ----------
    session : str
        Name of the session.
    number, attempt : int
        Number of the round and of the attempt at it, from 0.
    """

    session: str
    number: int
    attempt: int


@dataclass(frozen=True)
class Event:
    """Event of a session, at a `place`."""

    level: ClassVar[int] = logging.INFO
    place: Place


@dataclass(frozen=True)
class Gathering(Event):
    """A round waits for members. The event comes again whenever other members are present.

    Attributes
    ----------
    present : int
        Number of members that are present, or were 10 seconds ago.
    wanted : int
        Number of present members that let the round begin at once.
    needed : int
        Smallest number of present members for a round at the deadline.
    deadline : float
        Seconds until the deadline.
    missing : tuple of int, ascending
        Ids of the members that the round could take and that are not present.
    """

    present: int
    wanted: int
    needed: int
    deadline: float
    missing: tuple[int, ...]


@dataclass(frozen=True)
class RoundBegun(Event):
    """An attempt at a round has a cohort and begins.

    Attributes
    ----------
    kind : "round" or "one-shot"
    cohort : int
        Number of clients that were chosen.
    needed : int
        Smallest number of clients for the attempt: ``params.min_clients`` in one-shot sums. In
        a round, the smallest cohort that members with the default policy accept, or for a
        given `cohort` ``params.min_survivors``.
    length : int
        Number of elements of a vector.
    resumed : bool
        True if an earlier process began the attempt.
    clients : tuple of int, ascending
        Ids of the clients that were chosen.
    suite : str
        "hybrid" or "x25519".
    """

    kind: str
    cohort: int
    needed: int
    length: int
    resumed: bool = False
    clients: tuple[int, ...] = ()
    suite: str = ""


@dataclass(frozen=True)
class PhaseOpened(Event):
    """A phase begins: the clients can fetch the tasks of the phase.

    Attributes
    ----------
    phase : str
        Phase of the round, "report", or "check", "reserve" and "open" of the helpers.
    awaited : int
        Number of clients or helpers without an answer.
    deadline : float
        Seconds until the phase closes in any case.
    """

    phase: str
    awaited: int
    deadline: float


@dataclass(frozen=True)
class _OfClient(Event):
    """Event of a client, with the id of the client, in a phase."""

    level: ClassVar[int] = logging.DEBUG
    phase: str
    client: int


@dataclass(frozen=True)
class TaskTaken(_OfClient):
    """A client fetched a task of `size` bytes."""

    size: int


@dataclass(frozen=True)
class MessageAccepted(_OfClient):
    """An answer of `size` bytes passed all checks, `seconds` after the phase opened."""

    size: int
    seconds: float


@dataclass(frozen=True)
class MessageRejected(_OfClient):
    """An answer of `size` bytes failed a `check`, such as "late" or "signature"."""

    level: ClassVar[int] = logging.WARNING
    size: int
    check: str


@dataclass(frozen=True)
class MemberDeclined(_OfClient):
    """A client takes no part in this attempt any more. A client states no reason."""

    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True)
class PhaseClosed(Event):
    """A phase has closed.

    Attributes
    ----------
    phase : str
    seconds : float
        Duration of the phase.
    answered : int
        Number of clients or helpers with an accepted answer.
    missing : tuple of int, ascending
        Ids of the clients, or numbers of the helpers, without an accepted answer.
    bytes_down, bytes_up : int
        Bytes of the tasks that were fetched and of the answers that were accepted.
    """

    phase: str
    seconds: float
    answered: int
    missing: tuple[int, ...]
    bytes_down: int
    bytes_up: int


@dataclass(frozen=True)
class HelperAnswered(Event):
    """A helper has done a phase in so many seconds; `helper` is the helper's number."""

    level: ClassVar[int] = logging.DEBUG
    helper: int
    phase: str
    seconds: float


@dataclass(frozen=True)
class HelperFailed(Event):
    """A helper for one-shot sums did not answer, or answered wrong; the batch goes on.

    Attributes
    ----------
    helper : int
        Number of the helper.
    phase : "check", "reserve" or "open"
    check : str
        Name of the failed check, "deadline", or the class of the helper's error.
    """

    level: ClassVar[int] = logging.WARNING
    helper: int
    phase: str
    check: str


@dataclass(frozen=True)
class RoundFinished(Event):
    """A round has a result.

    Attributes
    ----------
    seconds : float
        Duration of the attempt, with the time to gather the cohort; 0 for a stored result.
    survivors : int
        Number of clients in the sum.
    disputes : int
        Number of wrong shares that were found; in the active variant, of complaints that
        convict nobody.
    stored : bool
        True if the result was read from the folder.
    clients : tuple of int, ascending
        Ids of the clients in the sum.
    epsilon : float or None
        ε that all attempts so far have spent, for the δ of the session's budget. A meter, for
        noise fixed in advance: the promise is the budget, against the parties that
        `secagg.privacy.against` names. None: the session has no budget.
    convicted : tuple of int, ascending
        Clients that the verdicts of the result name, of all attempts at the round.
    """

    seconds: float
    survivors: int
    disputes: int
    stored: bool = False
    clients: tuple[int, ...] = ()
    epsilon: float | None = None
    convicted: tuple[int, ...] = ()


@dataclass(frozen=True)
class RoundFailed(Event):
    """An attempt has failed.

    Attributes
    ----------
    error : str
        Class of the error.
    phase, check : str
        Phase of the error; the failed check, or "" if too few clients were left.
    left_out : tuple of int, ascending
        Clients that the next attempts at this round leave out. A message of the client failed a
        check, the client dealt shares that do not give a secret, or a verdict names the client.
        After the check "dealer" also both clients of disjoint complaints, if enough are left.
    declined : int
        Number of members that declined this round so far.
    final : bool
        True if no attempt follows: the application gets the error.
    survivors, needed : int
        The numbers in `TooFewSurvivors`, if too few clients were left; else 0.
    epsilon : float or None
        See `RoundFinished`; a failed attempt counts if its survivors are known.
    convicted : tuple of int, ascending
        Clients that verdicts of this attempt name.
    """

    level: ClassVar[int] = logging.WARNING
    error: str
    phase: str
    check: str
    left_out: tuple[int, ...]
    final: bool
    declined: int = 0
    survivors: int = 0
    needed: int = 0
    epsilon: float | None = None
    convicted: tuple[int, ...] = ()


@dataclass(frozen=True)
class ClientConvicted(Event):
    """A verdict names a client, after the attempt has ended. The round's outcome has the proof.

    Attributes
    ----------
    client : int
    kind : str
        The client's fault; see `secagg.errors.Verdict`.
    """

    level: ClassVar[int] = logging.WARNING
    client: int
    kind: str


Hook = Callable[[Event], object]
"""Function that is called with every event, in the thread of the event loop."""


class Hooks:
    """Hooks and log of a session. A hook that raises is logged, and the round goes on.

    A record of the log has the fields of the event as attributes, and `names`: the names of the
    event's clients by id, as far as the session knows names.
    """

    def __init__(self, hooks: Iterable[Hook], names: Mapping[int, str] | None = None) -> None:
        self._hooks = tuple(hooks)
        self._names = names or {}

    def add(self, hook: Hook) -> None:
        """Add a hook, which is called with the events from now on."""
        self._hooks = (*self._hooks, hook)

    def __call__(self, event: Event) -> None:
        """Log an event, and pass the event to all hooks."""
        if logger.isEnabledFor(event.level):
            fields = asdict(event)
            fields |= fields.pop("place")
            kind, known = type(event).__name__, self._known(event, fields)
            shown = (f"{field}={_in_text(field, fields[field], known)}" for field in fields)
            text = " ".join((kind, *shown))
            more = {"event": kind, "names": known}
            logger.log(event.level, "%s", text, extra=fields | more)
        for hook in self._hooks:
            try:
                hook(event)
            except Exception:  # an operator's page must not stop a round
                logger.exception("a hook of the session failed")

    def _known(self, event: Event, fields: Mapping[str, Any]) -> dict[int, str]:
        """Return the names of the clients in the fields of an event, by id."""
        if isinstance(event, PhaseClosed) and event.phase in HELPER_PHASES:
            return {}
        ids = chain.from_iterable(_as_tuple(fields.get(field, ())) for field in _CLIENTS)
        return {u: called(u, self._names) for u in ids if u in self._names}


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _in_text(field: str, value: object, names: Mapping[int, str]) -> object:
    """Return the value of a field for a line of the log."""
    ids = _as_tuple(value)
    if field in _CLIENTS and 0 < len(ids) <= _NAMED and names.keys() >= set(ids):
        return ",".join(_quoted(names[u]) for u in ids)
    # of many clients, and of clients without names, the line has the number only
    return len(ids) if isinstance(value, tuple) else value


def _quoted(name: str) -> str:
    """Return a name, in quotes unless the name is a single word: no name forges a field."""
    return json.dumps(name, ensure_ascii=False) if set(name) & set(' ,="') else name
