"""What a client's life is: one session, one process, one call at a time, and no way back.

A second life could send another vector under the same masks, so that the difference of the two
is known. Copies, forks and threads are second lives too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn, TypeVar

from secagg.client.states import ClientState, Ended, New
from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.protocol import Phase
from secagg.protocol.exclusive import Exclusive
from secagg.protocol.phases import out_of_order

__all__ = ["OneLife"]

S = TypeVar("S")


class OneLife:
    """The state of a client, and the rules by which it may move on."""

    def __init__(self) -> None:
        self._state: ClientState = New()
        self._exclusive = Exclusive()
        self._process: int | None = None

    @property
    def phase(self) -> Phase:
        """The message this client sends next."""
        return self._state.phase

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or stored."""
        raise LocalProtocolError(
            "a client cannot be copied, pickled or resumed: its masks are for one vector; "
            "make a new client for a new session"
        )

    def _guarded(self, step: Callable[[], bytes]) -> bytes:
        """Take a step, one at a time; a violation by the server ends the client.

        The error is raised without the frames it came through, whose variables hold secrets.
        """
        with self._exclusive:
            try:
                return step()
            except RemoteProtocolError as error:
                self._state = Ended(Phase.FAILED)
                violation = error.with_traceback(None)
            raise violation

    def _stay_in_this_process(self) -> None:
        """From now on there are secrets, and a fork would have them too."""
        self._process = os.getpid()

    def _due(self, kind: type[S], call: str) -> S:
        """Return the state if it is the one in which `call` is due."""
        state = self._state
        if not isinstance(state, kind):
            raise out_of_order(call, self.phase)
        if self._process not in (None, os.getpid()):
            raise LocalProtocolError(
                "this client was copied into another process by a fork after it made its keys; "
                "make the client in the process that uses it"
            )
        return state

    def _violation(self, check: str, why: str) -> RemoteProtocolError:
        return RemoteProtocolError(why, sender=None, phase=self.phase, check=check)
