"""Lifecycle of a client: one session, one process, one call at a time, no repeated phase.

Two vectors sent under the same masks would reveal their difference. Copies, forks and calls
from several threads could send two, so they raise LocalProtocolError.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn, TypeVar

from secagg.client.states import ClientState, Ended, New
from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.protocol import NEXT, Phase, RoundParams
from secagg.protocol.phases import Exclusive, out_of_order

S = TypeVar("S", bound=ClientState)


class OneLife:
    """Base of `Client`: it keeps the present state and checks that each call is due."""

    def __init__(self, params: RoundParams) -> None:
        self.params = params
        self._state: ClientState = New(Phase.ADVERTISE_KEYS)
        self._exclusive = Exclusive()
        self._process: int | None = None

    @property
    def phase(self) -> Phase:
        """The message that this client sends next, or ``FINISHED`` or ``FAILED``."""
        return self._state.phase

    def __reduce__(self) -> NoReturn:
        raise LocalProtocolError(
            "a client cannot be copied, pickled or resumed: its masks are for one vector; "
            "make a new client for a new session"
        )

    def _guarded(self, step: Callable[[], bytes]) -> bytes:
        """Return the result of `step`; a RemoteProtocolError in it ends the client."""
        with self._exclusive:
            try:
                return step()
            except RemoteProtocolError:
                self._state = Ended(Phase.FAILED)
                raise

    def _due(self, phase: Phase, kind: type[S], call: str) -> S:
        """Return the state if it is of the phase and `kind` that `call` needs, or raise."""
        state = self._state
        if state.phase is not phase or not isinstance(state, kind):
            raise out_of_order(call, self.phase)
        if self._process not in (None, os.getpid()):
            raise LocalProtocolError(
                "this client was copied into another process by a fork after it made its keys; "
                "make the client in the process that uses it"
            )
        return state

    def _next(self) -> Phase:
        """Return the phase after the present one, from the table ``NEXT``."""
        return NEXT[self.params.security][self.phase]
