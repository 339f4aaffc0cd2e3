"""The phases of a round, their order, and the error for a call that is out of order.

A round runs through the phases below, on the server and on each client alike; a client's
phase is the message it sends next, the server's the message it waits for. U1 are the clients
that advertised keys, U2 those that shared them, U3 those whose masked input is in the sum, U4
those that signed U3 (active variant only), U5 those that answer the unmask request (Bonawitz
2017, Figure 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from secagg.errors import LocalProtocolError
from secagg.protocol.params import Security

__all__ = ["NEXT", "Phase", "out_of_order"]


class Phase(StrEnum):
    """Where a machine stands."""

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
"""The transition tables. FINISHED and FAILED are terminal; any phase may fail."""


def out_of_order(call: str, phase: Phase, *, resumable: bool = False) -> LocalProtocolError:
    """Return the error for a call that is not due in `phase`; nothing has changed.

    A machine that has ended is `resumable` when its journal goes on where it stopped.
    """
    if resumable:
        remedy = "this server has ended; open its journal again and use Server.resume"
    elif phase in (Phase.FINISHED, Phase.FAILED):
        remedy = "this machine has ended; make a new one"
    else:
        remedy = f"{phase} comes next"
    return LocalProtocolError(f"{call} is out of order in phase {phase}: {remedy}")
