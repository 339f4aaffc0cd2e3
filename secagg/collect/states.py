"""States of a batch, and the transitions between them.

A batch is *open* while clients report. *Closing* ends this: the transition takes the lock of
the batch's row, for which every insertion of reports waits before the insertion's commit. So no
report comes after the transition, and workers read all reports. Then the list of clients is
*fixed*, in the same row and before any helper gets the list. Helpers have *reserved* the list
with their reservations in the row, and *opened* the list with the sum in the row. A batch
is *done* when the reports are dropped.

No state has two successors, but a batch without a sum can be dropped: the batch is *done* then,
with an error in place of the sum. A transition changes the row only in the state before, so
among processes that compete, or repeat a step after a crash, one process makes the transition.
The others go on with what the row has: there are never two lists for a batch.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """State of a batch."""

    OPEN = "open"
    CLOSING = "closing"
    FIXED = "fixed"
    RESERVED = "reserved"
    OPENED = "opened"
    DONE = "done"


BEFORE = {after: before for before, after in zip(State, list(State)[1:], strict=False)}
"""State before each state but the first."""
