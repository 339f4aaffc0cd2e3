"""Helpers of a collection: links to them, and the deadline of their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from secagg.collect.batches import Batch
from secagg.collect.sessions import StoredSession
from secagg.oneshot import OneShotParams
from secagg.session.clock import Clock
from secagg.session.events import Hooks, Place
from secagg.session.helpers import HelperLink, Helpers, by_number

Reach = Callable[[OneShotParams], AbstractAsyncContextManager[Iterable[HelperLink]]]
"""Function that returns a context with links to the helpers of parameters that answer."""


@dataclass(frozen=True)
class Asking:
    """Way to ask the helpers.

    Attributes
    ----------
    reach : callable
        Function of parameters that returns a context with links to the helpers.
    seconds : float
        Deadline of each answer, > 0.
    hooks : Hooks
    clock : Clock
    """

    reach: Reach
    seconds: float = 120.0
    hooks: Hooks = field(default_factory=lambda: Hooks(()))
    clock: Clock = field(default_factory=Clock)

    def helpers(
        self,
        links: Iterable[HelperLink],
        session: StoredSession,
        batch: Batch,
        attempt: int = 0,
    ) -> Helpers:
        """Return the helpers of a batch, none of which has failed yet."""
        place = Place(session.name, batch.place, attempt)
        count = len(session.params.helpers)
        return Helpers(by_number(links), count, place, self.hooks, self.clock)
