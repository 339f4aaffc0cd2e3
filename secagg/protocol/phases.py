"""The phases of a round and their order: the table that client and server run on.

A round is a sequence of phases (Bonawitz 2017, Figure 4). In each, every client still present
sends one message. The server collects these messages, closes the phase, and answers some of the
clients. Its answer is what a client's next message is made from. Each phase can only lose
clients, so the sets of those who completed one are nested, U1 ⊇ U2 ⊇ U3 ⊇ U4 ⊇ U5:

==================  ============================  ==============================  ============
phase               a client sends                it is answered                  completed by
==================  ============================  ==============================  ============
advertise_keys      two fresh public keys c, s    the keys of its holders in U1   U1
share_keys          shares of b and s, sealed     the shares sealed for it by U2  U2
masked_input        y, its vector under masks     U3, to sign or to unmask        U3
consistency_check   its signature over U3         the signatures of U4            U4
unmasking           one share for each of U2      nothing: the server has the sum U5
==================  ============================  ==============================  ============

The semi-honest variant has no consistency_check: there U4 = U3, and a client is asked to unmask
straight after its masked input. In the active variant at least t clients must sign the same U3,
so that a lying server cannot have two different sets unmasked.

Client u's input is hidden by a mask of its own, PRG(b_u), and by one for each neighbour, which
follows from s_u. For each client u of U2 the others reveal one of the two secrets. If u is in
U3, b_u removes its own mask from the sum. If u dropped out after sharing, s_u removes the masks
that the others made with it. Never both: with t shares of each kind the server could remove
every mask from y_u and read one vector. A client therefore answers only one unmask request, and
none that names a client twice.

A machine's phase is the message it is due to send (client) or to collect (server). ``NEXT``
alone gives the next one: a client's states and a server's stages know only their own. A call
that is not due in the present phase is a `LocalProtocolError` and changes nothing.

Both ends, FINISHED and FAILED, are terminal. A client fails when the server's message fails a
check, and drops all its secrets. A bad message to the server is only rejected. The server fails
when too few messages arrived or shares are wrong beyond repair. No round is retried, since a
second run under the same masks would give away the difference of its two inputs. The next
attempt is a new round with new keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import TracebackType

from secagg.errors import LocalProtocolError
from secagg.protocol.params import Security

__all__ = ["NEXT", "Exclusive", "Phase", "out_of_order"]


class Phase(StrEnum):
    """Phase of a client or server: the message that is due next, or the outcome."""

    ADVERTISE_KEYS = "advertise_keys"
    SHARE_KEYS = "share_keys"
    MASKED_INPUT = "masked_input"
    CONSISTENCY_CHECK = "consistency_check"
    UNMASKING = "unmasking"
    FINISHED = "finished"
    FAILED = "failed"


NEXT: Mapping[Security, Mapping[Phase, Phase]] = {
    "semi-honest": {
        Phase.ADVERTISE_KEYS: Phase.SHARE_KEYS,
        Phase.SHARE_KEYS: Phase.MASKED_INPUT,
        Phase.MASKED_INPUT: Phase.UNMASKING,
        Phase.UNMASKING: Phase.FINISHED,
    },
    "active": {
        Phase.ADVERTISE_KEYS: Phase.SHARE_KEYS,
        Phase.SHARE_KEYS: Phase.MASKED_INPUT,
        Phase.MASKED_INPUT: Phase.CONSISTENCY_CHECK,
        Phase.CONSISTENCY_CHECK: Phase.UNMASKING,
        Phase.UNMASKING: Phase.FINISHED,
    },
}
"""The successor of each phase, by security variant, in the order of the round.

Both begin in ADVERTISE_KEYS. FAILED follows any phase and is left out.
"""


def out_of_order(call: str, phase: Phase, *, resumable: bool = False) -> LocalProtocolError:
    """Return the error for a call that is not due in `phase`; nothing has changed.

    A machine that has ended is `resumable` if its journal can continue the round.
    """
    if resumable:
        remedy = "this server has ended; open its journal again and use Server.resume"
    elif phase in (Phase.FINISHED, Phase.FAILED):
        remedy = "this client or server has ended; make a new one"
    else:
        remedy = f"{phase} comes next"
    return LocalProtocolError(f"{call} is out of order in phase {phase}: {remedy}")


class Exclusive:
    """Context for one thread at a time: kernels release the GIL, and machines have no lock.

    Two masked inputs under the same masks would give away their difference, and two additions
    to one total would lose one. A second thread does not wait: it gets a LocalProtocolError.
    """

    def __init__(self) -> None:
        self._token = [True]

    def __enter__(self) -> None:
        try:
            self._token.pop()  # atomic: of two threads one gets it
        except IndexError:
            raise LocalProtocolError(
                "another call of this machine is under way; call it from one thread at a time"
            ) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._token.append(True)
