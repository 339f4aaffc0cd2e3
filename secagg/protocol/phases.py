"""The phases of a round and their order: the table that client and server run on.

A round is a sequence of phases (Bonawitz 2017, Figure 4). In each phase every client still
present sends one message. The server collects the messages, closes the phase and answers the
clients, which compute their next message from the answer. Clients drop out and never return, so
the sets of clients that completed each phase are nested, U1 ⊇ U2 ⊇ U3 ⊇ U4 ⊇ U5:

==================  ============================  ==============================  ============
phase               a client sends                the server answers              completed by
==================  ============================  ==============================  ============
advertise_keys      two public keys, c and s      the keys of the holders in U1   U1
share_keys          shares of b and s, sealed     U2's shares for this client     U2
masked_input        y, the vector under masks     U3, to sign or to unmask        U3
consistency_check   a signature over U3           the signatures of U4            U4
unmasking           one share for each of U2      nothing: the server has the sum U5
==================  ============================  ==============================  ============

The semi-honest variant has no consistency_check: there U4 = U3, and a client is asked to unmask
straight after its masked input. In the active variant at least t clients must sign the same U3,
so that a lying server cannot have two different sets unmasked.

Two kinds of masks hide client u's input: the client's own mask, PRG(b_u), and a mask for each
neighbour, which follows from s_u. In round 4 the clients reveal, for each client u of U2,
shares of either b_u or s_u. If u is in U3, b_u removes PRG(b_u) from the sum. If u dropped
out after sharing, s_u removes the masks that the neighbours made with u. With t shares of both
secrets the server could remove every mask from y_u and read the vector. So a client answers a
single unmask request, and rejects a request that names a client twice.

The phase of a client is the message that the client sends next. The phase of the server is the
message that the server collects. The table ``NEXT`` gives the phase after each phase. A call
that belongs to another phase raises `LocalProtocolError` and changes nothing.

FINISHED, FAILED and SUSPENDED are final. A client fails when the server's message fails a
check, and drops all its secrets. The server rejects an invalid message and goes on. The server
fails when too few messages arrive, too many shares are wrong or the sum is impossible. A
suspended client continues in another client, which restores the state. No round is retried,
since two inputs under the same masks would reveal their difference. The next attempt is a new
round with new keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from secagg.errors import LocalProtocolError
from secagg.protocol.shape import Security


class Phase(StrEnum):
    """Phase of a client or server: the message that is due next, or the outcome."""

    ADVERTISE_KEYS = "advertise_keys"
    SHARE_KEYS = "share_keys"
    MASKED_INPUT = "masked_input"
    CONSISTENCY_CHECK = "consistency_check"
    UNMASKING = "unmasking"
    FINISHED = "finished"
    FAILED = "failed"
    SUSPENDED = "suspended"


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
"""Next phase after each phase, by security variant, in the order of the round.

Every round begins in ADVERTISE_KEYS. FAILED may follow any phase and is not in the table.
"""


def out_of_order(call: str, phase: Phase, *, resumable: bool = False) -> LocalProtocolError:
    """Return the error for the method `call`, made in a `phase` that does not allow the call.

    `resumable` is True for a server that has ended but has a journal to continue the round.
    """
    ended = {
        Phase.FINISHED: "this client or server has ended; make a new one",
        Phase.FAILED: "this client or server has ended; make a new one",
        Phase.SUSPENDED: "this client has ended; restore its state into a new one",
    }
    remedy = ended.get(phase, f"{phase} comes next")
    if resumable:
        remedy = "this server has ended; open its journal again and use Server.resume"
    return LocalProtocolError(f"{call} is out of order in phase {phase}: {remedy}")
