"""Account of a sum from the session's events: attempts, missing clients, failed helpers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from secagg.cli import schedule
from secagg.cli.records import Attempted, HelperFault, Missing
from secagg.session import events
from secagg.session.events import EXCUSED, HELPER_PHASES


@dataclass
class Account:
    """Hook of a session that notes what happens in one sum.

    Attributes
    ----------
    called : callable
        Function that returns the name of a client.
    convicted : collection of int
        Clients that verdicts of earlier sums name, which no sum takes.
    resumed : bool
        True if an earlier process began the sum.
    stored : bool
        True if an earlier process ended the sum.
    attempts : list of Attempted
        Attempts of this process.
    helpers : list of HelperFault
    epsilon : float or None
        ε that all attempts of the session have spent; None without a budget.
    """

    called: Callable[[int], str]
    convicted: Collection[int] = ()
    resumed: bool = False
    stored: bool = False
    attempts: list[Attempted] = field(default_factory=list)
    helpers: list[HelperFault] = field(default_factory=list)
    epsilon: float | None = None
    _reasons: dict[int, Missing] = field(default_factory=dict)
    _absent: frozenset[int] = frozenset()
    _accepted: set[int] = field(default_factory=set)

    def __call__(self, event: events.Event) -> None:
        """Note an event."""
        if isinstance(event, events.RoundFinished | events.RoundFailed):
            self.epsilon = event.epsilon
        match event:
            case events.Gathering(missing=missing):
                self._note(event)
                self._absent = frozenset(missing)
            case events.RoundBegun(cohort=cohort, resumed=resumed):
                self._note(event, cohort=cohort)
                self.resumed |= resumed
            case events.MessageAccepted(client=client):
                self._accepted.add(client)
                self._reasons.pop(client, None)
            case events.MessageRejected(check=check) if check in EXCUSED:
                known = self._reasons.get(event.client)
                if known is not None and known.why == "dropped out":
                    self._reasons[event.client] = replace(known, check=check)
            case events.MessageRejected(phase=phase, client=client, check=check):
                self._explain(client, "rejected", phase, check)
            case events.MemberDeclined(phase=phase, client=client):
                self._explain(client, "declined", phase)
            case events.PhaseClosed(phase=phase, missing=missing) if phase not in HELPER_PHASES:
                for client in missing:
                    known = self._reasons.get(client)
                    if known is None or known.why == "dropped out":
                        self._explain(client, "dropped out", phase)
            case events.HelperFailed(helper=helper, phase=phase, check=check):
                self.helpers.append(HelperFault(helper=helper, phase=phase, check=check))
            case events.RoundFailed():
                for client in event.left_out:
                    known = self._reasons.get(client)
                    if known is None or known.why != "rejected":
                        # its answers passed, and its shares give no secret
                        self._explain(client, "rejected", event.phase, event.check)
                left_out = tuple(map(self.called, event.left_out))
                self._note(
                    event,
                    outcome=event.error,
                    phase=event.phase,
                    check=event.check,
                    survivors=event.survivors,
                    needed=event.needed,
                    left_out=left_out,
                )
            case events.RoundFinished(stored=True):
                self.stored = self.resumed = True
            case events.RoundFinished():
                self._note(event, outcome="finished")

    def missing(
        self, clients: Iterable[int], survivors: Collection[int]
    ) -> tuple[Missing, ...]:
        """Return the clients that are not among the survivors of a sum, each with the reason.

        Without survivors the sum has failed; the clients without a fault are left out then.
        """
        found = [self._why(u, failed=not survivors) for u in clients if u not in survivors]
        return tuple(sorted((one for one in found if one), key=lambda one: one.client))

    def _why(self, client: int, *, failed: bool) -> Missing | None:
        reason = self._reasons.get(client)
        if reason is not None:
            return reason
        name = self.called(client)
        if client in self.convicted:
            return Missing(client=name, why="convicted")
        if client in self._absent:
            return Missing(client=name, why="never came")
        if failed:
            return None
        if client in self._accepted and not self.resumed:
            # the helpers rejected the client's box, of which there is no event
            return Missing(client=name, why="rejected", phase="check", check="helpers")
        return Missing(client=name, why="not known")

    def _explain(
        self,
        client: int,
        why: Literal["declined", "dropped out", "rejected"],
        phase: str,
        check: str = "",
    ) -> None:
        name = self.called(client)
        self._reasons[client] = Missing(client=name, why=why, phase=phase, check=check)

    def _note(self, event: events.Event, **fields: object) -> None:
        """Note fields of an attempt, which begins with the first event."""
        number = event.place.attempt
        if not self.attempts or self.attempts[-1].attempt != number:
            # an earlier process had the attempts before
            self.resumed |= not self.attempts and number > 0
            begun = schedule.iso(schedule.now())
            self.attempts.append(Attempted(attempt=number, begun=begun, cohort=0))
        self.attempts[-1] = replace(self.attempts[-1], **fields)
