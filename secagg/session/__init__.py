"""Sessions: many rounds of the same members, over any transport that carries bytes.

A `Session` on the server chooses a cohort and sends the parameters and a message to the cohort.
The session closes each phase when all clients have answered or at the deadline, and retries a
failed round. A member calls `take_part` once, with a function that returns the member's vector.
A transport calls `Session.next_task` and `Session.accept`, and gives each member a `Link`;
`LocalLink` is the link within a process. docs/sessions.md specifies the frames.

`Session.watch` takes a function that gets each `Event`, which has a `Place`:

- of a round: `Gathering`, `RoundBegun`, `RoundFinished`, `RoundFailed`, `ClientConvicted`;
- of a phase: `PhaseOpened`, `TaskTaken`, `MessageAccepted`, `MessageRejected`,
  `MemberDeclined`, `PhaseClosed`;
- of a helper: `HelperAnswered`, `HelperFailed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secagg._lazily import lazily

if TYPE_CHECKING:
    from secagg.session.clock import Clock
    from secagg.session.completed import Completed
    from secagg.session.events import (
        ClientConvicted,
        Event,
        Gathering,
        HelperAnswered,
        HelperFailed,
        MemberDeclined,
        MessageAccepted,
        MessageRejected,
        PhaseClosed,
        PhaseOpened,
        Place,
        RoundBegun,
        RoundFailed,
        RoundFinished,
        TaskTaken,
    )
    from secagg.session.helpers import HelperLink, LocalHelper
    from secagg.session.links import Link, LocalLink
    from secagg.session.member import take_part
    from secagg.session.presence import Attendance
    from secagg.session.rounds import Deadlines
    from secagg.session.session import Session
    from secagg.session.wire import bind

__all__ = [
    "Attendance",
    "ClientConvicted",
    "Clock",
    "Completed",
    "Deadlines",
    "Event",
    "Gathering",
    "HelperAnswered",
    "HelperFailed",
    "HelperLink",
    "Link",
    "LocalHelper",
    "LocalLink",
    "MemberDeclined",
    "MessageAccepted",
    "MessageRejected",
    "PhaseClosed",
    "PhaseOpened",
    "Place",
    "RoundBegun",
    "RoundFailed",
    "RoundFinished",
    "Session",
    "TaskTaken",
    "bind",
    "take_part",
]

if not TYPE_CHECKING:  # a node of Flower starts a process for each message, and needs the wire
    _HOMES = {
        "completed": ("Completed",),
        "clock": ("Clock",),
        "helpers": ("HelperLink", "LocalHelper"),
        "links": ("Link", "LocalLink"),
        "member": ("take_part",),
        "presence": ("Attendance",),
        "rounds": ("Deadlines",),
        "session": ("Session",),
        "wire": ("bind",),
    }
    _HOMES["events"] = set(__all__).difference(*_HOMES.values())
    __getattr__, __dir__ = lazily(__name__, _HOMES)
